"""Models by name: ``anthropic:claude-sonnet-5``. Importing this is cheap; a provider is imported when it is named."""

from __future__ import annotations

from collections.abc import Callable

from agentrio.domain.errors import DeclarationError

from .base import Model


def resolve(name: str) -> Model:
    """The model that ``provider:model`` names, with its credential from the environment.

    Raises:
        DeclarationError: no such provider, or no model name behind it.
    """
    provider, colon, model = name.partition(":")
    make = _PROVIDERS.get(provider)
    if not colon or make is None:
        raise DeclarationError(
            f"The model {name!r} names no known provider; write provider:model with one of "
            f"{', '.join(sorted(_PROVIDERS))}, or give a model object such as Anthropic(...) or Scripted([...])."
        )
    if not model.strip():
        raise DeclarationError(f"The model {name!r} has no name behind its provider; write {provider}:name-of-a-model.")
    return make(model)


def _anthropic(model: str) -> Model:
    from .anthropic import Anthropic

    return Anthropic(model)


def _not_yet(provider: str) -> Callable[[str], Model]:
    def refuse(model: str) -> Model:
        raise DeclarationError(
            f"The provider {provider!r} is not built yet, so the model {provider}:{model} can't be used; use "
            "anthropic:..., or give a model object of your own."
        )

    return refuse


_PROVIDERS: dict[str, Callable[[str], Model]] = {
    "anthropic": _anthropic,
    "openai": _not_yet("openai"),
    "openai-chat": _not_yet("openai-chat"),
}
