"""A Messages response from its bytes: deltas on the way, the whole response at the end. No I/O.

What real servers do, and is stood here: pings anywhere, no ``message_start`` (llama.cpp), a second one (a gateway that
started over), ``message: null``, input given whole with the block's start, event names that differ from the type,
frames and deltas of unknown types, usage that is no number, a missing ``message_stop``.

The response has ended when the frame with its stop reason came: what is cut before it is a drop, what is cut after it
is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from agentrio.domain.parts import Part
from agentrio.domain.status import StopReason
from agentrio.domain.usage import NO_USAGE, Usage
from agentrio.providers.base import ModelResponse, PartDelta

from .anthropic_blocks import Block
from .anthropic_frames import (
    BlockDelta,
    BlockStart,
    BlockStop,
    ErrorFrame,
    Frame,
    InputDelta,
    LooseDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    TextDelta,
    ThinkingDelta,
    read_frame,
)
from .assembling import MAX_PARTS, EventAssembler, WholeBody, endless
from .billing import Bill
from .common import count, put, string
from .failures import from_frame
from .json import decode_kept, encode
from .sse import MAX_EVENT, Event

STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",  # "pause_after_compaction": the server stops behind its summary and waits to be continued
}

_TEXT, _THINKING, _INPUT = TextDelta, ThinkingDelta, InputDelta


class Assembler(EventAssembler):
    """Assembles the blocks of one response."""

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        super().__init__(max_event)
        self._blocks: dict[int, Block] = {}  # in the order of their first start
        self._superseded = False  # a second message_start came, and no block since
        self._usage: dict[str, Any] = {}
        self._raw_stop: str | None = None
        self._stop_detail: str | None = None
        self._model = ""
        self._id = ""

    def response(self) -> ModelResponse:
        """What has arrived so far; complete once ``finished``."""
        blocks = self._blocks.values()
        parts: list[Part]
        if self.finished:
            parts = [block.finished() for block in blocks]
        else:
            parts = [part for block in blocks if (part := block.partial()) is not None]
        raw = self._raw_stop if self.finished else None
        stop = None if raw is None else STOP_REASONS.get(raw, "unknown")
        return ModelResponse(tuple(parts), stop, raw, usage_of(self._usage), self._model, self._id, self._stop_detail)

    def bill(self) -> Bill:
        """What the price depends on beside the tokens; this wire tells no cost."""
        written, speed = self._usage.get("cache_creation"), string(self._usage.get("speed"))
        hour = count(written.get("ephemeral_1h_input_tokens")) if isinstance(written, Mapping) else 0
        return Bill(hour_writes=hour, context={"speed": speed} if speed else {})

    def _read(self, events: list[Event], out: list[PartDelta]) -> None:
        blocks = self._blocks
        append = out.append
        for name, data in events:
            frame = read_frame(name, data)
            if type(frame) is BlockDelta:  # nearly every frame: no call more than needed
                block = blocks.get(frame.index)
                if block is None:
                    continue
                delta = frame.delta
                kind = block.kind
                if type(delta) is _TEXT and kind == "text":
                    more = block.add(delta.text)
                elif type(delta) is _INPUT and kind == "input":
                    more = block.add(delta.partial_json)
                elif type(delta) is _THINKING and kind == "thinking":
                    more = block.add(delta.thinking)
                else:
                    more = block.apply(delta)
                    self.idle = False
                if more is not None:
                    append(more)
            elif frame is not None:
                self._other(frame, out)
                if self.done:
                    return
            else:
                self._pass_over(data)

    def _other(self, frame: Frame, out: list[PartDelta]) -> None:
        self.idle: bool = self.idle and type(frame) is Ping
        match frame:
            case BlockStart(index=index, content_block=json):
                self.start(index, bytes(json), out)
            case BlockStop(index=index):
                self.stop(index, out)
            case LooseDelta(index=index, fields=fields):
                block = self._blocks.get(index)
                put(None if block is None else block.apply_loosely(fields), out)
            case MessageStart(message=message):
                self.begin(message, out)
            case MessageDelta(delta=delta, usage=usage):
                self.end(delta, usage)
            case MessageStop():
                self.done: bool = self.finished
            case ErrorFrame(body=body) if not self.finished:
                raise from_frame(body, begun=bool(self._blocks))
            case BlockDelta() | Ping() | ErrorFrame():  # fed elsewhere, or of no weight
                pass
            case _:
                assert_never(frame)

    def begin(self, message: Any, out: list[PartDelta]) -> None:
        """The response's head; a second one means that what follows may start over."""
        self._superseded = bool(self._blocks)
        if not isinstance(message, Mapping):
            return
        self._id = self._id or string(message.get("id"))
        self._model = string(message.get("model")) or self._model
        self._keep_usage(message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self.start(index, encode(block), out)

    def start(self, index: int, json: bytes, out: list[PartDelta]) -> None:
        """A block begins. One that comes again after a second head replaces all that came before that head."""
        if self._superseded and index in self._blocks:
            self._blocks.clear()
        self._superseded = False
        found, json = decode_kept(json)
        if isinstance(found, dict):
            old = self._blocks.get(index)
            if old is None and len(self._blocks) >= MAX_PARTS:
                raise endless()
            block = self._blocks[index] = Block(len(self._blocks) if old is None else old.part, json, found)
            put(block.opening(), out)

    def stop(self, index: int, out: list[PartDelta]) -> None:
        """A block is complete."""
        block = self._blocks.get(index)
        put(None if block is None else block.close(), out)

    def end(self, delta: Any, usage: Any) -> None:
        """The frame that carries the stop reason."""
        self._keep_usage(usage)
        reason = delta.get("stop_reason") if isinstance(delta, Mapping) else None
        if isinstance(reason, str) and reason:
            self._raw_stop = reason
            self._stop_detail = _category(delta.get("stop_details"))
            self.finished = True

    def _keep_usage(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            self._usage.update({key: value for key, value in usage.items() if value is not None})


class BodyAssembler(WholeBody, Assembler):
    """For servers that answer with one JSON body although a stream was asked for."""

    what = "a message"

    def _read_body(self, found: dict[str, Any], out: list[PartDelta]) -> None:
        if found.get("type") == "error" or ("error" in found and "content" not in found):
            raise from_frame(found, begun=False)
        self.begin(found, out)
        for index in tuple(self._blocks):
            self.stop(index, out)
        self.end(found, None)
        if not self.finished:
            raise self._unfit("it has no stop reason")


def usage_of(found: Mapping[str, Any]) -> Usage:
    """Tokens as the wire counts them: ``input_tokens`` are the uncached part already."""
    if not found:
        return NO_USAGE
    details, output = found.get("output_tokens_details"), count(found.get("output_tokens"))
    return Usage(
        count(found.get("input_tokens")),
        output,
        count(found.get("cache_read_input_tokens")),
        count(found.get("cache_creation_input_tokens")),
        min(output, count(details.get("thinking_tokens"))) if isinstance(details, Mapping) else 0,
    )


def _category(details: Any) -> str | None:
    """Of a refusal the server says which policy it falls under (``stop_details.category``)."""
    category = details.get("category") if isinstance(details, Mapping) else None
    return category if isinstance(category, str) and category else None
