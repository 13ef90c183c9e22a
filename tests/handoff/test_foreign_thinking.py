"""What another model reasoned is told or left out, as the model's declaration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from agentrio import Anthropic, OpenAIChat, OpenAIResponses
from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import Text, Thinking
from agentrio.domain.render import ModelRequest
from agentrio.providers.base import Model, Timeouts
from agentrio.testing import TextReply, open_model_server

KEY = "k" * 20
MODELS: list[Callable[..., Model]] = [
    lambda url, **told: Anthropic("claude-sonnet-5", api_key=KEY, base_url=url, **told),
    lambda url, **told: OpenAIChat("m", api_key=KEY, base_url=f"{url}/v1", **told),
    lambda url, **told: OpenAIResponses("m", api_key=KEY, base_url=f"{url}/v1", **told),
]
each = pytest.mark.parametrize("model", MODELS, ids=["messages", "chat", "responses"])


@each
async def test_other_models_reasoning_is_labelled_or_dropped(model: Callable[..., Model]) -> None:
    """Who does not want to pay for it need not. One memo serves both: a session may go from model to model."""
    answer = Message("a", "assistant", (Thinking("because"), Text("So.")), ModelTag("other", "chat", "x"))
    request = ModelRequest("s", (user_message("u", "Hi."), answer, user_message("v", "Why?")))
    bodies: list[str] = []
    async with open_model_server([TextReply("Well.")] * 3) as server:
        for told in ({}, {"foreign_thinking": "drop"}, {"foreign_thinking": "label"}):
            async with model(server.base_url, **told).open() as client:
                async with client.stream(request, Timeouts()) as stream:
                    with pytest.raises(trio.EndOfChannel):
                        while True:
                            await stream.receive()
        bodies = [str(exchange.body) for exchange in server.record]
    assert ["because" in body for body in bodies] == [True, False, True]
    assert all("So." in body for body in bodies)


@each
def test_what_else_might_become_of_it_is_refused(model: Callable[..., Any]) -> None:
    """At the declaration."""
    with pytest.raises(DeclarationError, match=r"foreign_thinking is 'keep'; it must be label or drop"):
        model("https://x.example", foreign_thinking="keep")
