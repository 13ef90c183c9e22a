"""From Python types to JSON Schema, by msgspec's reading of the types.

msgspec's own schemas say less than its decoder checks (any string is a datetime) and lump docstrings together, so the
tree that it reads from the types is written out here. What is written and what ``structuring`` reads back must agree:
whatever the schema accepts becomes a value of the declared type. Types for which that can't be promised are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import NODEFAULT, to_builtins
from msgspec import inspect as types

from .docs import document

INTEGER_KEY = "^(0|-?[1-9][0-9]{0,17})$"
DECIMAL = "^-?[0-9]{1,100}(\\.[0-9]{1,100})?$"
TIME = "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,6})?)?$"


class Unsupported(Exception):
    """A type that tools can't take; the message says which, and what to use instead."""


class SchemaWriter:
    """Writes schemas that share one set of ``$defs``."""

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def write(self, node: types.Type) -> dict[str, Any]:
        """The schema of a type.

        Raises:
            Unsupported: there is none that would keep its promise.
        """
        match node:
            case types.Metadata(type=inner, extra_json_schema=extra):
                return {**self.write(inner), **(extra or {})}
            case types.AnyType():
                return {}
            case types.NoneType():
                return {"type": "null"}
            case types.BoolType():
                return {"type": "boolean"}
            case types.IntType() | types.FloatType():
                return _number(node)
            case types.LiteralType(values=values):
                return {"enum": list(values)}
            case types.UnionType(types=arms):
                return {"anyOf": [self.write(arm) for arm in arms]}
            case types.EnumType() | types.StructType() | types.TypedDictType() | types.DataclassType():
                return self._reference(node)
            case types.CollectionType() | types.TupleType() | types.DictType():
                return self._container(node)
            case _:
                return _stringlike(node)

    def _container(self, node: types.CollectionType | types.TupleType | types.DictType) -> dict[str, Any]:
        if isinstance(node, types.DictType):
            return self._mapping(node)
        if isinstance(node, types.TupleType):
            count = len(node.item_types)
            items = {"prefixItems": [self.write(item) for item in node.item_types]} if count else {}
            return {"type": "array", "minItems": count, "maxItems": count, **items}
        schema = {"type": "array", **_present(minItems=node.min_length, maxItems=node.max_length)}
        if isinstance(node, types.SetType | types.FrozenSetType):
            if not json_kinds(node.item_type) <= SCALARS:
                raise Unsupported("a set must hold strings, numbers or the like; use a list")
            schema["uniqueItems"] = True
        return {**schema, "items": self.write(node.item_type)}

    def _mapping(self, node: types.DictType) -> dict[str, Any]:
        schema = {"type": "object", **_present(minProperties=node.min_length, maxProperties=node.max_length)}
        names = self._key(node.key_type)
        if names:
            schema["propertyNames"] = names
        return {**schema, "additionalProperties": self.write(node.value_type)}

    def _key(self, node: types.Type) -> dict[str, Any]:
        bare = _bare(node)
        if isinstance(bare, types.AnyType):
            return {}
        if isinstance(bare, types.IntType) and self.write(bare) == {"type": "integer"}:
            return {"pattern": INTEGER_KEY}
        if isinstance(bare, types.UnionType) or json_kinds(bare) != {"string"}:
            raise Unsupported("the keys of a dict must be strings, plain int, or enums or literals of strings")
        schema = self.write(node)
        return {} if schema == {"type": "string"} else schema

    def _reference(self, node: Any) -> dict[str, Any]:
        name = self._names.get(node.cls)
        if name is None:
            name = self._names[node.cls] = self._free_name(node.cls)
            self.defs[name] = {}  # holds the place, so that definitions come in the order of their use
            self.defs[name] = _enum(node) if isinstance(node, types.EnumType) else self._class(node)
        return {"$ref": f"#/$defs/{name}"}

    def _free_name(self, cls: Any) -> str:
        origin = getattr(cls, "__origin__", cls)
        arguments = "_".join(getattr(arg, "__name__", str(arg)) for arg in getattr(cls, "__args__", ()))
        base = re.sub(r"[^a-zA-Z0-9_]+", "_", "_".join(filter(None, (origin.__name__, arguments))))
        name, number = base, 1
        while name in self.defs:
            number += 1
            name = f"{base}_{number}"
        return name

    def _class(self, node: types.StructType | types.TypedDictType | types.DataclassType) -> dict[str, Any]:
        if isinstance(node, types.StructType) and node.array_like:
            raise Unsupported(f"{_name(node)} is array-like, and models are bad at positions; drop array_like")
        summary, texts = document(getattr(node.cls, "__origin__", node.cls))
        schema: dict[str, Any] = {"type": "object"}
        if summary:
            schema["description"] = summary
        schema["properties"] = properties = {}
        schema["required"] = required = [field.encode_name for field in node.fields if field.required]
        if isinstance(node, types.StructType) and node.tag_field is not None:
            properties[node.tag_field] = {"enum": [node.tag]}
            required.insert(0, node.tag_field)
        for field in node.fields:
            try:
                properties[field.encode_name] = self.property(field.type, texts.get(field.name), *_default_of(field))
            except Unsupported as wrong:
                raise Unsupported(f"{_name(node)}.{field.name}: {wrong}") from None
        if isinstance(node, types.StructType) and node.forbid_unknown_fields:
            schema["additionalProperties"] = False
        return schema

    def property(self, node: types.Type, text: str | None, *default: Any) -> dict[str, Any]:
        """The schema of a parameter or field, with what the docstring says of it and, where it is JSON, its default."""
        schema = self.write(node)
        if text:
            schema.setdefault("description", text)
        for value in default:
            if value is None and "null" not in json_kinds(node):
                raise Unsupported("its default is None, which its type does not allow; add `| None`")
            try:
                plain = to_builtins(value, str_keys=True)
                json.dumps(plain, allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                continue  # some mark of the program's own; the model does without
            schema["default"] = plain
        return schema


SCALARS = frozenset({"null", "boolean", "integer", "number", "string"})


def json_kinds(node: types.Type) -> frozenset[str]:
    """The JSON types that a value of this type can have on the wire."""
    match node:
        case types.Metadata(type=inner):
            return json_kinds(inner)
        case types.UnionType(types=arms):
            return frozenset().union(*map(json_kinds, arms))
        case types.LiteralType(values=values):
            return _kinds_of(values)
        case types.EnumType(cls=cls):
            return _kinds_of(member.value for member in cls)
        case types.AnyType():
            return SCALARS | {"array", "object"}
        case types.NoneType():
            return frozenset({"null"})
        case types.BoolType():
            return frozenset({"boolean"})
        case types.IntType():
            return frozenset({"integer"})
        case types.FloatType():
            return frozenset({"number"})
        case types.CollectionType() | types.TupleType() | types.NamedTupleType():
            return frozenset({"array"})
        case types.DictType() | types.StructType() | types.TypedDictType() | types.DataclassType():
            return frozenset({"object"})
        case _:
            return frozenset({"string"})


def _kinds_of(values: Iterable[object]) -> frozenset[str]:
    named = {type(None): "null", int: "integer"}
    return frozenset(named.get(type(value), "string") for value in values)


def _number(node: types.IntType | types.FloatType) -> dict[str, Any]:
    return {
        "type": "integer" if isinstance(node, types.IntType) else "number",
        **_present(
            minimum=node.ge,
            exclusiveMinimum=node.gt,
            maximum=node.le,
            exclusiveMaximum=node.lt,
            multipleOf=node.multiple_of,
        ),
    }


def _stringlike(node: types.Type) -> dict[str, Any]:
    match node:
        case types.StrType():
            return {
                "type": "string",
                **_present(minLength=node.min_length, maxLength=node.max_length, pattern=node.pattern),
            }
        case types.BytesType(min_length=None, max_length=None):
            return {"type": "string", "contentEncoding": "base64"}
        case types.DateTimeType(tz=tz) if tz is not False:
            return {"type": "string", "format": "date-time"}
        case types.DateType():
            return {"type": "string", "format": "date"}
        case types.TimeType(tz=None):
            return {"type": "string", "pattern": TIME}
        case types.UUIDType():
            return {"type": "string", "format": "uuid"}
        case types.DecimalType():
            return {"type": "string", "pattern": DECIMAL}
        case _:
            raise Unsupported(_instead(node))


def _instead(node: types.Type) -> str:
    match node:
        case types.TimeDeltaType():
            return "timedelta has no form that all models write; use a number of seconds"
        case types.BytesType():
            return "the length of bytes can't be said of their base64 form; check it in the tool"
        case types.DateTimeType():
            return "a datetime without an offset is ambiguous; use a plain datetime, which asks for one"
        case types.TimeType():
            return "the time zone of a time can't be asked for; use a plain time"
        case types.NamedTupleType():
            return f"{_name(node)} is a named tuple, and models are bad at positions; use an attrs class"
        case types.CustomType(cls=cls):
            return _instead_of_class(cls)
        case _:
            return f"{type(node).__name__.removesuffix('Type')} is not supported"


def _instead_of_class(cls: Any) -> str:
    name = getattr(cls, "__qualname__", cls)
    if hasattr(cls, "model_fields"):
        return f"{name} is a pydantic model; put its fields into a dataclass or an attrs class"
    return f"{name} is not supported; use a dataclass, an attrs class, or a type of JSON's: str, int, list, dict, Any"


def _enum(node: types.EnumType) -> dict[str, Any]:
    summary, _ = document(node.cls)
    return {**({"description": summary} if summary else {}), "enum": [member.value for member in node.cls]}


def _default_of(field: types.Field) -> tuple[Any, ...]:
    if field.default is not NODEFAULT:
        return (field.default,)
    return (field.default_factory(),) if field.default_factory in (list, dict, set, frozenset) else ()


def _bare(node: types.Type) -> types.Type:
    return _bare(node.type) if isinstance(node, types.Metadata) else node


def _name(node: Any) -> str:
    return str(getattr(node.cls, "__name__", node.cls))


def _present(**keywords: Any) -> dict[str, Any]:
    return {key: value for key, value in keywords.items() if value is not None}


def object_schema(properties: Mapping[str, Any], required: Iterable[str], defs: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments: an object on top, nothing beside the named properties."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return {**schema, "$defs": dict(defs)} if defs else schema
