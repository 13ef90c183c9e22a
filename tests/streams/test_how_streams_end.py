"""How a response ends decides how the run ends: over a real socket, through the public door."""

from __future__ import annotations

import json
from typing import Any

from agentrio import Agent, Anthropic, RunResult, open_runtime
from agentrio.testing import RawReply, open_model_server


def stream(*frames: dict[str, Any]) -> RawReply:
    start = {"type": "message_start", "message": {"id": "m", "model": "x", "content": [], "usage": {"input_tokens": 3}}}
    body = "".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in (start, *frames))
    return RawReply(body.encode())


async def ask(*replies: RawReply) -> RunResult[Any]:
    async with open_model_server(replies) as server, open_runtime() as runtime:
        agent = Agent(model=Anthropic("claude-sonnet-5", api_key="k", base_url=server.base_url))
        async with runtime.open_session(agent) as session:
            result = await session.ask("Go on.")
            assert all(message.parts for message in session.value.messages), "an empty message was stored"
            return result


async def test_a_refusal_without_words_ends_refused_and_names_its_category(autojump_clock: object) -> None:
    """A refusal is HTTP 200 with nothing in it: it is no success, not asked again, and history stays usable."""
    details = {"type": "refusal", "category": "cyber"}
    end = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}, "usage": {}}
    result = await ask(stream(end, {"type": "message_stop"}))
    assert (result.status, result.raw_stop_reason, result.rounds) == ("refused", "refusal", 1)
    assert result.failure is not None
    assert "cyber" in result.failure.message


async def test_calls_that_are_promised_and_missing_are_asked_for_once_more(autojump_clock: object) -> None:
    """``tool_use`` with no block looks like a hang if it is taken for an answer."""
    empty = stream({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"})
    result = await ask(empty, empty)
    assert (result.status, result.failure and result.failure.code) == ("error", "invalid_response")


async def test_an_error_frame_after_words_is_retried_and_the_words_are_void(autojump_clock: object) -> None:
    """A truncated text must never pass for an answer."""
    begin = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    words = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half a"}}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    whole = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "A whole answer."}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}
    result = await ask(stream(begin, words, error), stream(begin, whole, end, {"type": "message_stop"}))
    assert (result.status, result.text) == ("succeeded", "A whole answer.")
    assert result.discarded.input == 3
