"""Rules that wires share: calls and their results, data in base64, tools."""

from __future__ import annotations

import binascii
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from agentrio.testing.validators.checking import Check, Place, open_object

__all__ = [
    "NAME",
    "Met",
    "check_arguments",
    "check_base64",
    "check_data_url",
    "check_tool_choice",
    "check_unique",
    "dicts",
    "strict_schema",
    "tool_schema",
]

NAME = r"[a-zA-Z0-9_-]{1,64}"
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@attrs.frozen
class Met:
    """Something with an id, and where it stands."""

    id: str
    place: Place


def dicts(value: object) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list, with their indexes. What is no object was complained of by others."""
    return [(i, it) for i, it in enumerate(value) if isinstance(it, dict)] if isinstance(value, list) else []


def check_unique(met: Iterable[Met], reason: str) -> None:
    """Each id once. ``reason`` has the id in it as ``{id}``."""
    seen: set[str] = set()
    for one in met:
        if one.id in seen:
            one.place.bad(reason.format(id=one.id))
        seen.add(one.id)


def check_order(calls: Sequence[str], results: Sequence[Met], place: Place) -> None:
    """Results in the order of their calls, where that is asked for."""
    given = [one.id for one in results]
    if place.demands.result_order and Counter(given) == Counter(calls) and given != list(calls):
        place.bad(f"Results must come in the order of their calls, {', '.join(calls)}.")


def check_base64(data: str, place: Place, most: int) -> None:
    """Base64 of at most so many bytes."""
    try:
        size = len(binascii.a2b_base64(data, strict_mode=True))
    except ValueError as error:
        place.bad(f"Invalid base64 data: {error}.")
        return
    if not size:
        place.bad("The data is empty.")
    elif size > most:
        place.bad(f"Too large: {size} bytes > {most} bytes.")


def check_data_url(url: str, place: Place, kinds: Sequence[str] = IMAGES, most: int = 50_000_000) -> None:
    """An address on the web, or data of one of these kinds."""
    if url.startswith("https://"):
        return
    head, _, data = url.partition(";base64,")
    kind = head.removeprefix("data:")
    if not head.startswith("data:") or kind not in kinds:
        place.bad(f"Invalid URL: expected https or base64 data of one of {', '.join(kinds)}, got {url[:40]!r}.")
        return
    check_base64(data, place, most)


def check_arguments(value: Any, place: Place) -> None:
    """A call's arguments as text: servers whose templates read them parse it, and refuse what is no object."""
    if not isinstance(value, str):
        place.bad("Input should be a valid string.")
        return
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        place.bad("Arguments should be JSON.")
        return
    if not isinstance(parsed, dict):
        place.bad("Arguments should be a JSON object.")


def tool_schema(value: Any, place: Place) -> None:
    """JSON Schema with an object on top."""
    if not place.passes(open_object, value):
        return
    if value.get("type") != "object":
        place.bad(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {json.dumps(value.get('type'))}'.")
    if not isinstance(value.get("properties", {}), dict):
        place.at("properties").bad("Input should be an object.")


def strict_schema(schema: Any, place: Place) -> None:
    """What strict tools ask of a schema: https://platform.openai.com/docs/guides/structured-outputs."""
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if isinstance(properties, dict):
        if schema.get("additionalProperties") is not False:
            place.bad("'additionalProperties' is required to be supplied and to be false.")
        missing = [name for name in properties if name not in schema.get("required", [])]
        if missing:
            place.bad(
                "'required' is required to be supplied and to be an array including every key in properties. "
                f"Missing '{missing[0]}'."
            )
        for name, inner in properties.items():
            strict_schema(inner, place.at("properties").at(name))
    strict_schema(schema.get("items"), place.at("items"))


def check_tool_choice(body: dict[str, Any], named: str | None, names: Sequence[str], place: Place) -> None:
    """A choice only where there are tools, and only of one of them."""
    if "tool_choice" not in body:
        return
    place = place.at("tool_choice")
    if not body.get("tools"):
        place.bad("'tool_choice' is only allowed when 'tools' are specified.")
    elif named is not None and named not in names:
        place.bad(f"Tool '{named}' not found in provided tools.")


def nullable(check: Check) -> Check:
    """Null, or what ``check`` takes."""

    def check_some(value: Any, place: Place) -> None:
        if value is not None:
            check(value, place)

    return check_some
