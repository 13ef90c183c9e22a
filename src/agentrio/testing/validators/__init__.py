"""Strict checkers of requests: what a provider would refuse, found without asking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs
import msgspec

from agentrio.testing.validators.chat import check_chat
from agentrio.testing.validators.checking import Check, Place, Problem
from agentrio.testing.validators.demands import CallContent, Demands, IdRule
from agentrio.testing.validators.messages import check_messages
from agentrio.testing.validators.responses import check_responses

__all__ = ["CallContent", "Demands", "IdRule", "Problem", "WireName", "validate"]

WireName: TypeAlias = Literal["messages", "chat", "responses"]


@attrs.frozen
class _Wire:
    check: Check
    brackets: bool


_WIRES: Mapping[str, _Wire] = {
    "messages": _Wire(check_messages, brackets=False),
    "chat": _Wire(check_chat, brackets=True),
    "responses": _Wire(check_responses, brackets=True),
}
_USUAL = Demands()


def validate(wire: WireName, body: Any, demands: Demands = _USUAL) -> list[Problem]:
    """Everything that is wrong with a request's body, as bytes or as decoded JSON; empty where a server takes it.

    The rules are the published ones; what only some servers ask is in ``demands``. What depends on the model, such as
    the length of its context, is not looked at.
    """
    rules = _WIRES[wire]
    place = Place(demands, brackets=rules.brackets)
    if isinstance(body, bytes):
        if len(body) > demands.largest:
            place.bad(f"Request too large: {len(body)} bytes, at most {demands.largest}.")
        try:
            body = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            place.bad(f"We could not parse the JSON body of your request: {error}")
            return place.problems
    rules.check(body, place)
    return place.problems
