"""SDK: a bare loop on ``anthropic.AsyncAnthropic().messages.create(stream=True)``, its retries off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import trio

from .contender import MAX_TOKENS, MODEL, Client, Conversation, History, Seen, ToolFunction, schema


class Sdk:
    """One session of the SDK's loop."""

    def __init__(self, client: anthropic.AsyncAnthropic, tools: dict[str, ToolFunction], history: History) -> None:
        self._client = client
        self._tools = tools
        self._more: dict[str, Any] = {"tools": [schema(tool) for tool in tools.values()]} if tools else {}
        self.messages: list[Any] = [{"role": role, "content": text} for role, text in history]

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """As the protocol says."""
        self.messages.append({"role": "user", "content": text})
        while True:
            blocks = await self._round(seen, pause)
            self.messages.append({"role": "assistant", "content": blocks})
            calls = [block for block in blocks if block["type"] == "tool_use"]
            if not calls:
                return "".join(block["text"] for block in blocks)
            self.messages.append({"role": "user", "content": await self._call(calls)})

    async def _round(self, seen: Seen, pause: float) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        pieces: list[list[str]] = []
        stream = await self._client.messages.create(
            model=MODEL, max_tokens=MAX_TOKENS, messages=self.messages, stream=True, **self._more
        )
        async with stream:
            async for event in stream:
                if event.type == "content_block_delta":
                    delta = event.delta
                    if delta.type == "text_delta":
                        pieces[event.index].append(delta.text)
                        seen(delta.text)
                        if pause:
                            await trio.sleep(pause)
                    elif delta.type == "input_json_delta":
                        pieces[event.index].append(delta.partial_json)
                elif event.type == "content_block_start":
                    block = event.content_block
                    if block.type == "tool_use":
                        blocks.append({"type": "tool_use", "id": block.id, "name": block.name, "input": {}})
                    else:
                        blocks.append({"type": "text", "text": ""})
                    pieces.append([])
        for block, parts in zip(blocks, pieces, strict=True):
            if block["type"] == "text":
                block["text"] = "".join(parts)
            else:
                block["input"] = json.loads("".join(parts))
        return blocks

    async def _call(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": call["id"]} for call in calls]

        async def call(number: int) -> None:
            results[number]["content"] = await self._tools[calls[number]["name"]](**calls[number]["input"])

        if len(calls) == 1:
            await call(0)
        else:
            async with trio.open_nursery() as nursery:
                for number in range(len(calls)):
                    nursery.start_soon(call, number)
        return results


class SdkClient:
    """The SDK's connections."""

    def __init__(self, client: anthropic.AsyncAnthropic, tools: Sequence[ToolFunction]) -> None:
        self._client = client
        self._tools = {tool.__name__: tool for tool in tools}

    @asynccontextmanager
    async def session(self, history: History = ()) -> AsyncIterator[Conversation]:
        """A new session."""
        yield Sdk(self._client, self._tools, history)


@asynccontextmanager
async def open_client(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says."""
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
        yield SdkClient(client, tools)
