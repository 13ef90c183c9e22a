"""Frames of the Messages stream, typed: https://docs.anthropic.com/en/api/messages-streaming.

A frame's ``type`` decides; the event's name is only looked at where the data has none. Frames, blocks and deltas of
types that are not known here are no errors: new ones appear without notice.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from .json import SHALLOW, check_depth, decode, decode_unmended, encode


class TextDelta(Struct, tag="text_delta", gc=False):
    """More text."""

    text: str


class ThinkingDelta(Struct, tag="thinking_delta", gc=False):
    """More reasoning."""

    thinking: str


class InputDelta(Struct, tag="input_json_delta", gc=False):
    """More of a call's arguments, as text."""

    partial_json: str


class SignatureDelta(Struct, tag="signature_delta", gc=False):
    """The signature of a thinking block; comes once, whole."""

    signature: str


class CitationsDelta(Struct, tag="citations_delta"):
    """One more citation of a text block."""

    citation: Any


class BlockDelta(Struct, tag="content_block_delta", gc=False):
    """More of one block."""

    index: int
    delta: TextDelta | InputDelta | ThinkingDelta | SignatureDelta | CitationsDelta


class BlockStart(Struct, tag="content_block_start"):
    """A block begins; what is given here already is kept verbatim."""

    index: int
    content_block: Raw


class BlockStop(Struct, tag="content_block_stop", gc=False):
    """A block is complete."""

    index: int


class MessageStart(Struct, tag="message_start"):
    """The response begins. ``message`` is null on some gateways."""

    message: Any = None


class MessageDelta(Struct, tag="message_delta"):
    """The stop reason and the final usage."""

    delta: Any = None
    usage: Any = None


class MessageStop(Struct, tag="message_stop", gc=False):
    """Nothing comes after this."""


class Ping(Struct, tag="ping", gc=False):
    """May come anywhere, even first."""


class ErrorFrame(Struct, tag="error"):
    """The response failed after its status was sent: HTTP says 200 all the same."""

    body: Any = None


class LooseDelta(Struct, gc=False):
    """A ``BlockDelta`` whose delta is not of a known type, or not of its form."""

    index: int
    fields: dict[str, Any]


Known: TypeAlias = BlockDelta | BlockStart | BlockStop | MessageStart | MessageDelta | MessageStop | Ping
Frame: TypeAlias = Known | LooseDelta | ErrorFrame

_decode = msgspec.json.Decoder(Known).decode


def read_frame(name: bytes, data: bytes) -> Frame | None:
    """The frame in an event's data, or None where it says nothing that is known.

    Raises:
        ProviderError: the data is nested too deeply (``invalid_response``).
    """
    if len(data) > SHALLOW:
        check_depth(data)
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return _read_loosely(name, data)


def _read_loosely(name: bytes, data: bytes) -> Frame | None:
    try:
        found = decode_unmended(data)
    except ValueError:
        return None  # not JSON, such as a "[DONE]"
    if not isinstance(found, dict):
        return None
    kind = found.get("type") or name.decode("utf-8", "replace")
    index = found.get("index")
    at = index if isinstance(index, int) else 0
    if kind == "content_block_delta":
        delta = found.get("delta")
        return LooseDelta(at, delta) if isinstance(delta, dict) else None
    found = decode(data)  # again, with the text mended
    return ErrorFrame(found) if kind == "error" or _is_bare_error(found) else _other(kind, at, found)


def _is_bare_error(found: dict[str, Any]) -> bool:
    """Gateways before other servers put their error into a stream as it is."""
    return "type" not in found and "error" in found


def _other(kind: str, at: int, found: dict[str, Any]) -> Frame | None:
    match kind:
        case "content_block_start":
            block = found.get("content_block")
            return BlockStart(at, Raw(encode(block))) if isinstance(block, dict) else None
        case "content_block_stop":
            return BlockStop(at)
        case "message_start":
            return MessageStart(found.get("message"))
        case "message_delta":
            return MessageDelta(found.get("delta"), found.get("usage"))
        case "message_stop":
            return MessageStop()
        case _:
            return None
