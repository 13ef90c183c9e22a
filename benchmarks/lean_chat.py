"""L on the Chat Completions wire: ``lean``'s loop with that wire's frames."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import trio

from .contender import MAX_TOKENS, MODEL, Client, History, Seen, ToolFunction
from .lean import HEADERS, LeanClient, encode, open_http
from .openai_loops import call_all, chat_results, chat_tool


class Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class Piece(msgspec.Struct):
    index: int
    function: Function
    id: str = ""


class Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[Piece] | None = None


class Choice(msgspec.Struct):
    delta: Delta


class Chunk(msgspec.Struct):
    choices: list[Choice]


decode = msgspec.json.Decoder(Chunk).decode


class LeanChat:
    """One session of the floor."""

    def __init__(self, http: httpx2.AsyncClient, tools: dict[str, ToolFunction], history: History) -> None:
        self._http = http
        self._tools = tools
        self._offered = [chat_tool(tool) for tool in tools.values()]
        self.messages: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in history]

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
        body: dict[str, Any] = {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": self.messages, "stream": True}
        if self._offered:
            body["tools"] = self._offered
        pieces: list[str] = []
        calls: list[dict[str, Any]] = []
        async with self._http.stream("POST", "v1/chat/completions", content=encode(body), headers=HEADERS) as response:
            response.raise_for_status()
            rest = b""
            async for chunk in response.aiter_raw():
                *frames, rest = (rest + chunk).split(b"\n\n")
                for frame in frames:
                    if frame == b"data: [DONE]":
                        continue
                    for choice in decode(frame[6:]).choices:
                        if choice.delta.content:
                            pieces.append(choice.delta.content)
                            seen(choice.delta.content)
                            if pause:
                                await trio.sleep(pause)
                        if choice.delta.tool_calls:
                            _more(calls, choice.delta.tool_calls)
        return "".join(pieces), calls


def _more(calls: list[dict[str, Any]], pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        if piece.index == len(calls):
            calls.append({"id": piece.id, "type": "function", "function": {"name": piece.function.name}})
        function = calls[piece.index]["function"]
        function["arguments"] = function.get("arguments", "") + piece.function.arguments


@asynccontextmanager
async def open_client(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says."""
    async with open_http(url) as http:
        yield LeanClient(http, tools, LeanChat)
