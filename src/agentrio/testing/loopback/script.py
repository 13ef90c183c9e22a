"""What the loopback server answers: replies, how they are sent, and what goes wrong. Values only.

A reply says what the model says, free of any wire; `loopback.wires` puts it into frames. Stop reasons are named as the
Messages wire does, or as the wire in use does. A *frame* is one event of the wire's stream (for Messages:
``message_start``, each delta, ``ping``, ...), and the unit that faults count in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from agentrio.domain.keywords import tells_keywords

__all__ = [
    "Call",
    "CallsReply",
    "ErrorReply",
    "Fault",
    "Pace",
    "RawReply",
    "Received",
    "Reply",
    "Script",
    "TextReply",
    "WireUsage",
]

FRAGMENT = 12  # characters in a fragment of a text or of arguments that was given whole


@tells_keywords
@attrs.frozen(kw_only=True)
class Fault:
    """What goes wrong with one reply. All counts are of this reply; faults can be combined.

    Attributes:
        stall_before_headers: Silence for ever instead of the response's headers.
        cut_before_headers: Hang up instead of the response's headers.
        stall_after: Silence for ever after this many frames; 0 is silence after the headers.
        cut_at_byte: Close after this many bytes of the body, without an end.
        reset: Close by a TCP reset where a cut closes.
        error_frame_after: An error frame after this many frames, then the stream's end. The status is still 200.
        error_type: The type in that frame.
        error_message: The message in that frame.
        endless: Repeat the deltas until the client goes away.
        close_after: Close the connection after the reply, unannounced.
        dead_reused: Keep the connection, and close it without an answer when the next request comes on it.
    """

    stall_before_headers: bool = False
    cut_before_headers: bool = False
    stall_after: int | None = None
    cut_at_byte: int | None = None
    reset: bool = False
    error_frame_after: int | None = None
    error_type: str = "overloaded_error"
    error_message: str = "Overloaded"
    endless: bool = False
    close_after: bool = False
    dead_reused: bool = False


def _check_chunks(_pace: object, _attribute: object, value: str) -> None:
    kind, _, size = value.partition(":")
    if value != "frame" and not (kind == "bytes" and size.isdigit() and int(size) > 0):
        raise ValueError(f'chunks is "frame" or "bytes:N" with N above 0, not {value!r}')


@tells_keywords
@attrs.frozen(kw_only=True)
class Pace:
    """How the bytes of one reply are sent.

    Attributes:
        chunks: ``"frame"`` (each frame is an HTTP chunk) or ``"bytes:N"`` (the body is cut anew every N bytes).
        pieces: A seed: the body is cut anew at random, through characters and lines. Goes before ``chunks``.
        drip: Bytes per chunk, each sent alone; with ``delay`` a slow drip. Goes before both.
        coalesce: Chunks handed to one send. The client still sees each as an HTTP chunk.
        delay: Seconds between sends, on a fixed schedule (0.001 is one send per millisecond, without drift).
        before_headers: Seconds before the headers.
    """

    chunks: str = attrs.field(default="frame", validator=_check_chunks)
    pieces: int | None = None
    drip: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    coalesce: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    delay: float = 0.0
    before_headers: float = 0.0


@tells_keywords
@attrs.frozen(kw_only=True)
class WireUsage:
    """Token counts of one reply. ``input`` is the uncached part."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0


def _as_deltas(text: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(text, str):
        return tuple(text[i : i + FRAGMENT] for i in range(0, len(text), FRAGMENT))
    return tuple(text)


def _as_optional_deltas(text: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if text is None else _as_deltas(text)


@tells_keywords
@attrs.frozen(eq=False)
class TextReply:
    """The model says a text. Text and thinking are strings (cut into short deltas) or the deltas themselves."""

    text: tuple[str, ...] = attrs.field(converter=_as_deltas, default=())
    thinking: tuple[str, ...] | None = attrs.field(converter=_as_optional_deltas, default=None, kw_only=True)
    signature: str = attrs.field(default="c2lnbmVk", kw_only=True)
    usage: WireUsage = attrs.field(factory=WireUsage, kw_only=True)
    stop_reason: str = attrs.field(default="end_turn", kw_only=True)
    fault: Fault = attrs.field(factory=Fault, kw_only=True)
    pace: Pace = attrs.field(factory=Pace, kw_only=True)


@attrs.frozen
class Call:
    """One tool call. Arguments are a dict, or raw JSON text that is sent as it is, valid or not."""

    name: str
    arguments: Mapping[str, object] | str = attrs.field(factory=dict)
    id: str | None = None


def _as_calls(calls: Sequence[Call | Mapping[str, Any]]) -> tuple[Call, ...]:
    return tuple(call if isinstance(call, Call) else Call(**call) for call in calls)


@tells_keywords
@attrs.frozen(eq=False)
class CallsReply:
    """The model calls tools, perhaps after a text. A call without an id gets one that is unique to the request."""

    calls: tuple[Call, ...] = attrs.field(converter=_as_calls)
    text: tuple[str, ...] = attrs.field(converter=_as_deltas, default=(), kw_only=True)
    thinking: tuple[str, ...] | None = attrs.field(converter=_as_optional_deltas, default=None, kw_only=True)
    signature: str = attrs.field(default="c2lnbmVk", kw_only=True)
    usage: WireUsage = attrs.field(factory=WireUsage, kw_only=True)
    stop_reason: str = attrs.field(default="tool_use", kw_only=True)
    fault: Fault = attrs.field(factory=Fault, kw_only=True)
    pace: Pace = attrs.field(factory=Pace, kw_only=True)


@tells_keywords
@attrs.frozen(eq=False)
class RawReply:
    """A body sent as it is: a recorded stream or answer. Streams are chunked, other types carry their length."""

    body: bytes
    status: int = attrs.field(default=200, kw_only=True)
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    content_type: str = attrs.field(default="text/event-stream; charset=utf-8", kw_only=True)
    fault: Fault = attrs.field(factory=Fault, kw_only=True)
    pace: Pace = attrs.field(factory=Pace, kw_only=True)


@tells_keywords
@attrs.frozen(eq=False)
class ErrorReply:
    """An answer with an error status. The type defaults to the wire's own name for the status."""

    status: int
    error_type: str | None = None
    message: str = "a scripted error"
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    fault: Fault = attrs.field(factory=Fault, kw_only=True)
    pace: Pace = attrs.field(factory=Pace, kw_only=True)


ModelReply = TextReply | CallsReply
Reply = TextReply | CallsReply | RawReply | ErrorReply


@attrs.frozen(eq=False)
class Received:
    """A request as a script's function sees it. ``number`` counts from 1; ``body`` is None if it is not JSON."""

    number: int
    connection: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: object

    @property
    def streamed(self) -> bool:
        """Whether the client asked for a stream."""
        return isinstance(self.body, dict) and self.body.get("stream") is True

    @property
    def model(self) -> str:
        """The model that the client asked for, or a made-up name."""
        model = self.body.get("model") if isinstance(self.body, dict) else None
        return model if isinstance(model, str) else "loopback"


Answer = Callable[[Received], Reply]


def _as_replies(replies: Iterable[Reply]) -> tuple[Reply, ...]:
    return tuple(replies)


@tells_keywords
@attrs.frozen(eq=False)
class Script:
    """Replies in the order of the requests. With ``repeat`` they begin again after the last."""

    replies: tuple[Reply, ...] = attrs.field(converter=_as_replies)
    repeat: bool = False
