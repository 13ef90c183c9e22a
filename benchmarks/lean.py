"""L, the floor: a bare loop on httpx2 and msgspec. No retries, no events, no checks, no cleaning up after a stop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import trio

from .contender import MAX_TOKENS, MODEL, Client, Conversation, History, Seen, ToolFunction, schema


class Text(msgspec.Struct, tag="text_delta"):
    text: str


class Json(msgspec.Struct, tag="input_json_delta"):
    partial_json: str


class Delta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: Text | Json


class Start(msgspec.Struct, tag="content_block_start"):
    index: int
    content_block: dict[str, Any]


class Stop(msgspec.Struct, tag="content_block_stop"):
    index: int


class MessageStart(msgspec.Struct, tag="message_start"):
    message: dict[str, Any]


class MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: dict[str, Any]
    usage: dict[str, Any]


class MessageStop(msgspec.Struct, tag="message_stop"):
    pass


class Ping(msgspec.Struct, tag="ping"):
    pass


decode = msgspec.json.Decoder(Delta | Start | Stop | MessageStart | MessageDelta | MessageStop | Ping).decode
encode = msgspec.json.Encoder().encode

HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "x-api-key": "none",
    "anthropic-version": "2023-06-01",
}


class Lean:
    """One session of the floor."""

    def __init__(self, http: httpx2.AsyncClient, tools: dict[str, ToolFunction], history: History) -> None:
        self._http = http
        self._tools = tools
        self._offered = [schema(tool) for tool in tools.values()]
        self.messages: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in history]

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
        body: dict[str, Any] = {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": self.messages, "stream": True}
        if self._offered:
            body["tools"] = self._offered
        blocks: list[dict[str, Any]] = []
        pieces: list[list[str]] = []
        async with self._http.stream("POST", "v1/messages", content=encode(body), headers=HEADERS) as response:
            response.raise_for_status()
            rest = b""
            async for chunk in response.aiter_raw():
                *frames, rest = (rest + chunk).split(b"\n\n")
                for frame in frames:
                    event = decode(frame.partition(b"\ndata: ")[2])
                    if type(event) is Delta:
                        delta = event.delta
                        if type(delta) is Text:
                            pieces[event.index].append(delta.text)
                            seen(delta.text)
                            if pause:
                                await trio.sleep(pause)
                        elif type(delta) is Json:
                            pieces[event.index].append(delta.partial_json)
                    elif type(event) is Start:
                        blocks.append(event.content_block)
                        pieces.append([])
        for block, parts in zip(blocks, pieces, strict=True):
            if block["type"] == "text":
                block["text"] = "".join(parts)
            else:
                block["input"] = msgspec.json.decode("".join(parts))
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


class LeanClient:
    """The floor's connections."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        tools: Sequence[ToolFunction],
        loop: Callable[[httpx2.AsyncClient, dict[str, ToolFunction], History], Conversation] = Lean,
    ) -> None:
        self._http = http
        self._tools = {tool.__name__: tool for tool in tools}
        self._loop = loop

    @asynccontextmanager
    async def session(self, history: History = ()) -> AsyncIterator[Conversation]:
        """A new session."""
        yield self._loop(self._http, self._tools, history)


def open_http(url: str) -> httpx2.AsyncClient:
    """Connections, as many as there are sessions."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx2.AsyncClient(base_url=url, limits=limits, timeout=60)


@asynccontextmanager
async def open_client(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says."""
    async with open_http(url) as http:
        yield LeanClient(http, tools)
