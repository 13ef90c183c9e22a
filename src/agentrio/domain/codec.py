"""Every value as JSON, and back: the one place where (de)serialisation is said."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, get_args

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn
from cattrs.strategies import configure_tagged_union

from .errors import CodecError
from .events import Event
from .messages import Message
from .parts import Part, ResultPart

T = TypeVar("T")

_MEMO = "_memo"


@cache
def converter() -> cattrs.Converter:
    """The converter that knows every union of ours. Unions carry a ``type`` tag: the class's name in snake case."""
    made = cattrs.Converter(forbid_extra_keys=True)
    made.register_unstructure_hook(Decimal, str)
    made.register_structure_hook(Decimal, lambda value, _: Decimal(value))
    made.register_unstructure_hook(frozenset, sorted)
    made.register_structure_hook(Message, make_dict_structure_fn(Message, made))
    for union in (ResultPart, Part, Event):
        configure_tagged_union(union, made, tag_generator=_tag, tag_name="type")
    return made


def _tag(cls: type) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def to_data(value: Any, kind: Any = None) -> Any:
    """A value as plain data. For a member of a union, name the union as ``kind``, or its tag is lost."""
    return converter().unstructure(value, unstructure_as=type(value) if kind is None else kind)


def from_data(data: Any, kind: type[T]) -> T:
    """The value that ``to_data`` made plain.

    Raises:
        CodecError: the data does not fit; the message says where.
    """
    try:
        return converter().structure(data, kind)
    except KeyError as unknown:
        raise CodecError(_unknown_tag(kind, unknown)) from unknown
    except Exception as wrong:
        raise CodecError(f"This is no {_name(kind)}: " + "; ".join(cattrs.transform_error(wrong))) from wrong


def dumps(value: Any, kind: Any = None) -> str:
    """A value as JSON text, without spaces and with all characters as they are."""
    return json.dumps(to_data(value, kind), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes, kind: type[T]) -> T:
    """The value that ``dumps`` wrote.

    Raises:
        CodecError: the text is no JSON, or no such value.
    """
    try:
        data = json.loads(text)
    except ValueError as wrong:
        raise CodecError(f"This is no {_name(kind)}: it is not JSON ({wrong}).") from wrong
    return from_data(data, kind)


def _name(kind: Any) -> str:
    return "value of " + " | ".join(_name(arm) for arm in get_args(kind)) if get_args(kind) else kind.__name__


def _unknown_tag(kind: Any, unknown: KeyError) -> str:
    return f"This is no {_name(kind)}: the type {unknown} is not known; it may come from a newer version."


def knows(kind: type) -> bool:
    """Whether a class is one of the values that the codec was made for."""
    return attrs.has(kind)
