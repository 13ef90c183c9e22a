"""Prompt layers: static text that can be cached, and functions asked anew each round."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import attrs

from agentrio.domain.errors import DeclarationError
from agentrio.domain.identity import Identity
from agentrio.domain.keywords import keywords_told
from agentrio.domain.render import SystemBlock
from agentrio.domain.session import Session


@attrs.frozen
class PromptContext:
    """What a function layer may look at: the conversation so far, who it is for, and the app's services."""

    session: Session
    identity: Identity | None = None
    services: Any = None


LayerText: TypeAlias = str | Callable[[PromptContext], str | Awaitable[str]]


@attrs.frozen
class PromptLayer:
    """One layer of the system prompt. Make it with ``prompt_layer``."""

    name: str
    text: LayerText
    cache: bool = False


@keywords_told
def prompt_layer(name: str, text: LayerText, *, cache: bool = False) -> PromptLayer:
    """A layer of the system prompt: text, or a function (plain or async) that gives it each round.

    ``cache`` marks a static layer as part of the prefix that the provider may cache. Layers go out static ones first,
    then functions, each in the order declared; empty ones are left out.

    Raises:
        DeclarationError: no name, or a function layer that wants to be cached.
    """
    if not isinstance(name, str) or not name:
        raise DeclarationError(f"prompt_layer needs a name as its first argument, not {name!r}.")
    if callable(text):
        if cache:
            raise DeclarationError(
                f"prompt_layer {name!r} is a function: it is asked anew each round, so it can't be cached. "
                "Leave out cache=True, or give the text itself."
            )
    elif not isinstance(text, str):
        raise DeclarationError(f"prompt_layer {name!r}: the text is a str or a function, not {type(text).__name__}.")
    return PromptLayer(name, text, cache)


def check_layers(agent: str, layers: Sequence[object]) -> tuple[PromptLayer, ...]:
    """The layers of an agent, strings made into layers.

    Raises:
        DeclarationError: something else stands among them, or two have one name.
    """
    made: list[PromptLayer] = []
    for index, layer in enumerate(layers):
        if isinstance(layer, str):
            layer = PromptLayer(f"layer-{index + 1}", layer)
        if not isinstance(layer, PromptLayer):
            raise DeclarationError(
                f"Agent {agent!r}: prompt[{index}] is a {type(layer).__name__}; use prompt_layer(...) or a str."
            )
        if any(other.name == layer.name for other in made):
            raise DeclarationError(f"Agent {agent!r}: two prompt layers are called {layer.name!r}; rename one.")
        made.append(layer)
    return tuple(made)


async def resolve_layers(
    layers: Sequence[PromptLayer], context: PromptContext, asking: Callable[[str], None] = lambda name: None
) -> tuple[SystemBlock, ...]:
    """The prompt for one round. ``asking`` is told the name of each function layer before it is asked.

    Raises:
        Exception: whatever a function layer raised; and TypeError where one gave no text.
    """
    static = [layer for layer in layers if isinstance(layer.text, str)]
    dynamic = [layer for layer in layers if not isinstance(layer.text, str)]
    marked = max((index for index, layer in enumerate(static) if layer.cache and layer.text), default=-1)
    blocks = [SystemBlock(str(layer.text), index == marked) for index, layer in enumerate(static) if layer.text]
    for layer in dynamic:
        asking(layer.name)
        text = await _ask(layer, context)
        if text:
            blocks.append(SystemBlock(text))
    return tuple(blocks)


async def _ask(layer: PromptLayer, context: PromptContext) -> str:
    assert not isinstance(layer.text, str)
    text = layer.text(context)
    if inspect.isawaitable(text):
        text = await text
    if not isinstance(text, str):
        raise TypeError(f"prompt layer {layer.name!r} gave a {type(text).__name__}, not a str")
    return text
