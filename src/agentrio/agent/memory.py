"""What a tool may remember: plain JSON, checked where it is written."""

from __future__ import annotations

from typing import Any

from ..domain.errors import MemoryPatchError

MAX_DEPTH = 100  # nesting; far below what would exhaust Python's stack when the patch is copied or encoded
MAX_INT_BITS = 13_000  # Python refuses to print longer integers (4300 digits), so they could not be stored


def check_patch(patch: object) -> dict[str, Any]:
    """A deep copy of a memory patch, made of nothing but JSON values of the exact Python types.

    Raises:
        MemoryPatchError: something in it is not a dict with string keys, list, string, integer, finite float, bool or
            None; the message names its path, such as ``patch.a.items[2]``.
    """
    if type(patch) is not dict:
        raise MemoryPatchError(f"patch is {_article(patch)}; it must be a dict.")
    return _copy_dict(patch, "patch", ())


def _copy(value: Any, path: str, above: tuple[int, ...]) -> Any:
    kind = type(value)
    if kind is dict:
        return _copy_dict(value, path, above)
    if kind is list:
        inside = _enter(value, path, above)
        return [_copy(item, f"{path}[{index}]", inside) for index, item in enumerate(value)]
    _check_scalar(value, path)
    return value


def _copy_dict(value: Any, path: str, above: tuple[int, ...]) -> dict[str, Any]:
    inside = _enter(value, path, above)
    copy = {}
    for key, item in value.items():
        if type(key) is not str:
            raise MemoryPatchError(f"{path} has a key that is {_article(key)}; keys must be strings.")
        _check_scalar(key, f"a key of {path}")
        copy[key] = _copy(item, _below(path, key), inside)
    return copy


def _enter(value: object, path: str, above: tuple[int, ...]) -> tuple[int, ...]:
    if id(value) in above:
        raise MemoryPatchError(f"{path} contains itself; memory must be a tree.")
    if len(above) == MAX_DEPTH:
        raise MemoryPatchError(f"{path[:200]} is nested deeper than {MAX_DEPTH} levels.")
    return (*above, id(value))


def _check_scalar(value: Any, path: str) -> None:
    kind = type(value)
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise MemoryPatchError(f"{path} holds half of a surrogate pair, which is no Unicode text.") from None
    elif kind is float:
        if value != value or value in (float("inf"), float("-inf")):
            raise MemoryPatchError(f"{path} is {value}; a number must be finite.")
    elif kind is int:
        if value.bit_length() > MAX_INT_BITS:
            raise MemoryPatchError(f"{path} is an integer too long to be stored.")
    elif kind is not bool and value is not None:
        raise MemoryPatchError(
            f"{path} is {_article(value)}; memory holds dict, list, str, int, float, bool and None only, "
            "and no subclasses of them."
        )


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{key!r}]"


def _article(value: object) -> str:
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
