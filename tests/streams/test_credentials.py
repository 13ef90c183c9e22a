"""No credential of ours stands in what a run tells, whatever a server says; and none goes where it was not sent to."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
import trio

from agentrio import Agent, Anthropic, OpenAIChat, OpenAIResponses, open_runtime
from agentrio.events import Event
from agentrio.providers._secrets import LONGEST, redacted, redacted_response, secrets_in
from agentrio.providers.base import Model, ModelResponse, ProviderError
from agentrio.testing import RawReply, open_model_server
from tests.streams.raw import Peer, open_raw_server

KEY = "sk-secret-0123456789abcdef-0123456789abcdef"


def event(frame: Any) -> bytes:
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


def messages(reason: str, detail: str, name: str) -> bytes:
    head = {"type": "message_start", "message": {"id": name, "model": name}}
    details = {"category": detail}
    end = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_details": details}}
    return event(head) + event(end) + event({"type": "message_stop"})


def chat(reason: str, detail: str, name: str) -> bytes:
    text = {"id": name, "model": name, "choices": [{"delta": {"content": "x"}}]}
    return event(text) + event({"choices": [{"delta": {}, "finish_reason": reason}]})


def responses(reason: str, detail: str, name: str) -> bytes:
    reply = {"id": name, "model": name, "status": "incomplete", "incomplete_details": {"reason": reason}}
    return event({"type": "response.incomplete", "response": reply})


def model_of(wire: Any, url: str, **options: Any) -> Model:
    make: Any = {messages: Anthropic, chat: OpenAIChat, responses: OpenAIResponses}[wire]
    model: Model = make("m", base_url=url if wire is messages else f"{url}/v1", **({"api_key": KEY} | options))
    return model


async def watched(model: Model) -> list[Event]:
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        async with session.run("Go on.") as run:
            return [event async for event in run]


@pytest.mark.parametrize("wire", [messages, chat, responses])
@pytest.mark.parametrize("way", ["key", "headers", "client"])
@pytest.mark.parametrize("text", [f"because of {KEY}!", f"it begins {KEY[:30]} and goes on", KEY])
async def test_what_a_server_says_of_a_response_quotes_no_credential(
    wire: Any, way: str, text: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Stop reasons, their details, ids and names of models, as errors; however the credential was given."""
    body = wire(text, text, text)
    bearer = {"authorization": f"Bearer {KEY}"}
    async with open_model_server([RawReply(body)] * 4) as server, httpx2.AsyncClient(headers=bearer) as http:
        ways: dict[str, dict[str, Any]] = {
            "key": {},
            "headers": {"api_key": None, "headers": bearer},
            "client": {"api_key": None if wire is not messages else "unused-key", "client": http},
        }
        events = await watched(model_of(wire, server.base_url, **ways[way]))
    told = repr(events)
    assert KEY[:16] not in told
    assert "[key]" in told


async def test_a_header_of_your_own_is_a_credential_by_its_name(autojump_clock: trio.testing.MockClock) -> None:
    """Gateways have their own: ``cf-aig-authorization``, ``x-portkey-api-key``."""
    error = json.dumps({"error": {"message": f"no such key: {KEY}"}}).encode()
    reply = RawReply(error, status=401, content_type="application/json")
    async with open_model_server([reply]) as server:
        model = model_of(chat, server.base_url, api_key="unused", headers={"cf-aig-authorization": f"Bearer {KEY}"})
        events = await watched(model)
    assert KEY[:16] not in repr(events)


async def test_a_status_line_that_quotes_a_credential_does_not_tell_it(autojump_clock: trio.testing.MockClock) -> None:
    """What is no HTTP is quoted by whoever read it."""

    async def odd(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"ICE/1.1 " + KEY.encode() + b"\r\n\r\n")
        await peer.stay()

    for options in ({}, {"api_key": None, "headers": {"x-api-key": KEY}}):
        async with open_raw_server(*[odd] * 4) as server:
            events = await watched(model_of(messages, server.base_url, **options))
        assert KEY[:16] not in repr(events)
        assert "[key]" in repr(events)


async def test_a_credential_that_the_sdk_holds_is_not_told_either(autojump_clock: trio.testing.MockClock) -> None:
    """Neither where the response quotes it, nor where there was none."""

    async def odd(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"ICE/1.1 " + KEY.encode() + b"\r\n\r\n")
        await peer.stay()

    async with open_raw_server(*[odd] * 4) as server:
        sdk = openai.AsyncOpenAI(api_key=KEY, base_url=f"{server.base_url}/v1")
        events = await watched(OpenAIChat("m", client=sdk))
        await sdk.close()
    assert KEY[:16] not in repr(events)
    assert "[key]" in repr(events)


def test_a_response_says_no_more_than_a_line_of_anything() -> None:
    """A stop reason of a megabyte stood in each of the run's last events."""
    long = "x" * 1_000_000
    response = redacted_response(ModelResponse((), "unknown", long, model=long, response_id=long, stop_detail=long), ())
    told = (response.raw_stop_reason, response.stop_detail, response.model, response.response_id)
    assert [len(text or "") for text in told] == [LONGEST] * 4


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (f"a {KEY} b {KEY}", "a [key] b [key]"),
        (f"a {KEY[:20]}... b", "a [key]... b"),
        (f"a {KEY[:8]}", "a [key]"),
        (f"a {KEY[:8]}…", "a [key]"),
        (f"a {KEY[:8]} b", f"a {KEY[:8]} b"),
        ("short is shown", "short is shown"),
    ],
)
def test_a_credential_is_taken_out_whole_or_in_part(message: str, told: str) -> None:
    """A word that is too short to be one stays: it is in other words."""
    error = redacted(ProviderError(message, code="unauthorized", type=message), (KEY, "short"))
    assert (error.message, str(error), error.type) == (told, told, told)


def test_one_credential_may_begin_with_another() -> None:
    """The longer one goes first."""
    error = redacted(ProviderError("it was secret-and-more", code="unauthorized"), ("secret", "secret-and-more"))
    assert error.message == "it was [key]"


def test_credentials_among_headers_are_known_by_name() -> None:
    """Without their scheme; a name or an address is none."""
    headers = {"Authorization": "Bearer a b", "x-api-key": "c", "cookie": "d=e", "user-agent": "agentrio", "x-key": ""}
    assert secrets_in(headers) == ("b", "c", "d=e")


@pytest.mark.parametrize("wire", [messages, chat, responses])
@pytest.mark.parametrize("sdk", [False, True])
async def test_a_redirect_takes_neither_key_nor_conversation_elsewhere(
    wire: Any, sdk: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """A client of yours follows redirects, perhaps: with ``x-api-key``, to whatever host the server names."""
    fine = messages("end_turn", "", "m")
    async with open_model_server([RawReply(fine)] * 2) as elsewhere:
        away = {"location": f"{elsewhere.base_url}/v1/messages".replace("127.0.0.1", "localhost")}
        async with open_model_server([RawReply(b"", status=307, headers=away)]) as server:
            async with httpx2.AsyncClient(follow_redirects=True) as http:
                if sdk:
                    make: Any = anthropic.AsyncAnthropic if wire is messages else openai.AsyncOpenAI
                    base = server.base_url if wire is messages else f"{server.base_url}/v1"
                    client = make(api_key=KEY, base_url=base, http_client=http)
                    model: Model = {messages: Anthropic, chat: OpenAIChat, responses: OpenAIResponses}[wire](
                        "m", client=client
                    )
                else:
                    model = model_of(wire, server.base_url, client=http)
                events = await watched(model)
        assert len(server.record) == 1
        assert elsewhere.record == []
    assert "redirects to localhost" in repr(events)


async def test_a_closed_client_of_yours_is_a_typed_failure(autojump_clock: trio.testing.MockClock) -> None:
    """On all wires; it was a ``RuntimeError``, and with it a crash, on two of them."""
    http = httpx2.AsyncClient()
    await http.aclose()
    for wire in (messages, chat, responses):
        events = await watched(model_of(wire, "http://127.0.0.1:9", client=http))
        assert "is closed" in repr(events[-1])
        assert "invalid_request" in repr(events[-1])


def test_a_credential_with_spaces_around_it_is_known_too() -> None:
    """h11 refuses it and quotes it; what stood behind its last space was nothing."""
    assert secrets_in({"authorization": f"Bearer {KEY} ", "x-api-key": f" {KEY}\n"}) == (KEY, KEY)
