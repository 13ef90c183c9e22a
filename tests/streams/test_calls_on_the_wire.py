"""Calls and their results over a socket, through the public door: ids that lack, arguments that are large."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from agentrio import Agent, Anthropic, OpenAIChat, open_runtime, read_tool
from agentrio.testing import RawReply, open_model_server
from tests.streams.raw import FINE, HEAD, Peer, open_raw_server


@read_tool
async def search(words: str) -> str:
    """Looks for words."""
    return f"found {words}"


def event(frame: Any) -> bytes:
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


def piece(index: int | None, arguments: str, **fields: Any) -> Any:
    return {"index": index, "function": {"name": "search", "arguments": arguments}, **fields}


@pytest.mark.parametrize("preset", ["ollama", "openai", "mistral", "gemini"])
@pytest.mark.parametrize("indexed", [False, True])
async def test_e05_two_calls_of_one_tool_without_ids_have_their_own_results(
    preset: str, indexed: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """The tool's name is no id: ids are made up, and stand on both sides."""
    calls = [piece(at if indexed else None, json.dumps({"words": word})) for at, word in enumerate(("one", "two"))]
    asks = event({"choices": [{"delta": {"tool_calls": calls}}]})
    asks += event({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    fine = event({"choices": [{"delta": {"content": "Fine."}, "finish_reason": "stop"}]})
    async with open_model_server([RawReply(asks), RawReply(fine)]) as server, open_runtime() as runtime:
        model = OpenAIChat("m", preset=preset, api_key="k" * 20, base_url=f"{server.base_url}/v1")
        async with runtime.open_session(Agent(model=model, tools=[search])) as session:
            assert (await session.ask("Go on.")).text == "Fine."
        body: Any = server.record[1].body
    [asked] = [message for message in body["messages"] if message.get("tool_calls")]
    ids = [call["id"] for call in asked["tool_calls"]]
    assert len(set(ids)) == 2
    results = {message["tool_call_id"]: message["content"] for message in body["messages"] if message["role"] == "tool"}
    assert results == dict(zip(ids, ("found one", "found two"), strict=True))


async def test_f06_a_line_of_megabytes_keeps_its_spaces(autojump_clock: trio.testing.MockClock) -> None:
    """However its reads are cut: here just where buffers of 64 KiB end."""
    text = (" " + "x" * 65_534 + " ") * 80
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}
    body = event(block) + FINE[FINE.index(b'data: {"type":"message_delta"') :]

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.say(HEAD.replace(b"transfer-encoding: chunked", b"content-length: %d" % len(body)) + b"\r\n")
        for at in range(0, len(body), 65_536):
            await peer.say(body[at : at + 65_536])
        await peer.stay()

    async with open_raw_server(serve) as server, open_runtime() as runtime:
        model = Anthropic("claude-sonnet-5", api_key="k", base_url=server.base_url)
        async with runtime.open_session(Agent(model=model)) as session:
            assert (await session.ask("Go on.")).text == text


EMPTY: dict[str, list[str]] = {"nothing": [""], "no piece": [], "a placeholder": ["{}"], "space": [" "]}


@pytest.mark.parametrize("pieces", EMPTY.values(), ids=EMPTY)
async def test_e13_a_tool_without_parameters_runs_on_empty_arguments(
    pieces: list[str], autojump_clock: trio.testing.MockClock
) -> None:
    """In all the ways in which servers say nothing."""

    @read_tool
    async def now() -> str:
        """Tells the time."""
        return "noon"

    use = {"type": "tool_use", "id": "t", "name": "now", "input": {}}
    asks = event({"type": "content_block_start", "index": 0, "content_block": use})
    for one in pieces:
        asks += event(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": one}}
        )
    asks += event({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    async with open_model_server([RawReply(asks), RawReply(FINE)]) as server, open_runtime() as runtime:
        model = Anthropic("claude-sonnet-5", api_key="k", base_url=server.base_url)
        async with runtime.open_session(Agent(model=model, tools=[now])) as session:
            assert (await session.ask("Go on.")).text == "Fine."
        body: Any = server.record[1].body
    [result] = body["messages"][-1]["content"]
    assert result["content"] == [{"type": "text", "text": "noon"}]
