"""Odd values that servers send, read without a fault."""

from __future__ import annotations

import re

from agentrio.providers.base import PartDelta

GO_ON = "[Your answer was stopped here. Go on from where it ends.]"
"""What the user says behind an answer that is to be continued, where the model can't begin its own with it."""

MOST_TOKENS = 2**53 - 1  # the largest whole number that every reader of JSON holds exactly


def count(value: object) -> int:
    """A number of tokens; what is none, is nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # NaN is not itself
        return 0
    return int(max(0, min(value, MOST_TOKENS)))


def string(value: object) -> str:
    """A text; what is none, is empty."""
    return value if isinstance(value, str) else ""


def put(delta: PartDelta | None, out: list[PartDelta]) -> None:
    """Append, unless there is nothing."""
    if delta is not None:
        out.append(delta)


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_OF_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def call_name(name: str) -> str:
    """The name of a call as it goes back to a server.

    Models say names that no tool has, and their servers pass them on; sent back, only the names that a tool may have
    are taken: https://platform.openai.com/docs/api-reference/chat/create (at most 64 letters, digits, ``_``, ``-``).
    """
    return name if _NAME.fullmatch(name) else _NOT_OF_A_NAME.sub("_", name)[:64] or "_"
