"""Models by name: ``anthropic:claude-sonnet-5``, ``groq:openai/gpt-oss-120b``.

Importing this is cheap; a provider is imported when it is named.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from functools import partial

import attrs

from agentrio.domain.errors import DeclarationError

from .base import Model


def resolve(name: str) -> Model:
    """The model that ``provider:model`` names, with its credential from the environment.

    Raises:
        DeclarationError: no such provider, or no model name behind it.
    """
    provider, colon, model = name.partition(":")
    make = _PROVIDERS.get(provider) or _of_preset(provider)
    if not colon or make is None:
        raise DeclarationError(_unknown(name))
    model = model.strip()
    if not model:
        raise DeclarationError(f"The model {name!r} has no name behind its provider; write {provider}:name-of-a-model.")
    return make(model)


def _unknown(name: str) -> str:
    names = [*sorted(_PROVIDERS), *sorted(_preset_names())]
    prefix = re.split("[:/]", name)[0].lower()
    near = difflib.get_close_matches(prefix, names, 1) or [of for start, of in _FAMILIES if prefix.startswith(start)]
    model = name[len(prefix) + 1 :] or ("name-of-a-model" if prefix in names else name)
    meant = f" Did you mean {near[0]}:{model}?" if near else ""
    return (
        f"The model {name!r} names no known provider; write provider:model with one of {', '.join(names)}, or give a "
        f"model object such as Anthropic(...) or Scripted([...]).{meant}"
    )


@attrs.frozen
class Provided:
    """A provider that models can be named of.

    ``needs`` are the variables that must be set for it, ``missing`` those of them that are not. A provider on this
    machine needs none. ``example`` names a model of it, as ``resolve`` takes it.
    """

    name: str
    title: str
    base_url: str | None
    needs: tuple[str, ...]
    missing: tuple[str, ...]
    example: str


def providers() -> tuple[Provided, ...]:
    """All of them, with what each needs; no key is told."""
    from .presets import presets

    found = presets()
    official = found["openai"]
    rows: list[tuple[str, str, str | None, tuple[str, ...], str]] = [
        ("anthropic", "Anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "claude-sonnet-5"),
        ("openai", f"{official.title} (Responses)", official.base_url, (official.key,), official.example),
        ("openai-chat", f"{official.title} (Chat Completions)", official.base_url, (official.key,), official.example),
    ]
    for name in _preset_names():
        it = found[name]
        needs = (it.key, it.base_url_variable) if it.base_url is None else (it.key,)
        rows.append((name, it.title, it.base_url, tuple(filter(None, needs)), it.example))
    return tuple(
        Provided(name, title, url, needs, tuple(key for key in needs if not os.environ.get(key)), f"{name}:{example}")
        for name, title, url, needs, example in rows
    )


def _preset_names() -> list[str]:
    """Those that a name alone can stand for: OpenAI has names of its own, and some have no address to guess."""
    from .presets import presets

    known = presets().values()
    return [it.name for it in known if it.name not in _PROVIDERS and (it.base_url or it.base_url_variable)]


def _of_preset(provider: str) -> Callable[[str], Model] | None:
    return partial(_chat, preset=provider) if provider in _preset_names() else None


def _chat(model: str, preset: str = "openai") -> Model:
    from .openai_chat import OpenAIChat

    return OpenAIChat(model, preset=preset)


def _anthropic(model: str) -> Model:
    from .anthropic import Anthropic

    return Anthropic(model)


def _responses(model: str) -> Model:
    from .openai_responses import OpenAIResponses

    return OpenAIResponses(model, preset="openai")


_FAMILIES = (("claude", "anthropic"), ("gpt", "openai"), ("google", "gemini"))
"""What the names of some models begin with, and who has them."""

_PROVIDERS: dict[str, Callable[[str], Model]] = {
    "anthropic": _anthropic,
    "openai": _responses,
    "openai-chat": _chat,
}
