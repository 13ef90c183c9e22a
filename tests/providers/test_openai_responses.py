"""The Responses provider over real sockets: what goes out, what comes back, and what is left behind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx2
import openai
import pytest
import trio

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import Image, Text, Thinking, ToolCall, ToolResult
from agentrio.domain.render import ModelRequest, ToolSpec
from agentrio.domain.usage import Usage
from agentrio.providers.base import Model, ModelClient, ModelResponse, PartDelta, ProviderError, Timeouts
from agentrio.providers.openai_responses import OpenAIResponses
from agentrio.providers.presets import preset
from agentrio.providers.registry import resolve
from agentrio.providers.wire.chat_dialect import Dialect
from agentrio.testing.loopback import (
    CallsReply,
    ErrorReply,
    Fault,
    ModelServer,
    Pace,
    RawReply,
    Reply,
    Script,
    TextReply,
    WireUsage,
    digest,
    open_model_server,
)

REQUEST = ModelRequest("s", (user_message("m", "hi"),), tools=(ToolSpec("f", "Does f.", {"type": "object"}),))
KEY = "sk-test-123"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credential, address or proxy of the machine's."""
    for name in ("API_KEY", "ADMIN_KEY", "BASE_URL", "ORG_ID", "PROJECT_ID", "CUSTOM_HEADERS"):
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@asynccontextmanager
async def served(*replies: Reply, **options: Any) -> AsyncIterator[tuple[ModelServer, ModelClient]]:
    async with open_model_server(Script(replies)) as server:
        options = {"preset": "openai", "api_key": KEY, "base_url": f"{server.base_url}/v1"} | options
        async with OpenAIResponses("gpt-5.2", **options).open() as client:
            yield server, client


async def ask(client: ModelClient, request: ModelRequest = REQUEST) -> tuple[ModelResponse, list[list[PartDelta]]]:
    batches = []
    async with client.stream(request, Timeouts(5, 5)) as stream:
        try:
            while True:
                batches.append(list(await stream.receive()))
        except trio.EndOfChannel:
            return stream.response(), batches


async def once(model: Model) -> ModelResponse:
    async with model.open() as client:
        return (await ask(client))[0]


async def failure(client: ModelClient) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(client)
    return caught.value


async def test_a_response_comes_over_a_socket() -> None:
    """Reasoning with what proves it, text and calls, usage; what one read brings is one batch."""
    calls = [{"name": "f", "arguments": {"x": 1}}]
    usage = WireUsage(input=7, output=5, cache_read=3)
    reply = CallsReply(calls, text="So.", thinking="Hm.", signature="gAAA", usage=usage, pace=Pace(coalesce=100))
    async with served(reply) as (server, client):
        response, batches = await ask(client)
        (exchange,) = server.record
    thought, text, call = response.parts
    assert isinstance(thought, Thinking)
    assert thought.raw is not None
    assert json.loads(thought.raw)["encrypted_content"] == "gAAA"
    assert (thought.text, text.text if isinstance(text, Text) else "") == ("Hm.", "So.")
    assert isinstance(call, ToolCall)
    assert (call.provider_id, call.arguments) == ("call_000001_0", {"x": 1})
    assert (response.stop_reason, response.usage, response.model) == ("tool_calls", Usage(7, 5, 3), "gpt-5.2")
    assert len([batch for batch in batches if batch]) == 1
    assert exchange.path == "/v1/responses"
    assert exchange.headers["authorization"] == digest(f"Bearer {KEY}")
    assert exchange.headers["accept-encoding"] == "identity"
    assert isinstance(exchange.body, dict)
    assert (exchange.body["store"], exchange.body["stream"]) == (False, True)


async def test_what_came_goes_back_and_the_next_answer_follows() -> None:
    """Two rounds: the server sees its own items again."""
    calls = [{"name": "f"}]
    async with served(CallsReply(calls, thinking="Hm.", signature="gAAA"), TextReply("Done.")) as (server, client):
        first, _ = await ask(client)
        tag = ModelTag("openai", "responses", "gpt-5.2")
        call = first.parts[1]
        assert isinstance(call, ToolCall)
        answer = Message(
            "a", "assistant", (first.parts[0], ToolCall("c1", call.provider_id, "f", "{}", {}, call.raw)), tag
        )
        results = Message("t", "tool", (ToolResult("c1", "f", "succeeded", (Text("ok"), Image("aW1n", "image/png"))),))
        second, _ = await ask(client, ModelRequest("s", (*REQUEST.messages, answer, results)))
        body: Any = server.record[1].body
    assert [part.text for part in second.parts if isinstance(part, Text)] == ["Done."]
    assert [item.get("type", item.get("role")) for item in body["input"]] == [
        "user", "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert body["input"][1] == {
        "id": "rs_000001", "type": "reasoning", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "Hm."}],
    }  # fmt: skip
    assert body["input"][2]["id"] == "fc_000001_1"
    assert body["input"][3]["output"][1]["type"] == "input_image"


async def test_the_environment_says_who_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """As to the SDK: key, address, organisation."""
    async with open_model_server([TextReply("Hi")]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.base_url}/v1")
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        model = resolve("openai:gpt-5.2")
        assert isinstance(model, OpenAIResponses)
        await once(model)
        headers = server.record[0].headers
    assert (headers["authorization"], headers["openai-organization"]) == (digest(f"Bearer {KEY}"), "org-1")


async def test_another_server_is_sent_its_own_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of OpenAI's: neither key nor organisation. Images are noted where it takes none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    async with open_model_server([TextReply("Hi")]) as server:
        blind = attrs.evolve(preset("deepseek"), dialect=Dialect(images=False))
        model = OpenAIResponses("deepseek-v4", preset=blind, base_url=f"{server.base_url}/v1")
        request = ModelRequest("s", (user_message("m", Image("aW1n", "image/png")),))
        async with model.open() as client:
            await ask(client, request)
        headers, body = server.record[0].headers, server.record[0].body
    assert headers["authorization"] == digest(f"Bearer {KEY}")
    assert not [name for name in headers if name.startswith("openai")]
    assert isinstance(body, dict)
    assert "image was left out" in body["input"][0]["content"]


async def test_without_a_key_the_variable_is_named() -> None:
    """``not_provisioned``, at the first request."""
    async with OpenAIResponses("gpt-5.2").open() as client:
        error = await failure(client)
    assert error.code == "not_provisioned"
    assert "OPENAI_API_KEY" in error.message


async def test_a_header_may_be_the_credential() -> None:
    """Of your own, in place of a key."""
    async with open_model_server([TextReply("Hi")]) as server:
        headers = {"Authorization": "Bearer mine"}
        await once(OpenAIResponses("gpt-5.2", preset="openai", base_url=f"{server.base_url}/v1", headers=headers))
        assert server.record[0].headers["authorization"] == digest("Bearer mine")


@pytest.mark.parametrize("server_of", ["groq", "azure"])
@pytest.mark.parametrize("named", ["Authorization", "authorization", "Api-Key"])
async def test_so_it_may_at_a_server_that_wants_a_key(
    server_of: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its own address, too: whoever fetches tokens has no key. A header that the server does not look at is none."""
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    refusal = RawReply(b"{}", status=404)
    async with open_model_server([refusal]) as server:
        model = OpenAIResponses("gpt-5.2", preset=server_of, base_url=server.base_url, headers={named: "Bearer mine"})
        async with model.open() as client:
            error = await failure(client)
        if server_of == "groq" and named == "Api-Key":
            assert error.code == "not_provisioned"
        else:
            assert (error.status, server.record[0].headers[named.lower()]) == (404, digest("Bearer mine"))


async def test_an_address_of_your_own_may_ask_for_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it speaks as OpenAI does; if it wants one it says so."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with open_model_server([TextReply("Hi")]) as server:
        await once(OpenAIResponses("gpt-5.2", preset="openai", base_url=f"{server.base_url}/v1"))
        assert "authorization" not in server.record[0].headers


@pytest.mark.parametrize(
    ("path", "expected"),
    [("", "/openai/v1/responses"), ("/openai/v1/", "/openai/v1/responses")],
)
async def test_azure_has_one_path_for_all_deployments(path: str, expected: str) -> None:
    """Its ``/openai/v1``, without a version of the API; the key goes in a header of its own."""
    async with open_model_server([ErrorReply(404)]) as server:
        model = OpenAIResponses("my-gpt", preset="azure", api_key=KEY, base_url=server.base_url + path)
        async with model.open() as client:
            await failure(client)
        (exchange,) = server.record
    assert exchange.path == expected
    assert exchange.headers["api-key"] == digest(KEY)
    assert "authorization" not in exchange.headers


async def test_a_client_of_the_sdk_is_sent_through() -> None:
    """With its credential, which it may fetch; it is not closed, and tries once."""

    async def fetch() -> str:
        return KEY

    async with open_model_server([TextReply("Hi"), ErrorReply(429)]) as server:
        async with httpx2.AsyncClient(trust_env=False) as http:
            url = f"{server.base_url}/v1"
            sdk = openai.AsyncOpenAI(api_key=fetch, base_url=url, http_client=http, default_headers={"x-own": "1"})
            model = OpenAIResponses("gpt-5.2", client=sdk, headers={"x-more": "2"})
            assert [part.text for part in (await once(model)).parts if isinstance(part, Text)] == ["Hi"]
            async with model.open() as client:
                assert (await failure(client)).code == "rate_limited"
            assert not http.is_closed
        first, second = server.record
    assert first.headers["authorization"] == digest(f"Bearer {KEY}")
    assert (first.headers["x-own"], first.headers["x-more"], first.path) == ("1", "2", "/v1/responses")
    assert second.number == 2


async def test_an_azure_client_of_the_sdk_is_sent_through() -> None:
    """It knows its path and version itself."""
    async with open_model_server([ErrorReply(404)]) as server, httpx2.AsyncClient(trust_env=False) as http:
        sdk = openai.AsyncAzureOpenAI(
            api_key=KEY, azure_endpoint=server.base_url, api_version="2025-04-01-preview", http_client=http
        )
        model = OpenAIResponses("my-gpt", client=sdk)
        async with model.open() as client:
            await failure(client)
        (exchange,) = server.record
    assert model.tag == ModelTag("azure", "responses", "my-gpt")
    assert exchange.path == "/openai/responses?api-version=2025-04-01-preview"
    assert exchange.headers["api-key"] == digest(KEY)


async def test_a_client_of_the_sdk_that_can_fetch_no_key_is_not_provisioned() -> None:
    """What its own function raised is in the message."""

    async def fetch() -> str:
        raise openai.OpenAIError("the vault is closed")

    async with httpx2.AsyncClient(trust_env=False) as http:
        sdk = openai.AsyncOpenAI(api_key=fetch, base_url="http://127.0.0.1:9/v1", http_client=http)
        async with OpenAIResponses("gpt-5.2", client=sdk).open() as client:
            error = await failure(client)
            assert (error.code, "the vault is closed" in error.message) == ("not_provisioned", True)
        plain = openai.AsyncOpenAI(api_key=KEY, base_url="http://127.0.0.1:9/v1", http_client=http)
        async with OpenAIResponses("gpt-5.2", client=plain).open() as client:
            error = await failure(client)
            assert (error.code, error.retry) == ("dependency_failed", "request")


async def test_a_plain_client_of_the_users_is_used() -> None:
    """And left open."""
    async with open_model_server([TextReply("Hi")]) as server, httpx2.AsyncClient(trust_env=False) as http:
        await once(OpenAIResponses("gpt-5.2", client=http, api_key=KEY, base_url=f"{server.base_url}/v1"))
        assert not http.is_closed


async def test_a_key_that_the_server_quotes_is_not_told() -> None:
    """Not in the message, not in the exception's arguments."""
    async with served(ErrorReply(401, message=f"Incorrect API key provided: {KEY}")) as (_, client):
        error = await failure(client)
    assert error.code == "unauthorized"
    assert KEY not in f"{error} {error.args} {error.message}"
    assert "[key]" in error.message


async def test_an_error_within_a_stream_ends_the_attempt() -> None:
    """Typed by its code; whether content came before it decides what may help."""
    fault = Fault(error_frame_after=2, error_type="rate_limit_exceeded", error_message="Slow down.")
    later = Fault(error_frame_after=6, error_type="server_error", error_message="Oh.")
    async with served(TextReply("Hi there", fault=fault), TextReply("Hi there", fault=later)) as (_, client):
        first, second = await failure(client), await failure(client)
    assert (first.code, first.retry) == ("rate_limited", "request")
    assert (second.code, second.retry) == ("dependency_failed", "stream")


@pytest.mark.parametrize("cut_at_byte", [0, 900])
async def test_a_cut_is_a_drop(cut_at_byte: int) -> None:
    """Whatever had come."""
    async with served(TextReply("Hi " * 100, fault=Fault(cut_at_byte=cut_at_byte))) as (_, client):
        error = await failure(client)
    assert (error.code, error.retry) == ("stream_dropped", "stream")


async def test_leaving_closes_the_connection() -> None:
    """Also a response that would never end."""
    async with served(TextReply("more", fault=Fault(endless=True))) as (server, client):
        async with client.stream(REQUEST, Timeouts(5, 5)) as stream:
            await stream.receive()
        await server.wait_disconnect()
        assert (await server.wait_ended()).ended == "client_closed"


@pytest.mark.parametrize("long_ttl", [False, True])
async def test_a_days_cache_is_asked_for_at_openai_alone(long_ttl: bool) -> None:
    """No one else is known to keep a prefix for so long."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        seen.update(json.loads(request.content))
        return httpx2.Response(404)

    seen: dict[str, Any] = {}
    url = "https://api.openai.com/v1" if long_ttl else "https://example.org/v1"
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        model = OpenAIResponses(
            "gpt-5.2", client=http, api_key=KEY, base_url=url, cache="long", prompt_cache_key="mine"
        )
        async with model.open() as client:
            await failure(client)
    assert ("prompt_cache_retention" in seen, seen["prompt_cache_key"]) == (long_ttl, "mine")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model": " "}, "OpenAIResponses.model"),
        ({"preset": "gorq"}, "no preset 'gorq'"),
        ({"api_key": "kéy"}, "OPENAI_API_KEY"),
        ({"base_url": "ftp://x"}, "OpenAIResponses.base_url"),
        ({"max_tokens": True}, "OpenAIResponses.max_tokens"),
        ({"headers": {"x": "\n"}}, "OpenAIResponses.headers"),
        ({"client": object()}, "OpenAIResponses.client"),
        ({"client": openai.AsyncOpenAI(api_key="x"), "api_key": "y"}, "its own key and base URL"),
        ({"cache": "forever"}, "OpenAIResponses.cache"),
        ({"summary": "long"}, "OpenAIResponses.summary"),
        ({"prompt_cache_key": 5}, "OpenAIResponses.prompt_cache_key is 5"),
        ({"strict": "yes"}, "OpenAIResponses.strict is 'yes'"),
        ({"strict": None}, "OpenAIResponses.strict is None"),
        ({"parallel_tool_calls": 1}, "OpenAIResponses.parallel_tool_calls is 1"),
        ({"extra": {"store": True, "input": []}}, "must not have input, store"),
        ({"extra": {"x": object()}}, "can't be sent as JSON"),
    ],
)
def test_a_wrong_declaration_is_refused(values: dict[str, Any], words: str) -> None:
    """At once, with what is wrong."""
    with pytest.raises(DeclarationError, match=words):
        OpenAIResponses(**{"model": "m", **values})


def test_the_tag_names_server_api_and_model() -> None:
    """Blocks kept verbatim go back to exactly this."""
    assert OpenAIResponses("m").tag == ModelTag("openai", "responses", "m")
    assert OpenAIResponses("m", preset=preset("xai")).tag.provider == "xai"
    assert OpenAIResponses("m", base_url="https://example.org/v1").tag.provider == "compatible"


def test_a_declaration_never_shows_its_key() -> None:
    """Nor headers and further fields, which may hold one."""
    told = repr(OpenAIResponses("m", api_key=KEY, headers={"x": "secret"}, extra={"y": "secret"}))
    assert KEY not in told
    assert "secret" not in told
