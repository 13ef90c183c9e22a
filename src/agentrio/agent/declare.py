"""Makes tools. Loaded with the first one, since it brings the machinery of schemas."""

from __future__ import annotations

import base64
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar

import jsonschema_rs
from msgspec.inspect import type_info

from ..domain.errors import DeclarationError
from ..domain.keywords import no_such
from ..domain.render import ToolSpec
from .arguments import ArgumentChecker
from .docs import document
from .schema import SchemaWriter, Unsupported, object_schema
from .signature import Signature, check_function, read_signature, refuse, where_is
from .structuring import reader
from .tool import Tool, ToolKind

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KINDS = ("read", "write")
_OPTIONS = ("name", "description", "timeout", "approval")
_LATER = ("authorize", "idempotency_key", "reconcile")


def declare(fn: Callable[P, R], kind: ToolKind, **options: Any) -> Tool[P, R]:
    """The tool that a decorated function becomes."""
    where = where_is(fn)
    if isinstance(fn, Tool):
        refuse(where, "it is a tool already; decorate it once, with @read_tool or with @write_tool.")
    check_function(fn, where)
    _check_options(options, where)
    signature = read_signature(fn, where)
    description, texts = document(fn)
    schema = _schema(signature, texts, where)
    checker = ArgumentChecker(
        _compile(schema, where, keywords={"contentEncoding": _Base64}),
        {name: reader(hint) for name, hint in signature.types.items()},
    )
    told = options.get("description", description)
    return _tool(fn, kind, options.get("name"), told, schema, options.get("timeout"), signature, checker)


def declare_schema(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    fn: Callable[P, R],
    kind: ToolKind,
    timeout: float | None,
) -> Tool[P, R]:
    """The tool that takes its arguments as one mapping."""
    where = where_is(fn)
    check_function(fn, where)
    signature = read_signature(fn, where)
    if len(signature.types) != 1:
        refuse(where, "it must take one parameter, the mapping of arguments, and perhaps a ToolContext.")
    own = _own_copy(schema, where)
    checker = ArgumentChecker(_compile(own, where), {}, whole=next(iter(signature.types)))
    return _tool(fn, kind, name, description, own, timeout, signature, checker)


def _tool(
    fn: Callable[P, R],
    kind: ToolKind,
    name: object,
    description: object,
    schema: dict[str, Any],
    timeout: object,
    signature: Signature,
    checker: ArgumentChecker,
) -> Tool[P, R]:
    where = where_is(fn)
    if kind not in _KINDS:
        refuse(where, f"kind={kind!r}; it must be 'read' or 'write'.")
    if not isinstance(description, str):
        refuse(where, f"its description is {description!r}; it must be a string.")
    spec = ToolSpec(_name(fn.__name__ if name is None else name, where), description, schema)
    threaded = not inspect.iscoroutinefunction(fn)
    return Tool(fn, spec.name, kind, spec, _timeout(timeout, where), threaded, signature.context, checker)


def _check_options(options: dict[str, Any], where: str) -> None:
    for option, value in options.items():
        if option in _LATER or (option == "approval" and value != "never"):
            refuse(where, f"{option}={value!r} is not supported yet; leave it out.")
        if option not in _OPTIONS:
            refuse(where, no_such("the decorator", option, _OPTIONS))


def _name(name: object, where: str) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    refuse(where, f"{name!r} is no name; give one of 1 to 64 letters, digits, _ and -, with `name=`.")


def _timeout(timeout: object, where: str) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and 0 < timeout < math.inf:
        return float(timeout)
    refuse(where, f"timeout={timeout!r}; it must be a positive number of seconds, or None.")


def _schema(signature: Signature, texts: Mapping[str, str], where: str) -> dict[str, Any]:
    writer = SchemaWriter()
    properties = {}
    for name, hint in signature.types.items():
        at = f"{where}, parameter {name!r},"
        default = (signature.defaults[name],) if name in signature.defaults else ()
        try:
            node = type_info(hint)
            properties[name] = writer.property(node, texts.get(name), *default)
        except Unsupported as wrong:
            refuse(at, f"{wrong}.")
        except Exception as wrong:  # msgspec says TypeError; a class's own annotations may raise anything
            told = str(wrong)
            mend = ": give the classes a tag, as msgspec.Struct with tag=True" if "Type unions" in told else ""
            raise DeclarationError(f"The tool {at} can't be declared: {told}{mend}.") from wrong
    required = [name for name in signature.types if name not in signature.defaults]
    return object_schema(properties, required, writer.defs)


def _own_copy(schema: object, where: str) -> dict[str, Any]:
    try:
        own = json.loads(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as wrong:
        raise DeclarationError(f"The tool {where} can't be declared: its schema is not JSON ({wrong}).") from wrong
    if not isinstance(own, dict) or own.get("type") != "object":
        refuse(where, 'its schema must describe an object: put `"type": "object"` on top.')
    return own


class _Base64:
    """Asserts what JSON Schema takes as a mere note, so that what passes can be read."""

    def __init__(self, parent: Any, value: Any, path: Any) -> None:
        pass

    def validate(self, instance: Any) -> None:
        try:
            base64.b64decode(instance, validate=True)
        except ValueError:
            raise ValueError("value is not base64") from None


def _no_network(uri: str) -> NoReturn:
    raise ValueError("references to other documents are refused")


def _compile(schema: dict[str, Any], where: str, **options: Any) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            schema, retriever=_no_network, validate_formats=True, mask="value", **options
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as wrong:
        reason = getattr(wrong, "message", None) or str(wrong)
        path = "/".join(str(step) for step in getattr(wrong, "instance_path", ()))
        at = f" at {path}" if path else ""
        raise DeclarationError(
            f"The tool {where} can't be declared: its schema is wrong{at}: {reason}. Mend it, and put what it refers "
            "to under `$defs`."
        ) from wrong
