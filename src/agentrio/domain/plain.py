"""Plain data: JSON values of the exact Python types, and text that is Unicode.

Whatever else may look alike (a tuple, a dict with numbers for keys, half of a surrogate pair) would come back from JSON
as something else, so it is refused, or mended, where it enters.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 100  # nesting; far below what would exhaust Python's stack when the value is copied or encoded
TOO_LONG = 10**4300  # Python neither prints nor reads an integer of more digits, so it could not be stored
LONGEST_PATH = 200  # characters of a path that are told; keys have any length


class NotPlain(ValueError):
    """The value is no plain JSON; the message names the path."""


def plain_copy(value: object, path: str) -> Any:
    """A deep copy of a value that is made of nothing but dicts with string keys, lists and JSON scalars.

    Raises:
        NotPlain: something in it is of another type, subclasses included, or is infinite, too long or too deep, or no
            Unicode; the message names its path, which begins with ``path``.
    """
    return _copy(value, path, ())


def unicode_text(text: str) -> str:
    """The text as Unicode: pairs of surrogates joined, halves replaced by U+FFFD, since they can't be sent.

    Raises:
        TypeError: it is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"the text of a message's part must be a str, not {article(text)}")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def article(value: object) -> str:
    """The type of a value with its article, as errors say it: ``a list``."""
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


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
            raise NotPlain(f"{_short(path)} has a key that is {article(key)}; keys must be strings.")
        _check_scalar(key, f"a key of {_short(path)}")
        copy[key] = _copy(item, _below(path, key), inside)
    return copy


def _enter(value: object, path: str, above: tuple[int, ...]) -> tuple[int, ...]:
    if id(value) in above:
        raise NotPlain(f"{_short(path)} contains itself; JSON is a tree.")
    if len(above) == MAX_DEPTH:
        raise NotPlain(f"{_short(path)} is nested deeper than {MAX_DEPTH} levels.")
    return (*above, id(value))


def _check_scalar(value: Any, path: str) -> None:
    kind = type(value)
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotPlain(f"{_short(path)} holds half of a surrogate pair, which is no Unicode text.") from None
    elif kind is float:
        if value != value or value in (float("inf"), float("-inf")):
            raise NotPlain(f"{_short(path)} is {value}; a number must be finite.")
    elif kind is int:
        if not -TOO_LONG < value < TOO_LONG:
            raise NotPlain(f"{_short(path)} is an integer too long to be stored.")
    elif kind is not bool and value is not None:
        raise NotPlain(
            f"{_short(path)} is {article(value)}; JSON holds dict, list, str, int, float, bool and None only, "
            "and no subclasses of them."
        )


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{key!r}]"


def _short(path: str) -> str:
    return path if len(path) <= LONGEST_PATH else f"{path[:LONGEST_PATH]}…"
