"""Small checkers of JSON values, and how they are put together. A checker says what is wrong, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs

from agentrio.testing.validators.demands import Demands

__all__ = [
    "Check",
    "Place",
    "Problem",
    "anything",
    "by_type",
    "each",
    "either",
    "flag",
    "number",
    "object_of",
    "one_of",
    "open_object",
    "text",
    "whole",
]


@attrs.frozen
class Problem:
    """What a server would refuse: where it stands in the body, in the wire's own way of writing it, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


@attrs.frozen
class Place:
    """A place in a body. ``brackets`` is how indexes are written: ``messages[0]``, not ``messages.0``."""

    demands: Demands
    problems: list[Problem] = attrs.field(factory=list)
    brackets: bool = True
    path: str = ""

    def at(self, key: str | int) -> Place:
        """A place within this one."""
        if isinstance(key, int) and self.brackets:
            return attrs.evolve(self, path=f"{self.path}[{key}]")
        return attrs.evolve(self, path=f"{self.path}.{key}" if self.path else str(key))

    def bad(self, reason: str) -> None:
        """Note a problem of this place."""
        self.problems.append(Problem(self.path, reason))

    def passes(self, check: Check, value: Any) -> bool:
        """Whether a checker finds nothing. What it finds is noted."""
        before = len(self.problems)
        check(value, self)
        return len(self.problems) == before


Check: TypeAlias = Callable[[Any, Place], None]


def anything(value: Any, place: Place) -> None:
    """Takes every value: what the wire does not look at, or what only the server can judge."""


def text(least: int = 0, most: int | None = None, pattern: str | None = None) -> Check:
    """A string of so many characters, all of it matching the pattern."""
    fits = None if pattern is None else re.compile(pattern)

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, str):
            place.bad(f"Input should be a valid string, got {_kind(value)}.")
        elif len(value) < least:
            place.bad(f"String should have at least {least} character(s).")
        elif most is not None and len(value) > most:
            place.bad(f"String too long: {len(value)} characters, at most {most}.")
        elif fits is not None and not fits.fullmatch(value):
            place.bad(f"String should match pattern '{pattern}', got {value[:80]!r}.")

    return check


def number(least: float, most: float) -> Check:
    """A number between two, both included."""

    def check(value: Any, place: Place) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            place.bad(f"Input should be a valid number, got {_kind(value)}.")
        elif not least <= value <= most:
            place.bad(f"Input should be between {least:g} and {most:g}.")

    return check


def whole(least: int) -> Check:
    """A whole number, not below ``least``."""

    def check(value: Any, place: Place) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            place.bad(f"Input should be a valid integer, got {_kind(value)}.")
        elif value < least:
            place.bad(f"Input should be greater than or equal to {least}.")

    return check


def flag(value: Any, place: Place) -> None:
    """True or false."""
    if not isinstance(value, bool):
        place.bad(f"Input should be a valid boolean, got {_kind(value)}.")


def one_of(*allowed: str) -> Check:
    """One of these strings."""

    def check(value: Any, place: Place) -> None:
        if value not in allowed:
            place.bad(f"Input should be one of {', '.join(map(repr, allowed))}, got {value!r}.")

    return check


def each(check: Check, least: int = 0, most: int | None = None) -> Check:
    """A list of what ``check`` takes."""

    def check_list(value: Any, place: Place) -> None:
        if not isinstance(value, list):
            place.bad(f"Input should be a valid list, got {_kind(value)}.")
            return
        if len(value) < least:
            place.bad(f"List should have at least {least} item(s).")
        if most is not None and len(value) > most:
            place.bad(f"List should have at most {most} items, not {len(value)}.")
        for index, item in enumerate(value):
            check(item, place.at(index))

    return check_list


def object_of(
    required: Mapping[str, Check],
    optional: Mapping[str, Check] | None = None,
    extensions: Mapping[str, Check] | None = None,
) -> Check:
    """An object with these keys and no others. ``extensions`` are keys that only some servers know."""
    known = {**required, **(optional or {})}

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, dict):
            place.bad(f"Input should be an object, got {_kind(value)}.")
            return
        more = (extensions or {}) if place.demands.extensions else {}
        for key in required:
            if key not in value:
                place.at(key).bad("Field required.")
        for key, item in value.items():
            rule = known.get(key) or more.get(key)
            if rule is None:
                place.at(key).bad("Extra inputs are not permitted.")
            else:
                rule(item, place.at(key))

    return check


def open_object(value: Any, place: Place) -> None:
    """Any object."""
    if not isinstance(value, dict):
        place.bad(f"Input should be an object, got {_kind(value)}.")


def by_type(checks: Mapping[str, Check], default: str | None = None) -> Check:
    """An object whose ``type`` says which checker it must pass."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, dict):
            place.bad(f"Input should be an object, got {_kind(value)}.")
            return
        kind = value.get("type", default)
        rule = checks.get(kind) if isinstance(kind, str) else None
        if kind is None:
            place.at("type").bad("Field required.")
        elif rule is None:
            place.at("type").bad(f"Input should be one of {', '.join(map(repr, checks))}, got {kind!r}.")
        else:
            rule(value, place)

    return check


def either(*checks: tuple[type | tuple[type, ...], Check]) -> Check:
    """One checker for each kind of JSON value."""

    def check(value: Any, place: Place) -> None:
        for kind, rule in checks:
            if isinstance(value, kind):
                rule(value, place)
                return
        place.bad(f"Input should be a valid {' or '.join(_kinds(checks))}, got {_kind(value)}.")

    return check


def _kinds(checks: Iterable[tuple[type | tuple[type, ...], Check]]) -> Iterable[str]:
    names = {str: "string", list: "list", dict: "object", type(None): "null"}
    return (names.get(kind, "value") for kind, _ in checks if isinstance(kind, type))


def _kind(value: object) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")
