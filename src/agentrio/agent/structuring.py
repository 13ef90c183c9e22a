"""From checked JSON to the Python values that a tool declares, by cattrs."""

from __future__ import annotations

import base64
import datetime
import types as py_types
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import cattrs
import msgspec
import msgspec.structs
from msgspec.inspect import StructType, type_info

from .schema import json_kinds

Reader: TypeAlias = Callable[[Any], Any]
Hook: TypeAlias = Callable[[Any, Any], Any]


def reader(kind: Any) -> Reader:
    """The function that turns JSON, checked against the type's schema, into a value of the type.

    What it raises for a value that still does not fit, such as one that the class's own validators refuse, is for
    ``misfits``.
    """
    hook = _converter().get_structure_hook(kind)
    return lambda value: hook(value, kind)


def misfits(error: Exception, path: str) -> list[str]:
    """Where a value did not fit and which type it should have had; never the value."""
    told = cattrs.transform_error(error, path, _reason)
    return [f"{where}: {what}" for what, _, where in (line.rpartition(" @ ") for line in told)]


def _reason(error: BaseException, kind: type | None) -> str:
    return "the value does not fit" if kind is None else f"the value is no {getattr(kind, '__name__', kind)}"


# Numbers and strings are not among them: cattrs calls the class itself, which a hook for int would undo for an IntEnum.
_LEAVES: dict[Any, Reader] = {
    bytes: partial(base64.b64decode, validate=True),
    datetime.datetime: datetime.datetime.fromisoformat,
    datetime.date: datetime.date.fromisoformat,
    datetime.time: datetime.time.fromisoformat,
    uuid.UUID: uuid.UUID,
    Decimal: Decimal,
    type(None): lambda value: value,
}


def _read_leaf(read: Reader, value: Any, _: Any) -> Any:
    return read(value)


@cache
def _converter() -> cattrs.Converter:
    made = cattrs.Converter()
    for kind, read in _LEAVES.items():
        made.register_structure_hook(kind, partial(_read_leaf, read))
    made.register_structure_hook_factory(_is_literal, _literal)
    made.register_structure_hook_factory(_is_struct, _struct)
    made.register_structure_hook_factory(_is_union, _union)
    return made


def _is_literal(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is Literal


def _literal(kind: Any) -> Hook:
    def read(value: Any, _: Any) -> Any:
        for arm in get_args(kind):
            if arm == value:  # the arm, since 2.0 stands for the literal 2
                return arm
        raise ValueError("none of the literals")

    return read


def _is_union(kind: Any) -> bool:
    return isinstance(kind, py_types.UnionType) or getattr(kind, "__origin__", None) is Union


def _union(kind: Any, converter: cattrs.Converter) -> Hook:
    """Chooses by the JSON type of the value, and by the tag of structs: msgspec refuses unions that need more."""
    arms = [
        (json_kinds(node), _tag_of(node), converter.get_structure_hook(arm), arm)
        for arm in get_args(kind)
        if arm is not msgspec.UnsetType
        for node in [type_info(arm)]
    ]

    def read(value: Any, _: Any) -> Any:
        fitting = [
            (hook, arm)
            for name in _KINDS[type(value)]
            for kinds, tag, hook, arm in arms
            if name in kinds and (tag is None or value.get(tag[0]) == tag[1])
        ]
        for hook, arm in fitting[:-1]:  # several only for numbers: an enum or literal of integers beside float
            try:
                return hook(value, arm)
            except ValueError:
                continue
        hook, arm = fitting[-1]
        return hook(value, arm)

    return read


_KINDS: dict[type, tuple[str, ...]] = {
    type(None): ("null",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number", "integer"),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
}


def _tag_of(node: Any) -> tuple[str, Any] | None:
    if isinstance(node, StructType) and node.tag_field is not None:
        return node.tag_field, node.tag
    return None


def _is_struct(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, msgspec.Struct)


def _struct(kind: Any, converter: cattrs.Converter) -> Hook:
    def read(value: Any, _: Any) -> Any:
        given = {}
        for field in fields():
            if field.encode_name in value:
                given[field.name] = converter.structure(value[field.encode_name], field.type)
        return kind(**given)

    @cache
    def fields() -> tuple[msgspec.structs.FieldInfo, ...]:
        return msgspec.structs.fields(kind)

    return read
