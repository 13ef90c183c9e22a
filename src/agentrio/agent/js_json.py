"""JSON as JavaScript writes it, so that results and framed messages read the same from both worlds."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Set
from json.encoder import encode_basestring
from typing import Any

import attrs

from ..domain.parts import File, Image

MAX_DEPTH = 100  # nesting; far below what would exhaust Python's stack
MAX_INT_BITS = 13_000  # Python refuses to print longer integers

_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJSON(Exception):
    """A value has no JSON form; the message says which type is to blame, never its content."""


def js_json(value: object) -> str:
    """A value as ``JSON.stringify`` would write it: no spaces, text as it is, keys in their own order.

    Integral floats lose their ``.0``, NaN and infinities become null, exponents look like ``1e-7`` and ``1e+21``.
    Integers keep all their digits. Classes of attrs, dataclasses and msgspec structs become objects; enums their
    value; dates, UUIDs and decimals strings; sets sorted lists.

    Raises:
        NotJSON: bytes, images, functions and the like; cycles; more than 100 levels.
    """
    pieces: list[str] = []
    _write(value, pieces.append, 0)
    return "".join(pieces)


def _write(value: object, out: Callable[[str], None], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotJSON(f"it contains itself, or is nested deeper than {MAX_DEPTH} levels")
    scalar = _scalar(value)
    if scalar is not None:
        out(scalar)
    elif isinstance(value, Mapping):
        _write_object(value.items(), out, depth)
    elif isinstance(value, list | tuple):
        _write_array(value, out, depth)
    elif isinstance(value, Set):
        _write_array(_in_order(value), out, depth)
    else:
        _write_object(_fields(value), out, depth)


def _scalar(value: object) -> str | None:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case enum.Enum():
            return js_json(value.value)
        case str():
            return _string(value)
        case int():
            return _integer(value)
        case float():
            return js_number(value)
        case datetime.date() | datetime.time() | datetime.timedelta() | uuid.UUID() | decimal.Decimal():
            return _string(_as_text(value))
        case _:
            return None


def _as_text(value: object) -> str:
    from msgspec import to_builtins  # here, since importing a tool must not load it

    return str(to_builtins(value))


def _integer(value: int) -> str:
    if value.bit_length() > MAX_INT_BITS:
        raise NotJSON("an integer is too long")
    return int.__repr__(value)


def _string(value: str) -> str:
    text = encode_basestring(value)
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _write_object(items: Iterable[tuple[object, object]], out: Callable[[str], None], depth: int) -> None:
    before = "{"
    for key, item in items:
        out(before)
        out(_key(key))
        out(":")
        _write(item, out, depth + 1)
        before = ","
    out("{}" if before == "{" else "}")


def _write_array(items: Iterable[object], out: Callable[[str], None], depth: int) -> None:
    before = "["
    for item in items:
        out(before)
        _write(item, out, depth + 1)
        before = ","
    out("[]" if before == "[" else "]")


def _key(key: object) -> str:
    text = None if isinstance(key, float) else _scalar(key)
    if text is None or text[0] in "[{":
        raise NotJSON(f"a key is of type {type(key).__name__}")
    return text if text.startswith('"') else f'"{text}"'


def _in_order(values: Set[Any]) -> list[object]:
    """Sets have no order of their own; one that differs from process to process would spoil caches and replays."""
    if all(isinstance(value, int | float) for value in values):
        return sorted(values)
    return sorted(values, key=js_json)


def _fields(value: object) -> Iterable[tuple[str, object]]:
    kind = type(value)
    if kind in (Image, File):
        raise NotJSON("an image or file must stand alone, or in a list of parts")
    if attrs.has(kind):
        return _set_fields(value, attrs.fields(kind))
    if dataclasses.is_dataclass(kind):
        return _set_fields(value, dataclasses.fields(kind))
    if hasattr(kind, "__struct_config__"):
        return _struct_fields(value)
    raise NotJSON(f"it holds a value of type {kind.__name__}")


def _set_fields(value: object, fields: Iterable[Any]) -> Iterable[tuple[str, object]]:
    names = [field.name for field in fields if not field.name.startswith("_") and hasattr(value, field.name)]
    return [(name, getattr(value, name)) for name in names]  # private fields stay private, as with msgspec


def _struct_fields(value: Any) -> Iterable[tuple[str, object]]:
    config = value.__struct_config__
    if config.tag is not None:
        yield config.tag_field, config.tag
    for name, encoded in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        if type(item := getattr(value, name)).__name__ != "UnsetType":
            yield encoded, item


def js_number(value: float) -> str:
    """A float as JavaScript prints it in JSON (ECMA-262, Number::toString); not finite is null."""
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, point = _shortest(abs(value))
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{mantissa}e{point - 1:+d}"


def _shortest(value: float) -> tuple[str, int]:
    """The shortest digits that read back as the value, and where the decimal point stands among them."""
    mantissa, _, exponent = float.__repr__(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return digits.rstrip("0"), len(whole) - leading + int(exponent or 0)
