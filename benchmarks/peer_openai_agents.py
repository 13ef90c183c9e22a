"""openai-agents: ``Runner.run_streamed``, on the official SDK, its retries and tracing off. Runs on asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import openai

from .contender import MAX_TOKENS, MODEL, Client, Conversation, History, Seen, ToolFunction
from .peers import load

agents: Any = load("agents")


class Agents:
    """One session."""

    def __init__(self, agent: Any, history: History) -> None:
        self._agent = agent
        self.items: list[Any] = [{"role": role, "content": text} for role, text in history]

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """As the protocol says; the reader takes no pauses."""
        self.items.append({"role": "user", "content": text})
        run = agents.Runner.run_streamed(self._agent, self.items, max_turns=1000)
        async for event in run.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                seen(event.data.delta)
        self.items = run.to_input_list()
        return str(run.final_output)


class AgentsClient:
    """An agent."""

    def __init__(self, model: Any, tools: Sequence[ToolFunction]) -> None:
        settings = agents.ModelSettings(max_tokens=MAX_TOKENS, store=False)
        offered = [agents.function_tool(tool) for tool in tools]
        self._agent = agents.Agent(name="bench", model=model, tools=offered, model_settings=settings)

    @asynccontextmanager
    async def session(self, history: History = ()) -> AsyncIterator[Conversation]:
        """A new session."""
        yield Agents(self._agent, history)


def open_chat(url: str, tools: Sequence[ToolFunction] = ()) -> AbstractAsyncContextManager[Client]:
    """As the protocol says, on the Chat Completions wire."""
    return _open("OpenAIChatCompletionsModel", url, tools)


def open_responses(url: str, tools: Sequence[ToolFunction] = ()) -> AbstractAsyncContextManager[Client]:
    """As the protocol says, on the Responses wire."""
    return _open("OpenAIResponsesModel", url, tools)


@asynccontextmanager
async def _open(model: str, url: str, tools: Sequence[ToolFunction]) -> AsyncIterator[Client]:
    agents.set_tracing_disabled(True)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield AgentsClient(getattr(agents, model)(model=MODEL, openai_client=client), tools)
