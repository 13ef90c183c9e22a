"""A history that every provider takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from .messages import Message
from .parts import CallError, RawBlock, Text, ToolCall, ToolResult


def normalise_history(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same conversation in the form that all wires accept; applying it twice changes nothing.

    Each call has exactly one result, directly behind its message and in call order: missing ones are made up, strays
    and repeats dropped. Empty texts go, and messages that are left with nothing to say.
    """
    return Normaliser().feed(tuple(messages))


class Normaliser:
    """``normalise_history`` for a history that grows: only the last block and what came after it is looked at.

    A block is a user message, or an assistant message with the results that follow it. Blocks do not depend on each
    other, so all but the last are final.
    """

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._open = 0  # where the last block starts in _seen
        self._out: list[Message] = []
        self._closed = 0  # how much of _out stands before the last block

    def feed(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The normalised history. Feeding a history that does not continue the last one starts over."""
        start = self._open
        if messages[:start] != self._seen[:start] or _goes_on(messages, start):  # the same objects compare at C speed
            start = self._closed = 0
        del self._out[self._closed :]
        self._seen = messages
        while start < len(messages):
            end = _block_end(messages, start)
            self._open, self._closed = start, len(self._out)
            self._out.extend(_normalise_block(messages[start:end]))
            start = end
        return tuple(self._out)


def _goes_on(messages: Sequence[Message], start: int) -> bool:
    """Whether what began a block was replaced by results, which belong to the block before."""
    return 0 < start < len(messages) and messages[start].role == "tool"


def block_of(messages: Sequence[Message], place: int) -> slice:
    """The places of the block that a message is in."""
    start = place
    while start > 0 and messages[start].role == "tool":
        start -= 1
    return slice(start, _block_end(messages, start))


def _block_end(messages: Sequence[Message], start: int) -> int:
    end = start + 1
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def _normalise_block(block: Sequence[Message]) -> Iterable[Message]:
    head = block[0]
    if head.role == "tool":  # results without a call
        return
    parts = tuple(part for part in head.parts if not (isinstance(part, Text) and not part.text))
    if not _says_something(head, parts):
        return
    yield head if len(parts) == len(head.parts) else attrs.evolve(head, parts=parts)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if calls:
        yield _results(head, calls, block[1:])


def _says_something(message: Message, parts: Sequence[object]) -> bool:
    if message.role == "user":
        return bool(parts)
    return any(isinstance(part, (Text, ToolCall, RawBlock)) for part in parts)


def _results(head: Message, calls: Sequence[ToolCall], tail: Sequence[Message]) -> Message:
    found: dict[str, ToolResult] = {}
    for message in tail:
        for part in message.parts:
            if isinstance(part, ToolResult):
                found.setdefault(part.call_id, part)
    parts = tuple(found.get(call.id) or _missing(call) for call in calls)
    if len(tail) == 1 and tail[0].parts == parts:
        return tail[0]
    return Message(tail[0].id if tail else f"{head.id}-results", "tool", parts)


def _missing(call: ToolCall) -> ToolResult:
    error = CallError("cancelled", "No result was recorded for this call.")
    return ToolResult(call.id, call.name, "cancelled", error=error)


def answerable(messages: Sequence[Message]) -> bool:
    """Whether a model has something to answer: the last message is not a finished answer of its own."""
    if not messages:
        return False
    last = messages[-1]
    return last.role != "assistant" or last.interrupted or bool(last.calls)
