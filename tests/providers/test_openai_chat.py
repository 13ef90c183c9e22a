"""``OpenAIChat`` against servers on loopback: credentials, paths, errors, and what leaves the process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import httpx2
import openai
import pytest
import trio

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import user_message
from agentrio.domain.parts import Image, Text
from agentrio.domain.render import ModelRequest, SystemBlock
from agentrio.providers.base import Model, ModelResponse, ProviderError, Timeouts
from agentrio.providers.openai_chat import OpenAIChat
from agentrio.providers.presets import preset
from agentrio.testing.loopback import ModelServer, RawReply, open_model_server

REQUEST = ModelRequest("s", (user_message("u", "hi"),), (SystemBlock("Be brief."),))
KEY = "sk-loopback-0123456789"
SAID = (
    b"".join(
        b"data: %b\n\n" % json.dumps(chunk).encode()
        for chunk in (
            {"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": {"content": "Hello"}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
        )
    )
    + b"data: [DONE]\n\n"
)


async def ask(model: Model, request: ModelRequest = REQUEST) -> ModelResponse:
    async with model.open() as client, client.stream(request, Timeouts(5, 5)) as stream:
        try:
            while True:
                await stream.receive()
        except trio.EndOfChannel:
            return stream.response()


def failure(status: int, body: Any, **headers: str) -> RawReply:
    return RawReply(json.dumps(body).encode(), status=status, headers=headers, content_type="application/json")


async def refused(model: OpenAIChat) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(model)
    return caught.value


def sent(server: ModelServer, number: int = 0) -> tuple[str, dict[str, str], Any]:
    exchange = server.record[number]
    return exchange.path, dict(exchange.headers), exchange.body


def replies(*more: RawReply) -> Sequence[RawReply]:
    return more or (RawReply(SAID),)


async def test_a_response_comes_over_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """With OpenAI's own preset: its key of the environment, its forms."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with open_model_server(replies()) as server:
        response = await ask(OpenAIChat("gpt-5.2", preset="openai", base_url=f"{server.base_url}/v1"))
        path, headers, body = sent(server)
    assert response.parts == (Text("Hello"),)
    assert (response.response_id, response.model, response.usage.input) == ("x", "m-1", 3)
    assert path == "/v1/chat/completions"
    assert body["messages"][0] == {"role": "developer", "content": "Be brief."}
    assert "authorization" in headers


@pytest.mark.parametrize(("name", "variable"), [("groq", "GROQ_API_KEY"), ("mistral", "MISTRAL_API_KEY")])
async def test_a_preset_has_its_own_key_and_sends_nothing_of_openais(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither OpenAI's key nor its organisation nor headers meant for it reach another server."""
    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-secret: 1")
    seen: list[httpx2.Headers] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(200, content=SAID, headers={"content-type": "text/event-stream"})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        await ask(OpenAIChat("m", preset=name, client=http))
    assert seen[0]["authorization"] == f"Bearer {KEY}"
    assert not {"openai-organization", "x-secret"} & set(seen[0])


async def test_a_local_server_is_sent_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor asked for one; a base URL alone is a server of which nothing more is known."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    async with open_model_server(replies(RawReply(SAID), RawReply(SAID))) as server:
        await ask(OpenAIChat("m", preset="llamacpp", base_url=f"{server.base_url}/v1"))
        await ask(OpenAIChat("m", base_url=server.base_url))
        for number in range(2):
            assert "authorization" not in sent(server, number)[1]


async def test_without_a_key_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is sent."""
    for variable in ("OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    for model, variable in ((OpenAIChat("m"), "OPENAI_API_KEY"), (OpenAIChat("m", preset="groq"), "GROQ_API_KEY")):
        error = await refused(model)
        assert error.code == "not_provisioned"
        assert variable in error.message


@pytest.mark.parametrize(
    ("variable", "wrong"),
    [
        ("GROQ_API_KEY", f"{KEY}\n"),
        ("GROQ_API_KEY", f"{KEY} "),
        ("GROQ_API_KEY", f"é{KEY}"),
        ("OPENAI_API_KEY", f"{KEY}\n"),
        ("OPENAI_BASE_URL", "http://[::1"),
        ("OPENAI_BASE_URL", "http://☃"),
        ("OPENAI_BASE_URL", "http://a..b"),
    ],
)
async def test_what_the_environment_has_and_can_be_nothing_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, variable: str, wrong: str
) -> None:
    """At the first request: it is not the declaration that is wrong. No key is told."""
    for name in ("GROQ_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv(variable, wrong)
    error = await refused(OpenAIChat("m", preset="groq" if variable == "GROQ_API_KEY" else "openai"))
    assert error.code == "not_provisioned"
    assert error.message.startswith(variable)
    assert KEY not in error.message


async def test_an_address_of_a_preset_that_is_none_is_a_typed_error() -> None:
    """It is the preset's fault, and no variable's."""
    mine = attrs.evolve(preset("ollama"), name="mine", base_url="http://[::1")
    error = await refused(OpenAIChat("m", preset=mine))
    assert (error.code, error.message) == (
        "not_provisioned",
        "The base URL of mine is 'http://[::1'; it is no URL (Invalid IPv6 URL).",
    )


async def test_azure_has_the_deployment_in_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the version in the query, the key in a header of its own; its newer path has neither."""
    monkeypatch.delenv("OPENAI_API_VERSION", raising=False)
    async with open_model_server(replies(*[RawReply(SAID)] * 4)) as server:
        await ask(OpenAIChat("my gpt/5", preset="azure", api_key=KEY, base_url=server.base_url))
        await ask(OpenAIChat("m", preset="azure", api_key=KEY, base_url=server.base_url, api_version="2025-01-01"))
        monkeypatch.setenv("OPENAI_API_VERSION", "2024-12-01")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.base_url)
        await ask(OpenAIChat("m", preset="azure", api_key=KEY))
        await ask(OpenAIChat("m", preset="azure", api_key=KEY, base_url=f"{server.base_url}/openai/v1/"))
        paths = [sent(server, number)[0] for number in range(4)]
        names = sent(server)[1]
    start = "/openai/deployments"
    assert paths == [
        f"{start}/my%20gpt%2F5/chat/completions?api-version=2024-10-21",
        f"{start}/m/chat/completions?api-version=2025-01-01",
        f"{start}/m/chat/completions?api-version=2024-12-01",
        "/openai/v1/chat/completions",
    ]
    assert "api-key" in names
    assert "authorization" not in names


async def test_azure_without_an_endpoint_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no address to guess."""
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    error = await refused(OpenAIChat("m", preset="azure", api_key=KEY))
    assert (error.code, "AZURE_OPENAI_ENDPOINT" in error.message) == ("not_provisioned", True)


async def test_a_client_of_the_sdk_is_sent_through() -> None:
    """Its key and base URL count, and it is not closed; another server's is not taken for OpenAI's."""
    async with open_model_server(replies(RawReply(SAID), failure(401, {"error": {"message": f"No {KEY}"}}))) as server:
        async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{server.base_url}/v1") as client:
            model = OpenAIChat("m", client=client)
            assert model.tag.provider == "compatible"
            assert (await ask(model)).parts == (Text("Hello"),)
            error = await refused(model)
            assert not client.is_closed()
        assert sent(server)[0] == "/v1/chat/completions"
    assert (error.code, error.status) == ("unauthorized", 401)
    assert KEY not in error.message


@pytest.mark.parametrize("deployment", [None, "d"])
async def test_an_azure_client_of_the_sdk_is_sent_through(deployment: str | None) -> None:
    """Its own idea of the path counts where it names a deployment; the token may be fetched."""

    async def token() -> str:
        return "fetched"

    async with open_model_server(replies()) as server:
        async with openai.AsyncAzureOpenAI(
            azure_endpoint=server.base_url,
            azure_deployment=deployment,
            api_version="2024-10-21",
            azure_ad_token_provider=token,
        ) as client:
            model = OpenAIChat("m", client=client)
            assert model.tag.provider == "azure"
            await ask(model)
        path, headers, _ = sent(server)
    assert path == f"/openai/deployments/{deployment or 'm'}/chat/completions?api-version=2024-10-21"
    assert "authorization" in headers


@pytest.mark.parametrize(
    ("status", "body", "code", "retry"),
    [
        (
            400,
            {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}},
            "context_overflow",
            None,
        ),
        (
            400,
            {"error": {"message": "prompt", "type": "exceed_context_size_error", "code": 400}},
            "context_overflow",
            None,
        ),
        (400, {"error": {"message": "filtered", "code": "content_filter", "status": 400}}, "content_filter", None),
        (400, {"error": {"message": "bad", "type": "invalid_request_error", "code": None}}, "invalid_request", None),
        (
            401,
            {"error": {"message": f"No {KEY}", "type": "invalid_request_error", "code": "invalid_api_key"}},
            "unauthorized",
            None,
        ),
        (404, {"error": {"message": "no model", "code": "model_not_found"}}, "invalid_request", None),
        (422, {"detail": [{"msg": "extra fields"}]}, "invalid_request", None),
        (
            429,
            {"error": {"message": "slow down", "type": "tokens", "code": "rate_limit_exceeded"}},
            "rate_limited",
            "request",
        ),
        (
            429,
            {"error": {"message": "no money", "type": "insufficient_quota", "code": "insufficient_quota"}},
            "rate_limited",
            None,
        ),
        (500, {"error": "text"}, "dependency_failed", "request"),
        (503, {}, "not_provisioned", "request"),
    ],
)
async def test_errors_are_typed_by_status_and_code(status: int, body: Any, code: str, retry: str | None) -> None:
    """In every shape that servers have; the key is not told."""
    async with open_model_server([failure(status, body)]) as server:
        error = await refused(OpenAIChat("m", api_key=KEY, base_url=server.base_url))
    assert (error.code, error.retry, error.status) == (code, retry, status)
    assert KEY not in error.message


async def test_azures_429_asks_for_the_longer_wait() -> None:
    """It says 1 second and 0 milliseconds."""
    headers = {"retry-after": "1", "retry-after-ms": "0"}
    reply = failure(429, {"error": {"code": "RateLimitReached", "message": "slow down"}}, **headers)
    async with open_model_server([reply]) as server:
        error = await refused(OpenAIChat("m", preset="azure", api_key=KEY, base_url=server.base_url))
    assert (error.code, error.retry_after) == ("rate_limited", 1)


async def test_an_answer_of_status_200_may_be_an_error_or_junk() -> None:
    """Azure's filter, and what stands in front of a server."""
    filtered = failure(200, {"error": {"message": "filtered", "code": "content_filter", "status": 400}})
    async with open_model_server([filtered, failure(200, {"fine": True})]) as server:
        model = OpenAIChat("m", api_key=KEY, base_url=server.base_url)
        assert (await refused(model)).code == "content_filter"
        assert (await refused(model)).code == "invalid_response"


async def test_further_fields_and_headers_are_sent() -> None:
    """The server's own."""
    async with open_model_server(replies()) as server:
        extra = {"top_p": 0.5, "tool_choice": "none"}
        model = OpenAIChat("m", base_url=server.base_url, headers={"X-Title": "t"}, extra=extra, max_tokens=5)
        await ask(model)
        _, headers, body = sent(server)
    assert (body["top_p"], body["max_tokens"], "tool_choice" in body) == (0.5, 5, False)
    assert headers["x-title"] == "t"


LOOP: dict[str, Any] = {}
LOOP["x"] = LOOP


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model": " "}, "OpenAIChat.model"),
        ({"preset": "gorq"}, "no preset 'gorq'"),
        ({"api_key": ""}, "OPENAI_API_KEY"),
        ({"base_url": "ftp://x"}, "OpenAIChat.base_url"),
        ({"max_tokens": 0}, "OpenAIChat.max_tokens"),
        ({"headers": {"x": "\n"}}, "OpenAIChat.headers"),
        ({"client": object()}, "OpenAIChat.client"),
        ({"extra": {"model": "x", "stream": False}}, "must not have model, stream"),
        ({"extra": {"x": object()}}, "can't be sent as JSON"),
        ({"extra": {"x": LOOP}}, "can't be sent as JSON"),
        ({"extra": None}, "must map names of fields"),
        ({"extra": {1: 2}}, "must map names of fields"),
        ({"preset": 5}, "preset is 5; it must be a name"),
        ({"base_url": "http://[::1"}, "no URL"),
        ({"api_version": 5}, "OpenAIChat.api_version is 5"),
        ({"api_version": "\ud83d"}, "OpenAIChat.api_version"),
        ({"prices": 3}, r"OpenAIChat.prices is 3; it must be Prices"),
        ({"cache": "forever"}, "OpenAIChat.cache is 'forever'; it must be none, short or long"),
        ({"prompt_cache_key": 7}, r"OpenAIChat.prompt_cache_key is 7; it must be a text"),
    ],
)
def test_a_wrong_declaration_is_refused(values: dict[str, Any], words: str) -> None:
    """At once, with what is wrong."""
    with pytest.raises(DeclarationError, match=words):
        OpenAIChat(**{"model": "m", **values})


@pytest.mark.parametrize("official", [False, True])
async def test_a_days_cache_is_asked_for_at_openai_alone(official: bool) -> None:
    """No one else is known to keep a prefix for so long."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        seen.update(json.loads(request.content))
        return httpx2.Response(404)

    seen: dict[str, Any] = {}
    url = "https://api.openai.com/v1" if official else "https://example.org/v1"
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        model = OpenAIChat("m", client=http, api_key=KEY, base_url=url, cache="long", prompt_cache_key="mine")
        await refused(model)
    assert ("prompt_cache_retention" in seen, seen["prompt_cache_key"]) == (official, "mine")


def test_the_server_follows_from_preset_and_address() -> None:
    """A preset that is given counts; OpenAI's own address is OpenAI's."""
    assert OpenAIChat("m").tag.provider == "openai"
    assert OpenAIChat("m", base_url="https://api.openai.com/v1/").tag.provider == "openai"
    assert OpenAIChat("m", base_url="https://example.org").tag.provider == "compatible"
    assert OpenAIChat("m", preset="groq", base_url="https://example.org").tag.provider == "groq"
    assert OpenAIChat("m", preset=preset("xai")).tag.provider == "xai"


def test_a_declaration_never_shows_its_key() -> None:
    """Nor headers and further fields, which may hold one."""
    model = OpenAIChat("m", preset="groq", api_key=KEY, headers={"x": "secret"}, extra={"y": "secret"})
    told = "model='m', preset='groq', base_url=None, max_tokens=None, cache='short', prompt_cache_key=None"
    assert repr(model) == f"OpenAIChat({told}, api_version=None, foreign_thinking='label', prices=None)"


async def test_deepseek_is_sent_images() -> None:
    """Its models see since V4.1: https://api-docs.deepseek.com/guides/vision."""
    picture = ModelRequest("s", (user_message("u", (Image("QQ==", "image/png"),)),), ())
    async with open_model_server(replies()) as server:
        await ask(OpenAIChat("deepseek-flash", preset="deepseek", api_key=KEY, base_url=server.base_url), picture)
        _, _, body = sent(server)
    assert body["messages"][0]["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}]
