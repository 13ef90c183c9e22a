"""A server that only shows that it is there is waited for longer than a silent one, and not for ever.

Comments while a request waits: https://openrouter.ai/docs/api-reference/streaming and
https://api-docs.deepseek.com/quick_start/rate_limit, whose server gives up after ten minutes itself. Pings between
frames: https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from agentrio import Agent, Anthropic, Limits, OpenAIChat, OpenAIResponses, RunResult, open_runtime
from agentrio.providers.wire.anthropic_assembler import Assembler as MessagesAssembler
from agentrio.providers.wire.anthropic_assembler import BodyAssembler
from agentrio.providers.wire.assembling import EventAssembler
from agentrio.providers.wire.chat_assembler import ChatAssembler
from agentrio.providers.wire.responses_assembler import Assembler as ResponsesAssembler
from agentrio.testing import Pace, RawReply, open_model_server


def event(frame: Any) -> bytes:
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


def delta(**fields: Any) -> bytes:
    return event({"choices": [{"delta": fields}]})


def block(kind: str, **fields: Any) -> bytes:
    return event({"type": "content_block_start", "index": 0, "content_block": {"type": kind, **fields}})


def more(kind: str, **fields: Any) -> bytes:
    return event({"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}})


USUAL = Limits()
PING = event({"type": "ping"})
LIFE = {
    OpenAIChat: [b": OPENROUTER PROCESSING\n\n", event({"choices": []}), delta(content=""), delta(role="assistant")],
    Anthropic: [PING, b": keep-alive\n\n", event({"type": "of_no_meaning"})],
    OpenAIResponses: [
        event({"type": "keepalive"}),
        event({"type": "response.in_progress", "response": {"status": "in_progress"}}),
    ],
}
SIGNS = [
    pytest.param(make, sign, id=f"{make.__name__}-{at}") for make, all in LIFE.items() for at, sign in enumerate(all)
]


async def ask(make: Any, body: bytes, wait: float, limits: Limits = USUAL) -> tuple[RunResult[Any], float, int]:
    """The result, how long it took on the clock that jumps, and how many requests there were."""
    replies = [RawReply(body, pace=Pace(delay=wait))] * 4
    async with open_model_server(replies) as server, open_runtime() as runtime:
        model = make("m", api_key="k", base_url=server.base_url if make is Anthropic else f"{server.base_url}/v1")
        async with runtime.open_session(Agent(model=model, limits=limits)) as session:
            begun = trio.current_time()
            result = await session.ask("Go on.")
            return result, trio.current_time() - begun, len(server.record)


@pytest.mark.parametrize(("make", "sign"), SIGNS)
async def test_signs_of_life_alone_hold_a_run_for_ten_minutes(
    make: Any, sign: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    """They held it for ever. It is not tried again: that would be another ten minutes, of the same."""
    result, took, requests = await ask(make, sign * 200, 15)
    assert result.failure is not None
    assert (result.failure.code, result.failure.recoverable) == ("stream_dropped", False)
    assert "nothing but signs of life for 600 s" in result.failure.message
    assert "Limits.idle_timeout" in result.failure.message
    assert 600 <= took < 620
    assert requests == 1


async def test_the_bound_follows_the_limit(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever has a model that works for an hour without a word says so."""
    signs = PING * 99
    fine = block("text", text="Fine.") + event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    result, _, _ = await ask(Anthropic, signs + fine, 30, Limits(idle_timeout=700))
    assert result.text == "Fine."
    result, took, _ = await ask(Anthropic, signs, 0.5, Limits(idle_timeout=2))
    assert result.status == "error"
    assert took < 12


async def test_a_word_between_the_signs_begins_the_wait_anew(autojump_clock: trio.testing.MockClock) -> None:
    """A slow model is none that stands still."""
    slow = (PING * 20 + more("text_delta", text="word ")) * 5
    end = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    result, took, _ = await ask(Anthropic, block("text") + slow + end, 25)
    assert result.text == "word " * 5
    assert took > 2_000


@pytest.mark.parametrize(
    ("assembler", "data"),
    [
        (MessagesAssembler(), event({"type": "message_start", "message": {}})),
        (MessagesAssembler(), block("server_tool_use")),
        (MessagesAssembler(), block("server_tool_use") + more("input_json_delta", partial_json="{")),
        (MessagesAssembler(), block("thinking") + more("signature_delta", signature="s")),
        (ChatAssembler(), delta(content="x")),
        (ChatAssembler(), delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}])),
        (ChatAssembler(), delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "t"}}])),
        (ResponsesAssembler(), event({"type": "response.output_item.added", "item": {"type": "reasoning"}})),
        (ResponsesAssembler(), event({"type": "response.web_search_call.searching"})),
        (BodyAssembler(), b" {"),
    ],
)
def test_whatever_is_work_is_no_mere_sign_of_life(assembler: EventAssembler, data: bytes) -> None:
    """Also where it shows no text: hidden reasoning, a server's search, the arguments of a call."""
    assembler.feed(b": alive\n\n" if not isinstance(assembler, BodyAssembler) else b"\n\n")
    assert assembler.idle
    assembler.feed(data)
    assert not assembler.idle
