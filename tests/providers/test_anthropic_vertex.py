"""Claude at Google's Vertex AI: the SDK's client authenticates, path and body are ours, the stream is Anthropic's."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import anthropic
import httpx2
import msgspec
import pytest
import trio
from anthropic.types import MessageParam

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import Part, Text, Thinking
from agentrio.domain.render import ModelRequest
from agentrio.providers.anthropic import Anthropic
from agentrio.providers.base import ModelClient, ModelResponse, ProviderError, Timeouts
from agentrio.testing.loopback import (
    ErrorReply,
    Fault,
    ModelServer,
    RawReply,
    Reply,
    Script,
    TextReply,
    digest,
    open_model_server,
)

MODEL = "claude-sonnet-4-5@20250929"
TOKEN = "ya29.test"
PATH = f"/v1/projects/example.com:p/locations/europe-west1/publishers/anthropic/models/{MODEL}:streamRawPredict"
REQUEST = ModelRequest("s", (user_message("m", "hi"),))


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No project or proxy of the machine's."""
    for name in ("ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_BASE_URL", "CLOUD_ML_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def vertex(base_url: str = "http://127.0.0.1:9", **options: Any) -> anthropic.AsyncAnthropicVertex:
    told = {"project_id": "example.com:p", "region": "europe-west1", "access_token": TOKEN} | options
    return anthropic.AsyncAnthropicVertex(base_url=f"{base_url}/v1", **told)


@asynccontextmanager
async def served(
    *replies: Reply, sdk: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[ModelServer, ModelClient]]:
    async with open_model_server(Script(replies)) as server:
        client = vertex(server.base_url, **(sdk or {}))
        async with Anthropic(MODEL, client=client, **options).open() as opened:
            yield server, opened
        assert not client.is_closed()
        await client.close()


async def ask(client: ModelClient, request: ModelRequest = REQUEST, timeouts: Timeouts | None = None) -> ModelResponse:
    async with client.stream(request, timeouts or Timeouts()) as stream:
        try:
            while True:
                await stream.receive()
        except trio.EndOfChannel:
            return stream.response()


async def failure(client: ModelClient, timeouts: Timeouts | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(client, timeouts=timeouts)
    return caught.value


async def test_the_path_names_the_model_and_the_body_the_version() -> None:
    """As the SDK's own requests do; the server holds what is left against the Messages API."""
    async with served(TextReply("hello"), headers={"X-Mine": "yes"}) as (server, client):
        response = await ask(client)
        (sent,) = server.record
    assert (response.parts, response.stop_reason, response.model) == ((Text("hello"),), "end", MODEL)
    assert (sent.method, sent.path) == ("POST", PATH)
    assert sent.headers["authorization"] == digest(f"Bearer {TOKEN}")
    assert sent.headers["accept-encoding"] == "identity"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["x-mine"] == "yes"
    assert sent.body == {
        "anthropic_version": "vertex-2023-10-16",
        "max_tokens": 32000,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
        ],
        "stream": True,
    }


async def test_the_path_is_the_one_that_the_sdk_would_make() -> None:
    """Asked with a body that is a dict, it makes one itself."""
    async with served(TextReply("ours"), TextReply("theirs")) as (server, client):
        await ask(client)
        sdk = vertex(server.base_url)
        said: MessageParam = {"role": "user", "content": "hi"}
        async with sdk, await sdk.messages.create(model=MODEL, max_tokens=9, messages=[said], stream=True) as stream:
            async for _ in stream:
                pass
        ours, theirs = server.record
    assert ours.path == theirs.path
    assert ours.headers["x-stainless-async"] == theirs.headers["x-stainless-async"] == "async:trio"


async def test_there_is_no_cache_for_an_hour() -> None:
    """Only Anthropic's own host is known to keep one."""
    async with served(TextReply("x"), cache="long") as (server, client):
        await ask(client)
        body = msgspec.json.encode(server.record[0].body)
    assert b'"cache_control":{"type":"ephemeral"}' in body
    assert b"ttl" not in body


async def test_what_was_signed_on_one_platform_goes_to_the_other() -> None:
    """ "Values generated on one platform will be compatible with another": one name, one model."""
    tag = Anthropic(MODEL, api_key="k").tag
    assert Anthropic(MODEL, client=vertex()).tag == tag
    parts: tuple[Part, ...] = (Thinking("hm", signature="sig"), Text("a"))
    history = (user_message("1", "q"), Message("2", "assistant", parts, tag), user_message("3", "r"))
    async with served(TextReply("x")) as (server, client):
        await ask(client, ModelRequest("s", history))
        body = msgspec.json.encode(server.record[0].body)
    assert b'{"type":"thinking","thinking":"hm","signature":"sig"}' in body


async def test_errors_are_typed_and_sent_once() -> None:
    """Google's own shape, and Anthropic's; a token that the server quotes is not shown."""
    google = b'{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}'
    limited = RawReply(google, status=429, content_type="application/json", headers={"retry-after": "3"})
    replies = (limited, ErrorReply(401, message=f"bad token {TOKEN}"), ErrorReply(529), TextReply("fine"))
    async with served(*replies) as (server, client):
        first, second, third = [await failure(client) for _ in range(3)]
        assert (await ask(client)).parts == (Text("fine"),)
        assert len(server.record) == 4
    assert (first.code, first.retry, first.retry_after) == ("rate_limited", "request", 3.0)
    assert "Quota exceeded" in first.message
    assert (second.code, TOKEN in str(second), "[key]" in str(second)) == ("unauthorized", False, True)
    assert (third.code, third.retry) == ("overloaded", "request")


async def test_a_response_that_breaks_off_may_be_tried_again() -> None:
    """Before the headers as a request, after them as a stream."""
    dead, cut = Fault(cut_before_headers=True), Fault(cut_at_byte=300)
    async with served(TextReply("x", fault=dead), TextReply("some words", fault=cut)) as (_, client):
        first, second = await failure(client), await failure(client)
    assert (first.code, first.retry) == ("dependency_failed", "request")
    assert (second.code, second.retry) == ("stream_dropped", "stream")


@pytest.mark.parametrize(
    ("fault", "wait"),
    [(Fault(stall_before_headers=True), "wait_request"), (Fault(endless=True), "wait_headers")],
)
async def test_a_stop_closes_the_connection(fault: Fault, wait: str) -> None:
    """Before the headers and in the stream; the client goes on."""
    async with served(TextReply("x", fault=fault), TextReply("fine")) as (server, client):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, client)
            await getattr(server, wait)()
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await server.wait_disconnect()
            assert (await server.wait_ended()).ended == "client_closed"
        assert (await ask(client)).parts == (Text("fine"),)


# Tokens that Google gives


class Credentials:
    """As google-auth's: they are refreshed by a call that blocks."""

    expired = False

    def __init__(self, *tokens: str | Exception | threading.Event) -> None:
        self.token = ""
        self._tokens = list(tokens)

    def refresh(self, request: object) -> None:
        got = self._tokens.pop(0)
        match got:
            case Exception():
                raise got
            case threading.Event():
                got.wait(30)
            case _:
                self.token = got


@pytest.fixture
def _google(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of google-auth as the SDK asks for when it refreshes a token."""
    names = ("google", "google.auth", "google.auth.transport", "google.auth.transport.requests")
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules[names[-1]].Request = object  # type: ignore[attr-defined]  # a module of our own


class TransportError(Exception):
    """google-auth's, for a server of tokens that is not reached."""


@pytest.mark.usefixtures("_google")
async def test_a_token_is_fetched_once_and_again_when_it_has_expired() -> None:
    """The credentials are yours, and go from request to request."""
    credentials = Credentials("first", "second")
    replies = (TextReply("a"), TextReply("b"), ErrorReply(401, message="bad token second"))
    async with served(*replies, sdk={"access_token": None, "credentials": credentials}) as (server, client):
        await ask(client)
        await ask(client)
        credentials.token = ""
        error = await failure(client)
        sent = [exchange.headers["authorization"] for exchange in server.record]
    assert sent == [digest(f"Bearer {token}") for token in ("first", "first", "second")]
    assert "second" not in str(error)


@pytest.mark.usefixtures("_google")
async def test_a_token_that_can_not_be_had_is_a_typed_error() -> None:
    """A network that is gone may come back; a credential that was revoked won't."""
    credentials = Credentials(TransportError("no route"), RuntimeError("revoked"), ValueError(), "")
    async with served(sdk={"access_token": None, "credentials": credentials}) as (server, client):
        gone, revoked, silent, empty = [await failure(client) for _ in range(4)]
        assert server.record == []
    assert (gone.code, gone.retry) == ("dependency_failed", "request")
    assert {it.code for it in (revoked, silent, empty)} == {"not_provisioned"}
    assert "revoked" in revoked.message
    assert "ValueError" in silent.message
    assert "gcloud auth application-default login" in empty.message


async def test_without_googles_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK asks for it only when it needs a token."""
    monkeypatch.setitem(sys.modules, "google", None)
    monkeypatch.setitem(sys.modules, "google.auth", None)
    async with served(sdk={"access_token": None}) as (_, client):
        error = await failure(client)
    assert (error.code, error.retry) == ("not_provisioned", None)
    assert "anthropic[vertex]" in error.message


@pytest.mark.usefixtures("_google")
async def test_a_stop_does_not_wait_for_a_token() -> None:
    """Google's library blocks a thread for up to minutes. Neither does the deadline of the request."""
    held = threading.Event()
    credentials = Credentials(held, held, "third")
    async with served(TextReply("x"), sdk={"access_token": None, "credentials": credentials}) as (_, client):
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, client)
                await trio.sleep(0.02)  # into the thread; what is asserted holds wherever it is
                nursery.cancel_scope.cancel()
            late = await failure(client, Timeouts(connect=0.05))
        assert (late.code, late.retry) == ("dependency_failed", "request")
        held.set()
        credentials._tokens = ["third"]
        await ask(client)


# What is declared


async def test_without_a_project_the_first_request_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the SDK's words for a path with None in it; the variable is read when a runtime opens the model."""
    async with served(TextReply("x"), sdk={"project_id": ""}) as (server, client):
        error = await failure(client)
        assert server.record == []
    assert (error.code, error.retry) == ("not_provisioned", None)
    assert "ANTHROPIC_VERTEX_PROJECT_ID" in error.message
    assert "CLOUD_ML_REGION" not in error.message
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "mine")
    monkeypatch.setenv("CLOUD_ML_REGION", "global")
    async with open_model_server([TextReply("x")]) as server:
        sdk = anthropic.AsyncAnthropicVertex(access_token=TOKEN, base_url=f"{server.base_url}/v1")
        async with Anthropic("claude-sonnet-5", client=sdk).open() as client:
            await ask(client)
        await sdk.close()
        assert server.record[0].path.startswith("/v1/projects/mine/locations/global/publishers/anthropic/models/")


async def test_without_a_region_the_first_request_says_what_to_set() -> None:
    """The SDK asks for it when its client is made; one that lost it later is told too."""
    sdk = vertex()
    sdk.region = ""
    sdk.with_options = lambda **_: sdk  # type: ignore[method-assign]  # it would refuse
    async with Anthropic(MODEL, client=sdk).open() as client:
        error = await failure(client)
    assert (error.code, "CLOUD_ML_REGION" in error.message) == ("not_provisioned", True)
    await sdk.close()


def test_a_declaration_shows_no_token_and_takes_no_key_beside_the_client() -> None:
    """Key and address are the client's."""
    assert TOKEN not in repr(Anthropic(MODEL, client=vertex()))
    with pytest.raises(DeclarationError, match="give them to that client"):
        Anthropic(MODEL, client=vertex(), api_key="k")


def test_a_client_that_blocks_is_refused() -> None:
    """The SDK's other client of that name."""
    sync = anthropic.AnthropicVertex(project_id="p", region="r", access_token="t")
    with pytest.raises(DeclarationError, match="AsyncAnthropicVertex"):
        Anthropic(MODEL, client=sync)  # type: ignore[arg-type]  # what is refused


# The loopback server's side


async def test_the_model_server_refuses_what_vertex_would() -> None:
    """A body that names the model, or has another version, or none."""
    bodies: list[Any] = [
        {"anthropic_version": "vertex-2023-10-16", "model": MODEL},
        {"anthropic_version": "2023-06-01"},
        {"model": MODEL},
        [],
    ]
    wanted = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    async with open_model_server([TextReply("x")]) as server, httpx2.AsyncClient() as http:
        told = [body | wanted if isinstance(body, dict) else body for body in bodies]
        answers = [await http.post(server.base_url + PATH, json=body) for body in told]
        fine = await http.post(server.base_url + PATH, json=wanted | {"anthropic_version": "vertex-2023-10-16"})
    assert [answer.status_code for answer in answers] == [400, 400, 400, 400]
    assert (fine.status_code, fine.json()["model"]) == (200, MODEL)
