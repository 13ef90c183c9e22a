"""L on the Responses wire: ``lean``'s loop with that wire's frames."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import trio

from .contender import MAX_TOKENS, MODEL, Client, History, Seen, ToolFunction
from .lean import HEADERS, LeanClient, encode, open_http
from .openai_loops import call_all, responses_results, responses_tool


class Frame(msgspec.Struct):
    type: str
    delta: str = ""
    item: msgspec.Raw = msgspec.Raw()


decode = msgspec.json.Decoder(Frame).decode


class LeanResponses:
    """One session of the floor."""

    def __init__(self, http: httpx2.AsyncClient, tools: dict[str, ToolFunction], history: History) -> None:
        self._http = http
        self._tools = tools
        self._offered = [responses_tool(tool) for tool in tools.values()]
        self.items: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in history]

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
        body: dict[str, Any] = {"model": MODEL, "max_output_tokens": MAX_TOKENS, "store": False, "stream": True}
        body["input"] = self.items
        if self._offered:
            body["tools"] = self._offered
        pieces: list[str] = []
        calls: list[dict[str, Any]] = []
        async with self._http.stream("POST", "v1/responses", content=encode(body), headers=HEADERS) as response:
            response.raise_for_status()
            rest = b""
            async for chunk in response.aiter_raw():
                *frames, rest = (rest + chunk).split(b"\n\n")
                for frame in frames:
                    event = decode(frame.partition(b"\ndata: ")[2])
                    if event.type == "response.output_text.delta":
                        pieces.append(event.delta)
                        seen(event.delta)
                        if pause:
                            await trio.sleep(pause)
                    elif event.type == "response.output_item.done":
                        item = msgspec.json.decode(event.item)
                        if item["type"] == "function_call":
                            calls.append(item)
        return "".join(pieces), calls


@asynccontextmanager
async def open_client(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says."""
    async with open_http(url) as http:
        yield LeanClient(http, tools, LeanResponses)
