"""langchain: ``create_agent`` and its stream of messages, on the official SDKs, their retries off. Runs on asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from .contender import MAX_TOKENS, MODEL, Client, Conversation, History, Seen, ToolFunction
from .peers import load

chains: Any = load("langchain.agents")
messages: Any = load("langchain_core.messages")
tooling: Any = load("langchain_core.tools")


class Chain:
    """One session."""

    def __init__(self, agent: Any, history: History) -> None:
        self._agent = agent
        kinds = {"user": messages.HumanMessage, "assistant": messages.AIMessage}
        self.messages: list[Any] = [kinds[role](content=text) for role, text in history]

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """As the protocol says; the reader takes no pauses."""
        given = {"messages": [*self.messages, messages.HumanMessage(content=text)]}
        stream = self._agent.astream(given, {"recursion_limit": 1000}, stream_mode=["messages", "values"])
        async for mode, value in stream:
            if mode == "values":
                self.messages = value["messages"]
            elif isinstance(value[0], messages.AIMessageChunk) and (piece := value[0].text):
                seen(piece)
        return str(self.messages[-1].text)


class ChainClient:
    """An agent."""

    def __init__(self, model: Any, tools: Sequence[ToolFunction]) -> None:
        self._agent = chains.create_agent(model, [tooling.tool(tool) for tool in tools])

    @asynccontextmanager
    async def session(self, history: History = ()) -> AsyncIterator[Conversation]:
        """A new session."""
        yield Chain(self._agent, history)


@asynccontextmanager
async def open_messages(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says, on the Messages wire."""
    models: Any = load("langchain_anthropic")
    model = models.ChatAnthropic(
        model=MODEL, base_url=url, api_key="none", max_retries=0, timeout=60, max_tokens=MAX_TOKENS
    )
    yield ChainClient(model, tools)


def open_chat(url: str, tools: Sequence[ToolFunction] = ()) -> AbstractAsyncContextManager[Client]:
    """As the protocol says, on the Chat Completions wire."""
    return _open_openai(url, tools, responses=False)


def open_responses(url: str, tools: Sequence[ToolFunction] = ()) -> AbstractAsyncContextManager[Client]:
    """As the protocol says, on the Responses wire."""
    return _open_openai(url, tools, responses=True)


@asynccontextmanager
async def _open_openai(url: str, tools: Sequence[ToolFunction], responses: bool) -> AsyncIterator[Client]:
    models: Any = load("langchain_openai")
    model = models.ChatOpenAI(
        model=MODEL,
        base_url=f"{url}/v1",
        api_key="none",
        max_retries=0,
        timeout=60,
        max_tokens=MAX_TOKENS,
        use_responses_api=responses,
        streaming=True,
    )
    yield ChainClient(model, tools)
