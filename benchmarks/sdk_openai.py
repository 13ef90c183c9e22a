"""SDK on the OpenAI wires: bare loops on ``openai.AsyncOpenAI``'s ``create(stream=True)``, its retries off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import openai
import trio

from .contender import MAX_TOKENS, MODEL, Client, Conversation, History, Seen, ToolFunction
from .openai_loops import call_all, chat_results, chat_tool, responses_results, responses_tool


class Chat:
    """One session of the loop on ``chat.completions``."""

    def __init__(self, client: openai.AsyncOpenAI, tools: dict[str, ToolFunction], history: History) -> None:
        self._client = client
        self._tools = tools
        self._more: dict[str, Any] = {"tools": [chat_tool(tool) for tool in tools.values()]} if tools else {}
        self.messages: list[Any] = [{"role": role, "content": text} for role, text in history]

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """As the protocol says."""
        self.messages.append({"role": "user", "content": text})
        while True:
            answer, calls = await self._round(seen, pause)
            if not calls:
                self.messages.append({"role": "assistant", "content": answer})
                return answer
            self.messages.append({"role": "assistant", "content": answer or None, "tool_calls": calls})
            named = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
            self.messages += chat_results(calls, await call_all(self._tools, named))

    async def _round(self, seen: Seen, pause: float) -> tuple[str, list[dict[str, Any]]]:
        pieces: list[str] = []
        calls: list[dict[str, Any]] = []
        stream = await self._client.chat.completions.create(
            model=MODEL, max_tokens=MAX_TOKENS, messages=self.messages, stream=True, **self._more
        )
        async with stream:
            async for chunk in stream:
                for choice in chunk.choices:
                    delta = choice.delta
                    if delta.content:
                        pieces.append(delta.content)
                        seen(delta.content)
                        if pause:
                            await trio.sleep(pause)
                    for piece in delta.tool_calls or ():
                        if piece.function is not None:
                            if piece.index == len(calls):
                                named = {"name": piece.function.name, "arguments": ""}
                                calls.append({"id": piece.id, "type": "function", "function": named})
                            calls[piece.index]["function"]["arguments"] += piece.function.arguments or ""
        return "".join(pieces), calls


class Responses:
    """One session of the loop on ``responses``."""

    def __init__(self, client: openai.AsyncOpenAI, tools: dict[str, ToolFunction], history: History) -> None:
        self._client = client
        self._tools = tools
        self._more: dict[str, Any] = {"tools": [responses_tool(tool) for tool in tools.values()]} if tools else {}
        self.items: list[Any] = [{"role": role, "content": text} for role, text in history]

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """As the protocol says."""
        self.items.append({"role": "user", "content": text})
        while True:
            answer, calls = await self._round(seen, pause)
            if not calls:
                self.items.append({"role": "assistant", "content": answer})
                return answer
            self.items += calls
            named = [(call["name"], call["arguments"]) for call in calls]
            self.items += responses_results(calls, await call_all(self._tools, named))

    async def _round(self, seen: Seen, pause: float) -> tuple[str, list[dict[str, Any]]]:
        pieces: list[str] = []
        calls: list[dict[str, Any]] = []
        stream = await self._client.responses.create(
            model=MODEL, max_output_tokens=MAX_TOKENS, input=self.items, store=False, stream=True, **self._more
        )
        async with stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    pieces.append(event.delta)
                    seen(event.delta)
                    if pause:
                        await trio.sleep(pause)
                elif event.type == "response.output_item.done":
                    item = event.item
                    if item.type == "function_call":
                        named = {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
                        calls.append({"type": "function_call", **named})
        return "".join(pieces), calls


class SdkClient:
    """The SDK's connections."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        tools: Sequence[ToolFunction],
        loop: Callable[[openai.AsyncOpenAI, dict[str, ToolFunction], History], Conversation],
    ) -> None:
        self._client = client
        self._tools = {tool.__name__: tool for tool in tools}
        self._loop = loop

    @asynccontextmanager
    async def session(self, history: History = ()) -> AsyncIterator[Conversation]:
        """A new session."""
        yield self._loop(self._client, self._tools, history)


def _client(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)


@asynccontextmanager
async def open_chat(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says, on the Chat Completions wire."""
    async with _client(url) as client:
        yield SdkClient(client, tools, Chat)


@asynccontextmanager
async def open_responses(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says, on the Responses wire."""
    async with _client(url) as client:
        yield SdkClient(client, tools, Responses)
