"""JSON as servers really write it: msgspec for what is right, the standard library for what is nearly right.

msgspec refuses three things that models and servers do send: lone surrogates (``"\\ud83d"``), raw control characters
inside strings, and bytes that are no UTF-8. The slow path takes them; neither takes ``NaN`` or ``Infinity``. Decoded
text is always encodable again: what stays of a lone surrogate is U+FFFD.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from agentrio.providers.base import ProviderError


def as_plain(value: Any) -> Any:
    """What msgspec does not know how to encode: any mapping is an object."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_encoder = msgspec.json.Encoder(enc_hook=as_plain)
_decoder = msgspec.json.Decoder()

NUL = b"\\u0000"  # how the encoder writes it; also the tail of an escaped backslash and "u0000"


def decode(data: bytes | str) -> Any:
    """The value, with all text mended.

    Raises:
        ValueError: this is no JSON.
        ProviderError: it is nested too deeply to be meant (``invalid_response``).
    """
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError:
        return _guarded(lambda: scrub(loads(data), strip_nul=False))
    except RecursionError:
        raise too_deep() from None


def decode_unmended(data: bytes) -> Any:
    """As ``decode``, but halves of surrogate pairs stay: the other half may come with the next frame."""
    return _guarded(lambda: loads(data))


def loads(data: bytes | str) -> Any:
    """The slow path."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return json.loads(text, strict=False, parse_constant=_refuse, parse_float=_finite)


def _guarded(work: Any) -> Any:
    try:
        return work()
    except RecursionError:
        raise too_deep() from None


def too_deep() -> ProviderError:
    """For JSON that exhausts the stack: 1,000 levels and more."""
    return ProviderError("The server sent JSON that is nested too deeply.", code="invalid_response")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:40]} is out of range")
    return value


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Arguments of a tool call: nothing at all means none; None where the text is no JSON object.

    Raw control characters inside strings are accepted, nothing else is repaired.
    """
    if not text or text.isspace():
        return {}
    try:
        value = decode(text)
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
    except RecursionError:
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


def encode_text(value: Any) -> str:
    """``encode`` as text."""
    return encode(value).decode()


def mend(text: str) -> str:
    """Two halves of a surrogate pair become their character; a half alone becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def scrub(value: Any, *, strip_nul: bool) -> Any:
    """The value with every text in it mended; copies, never changes."""
    match value:
        case str():
            text = mend(value)
            return text.replace("\0", "") if strip_nul else text
        case Mapping():
            return {scrub(key, strip_nul=strip_nul): scrub(item, strip_nul=strip_nul) for key, item in value.items()}
        case list() | tuple():
            return [scrub(item, strip_nul=strip_nul) for item in value]
        case _:
            return value
