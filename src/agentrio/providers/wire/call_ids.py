"""Ids of tool calls as a wire takes them."""

from __future__ import annotations

import hashlib
import re

from agentrio.domain.messages import ModelTag
from agentrio.domain.parts import ToolCall, ToolResult

LONGEST = 64  # characters; Anthropic's and OpenAI's Responses wires take no more


class CallIds:
    """The wire's ids of calls: the provider's own where it can be, and never two calls with one id.

    Providers use ids again in later rounds, so an id that is taken is replaced by one made of ours, which is unique in
    the session. The mapping follows from the order of the history alone: a longer history keeps what was given.
    ``longest`` is how many characters the wire takes in an id.
    """

    def __init__(self, tag: ModelTag, longest: int = LONGEST) -> None:
        self._tag = tag
        self._longest = longest
        self._valid = re.compile(rf"[a-zA-Z0-9_-]{{1,{longest}}}\Z")
        self._of: dict[str, str] = {}
        self._taken: set[str] = set()

    def of_call(self, call: ToolCall, tag: ModelTag | None) -> str:
        """The wire's id of a call that is met for the first time, or again."""
        known = self._of.get(call.id)
        if known is not None:
            return known
        own = tag is not None and tag.provider == self._tag.provider and self._valid.match(call.provider_id)
        wire = call.provider_id if own else self._made(call.id)
        if wire in self._taken:
            wire = self._made(call.id)
        salt = 0
        while wire in self._taken:
            salt += 1
            wire = self._hashed(call.id, salt)
        self._taken.add(wire)
        self._of[call.id] = wire
        return wire

    def of_result(self, result: ToolResult) -> str:
        """The wire's id of the call that a result answers."""
        return self._of.get(result.call_id) or self._made(result.call_id)

    def _made(self, id: str) -> str:
        """Our own id where the wire takes it, else one with a hash, so that cutting never makes two ids equal."""
        return id if self._valid.match(id) else self._hashed(id)

    def _hashed(self, id: str, salt: int = 0) -> str:
        digest = hashlib.sha256(f"{salt}:{id}".encode("utf-8", "replace")).hexdigest()[:16]
        return re.sub(r"[^a-zA-Z0-9_-]", "_", id)[: self._longest - 17] + "_" + digest
