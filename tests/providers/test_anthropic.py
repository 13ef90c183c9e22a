"""The Anthropic provider over real sockets: what goes out, what comes back, and what is left behind."""

from __future__ import annotations

import gzip
import json
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
import trio
from anthropic.lib.credentials import StaticToken

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import user_message
from agentrio.domain.parts import Text
from agentrio.domain.render import ModelRequest
from agentrio.providers import _http, _reading
from agentrio.providers.anthropic import Anthropic
from agentrio.providers.base import Model, ModelClient, ModelResponse, PartDelta, ProviderError, Timeouts
from agentrio.testing.loopback import (
    ErrorReply,
    Fault,
    ModelServer,
    Pace,
    RawReply,
    Reply,
    Script,
    TextReply,
    digest,
    open_model_server,
)

REQUEST = ModelRequest("s", (user_message("m", "hi"),))
KEY = "sk-test-123"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credential, profile or proxy of the machine's."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.delenv("ANTHROPIC_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@asynccontextmanager
async def served(*replies: Reply, **options: Any) -> AsyncIterator[tuple[ModelServer, ModelClient]]:
    async with open_model_server(Script(replies)) as server:
        options = {"api_key": KEY, "base_url": server.base_url} | options
        async with Anthropic("claude-sonnet-5", **options).open() as client:
            yield server, client


async def ask(client: ModelClient, timeouts: Timeouts | None = None) -> tuple[ModelResponse, list[list[PartDelta]]]:
    batches = []
    async with client.stream(REQUEST, timeouts or Timeouts()) as stream:
        try:
            while True:
                batches.append(list(await stream.receive()))
        except trio.EndOfChannel:
            return stream.response(), batches


async def failure(client: ModelClient, timeouts: Timeouts | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(client, timeouts)
    return caught.value


# What goes out


async def test_the_request_is_the_sdks_in_everything_but_its_body() -> None:
    """URL, version, credential and custom headers; never a compressed answer; the connection is used again."""
    async with served(TextReply("one"), TextReply("two"), headers={"X-Mine": "yes"}) as (server, client):
        await ask(client)
        await ask(client)
        first, second = server.record
    assert (first.method, first.path, first.connection) == ("POST", "/v1/messages", second.connection)
    assert first.headers["authorization"] == digest(f"Bearer {KEY}")
    assert first.headers["anthropic-version"]
    assert first.headers["accept-encoding"] == "identity"
    assert first.headers["content-type"] == "application/json"
    assert first.headers["x-mine"] == "yes"
    assert first.body == {
        "model": "claude-sonnet-5",
        "max_tokens": 32000,
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
            }
        ],
        "stream": True,
    }


async def test_key_and_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's variables, read when the model is opened; a path before the API's stays."""
    async with open_model_server([TextReply("hi")]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        async with Anthropic("m").open() as client:
            assert (await ask(client))[0].parts == (Text("hi"),)
        assert server.record[0].headers["authorization"] == digest(f"Bearer {KEY}")
    async with open_model_server([TextReply("hi")]) as server:
        async with Anthropic("m", api_key=KEY, base_url=server.base_url + "/prefix/").open() as client:
            await failure(client)
        assert server.record[0].path == "/prefix/v1/messages"


@pytest.mark.parametrize("base_url", ["ftp://somewhere", "somewhere", "http://[::1", "http://a..b", "http://a\n", " "])
async def test_an_address_in_the_environment_that_is_none_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, base_url: str
) -> None:
    """It is not the declaration that is wrong, so it shows with the first request."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", base_url)
    async with Anthropic("m", api_key=KEY).open() as client:
        error = await failure(client)
    assert (error.code, error.retry) == ("not_provisioned", None)
    assert "ANTHROPIC_BASE_URL is " in error.message


@pytest.mark.parametrize("wrong", ["sk-secret-0123456789\n", "sk-secret-0123456789 ", "sk-sécret-0123456789", " "])
async def test_a_key_in_the_environment_that_is_none_is_a_typed_error_and_not_told(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """With the end of a line behind it, as files have it, h11 quoted it; with another letter it was a crash."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", wrong)
    async with served(api_key=None) as (server, client):
        error = await failure(client)
        assert server.record == []
    assert (error.code, error.retry) == ("not_provisioned", None)
    assert error.message.startswith("ANTHROPIC_API_KEY is empty or holds characters that no key has")
    assert "0123" not in error.message


async def test_without_a_credential_the_first_request_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Opening succeeds, so that a runtime can start; a profile that can't be read is named too."""
    async with served(api_key=None) as (server, client):
        error = await failure(client)
        assert server.record == []
    assert error.code == "not_provisioned"
    assert "ANTHROPIC_API_KEY" in error.message
    monkeypatch.setenv("ANTHROPIC_PROFILE", "missing")
    async with served(api_key=None) as (_, client):
        error = await failure(client)
    assert (error.code, "ANTHROPIC_API_KEY" in error.message) == ("not_provisioned", True)


async def test_a_header_may_be_the_credential() -> None:
    """For gateways with their own."""
    async with served(TextReply("x"), api_key=None, headers={"X-API-Key": "k"}) as (server, client):
        await ask(client)
        assert server.record[0].headers["x-api-key"] == digest("k")


async def test_a_credential_that_the_sdk_fetches_goes_through_the_sdk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here a profile on disk, whose token someone else renews."""
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    (tmp_path / "configs").mkdir()
    (tmp_path / "credentials").mkdir(mode=0o700)
    (tmp_path / "configs" / "default.json").write_text(json.dumps({"authentication": {"type": "user_oauth"}}))
    token = tmp_path / "credentials" / "default.json"
    token.write_text(json.dumps({"access_token": "fetched", "version": "1.0", "type": "oauth_token"}))
    token.chmod(0o600)
    replies = (TextReply("a " * 50, pace=Pace(coalesce=60)), ErrorReply(429, headers={"retry-after": "2"}))
    async with served(*replies, api_key=None) as (server, client):
        response, batches = await ask(client)
        error = await failure(client)
    assert response.parts == (Text("a " * 50),)
    assert len(batches) < 8  # our own connection underneath: still one batch per read
    assert server.record[0].headers["authorization"] == digest("Bearer fetched")
    assert (error.code, error.retry_after) == ("rate_limited", 2.0)


@asynccontextmanager
async def _sdk(base_url: str, **options: Any) -> AsyncIterator[ModelClient]:
    sdk = anthropic.AsyncAnthropic(base_url=base_url, **{"api_key": KEY, **options})
    async with Anthropic("m", client=sdk).open() as client:
        yield client
    assert not sdk.is_closed()
    await sdk.close()


async def test_a_client_of_the_sdk_may_be_injected_and_is_not_closed() -> None:
    """Its retries stay off: there is one retry layer, and it is not here."""
    replies = (TextReply("hi"), ErrorReply(529), TextReply("x", fault=Fault(cut_before_headers=True)), TextReply("ok"))
    async with open_model_server(replies) as server, _sdk(server.base_url) as client:
        assert (await ask(client))[0].parts == (Text("hi"),)
        assert (await failure(client)).code == "overloaded"
        dead = await failure(client)
        assert (dead.code, dead.retry) == ("dependency_failed", "request")
        assert isinstance(dead.__cause__, anthropic.APIConnectionError)
        await ask(client)
        assert len(server.record) == 4
    async with _sdk("http://127.0.0.1:9", api_key=None, credentials=_no_token) as client:
        error = await failure(client)
    assert error.code in ("not_provisioned", "dependency_failed")
    async with open_model_server([TextReply("hi")]) as server:
        async with _sdk(server.base_url, api_key=None, credentials=StaticToken("static")) as client:
            await ask(client)
        assert server.record[0].headers["authorization"] == digest("Bearer static")


def _no_token(*, force_refresh: bool = False) -> Any:
    raise anthropic.AnthropicError("no token to be had")


async def test_an_http_client_may_be_injected_and_is_not_closed() -> None:
    """Its chunks come one by one, its headers go along; leaving early closes the connection all the same."""
    replies = (TextReply("a " * 40, pace=Pace(coalesce=60)), TextReply("a " * 40, fault=Fault(endless=True)))
    async with httpx2.AsyncClient(headers={"x-mine": "yes"}) as http:
        async with served(*replies, client=http) as (server, client):
            response, _ = await ask(client)
            assert response.parts == (Text("a " * 40),)
            async with client.stream(REQUEST, Timeouts()) as stream:
                for _ in range(5):
                    await stream.receive()
            with trio.fail_after(5):
                await server.wait_disconnect(2)
        assert server.record[0].headers["x-mine"] == "yes"
        assert not http.is_closed


# What comes back


async def test_what_one_read_brought_is_one_batch() -> None:
    """A model server sends a chunk per token; a read may bring hundreds."""
    async with served(TextReply(["ab "] * 400, pace=Pace(coalesce=500))) as (_, client):
        response, batches = await ask(client)
    assert response.parts == (Text("ab " * 400),)
    assert max(map(len, batches)) > 50
    assert len(batches) < 40


async def test_a_compressed_answer_is_read_and_a_garbled_one_is_an_error() -> None:
    """Some proxies compress although they were asked not to."""
    body = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    headers = {"content-encoding": "gzip"}
    replies = (RawReply(gzip.compress(body), headers=headers, pace=Pace(drip=3)), RawReply(body, headers=headers))
    async with served(*replies, TextReply("fine")) as (_, client):
        assert (await ask(client))[0].stop_reason == "end"
        error = await failure(client)
        assert (error.code, error.retry) == ("invalid_response", None)
        await ask(client)


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"])
async def test_a_server_that_ignores_streaming_is_understood(kind: str) -> None:
    """One JSON body, the same outcome."""
    body = {"type": "message", "stop_reason": "end_turn", "content": [{"type": "text", "text": "whole"}]}
    async with served(RawReply(json.dumps(body).encode(), content_type=kind)) as (_, client):
        response, batches = await ask(client)
    assert response.parts == (Text("whole"),)
    assert batches[-1] == [PartDelta("text", 0, 0, "whole")]


async def test_an_error_status_is_typed_with_its_wait_and_its_request_id() -> None:
    """A date in Retry-After is read against the model's own wall clock; a key that the server quotes is not shown."""
    date = {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT", "request-id": "req_7"}
    replies = (ErrorReply(429, headers=date), ErrorReply(401, message=f"bad key {KEY}"), ErrorReply(503))
    async with served(*replies, wall_clock=lambda: 784111740.0) as (server, client):
        limited, refused, down = [await failure(client) for _ in replies]
        assert len({exchange.connection for exchange in server.record}) == 1  # bodies were read to their ends
    assert (limited.code, limited.retry, limited.retry_after) == ("rate_limited", "request", 37.0)
    assert (limited.status, limited.request_id) == (429, "req_7")
    assert (refused.code, refused.retry) == ("unauthorized", None)
    assert KEY not in str(refused)
    assert "[key]" in str(refused)
    assert down.code == "not_provisioned"


async def test_a_key_that_is_a_word_does_not_garble_errors() -> None:
    """Local servers take any: "none", "test"."""
    async with served(ErrorReply(401, message="not a test"), api_key="test") as (_, client):
        assert "not a test" in str(await failure(client))


async def test_a_huge_or_broken_error_body_is_cut() -> None:
    """What came of it will do."""
    big = RawReply(b"x" * 300_000, status=500, content_type="text/plain")
    cut = RawReply(b"y" * 300, status=500, content_type="text/plain", fault=Fault(cut_at_byte=100))
    async with served(big, cut) as (_, client):
        for letter in ("xxx", "yyy"):
            error = await failure(client)
            assert (error.code, error.status) == ("dependency_failed", 500)
            assert letter in error.message


# What goes wrong on the way


async def test_a_server_that_is_not_there_is_a_typed_error() -> None:
    """A refused connection, and a scheme's mismatch."""
    async with open_model_server([]) as server:
        gone = server.base_url
    for base_url in (gone, gone.replace("http:", "https:")):
        async with Anthropic("m", api_key=KEY, base_url=base_url).open() as client:
            error = await failure(client)
        assert (error.code, error.retry) == ("dependency_failed", "request")
        assert "127.0.0.1" in error.message
        assert error.__cause__ is not None


async def test_a_closed_client_of_yours_is_a_typed_error() -> None:
    """Not a RuntimeError in the middle of a run."""
    http = httpx2.AsyncClient()
    await http.aclose()
    async with served(TextReply("x"), client=http) as (_, client):
        assert (await failure(client)).code == "invalid_request"


@pytest.mark.parametrize("fault", [Fault(cut_before_headers=True), Fault(cut_before_headers=True, reset=True)])
async def test_a_hang_up_before_the_headers_may_be_tried_again(fault: Fault) -> None:
    """Nothing came, so the request may go out once more."""
    async with served(TextReply("x", fault=fault), TextReply("fine")) as (_, client):
        error = await failure(client)
        assert (error.code, error.retry) == ("dependency_failed", "request")
        await ask(client)


async def test_a_reused_connection_that_is_dead_may_be_tried_again() -> None:
    """Real servers close idle connections just as the next request leaves."""
    async with served(TextReply("x", fault=Fault(dead_reused=True)), TextReply("y"), TextReply("z")) as (_, client):
        await ask(client)
        error = await failure(client)
        assert (error.code, error.retry) == ("dependency_failed", "request")
        await ask(client)


async def test_headers_must_come_in_time() -> None:
    """One deadline for connecting, sending and waiting, whatever the limit of silence is."""
    async with served(TextReply("x", fault=Fault(stall_before_headers=True))) as (server, client):
        error = await failure(client, Timeouts(connect=0.05, idle=0.01))
        assert (error.code, error.retry) == ("dependency_failed", "request")
        assert "0.05 s" in error.message
        with trio.fail_after(5):
            await server.wait_disconnect()
    async with served(TextReply("x", pace=Pace(before_headers=1.2))) as (_, client):
        await ask(client, Timeouts(connect=60, idle=1))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(cut_at_byte=300), "broke in the middle"),
        (Fault(cut_at_byte=300, reset=True), "broke in the middle"),
        (Fault(stall_after=4), "silent for 0.1 s"),
        (Fault(stall_after=0), "silent for 0.1 s"),
    ],
)
async def test_a_response_that_breaks_off_is_a_drop(fault: Fault, words: str) -> None:
    """Cut, reset or silent: retried as a stream, with the foreign error as its cause, and it stays broken."""
    async with served(TextReply("some words to say", fault=fault), TextReply("fine")) as (_, client):
        async with client.stream(REQUEST, Timeouts(idle=0.1 if "silent" in words else 60)) as stream:
            with pytest.raises(ProviderError, match=words) as caught:
                while True:
                    await stream.receive()
            assert (caught.value.code, caught.value.retry) == ("stream_dropped", "stream")
            assert isinstance(caught.value.__cause__, httpx2.HTTPError)
            assert stream.response().stop_reason is None
        await ask(client)


async def test_an_error_frame_is_told_after_the_deltas_before_it() -> None:
    """HTTP said 200 long ago."""
    reply = TextReply("some words", fault=Fault(error_frame_after=4), pace=Pace(coalesce=9))
    async with served(reply) as (_, client), client.stream(REQUEST, Timeouts()) as stream:
        deltas: list[PartDelta] = []
        with pytest.raises(ProviderError, match="Overloaded") as caught:
            while True:
                deltas += await stream.receive()
        assert (caught.value.code, caught.value.retry) == ("overloaded", "stream")
        assert deltas
        assert stream.response().parts == (Text("".join(delta.text for delta in deltas)),)


async def test_behind_the_stop_reason_nothing_can_go_wrong() -> None:
    """A server that cuts, resets or falls silent before ``message_stop`` has said all that counts."""
    whole = TextReply("word")
    frames = 0
    async with served(whole) as (server, client):
        await ask(client)
        frames, size = server.record[0].frames_sent, server.record[0].bytes_sent
    last = len(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    faults = (Fault(stall_after=frames - 1), Fault(cut_at_byte=size - last), Fault(cut_at_byte=size - last, reset=True))
    async with served(*(TextReply("word", fault=fault) for fault in faults), TextReply("fine")) as (_, client):
        for _fault in faults:
            with trio.fail_after(30):
                response, _ = await ask(client)
            assert (response.stop_reason, response.parts) == ("end", (Text("word"),))
        await ask(client)


# What is left behind


async def _cancel_when(client: ModelClient, ready: Callable[[], Any]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, client)
        await ready()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Fault(stall_before_headers=True), "wait_request"),
        (Fault(stall_after=0), "wait_headers"),
        (Fault(stall_after=4), "wait_headers"),
        (Fault(endless=True), "wait_headers"),
    ],
)
async def test_a_cancel_reaches_the_server_at_once_and_leaves_no_connection(fault: Fault, wait: str) -> None:
    """Before headers, on a silent stream, in the middle of a fast one; the pool forgets the connection."""
    async with served(TextReply("some words", fault=fault), TextReply("fine")) as (server, client):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, client)
            await getattr(server, wait)()
            await trio.sleep(0.02)  # into the stream; what is asserted holds wherever it is
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await server.wait_disconnect()
            assert (await server.wait_ended()).ended == "client_closed"
        assert (await ask(client))[0].parts == (Text("fine"),)


@pytest.mark.parametrize("fault", [Fault(stall_before_headers=True), Fault(stall_after=4), Fault(endless=True)])
@pytest.mark.parametrize("injected", [False, True])
async def test_many_cancels_leak_no_connection_of_the_pool(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, injected: bool
) -> None:
    """Twenty of them with two connections: a single one that leaked would show as a hang."""
    monkeypatch.setattr(_reading, "CONNECTIONS", 2)
    replies = [TextReply("some words", fault=fault)] * 20 + [TextReply("fine")] * 2
    async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=2)) as http:
        async with served(*replies, client=http if injected else None) as (server, client):
            for number in range(1, 21):
                with trio.fail_after(10):
                    await _cancel_when(client, lambda number=number: server.wait_request(number))  # type: ignore[misc]  # bound now
                    await server.wait_disconnect(number)
            with trio.fail_after(10):
                async with client.stream(REQUEST, Timeouts()):
                    await ask(client)


async def test_leaving_early_closes_the_connection_and_keeps_what_came() -> None:
    """Also in the middle of what one read had brought."""
    reply = TextReply(["word "] * 300, fault=Fault(endless=True), pace=Pace(coalesce=50))
    async with served(reply, TextReply("fine")) as (server, client):
        async with client.stream(REQUEST, Timeouts()) as stream:
            while not await stream.receive():
                pass
            assert stream.response().parts
        with trio.fail_after(5):
            await server.wait_disconnect()
        await ask(client)


async def test_connections_are_shared_by_many_streams_at_once() -> None:
    """A connection that was just given back is taken by the next task: neither disturbs the other's reading."""
    async with open_model_server(lambda received: TextReply(["ab"] * 40, pace=Pace(pieces=received.number))) as server:
        async with Anthropic("m", api_key=KEY, base_url=server.base_url).open() as client:

            async def many() -> None:
                for _ in range(8):
                    response, _batches = await ask(client)
                    assert response.parts == (Text("ab" * 40),)

            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    for _ in range(12):
                        nursery.start_soon(many)
        assert len({exchange.connection for exchange in server.record}) < len(server.record)


async def test_a_response_is_read_by_whichever_task_holds_it() -> None:
    """Opened in one task, read in others, one after the other."""
    async with served(TextReply(["ab"] * 40, pace=Pace(coalesce=10))) as (_, client):
        async with client.stream(REQUEST, Timeouts()) as stream:
            done = trio.Event()

            async def read() -> None:
                try:
                    await stream.receive()
                except trio.EndOfChannel:
                    done.set()

            with trio.fail_after(10):  # noqa: ASYNC912  # a nursery is a cancel point
                while not done.is_set():
                    async with trio.open_nursery() as nursery:  # noqa: ASYNC112  # another task is the point
                        nursery.start_soon(read)
            assert stream.response().parts == (Text("ab" * 40),)


async def test_tls_streams_are_batched_and_closed_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real thing is https."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    try:
        await trio.to_thread.run_sync(lambda: subprocess.run(make, check=True, capture_output=True))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no openssl to make a certificate with")
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secure.load_cert_chain(cert, key)
    monkeypatch.setattr(_http, "tls_context", lambda _: ssl.create_default_context(cafile=str(cert)))
    async with open_model_server([TextReply(["ab "] * 200, pace=Pace(coalesce=300)), TextReply("x")]) as server:
        port = int(server.base_url.rpartition(":")[2])
        async with trio.open_nursery() as nursery:
            relay = _relay(port)
            listeners: list[trio.SSLListener[trio.SocketStream]] = await nursery.start(
                trio.serve_ssl_over_tcp, relay, 0, secure
            )
            address = f"https://127.0.0.1:{listeners[0].transport_listener.socket.getsockname()[1]}"  # type: ignore[attr-defined]  # it is a SocketListener
            async with Anthropic("m", api_key=KEY, base_url=address).open() as client:
                response, batches = await ask(client)
                assert response.parts == (Text("ab " * 200),)
                assert max(map(len, batches)) > 20
                await ask(client)
            nursery.cancel_scope.cancel()


def _relay(port: int) -> Callable[[trio.SSLStream[trio.SocketStream]], Any]:
    async def pump(source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        async for data in source:
            await sink.send_all(data)

    async def relay(stream: trio.SSLStream[trio.SocketStream]) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", port) as inner, stream:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pump, stream, inner)
                await pump(inner, stream)
                nursery.cancel_scope.cancel()

    return relay


# What is declared


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": ""}, "Anthropic.model is ''"),
        ({"model": 7}, "must be a model's name"),
        ({"model": "m\ud83d"}, "must be a model's name"),
        ({"base_url": "ftp://x"}, "http:// or https://"),
        ({"base_url": "http://"}, "with a host"),
        ({"base_url": "localhost:8080"}, "such as http://127.0.0.1:8080"),
        ({"base_url": "http://x:y"}, "no URL"),
        ({"base_url": "http://[x"}, "no URL"),
        ({"base_url": "https://user:pass@x"}, "give them as api_key or headers"),
        ({"base_url": "https://x/?a=1"}, "neither a query nor a fragment"),
        ({"base_url": "https://x/v1/"}, "leave that away"),
        ({"base_url": 5}, "it must be a text"),
        ({"base_url": "http://a b"}, "no spaces"),
        ({"base_url": " http://x"}, "http:// or https://"),
        ({"base_url": "http://x\n"}, "no URL"),
        ({"base_url": "http://a..b"}, "no URL"),
        ({"base_url": "http://user:pass@x:y"}, "is what holds an @; it is no URL"),
        ({"api_key": " "}, "leave it out to use ANTHROPIC_API_KEY"),
        ({"api_key": "secret\nkey"}, "characters that no key has"),
        ({"api_key": "secret "}, "characters that no key has"),
        ({"api_key": 5}, "characters that no key has"),
        ({"cache": "forever"}, "none, short or long"),
        ({"max_tokens": 0}, "whole number above 0"),
        ({"max_tokens": True}, "whole number above 0"),
        ({"max_tokens": 10**30}, "at most 9007199254740992"),
        ({"max_tokens": -(10**5000)}, "thousands of digits"),
        ({"headers": {"x": "a\r\nb: c"}}, "printable ASCII"),
        ({"headers": {"x": None}}, "printable ASCII"),
        ({"headers": {"x": "a "}}, "without spaces around"),
        ({"headers": [("x", "a")]}, "must map names"),
        ({"headers": {"a b": "x"}}, "'a b', which can't be a header's name"),
        ({"headers": {"": "x"}}, "can't be a header's name"),
        ({"headers": {5: "x"}}, "can't be a header's name"),
        ({"headers": {"Content-Length": "5"}}, "must not have Content-Length: it follows from the body"),
        ({"client": object()}, "must be an anthropic.AsyncAnthropic, an anthropic.AsyncAnthropicVertex or"),
        ({"client": anthropic.AsyncAnthropic(api_key="k"), "api_key": "k"}, "give them to that client"),
    ],
)
def test_a_wrong_declaration_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    """What, where, and how to mend it; a secret is never repeated."""
    with pytest.raises(DeclarationError) as caught:
        Anthropic(**{"model": "claude-sonnet-5", **options})
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "pass" not in str(caught.value).replace("password", "")


def test_a_client_with_another_wire_is_refused() -> None:
    """Bedrock frames its streams in its own way; OpenAI's clients have a base class of the same name."""

    class AsyncAnthropicBedrock(anthropic.AsyncAnthropic):
        pass

    with pytest.raises(DeclarationError, match="Bedrock's own wire, which is not supported"):
        Anthropic("m", client=AsyncAnthropicBedrock(api_key="k"))
    with pytest.raises(DeclarationError, match="is a AsyncOpenAI"):
        Anthropic("m", client=openai.AsyncOpenAI(api_key="k"))  # type: ignore[arg-type]  # what is refused


async def test_headers_go_through_a_client_of_the_sdk_too() -> None:
    """Beside its own."""
    async with open_model_server([TextReply("x")]) as server:
        sdk = anthropic.AsyncAnthropic(api_key=KEY, base_url=server.base_url, default_headers={"x-theirs": "a"})
        async with Anthropic("m", client=sdk, headers={"x-mine": "b"}).open() as client:
            await ask(client)
        await sdk.close()
        sent = server.record[0].headers
    assert (sent["x-theirs"], sent["x-mine"]) == ("a", "b")
    assert sent["x-stainless-async"] == "async:trio"  # where the SDK sends, it says how


def test_a_declaration_shows_no_secret() -> None:
    """Not in its repr or str; its tag says where its blocks may go back to."""
    model = Anthropic("m", api_key=KEY, headers={"x": "hidden"})
    assert isinstance(model, Model)
    assert KEY not in f"{model!r}{model}"
    assert "hidden" not in f"{model!r}"
    assert (model.tag.provider, model.tag.api, model.tag.model) == ("anthropic", "messages", "m")


@pytest.mark.parametrize(("bypass", "plain"), [("", True), ("model.example", False)])
async def test_behind_a_proxy_the_client_is_httpx2s_own(
    monkeypatch: pytest.MonkeyPatch, bypass: str, plain: bool
) -> None:
    """It knows the environment's proxies, and their exceptions."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", bypass)
    async with _http.make_client("http://model.example") as http:
        assert isinstance(http._transport, _reading.PausingTransport) is not plain


def test_certificates_are_loaded_once() -> None:
    """One context for the process; for plain http there is one that trusts nobody."""
    assert _http.tls_context(True) is _http.tls_context(True)
    assert _http.tls_context(True).cert_store_stats()["x509_ca"] > 0
    assert _http.tls_context(False).verify_mode == ssl.CERT_REQUIRED
    assert _http.tls_context(False).cert_store_stats()["x509_ca"] == 0
