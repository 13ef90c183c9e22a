"""The loopback server's OpenAI wires, read by the official SDK."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import attrs
import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.parts import Text, Thinking, ToolCall
from agentrio.providers.wire.chat_assembler import ChatAssembler
from agentrio.providers.wire.responses_assembler import Assembler
from agentrio.testing import (
    Call,
    CallsReply,
    ErrorReply,
    Fault,
    ModelServer,
    Pace,
    Received,
    Reply,
    Script,
    TextReply,
    WireUsage,
    open_model_server,
)
from agentrio.testing.loopback.wires import WIRES

OpenClient = Callable[[ModelServer], AbstractAsyncContextManager[httpx2.AsyncClient]]
# The SDK stops reading at [DONE] and at errors, and leaves its generators to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <async_generator:pytest.PytestUnraisableExceptionWarning"),
]

USAGE = WireUsage(input=7, output=5, cache_read=3, cache_write=2)


@attrs.frozen
class Told:
    """What a client makes of an answer."""

    text: str
    thinking: str
    refusal: str
    calls: list[tuple[str, str, str]]
    stop: str
    usage: tuple[int, int, int]


class Ask(Protocol):
    """One question to one wire, streamed or whole."""

    async def __call__(self, client: openai.AsyncOpenAI, stream: bool) -> Told: ...


async def _chat(client: openai.AsyncOpenAI, stream: bool) -> Told:
    question: Any = {"model": "gpt-test", "messages": [{"role": "user", "content": "Hi"}]}
    if not stream:
        whole = await client.chat.completions.create(**question)
        message, usage = whole.choices[0].message, whole.usage
        calls = [(it.id, it.function.name, it.function.arguments) for it in message.tool_calls or () if it.function]
        thinking = getattr(message, "reasoning_content", "")
        text, refusal, stop = message.content or "", message.refusal or "", whole.choices[0].finish_reason
        return Told(text, thinking, refusal, calls, str(stop), _chat_usage(usage))
    told = {"content": "", "reasoning_content": "", "refusal": ""}
    found: dict[int, list[str]] = {}
    stop, usage = None, None
    async for chunk in await client.chat.completions.create(
        **question, stream=True, stream_options={"include_usage": True}
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            stop = choice.finish_reason or stop
            for key in told:
                told[key] += getattr(choice.delta, key, None) or ""
            for piece in choice.delta.tool_calls or ():
                call = found.setdefault(piece.index, ["", "", ""])
                call[0] += piece.id or ""
                call[1] += piece.function.name or ""
                call[2] += piece.function.arguments or ""
    calls = [(id, name, text) for id, name, text in found.values()]
    text, thinking, refusal = told.values()
    return Told(text, thinking, refusal, calls, str(stop), _chat_usage(usage))


def _chat_usage(usage: Any) -> tuple[int, int, int]:
    return usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens


async def _responses(client: openai.AsyncOpenAI, stream: bool) -> Told:
    question: Any = {"model": "gpt-test", "input": "Hi"}
    if not stream:
        return _told(await client.responses.create(**question))
    texts: dict[str, dict[str, str]] = {}
    numbers = []
    whole: Any = None
    async for event in await client.responses.create(**question, stream=True):
        numbers.append(event.sequence_number)
        if event.type in ("response.completed", "response.incomplete"):
            whole = event.response
        elif event.type.endswith(".delta"):
            kinds = texts.setdefault(event.item_id, {})
            kinds[event.type] = kinds.get(event.type, "") + event.delta
    assert numbers == list(range(len(numbers)))
    told = _told(whole)
    streamed: list[str] = [text for kinds in texts.values() for text in kinds.values()]
    assert streamed == [
        text for text in (told.thinking, told.text, told.refusal, *(it[2] for it in told.calls)) if text
    ]
    return told


def _told(whole: Any) -> Told:
    thinking = "".join(it.text for item in whole.output if item.type == "reasoning" for it in item.summary)
    refusals = [
        it.refusal for item in whole.output if item.type == "message" for it in item.content if it.type == "refusal"
    ]
    calls = [(it.call_id, it.name, it.arguments) for it in whole.output if it.type == "function_call"]
    stop = whole.incomplete_details.reason if whole.status == "incomplete" else whole.status
    usage = whole.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens)
    return Told(whole.output_text, thinking, "".join(refusals), calls, stop, counts)


WORDS = {
    _chat: {"end": "stop", "calls": "tool_calls", "cut": "length", "refusal": "stop"},
    _responses: {"end": "completed", "calls": "completed", "cut": "max_output_tokens", "refusal": "completed"},
}
both = pytest.mark.parametrize("ask", WORDS, ids=["chat", "responses"])
either = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@asynccontextmanager
async def _client(
    script: Script | Callable[[Received], Reply],
) -> AsyncIterator[tuple[openai.AsyncOpenAI, ModelServer]]:
    async with open_model_server(script) as server, httpx2.AsyncClient(verify=False, trust_env=False) as http:
        url = f"{server.base_url}/v1"
        yield openai.AsyncOpenAI(api_key="test", base_url=url, http_client=http, max_retries=0), server
    gc.collect()


@both
@either
async def test_the_sdk_reads_text_thinking_calls_and_usage(ask: Ask, stream: bool) -> None:
    """One script works on every wire."""
    words = WORDS[ask]
    calls = [Call("forecast", {"city": "Oslo", "days": 3}), Call("now", id="call_own"), Call("odd", '{"city": "Os')]
    script = Script(
        (
            TextReply("Grüße aus dem hohen Norden 🌍", thinking="Let me think.", usage=USAGE),
            CallsReply(calls, text="A moment."),
            CallsReply([Call("now")]),
            TextReply("And th", stop_reason="max_tokens"),
            TextReply("I can't.", stop_reason="refusal"),
        )
    )
    async with _client(script) as (client, _):
        told = [await ask(client, stream) for _ in script.replies]
    assert told[0] == Told("Grüße aus dem hohen Norden 🌍", "Let me think.", "", [], words["end"], (12, 5, 3))
    made = [("call_000002_0", "forecast", '{"city":"Oslo","days":3}'), ("call_own", "now", "{}")]
    assert (told[1].text, told[1].stop) == ("A moment.", words["calls"])
    assert told[1].calls == [*made, ("call_000002_2", "odd", '{"city": "Os')]
    assert (told[2].text, told[2].calls) == ("", [("call_000003_0", "now", "{}")])
    assert (told[3].text, told[3].stop) == ("And th", words["cut"])
    assert (told[4].text, told[4].refusal, told[4].stop) == ("", "I can't.", words["refusal"])


@both
async def test_an_error_within_a_stream_is_one_to_the_sdk(ask: Ask) -> None:
    """Its status was 200; the code is what is left to go by."""
    fault = Fault(error_frame_after=3, error_type="rate_limit_exceeded", error_message="Slow down.")
    async with _client(Script((TextReply("Never all of this", fault=fault),))) as (client, server):
        with pytest.raises(openai.APIError, match="Slow down") as caught:
            await ask(client, True)
        assert caught.value.code == "rate_limit_exceeded"
        assert (await server.wait_ended()).frames_sent == 4


@both
async def test_an_error_status_has_the_providers_own_body(ask: Ask) -> None:
    """Type and code follow from the status, or are given."""
    replies = (
        ErrorReply(429),
        ErrorReply(401),
        ErrorReply(400, "context_length_exceeded", "Too long."),
        ErrorReply(500),
    )
    async with _client(Script(replies)) as (client, _):
        errors = []
        for _ in replies:
            with pytest.raises(openai.APIStatusError) as caught:
                await ask(client, True)
            errors.append((type(caught.value), caught.value.code, caught.value.request_id))
    assert errors == [
        (openai.RateLimitError, "rate_limit_exceeded", "req_000001"),
        (openai.AuthenticationError, "invalid_api_key", "req_000002"),
        (openai.BadRequestError, "context_length_exceeded", "req_000003"),
        (openai.InternalServerError, None, "req_000004"),
    ]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_an_endless_reply_ends_with_its_client(path: str, open_client: OpenClient) -> None:
    """The server sees the disconnect at once."""
    script = [TextReply("more ", fault=Fault(endless=True), pace=Pace(coalesce=64))]
    async with open_model_server(script) as server, open_client(server) as client:
        question = {"input": "Hi"} if path.endswith("responses") else {"messages": [{"role": "user", "content": "Hi"}]}
        async with client.stream("POST", path, json={"model": "m", "stream": True} | question):
            await server.wait_headers()
        await server.wait_disconnect()
        exchange = await server.wait_ended()
    assert exchange.ended == "client_closed"


@both
async def test_an_answer_that_is_cut_ends_without_its_last_event(ask: Ask) -> None:
    """A cut connection is an error of the transport to the SDK, not an answer."""
    async with _client(Script((TextReply("Never all of this", fault=Fault(cut_at_byte=900)),))) as (client, _):
        with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
            await ask(client, True)


texts = st.text(st.characters(exclude_categories=["Cs"]))


@settings(deadline=None)
@given(texts, texts, st.sampled_from(["/v1/chat/completions", "/v1/responses"]))
def test_what_the_model_says_is_never_changed(text: str, thinking: str, path: str) -> None:
    """Also where it looks like what stands for an id."""
    reply = CallsReply([Call(text, text)], text=text, thinking=thinking)
    body = {"model": "m", "stream": True, "include": ["reasoning.encrypted_content"]}
    frames = b"".join(WIRES[path].frames(reply, Received(7, 1, "POST", path, {}, body)))
    assembler = Assembler() if path.endswith("responses") else ChatAssembler()
    assembler.feed(frames)
    assembler.close()
    parts = assembler.response().parts
    assert "".join(part.text for part in parts if isinstance(part, Thinking)) == thinking
    assert "".join(part.text for part in parts if isinstance(part, Text)) == text
    assert [(part.name, part.arguments_json) for part in parts if isinstance(part, ToolCall)] == [(text, text)]


def test_reasoning_is_encrypted_where_that_is_asked_for() -> None:
    """As on the API; and ids differ from request to request."""
    reply = TextReply("Hi", thinking="Hm", signature="c2VjcmV0")
    wire = WIRES["/v1/responses"]
    asked = Received(1, 1, "POST", "/v1/responses", {}, {"stream": True, "include": ["reasoning.encrypted_content"]})
    plain = Received(2, 1, "POST", "/v1/responses", {}, {"stream": True})
    first, second = (b"".join(wire.frames(reply, request)) for request in (asked, plain))
    assert first.count(b"c2VjcmV0") == 3
    assert b"rs_000001" in first
    assert b"msg_000001_1" in first
    assert b"c2VjcmV0" not in second
    assert b"rs_000002" in second
