"""The servers of the Chat Completions wire that are known by name: facts of ``presets.toml``, each with its source.

The file is read when a preset is first asked for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs

from agentrio.domain.errors import DeclarationError
from agentrio.domain.keywords import tells_keywords

from .wire.chat_assembler import Reading
from .wire.chat_dialect import Dialect

__all__ = ["Dialect", "Preset", "Reading", "presets"]

FILE = Path(__file__).with_name("presets.toml")


@tells_keywords
@attrs.frozen(kw_only=True)
class Preset:
    """One server: how it is reached, what it takes, how its answers are read.

    ``base_url`` is None where each customer has one of their own. ``key`` is the variable that holds the key, empty
    where the server asks for none; ``base_url_variable`` may hold the base URL. With ``deployments`` the model's name
    is part of the path, and ``api_version`` of the query. ``price_list`` is the server's name in genai-prices, empty
    where it has none. ``example`` is a model of it as it is written there. ``sources`` maps each fact to where it is
    written; no source that could be read says so of those that are ``unconfirmed``.
    """

    name: str
    title: str
    base_url: str | None = None
    base_url_variable: str = ""
    key: str = ""
    key_header: str = "authorization"
    deployments: bool = False
    api_version: str = ""
    api_version_variable: str = ""
    price_list: str = ""
    example: str = ""
    dialect: Dialect = attrs.field(factory=Dialect)
    reading: Reading = attrs.field(factory=Reading)
    sources: Mapping[str, str] = attrs.field(factory=dict, eq=False, repr=False)
    unconfirmed: frozenset[str] = attrs.field(default=frozenset(), eq=False, repr=False)


def preset(name: str) -> Preset:
    """The preset of that name.

    Raises:
        DeclarationError: there is none; the message lists those that there are.
    """
    found = presets().get(name)
    if found is None:
        raise DeclarationError(f"There is no preset {name!r}; there are {', '.join(sorted(presets()))}.")
    return found


@cache
def presets() -> Mapping[str, Preset]:
    """All presets by name, in the order of the file."""
    return read_presets(FILE.read_bytes())


def read_presets(data: bytes) -> Mapping[str, Preset]:
    """The presets in such a file.

    Raises:
        ValueError: a fact is not known, not of its type, or without a source; the message names it.
    """
    found = tomllib.loads(data.decode())
    return {name: _preset(name, dict(table)) for name, table in found.items()}


_UNCONFIRMED = "unconfirmed"
_NO_FACTS = {"name", "title", "dialect", "reading", "sources", _UNCONFIRMED}
_OWN = {field.name for field in attrs.fields(Preset)} - _NO_FACTS


def _preset(name: str, table: dict[str, Any]) -> Preset:
    sources = table.pop("sources", {})
    title = table.pop("title")
    facts: dict[type, dict[str, Any]] = {Preset: {}, Dialect: {}, Reading: {}}
    told: dict[str, str] = {}
    for key, fact in table.items():
        home = Preset if key in _OWN else next((it for it in (Dialect, Reading) if key in _types(it)), None)
        if home is None:
            raise ValueError(f"presets: {name}.{key} is no known fact")
        if not isinstance(fact, dict) or fact.keys() - {_UNCONFIRMED} != {"is", "from"} or fact["from"] not in sources:
            raise ValueError(f"presets: {name}.{key} must have a value and the name of one of its sources")
        if fact.get(_UNCONFIRMED, True) is not True:
            raise ValueError(f"presets: {name}.{key} is unconfirmed = true, or does not say so")
        if not _fits(fact["is"], _types(home)[key]):
            raise ValueError(f"presets: {name}.{key} can't be {fact['is']!r}")
        facts[home][key] = fact["is"]
        told[key] = sources[fact["from"]]
    unused = sources.keys() - {fact["from"] for fact in table.values()}
    if unused:
        raise ValueError(f"presets: {name} cites for nothing: {', '.join(sorted(unused))}")
    dialect, reading = Dialect(**facts[Dialect]), Reading(**facts[Reading])
    open_to_doubt = frozenset(key for key, fact in table.items() if _UNCONFIRMED in fact)
    return Preset(
        name=name,
        title=title,
        dialect=dialect,
        reading=reading,
        sources=told,
        unconfirmed=open_to_doubt,
        **facts[Preset],
    )


@cache
def _types(home: type) -> Mapping[str, Any]:
    return get_type_hints(home)


def _fits(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return isinstance(value, bool if kind is bool else str)
