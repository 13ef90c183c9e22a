"""Frames of a Responses stream, typed:
https://developers.openai.com/api/reference/resources/responses/streaming-events.

There are more than fifty types of event, and new ones come without notice, so all are read into one shape and told
apart by ``type``. What a server leaves out is None: llama.cpp sends no indexes, gateways no names of events.
"""

from __future__ import annotations

from typing import Any

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from .common import string
from .json import SHALLOW, check_depth, decode, decode_unmended, encode

NOTHING = Raw(b"null")


class Frame(Struct, gc=False):
    """One event. Of its many fields only those that a response is made of are read."""

    type: str = ""
    delta: Any = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    item_id: str | None = None
    item: Raw = NOTHING
    response: Raw = NOTHING
    error: Any = None


class LooseFrame(Frame, gc=False):
    """An event that is not of the usual form. Its ``delta`` may end in half a surrogate pair."""


class Reply(Struct, gc=False):
    """The ``response`` of an event: its head at first, the whole at the end."""

    id: str = ""
    model: str = ""
    status: str = ""
    output: list[Raw] | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: Any = None
    service_tier: str | None = None


_decode = Decoder(Frame).decode
_decode_reply = Decoder(Reply).decode


def read_frame(name: bytes, data: bytes) -> Frame | None:
    """The frame in an event's data; None where it is no JSON object, such as the ``[DONE]`` that gateways add.

    Raises:
        ProviderError: the data is nested too deeply (``invalid_response``).
    """
    if len(data) > SHALLOW:
        check_depth(data)
    try:
        frame = _decode(data)
    except MsgspecError:
        return _read_loosely(name, data)
    if not frame.type:
        frame.type = _name(name, frame.error)
    return frame


def _name(name: bytes, error: Any) -> str:
    """The type of an event whose data has none. Gateways put the error of another server into a stream as it is."""
    return name.decode("utf-8", "replace") or ("" if error is None else "error")


def _read_loosely(name: bytes, data: bytes) -> Frame | None:
    try:
        found = decode_unmended(data)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    delta = found.get("delta")
    whole = decode(data)  # again, with the text mended
    return LooseFrame(
        string(found.get("type")) or _name(name, found.get("error")),
        delta,
        _index(found.get("output_index")),
        _index(found.get("content_index")),
        _index(found.get("summary_index")),
        string(whole.get("item_id")),
        Raw(encode(whole.get("item"))),
        Raw(encode(whole.get("response"))),
        whole.get("error"),
    )


def read_reply(data: Raw) -> Reply:
    """The response in an event or a body, as far as it is of the usual form."""
    try:
        return _decode_reply(data)
    except MsgspecError:
        found = decode(bytes(data))
    if not isinstance(found, dict):
        return Reply()
    output = found.get("output")
    return Reply(
        string(found.get("id")),
        string(found.get("model")),
        string(found.get("status")),
        [Raw(encode(item)) for item in output] if isinstance(output, list) else None,
        found.get("usage"),
        found.get("error"),
        found.get("incomplete_details"),
        string(found.get("service_tier")),
    )


def _index(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
