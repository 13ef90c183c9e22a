"""agentrio, as an application uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio

from agentrio import (
    Agent,
    Anthropic,
    Limits,
    Message,
    OpenAIChat,
    OpenAIResponses,
    Runtime,
    Session,
    SessionHandle,
    open_runtime,
    read_tool,
)
from agentrio.domain.messages import ModelTag
from agentrio.events import TextDelta
from agentrio.parts import Text
from agentrio.providers.base import Model

from .contender import MAX_TOKENS, MODEL, PARALLEL, Client, Conversation, History, Seen, ToolFunction

LIMITS = Limits(
    max_rounds=1000, max_calls=1000, max_parallel_calls=PARALLEL, max_context_chars=10_000_000, connect_timeout=60
)


class Ours:
    """One session."""

    def __init__(self, handle: SessionHandle) -> None:
        self.handle = handle

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """As the protocol says."""
        async with self.handle.run(text) as run:
            async for event in run:
                if type(event) is TextDelta:
                    seen(event.text)
                    if pause:
                        await trio.sleep(pause)
        run.result.raise_for_status()
        return run.result.text


class OursClient:
    """A runtime and an agent."""

    def __init__(self, runtime: Runtime, agent: Agent) -> None:
        self._runtime = runtime
        self._agent = agent
        self._sessions = 0

    @asynccontextmanager
    async def session(self, history: History = ()) -> AsyncIterator[Conversation]:
        """A new session."""
        async with self._runtime.open_session(self._agent, value=self._value(history) if history else None) as handle:
            yield Ours(handle)

    def _value(self, history: History) -> Session:
        self._sessions += 1
        return Session(f"old-{self._sessions}", messages=tuple(self._messages(history)))

    def _messages(self, history: History) -> list[Message]:
        tag: ModelTag = self._agent.model.tag
        made: list[Message] = []
        for number, (role, text) in enumerate(history):
            if role == "user":
                made.append(Message(f"m{number}", "user", (Text(text),)))
            else:
                made.append(Message(f"m{number}", "assistant", (Text(text),), tag))
        return made


@asynccontextmanager
async def open_client(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says."""
    async with _client(Anthropic(MODEL, base_url=url, api_key="none"), tools) as client:
        yield client


@asynccontextmanager
async def open_chat(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says, on the Chat Completions wire."""
    async with _client(OpenAIChat(MODEL, base_url=f"{url}/v1", api_key="none"), tools) as client:
        yield client


@asynccontextmanager
async def open_responses(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says, on the Responses wire."""
    async with _client(OpenAIResponses(MODEL, base_url=f"{url}/v1", api_key="none"), tools) as client:
        yield client


@asynccontextmanager
async def _client(model: Model, tools: Sequence[ToolFunction]) -> AsyncIterator[Client]:
    agent = Agent(model=model, tools=[read_tool(tool) for tool in tools], limits=LIMITS, max_tokens=MAX_TOKENS)
    async with open_runtime() as runtime:
        yield OursClient(runtime, agent)
