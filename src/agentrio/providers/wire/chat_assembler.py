"""A Chat Completions response from its bytes: deltas on the way, the whole response at the end. No I/O.

What real servers do, and is stood here: ``choices`` null, empty or absent, no ``delta``, the message in its place, a
``content`` that is a list, reasoning under four names, calls without index or id, arguments as an object, usage in any
chunk, in ``x_groq``, twice or never, a finish reason twice, empty, unknown or never, errors as chunks behind content
and even behind the finish reason, no ``[DONE]``.

The response has ended when a finish reason came: what is cut before it is a drop, what is cut after it is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from agentrio.domain.parts import Part, RawBlock
from agentrio.domain.status import Code, StopReason
from agentrio.domain.usage import NO_USAGE, Usage
from agentrio.providers.base import ModelResponse, PartDelta, ProviderError

from .assembling import DONE, MAX_BODY, MAX_PARTS, EventAssembler, WholeBody, endless
from .billing import Bill, CostStyle, tier_context, told_cost
from .chat_frames import CallPiece, Choice, Chunk, Delta, is_error, loose_chunk, read_chunk
from .chat_parts import AnyPart, CallPart, Calls, Details, TextPart, ThinkingPart, name_piece
from .common import count, put, string
from .failures import from_frame
from .growing import Growing
from .json import encode_text
from .sse import MAX_EVENT, Event

Grown = TypeVar("Grown", bound=AnyPart)

STOP_REASONS: dict[str, StopReason] = {
    "stop": "end",
    "eos": "end",
    "eos_token": "end",
    "end_turn": "end",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",  # Mistral: the context is full
    "model_context_window_exceeded": "max_tokens",  # Z.ai
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "stop_sequence": "stop_sequence",
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # Z.ai
    "refusal": "refusal",
}

FAILED: dict[str, Code] = {
    "error": "dependency_failed",  # OpenRouter
    "network_error": "dependency_failed",  # Z.ai
    "insufficient_system_resource": "overloaded",  # DeepSeek
}
"""Finish reasons that are failures of the server: the response is not whole, and asking again may help."""

MESSAGE_FIELDS = "chat.message"
"""The kind of the block that keeps a message's own fields, such as Gemini's ``extra_content``."""


@attrs.frozen
class Reading:
    """What is particular to a server's answers.

    With ``finish_optional`` a ``[DONE]`` ends the response although no finish reason came. With ``output_from_total``
    the output is what the prompt leaves of ``total_tokens``: the server counts reasoning beside the completion. With
    ``reasoning_beside`` it does so without a word in ``total_tokens``. ``cost`` is how it tells what an answer cost.
    """

    finish_optional: bool = False
    output_from_total: bool = False
    reasoning_beside: bool = False
    cost: CostStyle = "none"


class ChatAssembler(EventAssembler):
    """Assembles the first choice of one response. ``whole`` says that messages add up, as in a body."""

    whole = False

    def __init__(self, reading: Reading = Reading(), max_event: int = MAX_EVENT) -> None:
        super().__init__(max_event)
        self._reading = reading
        self._parts: list[AnyPart] = []
        self._text: TextPart | None = None
        self._refusal: TextPart | None = None
        self._thinking: ThinkingPart | None = None
        self._calls = Calls()
        self._fields: dict[str, Any] = {}
        self._usage: Mapping[str, Any] = {}
        self._tier = ""
        self._raw_stop: str | None = None
        self._model = ""
        self._id = ""
        self._unmended = False  # whether this chunk may hold halves of surrogate pairs
        self._holding: list[Growing] = []  # parts that held one back

    def response(self) -> ModelResponse:
        """What has arrived so far; complete once ``finished``."""
        parts: list[Part]
        if self.finished:
            parts = [part.finished() for part in self._parts]
            if self._fields:
                parts.append(RawBlock(MESSAGE_FIELDS, encode_text(self._fields)))
        else:
            parts = [kept for part in self._parts if (kept := part.partial()) is not None]
        stop = self._stop() if self.finished else None
        raw = self._raw_stop if self.finished else None
        usage = usage_of(self._usage, self._reading)
        return ModelResponse(tuple(parts), stop, raw, usage, self._model, self._id)

    def bill(self) -> Bill:
        """What was told of the cost so far."""
        return Bill(told_cost(self._usage, self._reading.cost), context=tier_context(self._tier))

    def _stop(self) -> StopReason:
        if self._refusal is not None:
            return "refusal"
        raw = self._raw_stop
        stop = "end" if raw is None else STOP_REASONS.get(raw, "unknown")
        called = any(isinstance(part, CallPart) for part in self._parts)
        return "tool_calls" if called and stop == "end" else stop

    def _read(self, events: list[Event], out: list[PartDelta]) -> None:
        for name, data in events:
            chunk = read_chunk(name, data)
            if chunk is not None:
                self.take(chunk, out)
            elif data.strip() == DONE:
                self._end(out)
                if self.done:
                    return
            else:
                self._pass_over(data)

    def _end(self, out: list[PartDelta]) -> None:
        if self._reading.finish_optional and self._parts:
            self._finish(out)
        self.done: bool = self.finished

    def take(self, chunk: Chunk, out: list[PartDelta]) -> None:
        """One chunk.

        Raises:
            ProviderError: it is an error, or its finish reason is one.
        """
        if chunk.usage or chunk.x_groq:
            self._keep_usage(chunk)
        if chunk.body is not None:
            raise self._failed(from_frame(chunk.body, begun=bool(self._parts)))
        if chunk.model:
            self._model = chunk.model
        if chunk.id and not self._id:
            self._id = chunk.id
        self._unmended = chunk.unmended
        for choice in chunk.choices or ():
            if not choice.index:  # others were not asked for, yet come
                self._choose(choice, out)

    def _choose(self, choice: Choice, out: list[PartDelta]) -> None:
        delta = choice.delta
        if delta is None and (self.whole or not self._parts):
            delta = choice.message
        if delta is not None:
            self._apply(delta, out)
        if choice.error:
            raise self._failed(from_frame({"error": choice.error}, begun=bool(self._parts)))
        reason = choice.finish_reason
        if reason:
            if (code := FAILED.get(reason)) is not None:
                error = ProviderError(f"The model server broke off: {reason}", code=code, retry="stream")
                raise self._failed(error)
            self._raw_stop = reason
            self._finish(out)

    def _apply(self, delta: Delta, out: list[PartDelta]) -> None:
        content = delta.content
        if content and type(content) is str:  # nearly every delta: no call more than needed
            part = self._text
            if part is None:
                part = self._text = self._added(TextPart(len(self._parts)))
            if self._unmended:
                self._grow(part, content, out)
            elif (more := part.add(content)) is not None:
                out.append(more)
        if delta.reasoning_content:
            self._think("reasoning_content", delta.reasoning_content, out)
        elif delta.reasoning:
            self._think("reasoning", delta.reasoning, out)
        if delta.tool_calls:
            for piece in delta.tool_calls:
                self._call(piece, out)
        if delta.reasoning_details or delta.refusal or delta.function_call or delta.extra_content:
            self._apply_rest(delta, out)
        if content.__class__ is list:
            self._apply_list(content, out)

    def _apply_rest(self, delta: Delta, out: list[PartDelta]) -> None:
        self.idle = False
        if delta.reasoning_details:
            self._detail(delta, out)
        if delta.refusal:
            if self._refusal is None:
                self._refusal = self._added(TextPart(len(self._parts), refusal=True))
            self._grow(self._refusal, delta.refusal, out)
        if delta.function_call:
            self._call(CallPiece(function=delta.function_call), out)
        if isinstance(delta.extra_content, dict):
            self._fields["extra_content"] = delta.extra_content

    def _apply_list(self, content: Any, out: list[PartDelta]) -> None:
        """Mistral's: https://docs.mistral.ai/inference/conversations/reasoning. A text behind reasoning is a part of
        its own.
        """
        for item in content:
            kind = item.get("type") if isinstance(item, dict) else None
            if kind == "text" and (text := string(item.get("text"))):
                if self._text is None:
                    self._text = self._added(TextPart(len(self._parts)))
                    self._thinking = None
                self._grow(self._text, text, out)
            elif kind == "thinking" and (text := _thinking_text(item.get("thinking"))):
                self._think("content", text, out)
                self._text = None

    def _think(self, field: str, text: str, out: list[PartDelta]) -> None:
        part = self._thinking
        if part is None:
            part = self._thinking = self._added(ThinkingPart(len(self._parts), field))
        self._grow(part, text, out)

    def _detail(self, delta: Delta, out: list[PartDelta]) -> None:
        """Details tell again what the plain field tells, or tell it alone."""
        details = Details() if self._thinking is None else self._thinking.details
        text = details.add(delta.reasoning_details or [])
        if details.empty:
            return
        if self._thinking is None:
            self._thinking = self._added(ThinkingPart(len(self._parts), "reasoning_details"))
        self._thinking.details = details
        if text and not delta.reasoning and not delta.reasoning_content:
            self._grow(self._thinking, text, out)

    def _call(self, piece: CallPiece, out: list[PartDelta]) -> None:
        self.idle: bool = False
        function = piece.function
        id, name, arguments = piece.id or "", "", None
        if function is not None:
            name, arguments = function.name or "", function.arguments
        call = self._calls.find(piece.index, id, name, arguments)
        if call is None:
            if not (id or name or arguments):
                return
            call = self._added(CallPart(len(self._parts), piece.index))
            self._calls.add(call)
        self._calls.identify(call, id)
        name_piece(call, name)
        for key in ("extra_content", "provider_specific_fields"):
            if (value := getattr(piece, key)) is not None:
                call.extra[key] = value
        if isinstance(arguments, str):
            self._grow(call, arguments, out)
        elif arguments is not None and not call.length:
            self._grow(call, encode_text(arguments), out)

    def _added(self, part: Grown) -> Grown:
        if len(self._parts) >= MAX_PARTS:
            raise endless()
        self._parts.append(part)
        return part

    def _grow(self, part: Growing, text: str, out: list[PartDelta]) -> None:
        put(part.add_unmended(text) if self._unmended else part.add(text), out)
        if part.held:
            self._holding.append(part)

    def _finish(self, out: list[PartDelta]) -> None:
        for part in self._holding:
            put(part.flush(), out)
        self._holding.clear()
        self.finished: bool = True

    def _failed(self, error: ProviderError) -> ProviderError:
        self.finished = False  # OpenRouter tells an error behind a finish reason, which is then none
        return error

    def _keep_usage(self, chunk: Chunk) -> None:
        usage = chunk.usage
        if not usage and isinstance(chunk.x_groq, Mapping):
            usage = None if self._usage else chunk.x_groq.get("usage")
        if isinstance(usage, Mapping) and usage:
            self._usage = usage
            self._tier = chunk.service_tier or self._tier


class ChatBodyAssembler(WholeBody, ChatAssembler):
    """For an answer that is one JSON body: the same outcome."""

    what = "a chat completion"
    whole = True  # Copilot splits one message into two choices of index 0

    def __init__(self, reading: Reading = Reading(), max_body: int = MAX_BODY) -> None:
        super().__init__(max_body)
        self._reading = reading

    def _read_body(self, found: dict[str, Any], out: list[PartDelta]) -> None:
        chunk = loose_chunk(found)
        if is_error(chunk):
            raise from_frame(found, begun=False)
        self.take(chunk, out)
        if not chunk.choices:
            raise self._unfit("it has no choice")
        self._finish(out)  # a body that is JSON is whole, whether or not the server says why it ended


def usage_of(found: Mapping[str, Any], reading: Reading = Reading()) -> Usage:
    """Tokens as told. ``prompt_tokens`` holds the cached ones on this wire, ``completion_tokens`` the reasoning.

    DeepSeek tells the cached ones as ``prompt_cache_hit_tokens``; OpenRouter tells those written to a cache.
    """
    if not found:
        return NO_USAGE
    of_prompt, of_output = (_mapping(found.get(f"{key}_tokens_details")) for key in ("prompt", "completion"))
    prompt, output = count(found.get("prompt_tokens")), count(found.get("completion_tokens"))
    total, reasoning = count(found.get("total_tokens")), count(of_output.get("reasoning_tokens"))
    if reading.output_from_total and total > prompt + output:
        reasoning, output = total - prompt - output, total - prompt
    if reading.reasoning_beside:
        output += reasoning
    read = min(prompt, count(of_prompt.get("cached_tokens")) or count(found.get("prompt_cache_hit_tokens")))
    written = min(prompt - read, count(of_prompt.get("cache_write_tokens")))
    return Usage(prompt - read - written, output, read, written, min(output, reasoning))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _thinking_text(value: object) -> str:
    if isinstance(value, list):
        return "".join(string(item.get("text")) for item in value if isinstance(item, dict))
    return string(value)
