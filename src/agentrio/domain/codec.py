"""Every value as JSON, and back: the one place where (de)serialisation is said.

Reading is strict. A value of another type, an unknown tag, a missing field and a field that only a newer version knows
are refused, and the error names the path. It is worked out by a second, slower reading of what the first one refused.
Writing is strict too: what would come back as another value (a tuple in memory, a list of messages) is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, NoReturn, TypeVar, get_args, get_origin, overload

import attrs
import cattrs
from cattrs.cols import iterable_unstructure_factory
from cattrs.errors import ForbiddenExtraKeysError

from .errors import CodecError
from .events import Event, StructuralEvent, TransientEvent
from .parts import Part, ResultPart
from .plain import NotPlain, article, plain_copy
from .status import RunResult

T = TypeVar("T")

_UNIONS: dict[str, Any] = {
    "ResultPart": ResultPart,
    "Part": Part,
    "TransientEvent": TransientEvent,
    "StructuralEvent": StructuralEvent,
    "Event": Event,
}
_NOT_FINITE = ("inf", "-inf", "nan")
MOST_REASONS = 5  # told of one value; mending the first ones shows the others
LONGEST_REASON = 300  # characters; a stored text has any length, an error is read by people and kept in logs


class _Refused(ValueError):
    """What we say ourselves about a place in the data."""


@cache
def converter() -> cattrs.Converter:
    """The converter that knows every union of ours. Unions carry a ``type`` tag: the class's name in snake case."""
    return _make(explain=False)


@cache
def _make(*, explain: bool) -> cattrs.Converter:
    made = cattrs.Converter(forbid_extra_keys=True, detailed_validation=explain)
    made.register_unstructure_hook(Decimal, str)
    made.register_structure_hook(Decimal, _read_decimal)
    made.register_unstructure_hook(float, _plain_float)
    made.register_structure_hook(float, _read_float)
    if explain:
        _say_what_is_no_object(made)
    _exact_lists(made)
    made.register_unstructure_hook_func(lambda kind: kind == frozenset[str], sorted)
    for kind in (str, int, bool):
        made.register_structure_hook(kind, _exactly(kind))
    # Arguments, memory and details are JSON already, and nothing else.
    made.register_unstructure_hook_func(lambda kind: kind == Mapping[str, Any], _write_object)
    made.register_structure_hook_func(lambda kind: kind == Mapping[str, Any], _read_object)
    made.register_unstructure_hook_func(lambda kind: kind is Any, _write_any)
    made.register_structure_hook_func(lambda kind: kind is Any, _read_any)
    made.register_structure_hook_func(lambda kind: kind is RunResult, lambda data, _: _read_result(made, data))
    for name, union in _UNIONS.items():
        _tag_union(made, name, union)
    return made


def _say_what_is_no_object(made: cattrs.Converter) -> None:
    """Where an object is expected and something else stands, cattrs tells of a missing attribute of Python's."""

    def reader(kind: Any) -> Callable[[Any, Any], Any]:
        read = made.gen_structure_attrs_fromdict(kind)
        return lambda data, _: read(_read_dict(data), kind)

    made.register_structure_hook_factory(attrs.has, reader)


def _exact_lists(made: cattrs.Converter) -> None:
    """Tuples and sets of values are lists in JSON; an empty text or object is none, nor is any list a tuple."""
    read_tuple, read_set = (made.get_structure_hook(kind) for kind in (tuple[str, ...], frozenset[str]))

    def is_tuple(kind: Any) -> bool:
        return get_origin(kind) is tuple

    def writer(kind: Any) -> Callable[[Any], Any]:
        write = iterable_unstructure_factory(kind, made, unstructure_to=list)
        return lambda value: write(_a_tuple(value))

    made.register_structure_hook_func(is_tuple, lambda data, kind: read_tuple(_a_list(data), kind))
    made.register_structure_hook_func(
        lambda kind: kind == frozenset[str], lambda data, kind: read_set(_a_list(data), kind)
    )
    made.register_unstructure_hook_factory(is_tuple, writer)


def _a_list(data: Any) -> Any:
    if type(data) is not list:
        raise _Refused(f"it is {article(data)}, not a list")
    return data


def _a_tuple(value: Any) -> Any:
    if type(value) is not tuple:
        raise CodecError(f"A value holds {article(value)} where a tuple belongs, such as Session.messages.")
    return value


def _tag_union(made: cattrs.Converter, name: str, union: Any) -> None:
    arms = {_tag(arm): arm for arm in get_args(union)}
    tags = {arm: tag for tag, arm in arms.items()}
    readers: dict[str, Callable[[Any, Any], Any]] = {}  # filled at first use: a hook costs code generation
    writers: dict[type, Callable[[Any], dict[str, Any]]] = {}

    def read(data: Any, _: Any) -> Any:
        if type(data) is not dict:
            raise _Refused(f"it is {article(data)}, not the object with a type that {name} is")
        rest = data.copy()
        tag = rest.pop("type", None)
        if type(tag) is not str or tag not in arms:
            _refuse_tag(name, tag)
        if tag not in readers:
            readers[tag] = made.get_structure_hook(arms[tag])
        return readers[tag](rest, arms[tag])

    def write(value: Any) -> dict[str, Any]:
        kind = type(value)
        if kind not in tags:
            raise CodecError(f"A {kind.__name__} is no {name}.")
        if kind not in writers:
            writers[kind] = made.get_unstructure_hook(kind)
        return {"type": tags[kind], **writers[kind](value)}

    made.register_structure_hook(union, read)
    made.register_unstructure_hook(union, write)


def _refuse_tag(name: str, tag: object) -> NoReturn:
    if tag is None:
        raise _Refused(f"it has no type, and {name} needs one")
    raise _Refused(f"the type {_short(repr(tag))} is not known to {name}; it may come from a newer version")


def _tag(cls: type) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    """Reads a value of this very type: ``str(None)`` or ``bool("false")`` would be lies."""

    def read(data: Any, _: Any) -> Any:
        if type(data) is not kind:
            raise _Refused(f"it is {article(data)}, not {'an' if kind is int else 'a'} {kind.__name__}")
        return data

    return read


def _plain_float(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)  # JSON has no infinity, limits may have


def _read_float(data: Any, _: Any) -> float:
    if type(data) is float or type(data) is int:
        return data
    if type(data) is str and data in _NOT_FINITE:
        return float(data)
    raise _Refused(f"it is {article(data)}, not a number")


def _read_decimal(data: Any, _: Any) -> Decimal:
    try:
        amount = Decimal(data if type(data) is str else "?")
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount.is_nan():
        raise _Refused(f"{_short(repr(data))} is no decimal number in a text")
    return amount


def _read_dict(data: Any) -> Any:
    if type(data) is not dict:
        raise _Refused(f"it is {article(data)}, not an object")
    return data


def _read_object(data: Any, _: Any) -> Any:
    return _read_any(_read_dict(data), Any)


def _read_any(data: Any, _: Any) -> Any:
    try:
        return plain_copy(data, "$")
    except NotPlain as wrong:
        raise _Refused(str(wrong)) from None


def _write_object(value: Mapping[str, Any]) -> Any:
    return _write_any(dict(value))


def _write_any(value: Any) -> Any:
    try:
        return plain_copy(value, "$")
    except NotPlain as wrong:
        raise CodecError(f"Memory, arguments or details can't be written as JSON: {wrong}") from None


def _read_result(made: cattrs.Converter, data: Any) -> RunResult[Any]:
    return made.structure(data, RunResult[Any])


def to_data(value: Any, kind: Any = None) -> Any:
    """A value as plain data. For a member of a union, name the union as ``kind``, or its tag is lost.

    Raises:
        CodecError: the value holds something that is not JSON, or would come back as something else.
    """
    return converter().unstructure(value, unstructure_as=type(value) if kind is None else kind)


@overload
def from_data(data: Any, kind: type[T]) -> T: ...
@overload
def from_data(data: Any, kind: Any) -> Any: ...
def from_data(data: Any, kind: Any) -> Any:
    """The value that ``to_data`` made plain.

    Raises:
        CodecError: the data does not fit; the message says where.
    """
    try:
        return converter().structure(data, kind)
    except Exception:
        return _explained(data, kind)


def _explained(data: Any, kind: Any) -> Any:
    if not isinstance(data, dict):  # every value of ours is an object
        raise CodecError(f"This is no {_name(kind)}: it is {article(data)}, not an object.")
    try:
        return _make(explain=True).structure(data, kind)
    except Exception as wrong:
        reasons = cattrs.transform_error(wrong, format_exception=lambda error, _: _short(_reason(error)))
        if len(reasons) > MOST_REASONS:
            reasons[MOST_REASONS:] = [f"and {len(reasons) - MOST_REASONS} more"]
        raise CodecError(f"This is no {_name(kind)}: {'; '.join(reasons)}.") from wrong


def _reason(error: BaseException) -> str:
    match error:
        case KeyError(args=(field,)):
            return f"the field {field!r} is missing"
        case ForbiddenExtraKeysError(extra_fields=fields):
            return f"the fields {sorted(fields)} are not known; they may come from a newer version"
        case _:  # what is not in a Literal, and what we refuse ourselves
            return str(error).rstrip(".")


def dumps(value: Any, kind: Any = None) -> str:
    """A value as JSON text that is always valid Unicode, without spaces.

    Raises:
        CodecError: the value holds something that is not JSON.
    """
    data = to_data(value, kind)
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise CodecError(f"This {type(value).__name__} can't be written as JSON: {wrong}.") from wrong
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair: a model may have been cut there
            return json.dumps(data, separators=(",", ":"))
    return text


@overload
def loads(text: str | bytes, kind: type[T]) -> T: ...
@overload
def loads(text: str | bytes, kind: Any) -> Any: ...
def loads(text: str | bytes, kind: Any) -> Any:
    """The value that ``dumps`` wrote.

    Raises:
        CodecError: the text is no JSON, or no such value.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise CodecError(f"This is no {_name(kind)}: it is {article(text)}, not JSON text.")
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as wrong:
        raise CodecError(f"This is no {_name(kind)}: it is not JSON ({wrong}).") from wrong
    return from_data(data, kind)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is none of its numbers")


def _name(kind: Any) -> str:
    for name, union in _UNIONS.items():
        if union == kind:
            return name
    return str(getattr(kind, "__name__", kind))
