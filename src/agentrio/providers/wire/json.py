"""JSON as servers really write it: msgspec for what is right, the standard library for what is nearly right.

msgspec refuses three things that models and servers do send: lone surrogates (``"\\ud83d"``), raw control characters
inside strings, and bytes that are no UTF-8. The slow path takes them. Numbers that are none (``NaN``, ``1e999``, one of
thousands of digits) are null: a server writes them beside what matters, and what matters must not go with them. Only in
a call's arguments they are refused. Decoded text is always encodable again: what stays of a lone surrogate is U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from agentrio.domain.plain import unicode_text
from agentrio.providers.base import ProviderError


def as_plain(value: Any) -> Any:
    """What msgspec does not know how to encode: any mapping is an object, and any class of text a text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_encoder = msgspec.json.Encoder(enc_hook=as_plain)
_decoder = msgspec.json.Decoder()

NUL = b"\\u0000"  # how the encoder writes it; also the tail of an escaped backslash and "u0000"


MAX_DEPTH = 100  # of lists and objects; each level takes several frames of the stack wherever a value is walked
SHALLOW = 2 * MAX_DEPTH  # bytes; what is not longer can't be nested deeper

_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)  # one without an end is looked at once, too
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_depth(data: bytes) -> None:
    """Refuse what is nested too deeply to be meant: anybody who walks it later, recursively, would run out of stack.

    Raises:
        ProviderError: it is (``invalid_response``).
    """
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    brackets = _STRINGS.sub(b"", data).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        inner = brackets.replace(b"[]", b"")  # takes the innermost away
        if len(inner) == len(brackets):
            break
        brackets = inner
    if brackets.count(b"[") > MAX_DEPTH or b"[]" in brackets:
        raise too_deep()


def decode(data: bytes | str, *, strict: bool = False) -> Any:
    """The value, with all text mended; numbers that are none are None, or with ``strict`` refused.

    Raises:
        ValueError: this is no JSON.
        ProviderError: it is nested too deeply to be meant (``invalid_response``).
    """
    if len(data) > SHALLOW:
        check_depth(data.encode("utf-8", "replace") if isinstance(data, str) else data)
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError:
        return scrub(loads(data, strict=strict), strip_nul=False)


def decode_kept(data: bytes) -> tuple[Any, bytes]:
    """The value of a part of a frame, and the JSON to keep of it: the same bytes, unless nobody could read those again.

    Raises:
        ValueError: this is no JSON.
    """
    try:
        return _decoder.decode(data), data
    except msgspec.MsgspecError:
        value = scrub(loads(data), strip_nul=False)
        return value, encode(value)


def decode_unmended(data: bytes) -> Any:
    """As ``decode``, but halves of surrogate pairs stay: the other half may come with the next frame."""
    check_depth(data)
    return loads(data)


def is_json(data: bytes) -> bool:
    """Whether it can be read; what is nested too deeply has been refused before."""
    try:
        loads(data)
    except ValueError:
        return False
    return True


def loads(data: bytes | str, *, strict: bool = False) -> Any:
    """The slow path."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if strict:
        return json.loads(text, strict=False, parse_constant=_refuse, parse_float=_finite)
    return json.loads(text, strict=False, parse_constant=_nothing, parse_float=_finite_or_none, parse_int=_int_or_none)


def too_deep() -> ProviderError:
    """For JSON that would exhaust the stack."""
    return ProviderError("The server sent JSON that is nested too deeply.", code="invalid_response")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:40]} is out of range")
    return value


def _nothing(constant: str) -> None:
    return None


def _finite_or_none(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def _int_or_none(number: str) -> int | None:
    try:
        return int(number)
    except ValueError:  # Python reads no more than some thousand digits
        return None


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Arguments of a tool call: nothing at all means none; None where the text is no JSON object.

    Raw control characters inside strings are accepted, nothing else is repaired.
    """
    if not text or text.isspace():
        return {}
    try:
        value = decode(text, strict=True)
    except (ValueError, ProviderError):
        return None
    return value if isinstance(value, dict) else None


_LITERALS = ("true", "false", "null")


def is_cut(text: str) -> bool:
    """Whether a text that is no JSON is the beginning of some."""
    text = text.rstrip()
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as wrong:
        rest = text[wrong.pos :]
        return not rest or rest[0] == '"' or rest == "-" or any(word.startswith(rest) for word in _LITERALS)
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end: broken, not cut
        pass
    return False


def encode(value: Any) -> bytes:
    """Compact JSON that every server takes: lone surrogates become U+FFFD, NUL characters go."""
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(scrub(value, strip_nul=True))
    return _encoder.encode(scrub(value, strip_nul=True)) if NUL in data else data


def says(text: str) -> bool:
    """Whether anything of a text is left on the wire but space."""
    return bool(text.replace("\0", "").strip())


def trimmed(text: str) -> str:
    """A text that has no space at its end on the wire."""
    kept = text.rstrip()
    return trimmed(kept.rstrip("\0")) if kept.endswith("\0") else kept


def encode_text(value: Any) -> str:
    """``encode`` as text."""
    return encode(value).decode()


def scrub(value: Any, *, strip_nul: bool) -> Any:
    """The value with every text in it mended; copies, never changes."""
    match value:
        case str():
            text = unicode_text(value)
            return text.replace("\0", "") if strip_nul else text
        case Mapping():
            return {scrub(key, strip_nul=strip_nul): scrub(item, strip_nul=strip_nul) for key, item in value.items()}
        case list() | tuple():
            return [scrub(item, strip_nul=strip_nul) for item in value]
        case _:
            return value


def add_item(pieces: list[bytes], item: bytes) -> None:
    """One more item of a JSON list, whose pieces are joined as they are."""
    if pieces:
        pieces.append(b",")
    pieces.append(item)
