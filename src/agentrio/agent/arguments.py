"""From the text that a model wrote to the values that a tool is called with."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import attrs

from ..domain.parts import CallError

if TYPE_CHECKING:
    import jsonschema_rs

    from .structuring import Reader
    from .tool import Tool

MAX_BYTES = 1 << 20  # of one call's arguments as UTF-8
MAX_DEPTH = 64  # nesting; structuring takes up to four Python frames a level
MAX_REASON = 400  # characters of one reason; patterns and keys have any length
MAX_REASONS = 10  # told to the model; it mends the first ones and sees the others next time

_HALF_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@attrs.frozen
class Arguments:
    """The arguments of a call: ``data`` as the JSON object that the model wrote, ``values`` by parameter name.

    They share nothing that can be changed: ``data`` is told in events, ``values`` are the tool's.
    """

    data: Mapping[str, Any]
    values: dict[str, Any]


@attrs.frozen(eq=False)
class ArgumentChecker:
    """Validates and structures one tool's arguments.

    ``readers`` has one entry for each parameter; where ``whole`` is set, the parameter of that name takes the object
    itself instead.
    """

    validator: jsonschema_rs.Validator
    readers: Mapping[str, Reader]
    whole: str | None = None


class _NotOurs(ValueError):
    """The text is not what arguments may be; the message is for the model."""


def check(tool: Tool[..., Any], arguments_json: str) -> Arguments | CallError:
    """The arguments of a call, or why they can't be used, in words for the model.

    Nothing and ``null`` mean ``{}``; raw control characters in strings are let through; nothing else is repaired.
    The words name paths and reasons, never values.
    """
    try:
        data = _parse(arguments_json)
        reasons = list(islice(_invalid(tool.checker.validator, data), MAX_REASONS + 1))
        if reasons:
            return _error(reasons)
        return _structure(tool.checker, data)
    except _NotOurs as wrong:
        return _error([str(wrong)])


def _error(reasons: list[str]) -> CallError:
    told = [reason[:MAX_REASON] for reason in reasons[:MAX_REASONS]]
    if len(reasons) > MAX_REASONS:
        told.append("and more")
    return CallError("invalid_arguments", "; ".join(told))


def _refuse_constant(name: str) -> NoReturn:
    raise _NotOurs(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NotOurs("a number is too large")
    return value


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant, parse_float=_finite)


def _parse(text: str) -> dict[str, Any]:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise _NotOurs("the arguments are not valid Unicode") from None
    if size > MAX_BYTES:
        raise _NotOurs(f"the arguments have {size} bytes; at most {MAX_BYTES} are allowed")
    if not text.strip():
        return {}
    data = _decode(text)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise _NotOurs("the arguments must be a JSON object")
    _check_depth(text, data)
    if _HALF_ESCAPE.search(text):
        _check_unicode(data)
    return data


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as wrong:
        raise _NotOurs(f"the arguments are not valid JSON: {wrong.msg} at character {wrong.pos}") from None
    except RecursionError:
        raise _NotOurs(f"the arguments are nested deeper than {MAX_DEPTH} levels") from None
    except _NotOurs:
        raise
    except ValueError:  # more digits than Python converts
        raise _NotOurs("a number has too many digits") from None


def _check_depth(text: str, data: dict[str, Any]) -> None:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    level: list[Any] = [data]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _NotOurs(f"the arguments are nested deeper than {MAX_DEPTH} levels")


def _check_unicode(data: dict[str, Any]) -> None:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotOurs("a string holds half of a surrogate pair, which is no Unicode text") from None


def _invalid(validator: jsonschema_rs.Validator, data: dict[str, Any]) -> Iterator[str]:
    for error in validator.iter_errors(data):
        yield from _reasons(error)


def _reasons(error: jsonschema_rs.ValidationError) -> Iterator[str]:
    meant = _meant_arm(error)
    if meant is None:
        yield f"{_path(error.instance_path)}: {error.message}"
    else:
        for inner in meant:
            yield from _reasons(inner)


def _meant_arm(error: jsonschema_rs.ValidationError) -> list[jsonschema_rs.ValidationError] | None:
    """What is wrong with the one arm of a union that the model can have meant, where there is just one.

    It is not an arm whose JSON type is another, nor one whose tag is another.
    """
    arms = getattr(error.kind, "context", None) or ()
    depth = len(error.instance_path)
    meant = [arm for arm in arms if not any(_is_other(inner, depth) for inner in arm)]
    return meant[0] if len(meant) == 1 else None


def _is_other(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    where, keyword = len(error.instance_path), error.kind.name
    return (keyword == "type" and where == depth) or (keyword in ("enum", "const") and where == depth + 1)


def _path(steps: list[str | int]) -> str:
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step[:80]}"
    return path.lstrip(".") or "arguments"


def _structure(checker: ArgumentChecker, data: dict[str, Any]) -> Arguments | CallError:
    if checker.whole is not None:
        return Arguments(data, {checker.whole: _own(data)})
    values: dict[str, Any] = {}
    reasons: list[str] = []
    for name, value in data.items():
        try:
            values[name] = checker.readers[name](_own(value))
        except Exception as wrong:  # a class of the user's own may raise anything; the model is told that it misfits
            reasons += _misfits(wrong, name)
    return _error(reasons) if reasons else Arguments(data, values)


def _own(value: Any) -> Any:
    """A copy of what can be changed; what can't, as nearly all arguments are, is given back."""
    if type(value) is dict:
        return {key: _own(item) for key, item in value.items()}
    if type(value) is list:
        return [_own(item) for item in value]
    return value


def _misfits(error: Exception, name: str) -> list[str]:
    from .structuring import misfits  # here, since it is loaded with the first tool and not before

    return misfits(error, name)
