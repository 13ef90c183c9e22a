"""An answer that was stopped is gone on with, without a new message: over a socket, on all wires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from agentrio import Agent, Anthropic, OpenAIChat, OpenAIResponses, open_runtime
from agentrio.events import TextDelta
from agentrio.providers.base import Model
from agentrio.testing import Fault, TextReply, open_model_server
from agentrio.testing.validators import Demands

KEY = "k" * 20


def chat(preset: str) -> Callable[[str], Model]:
    return lambda url: OpenAIChat("m", preset=preset, api_key=KEY, base_url=f"{url}/v1")


MODELS: dict[str, tuple[Callable[[str], Model], Demands]] = {
    "new Claude": (lambda url: Anthropic("claude-sonnet-5", api_key=KEY, base_url=url), Demands(prefill=False)),
    "old Claude": (lambda url: Anthropic("claude-sonnet-4-5", api_key=KEY, base_url=url), Demands()),
    "no Claude": (lambda url: Anthropic("qwen3", api_key=KEY, base_url=url), Demands(prefill=False)),
    "Responses": (lambda url: OpenAIResponses("gpt-5.2", api_key=KEY, base_url=f"{url}/v1"), Demands(prefill=False)),
    **{
        preset: (
            chat(preset),
            Demands(ids="any", prefill=preset == "mistral", prefix_last=preset == "mistral"),
        )
        for preset in ("openai", "deepseek", "llamacpp", "openrouter", "mistral")
    },
}


@pytest.mark.parametrize(("model", "demands"), MODELS.values(), ids=MODELS)
async def test_j02_a_stopped_answer_is_gone_on_with(
    model: Callable[[str], Model], demands: Demands, autojump_clock: trio.testing.MockClock
) -> None:
    """Claude from 4.6 on, DeepSeek's reasoner and llama.cpp's thinking models refuse a request that ends in an answer.

    What the user says for that is in no history.
    """
    replies = [TextReply(["Hello \n"], fault=Fault(endless=True)), TextReply("And the rest.")]
    async with open_model_server(replies, validate=demands) as server, open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model(server.base_url))) as session:
            async with session.run("Go.") as run:
                async for event in run:
                    if isinstance(event, TextDelta):
                        break
            assert run.result.status == "cancelled"
            result: Any = await session.proceed()
            assert (result.status, result.text) == ("succeeded", "And the rest.")
            assert [message.role for message in session.value.messages] == ["user", "assistant", "assistant"]
