"""Connections that stand still, trickle or break at any place: each ends in one clear failure, or at once by a stop."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from agentrio import Agent, Anthropic, Limits, RunResult, SessionHandle, open_runtime
from agentrio.events import Retrying, RunEnded
from agentrio.providers import _http
from tests.streams.raw import FINE, HEAD, Handler, Peer, RawServer, answer, make_certificate, open_raw_server

KEY = "sk-hostile-0123456789"
SECONDS = 20.0  # a guard against hanging, far above what anything here takes
USUAL = Limits()
PACKED = gzip.compress(FINE)


async def before_headers(peer: Peer) -> None:
    await peer.request()
    await peer.stay()


async def in_a_header(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\ncontent-ty")
    await peer.stay()


async def behind_the_headers(peer: Peer) -> None:
    await peer.request()
    await peer.say(HEAD + b"\r\n")
    await peer.stay()


async def in_a_chunks_size(peer: Peer) -> None:
    await peer.request()
    await peer.say(HEAD + b"\r\n1")
    await peer.stay()


async def in_an_event(peer: Peer) -> None:
    await peer.request()
    await peer.say(HEAD + b"\r\nff\r\n" + FINE[:40])
    await peer.stay()


async def in_a_compressed_body(peer: Peer) -> None:
    await peer.request()
    await peer.say(HEAD + b"content-encoding: gzip\r\n\r\nff\r\n" + PACKED[:30])
    await peer.stay()


async def without_reading(peer: Peer) -> None:
    peer.there.set()
    await trio.sleep(1)
    await peer.left()


async def with_comments(peer: Peer) -> None:
    await peer.request()
    await peer.say(HEAD + b"\r\n")
    peer.there.set()
    while True:
        await peer.say(b"9\r\n: alive\n\n\r\n")
        await trio.sleep(0.01)


async def with_continues(peer: Peer) -> None:
    await peer.request()
    peer.there.set()
    while True:
        await peer.say(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


async def with_headers(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\n")
    peer.there.set()
    while True:
        await peer.say(b"x-more: and more\r\n" * 10)
        await trio.sleep(0.01)


async def with_an_errors_body(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 500 No\r\ncontent-length: 100000\r\n\r\n")
    peer.there.set()
    while True:
        await peer.say(b"x")
        await trio.sleep(0.05)


async def with_a_wait(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 429 Wait\r\nretry-after: 59\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    await peer.stay()


STATES = [
    before_headers,
    in_a_header,
    behind_the_headers,
    in_a_chunks_size,
    in_an_event,
    in_a_compressed_body,
    with_comments,
    with_continues,
    with_headers,
    with_an_errors_body,
    with_a_wait,
]


def model(server: RawServer, **options: Any) -> Anthropic:
    return Anthropic("claude-sonnet-5", **{"api_key": KEY, "base_url": server.base_url} | options)


@asynccontextmanager
async def opened(server: RawServer, limits: Limits = USUAL) -> AsyncIterator[SessionHandle]:
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model(server), limits=limits)) as session:
            yield session
        await runtime.wait_quiet()


async def stopped(server: RawServer, text: str = "Go on.") -> None:
    """A stop there ends the run at once, tells the server, and the session goes on."""
    with trio.fail_after(SECONDS):
        async with opened(server) as session:
            await session.start(text)
            peer = await server.peer()
            begun = trio.current_time()
            assert session.stop(reason="enough")
            await session.wait_idle()
            assert trio.current_time() - begun < 5  # far below any limit that could have ended it instead
            await peer.gone.wait()
            assert (await session.ask("And now?")).text == "Fine."


@pytest.mark.parametrize("state", STATES)
async def test_a_stop_ends_it_wherever_the_connection_is(state: Handler) -> None:
    """Whatever the server does or leaves undone, it is told by the closed connection that nobody listens any more."""
    async with open_raw_server(state) as server:
        await stopped(server)


async def test_a_stop_ends_the_sending_of_a_request_that_nobody_reads() -> None:
    """Eight megabytes do not fit into the buffers between the two."""
    async with open_raw_server(without_reading) as server:
        with trio.fail_after(SECONDS):
            async with opened(server, Limits(max_context_chars=10_000_000)) as session:
                await session.start("word " * 1_600_000)
                await server.peer()
                await trio.sleep(0.05)  # into the sending; what is asserted holds wherever it is
                assert session.stop()
                await session.wait_idle()
                assert session.value.messages[-1].role == "user"


@pytest.fixture
def secured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ssl.SSLContext:
    """The context of a server that is trusted."""
    context, cert = make_certificate(tmp_path)
    monkeypatch.setattr(_http, "tls_context", lambda _: ssl.create_default_context(cafile=str(cert)))
    return context


async def silent(peer: Peer) -> None:
    await peer.stay()


async def test_a_stop_ends_a_handshake_that_stands_still(secured: ssl.SSLContext) -> None:
    """The first connection never speaks TLS; to later ones nobody does either, so only the stop is looked at."""
    async with open_raw_server(silent, secure=True) as server:
        with trio.fail_after(SECONDS):
            async with opened(server) as session:
                await session.start("Go on.")
                peer = await server.peer()
                assert session.stop()
                await session.wait_idle()
                await peer.gone.wait()


async def test_a_handshake_that_stands_still_is_a_typed_failure(
    secured: ssl.SSLContext, autojump_clock: trio.testing.MockClock
) -> None:
    """It counts to the time until the headers."""
    async with open_raw_server(*[silent] * 4, secure=True) as server, opened(server) as session:
        result = await session.ask("Go on.")
    assert result.failure is not None
    assert (result.failure.code, result.failure.recoverable) == ("dependency_failed", True)
    assert "no response within 60 s" in result.failure.message


async def garbage(peer: Peer) -> None:
    await peer.say(b"This is no handshake.\r\n" * 10)
    await peer.stay()


async def test_garbage_in_a_handshake_says_what_is_wrong(
    secured: ssl.SSLContext, autojump_clock: trio.testing.MockClock
) -> None:
    """``ConnectError`` and no more was all that was told, of a certificate that is not trusted too."""
    async with open_raw_server(*[garbage] * 4, secure=True) as server, opened(server) as session:
        result = await session.ask("Go on.")
    assert result.failure is not None
    assert "SSL" in result.failure.message


async def test_a_certificate_that_is_not_trusted_says_so(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The most frequent mistake with a server of one's own."""
    context, _ = make_certificate(tmp_path)
    async with open_raw_server(tls=context) as server, opened(server) as session:
        result = await session.ask("Go on.")
    assert result.failure is not None
    assert "certificate verify failed" in result.failure.message


@pytest.mark.parametrize("sized", [False, True])
async def test_a_secured_server_that_leaves_without_a_word_is_a_drop(
    secured: ssl.SSLContext, autojump_clock: trio.testing.MockClock, sized: bool
) -> None:
    """Its TLS has no proper end, and somebody may have cut it: behind no stop reason that is no answer."""
    head = HEAD.replace(b"transfer-encoding: chunked", b"content-length: 5000" if sized else b"connection: close")

    async def leave(peer: Peer) -> None:
        await peer.request()
        await peer.say(head + b"\r\n" + FINE[: len(FINE) // 2])
        assert isinstance(peer.stream, trio.SSLStream)
        await peer.stream.transport_stream.aclose()

    async with open_raw_server(leave, tls=secured) as server, open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model(server))) as session:
            async with session.run("Go on.") as run:
                events = [event async for event in run]
    [retry] = [event for event in events if isinstance(event, Retrying)]
    assert retry.kind == "stream"
    assert run.result.text == "Fine."


async def failed(*states: Handler, limits: Limits = USUAL) -> RunResult[Any]:
    """How it ends by itself: in one ending, and with a session that goes on."""
    async with open_raw_server(*states) as server, opened(server, limits) as session:
        async with session.run("Go on.") as run:
            events = [event async for event in run]
        assert [type(event) for event in events if isinstance(event, RunEnded)] == [RunEnded]
        assert (await session.ask("And now?")).text == "Fine."
        return run.result


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        (before_headers, "dependency_failed", "sent no response within 60 s"),
        (in_a_header, "dependency_failed", "sent no response within 60 s"),
        (behind_the_headers, "stream_dropped", "silent for 120 s"),
        (in_a_chunks_size, "stream_dropped", "silent for 120 s"),
        (in_an_event, "stream_dropped", "silent for 120 s"),
        (in_a_compressed_body, "stream_dropped", "silent for 120 s"),
        (with_headers, "dependency_failed", "could not be reached"),
        (with_an_errors_body, "dependency_failed", "answered 500: xxx"),
        (with_a_wait, "rate_limited", "answered 429"),
    ],
)
async def test_it_ends_by_itself_as_what_it_is(
    state: Handler, code: str, words: str, autojump_clock: trio.testing.MockClock
) -> None:
    """After the tries that there are for it."""
    result = await failed(*[state] * 4)
    assert result.failure is not None
    assert result.failure.code == code
    assert words in result.failure.message


async def test_a_flood_of_continues_ends_in_time() -> None:
    """Each is a head of its own; none of them is the response's."""
    with trio.fail_after(SECONDS):
        result = await failed(*[with_continues] * 4, limits=Limits(connect_timeout=0.2))
    assert result.failure is not None
    assert "sent no response within 0.2 s" in result.failure.message


async def test_a_chunks_size_that_trickles_is_no_sign_of_work(autojump_clock: trio.testing.MockClock) -> None:
    """A byte a minute, none of which ends the line: a silence each, and together far longer than any."""

    async def trickle(peer: Peer) -> None:
        await peer.request()
        await peer.say(HEAD + b"\r\n")
        for _ in range(1_000):
            await peer.say(b"0")
            await trio.sleep(60)

    begun = trio.current_time()
    result = await failed(trickle)
    assert result.failure is not None
    assert "nothing but signs of life for 600 s" in result.failure.message
    assert trio.current_time() - begun < 700


async def test_a_whole_compressed_answer_in_one_read_is_read_whole(autojump_clock: trio.testing.MockClock) -> None:
    """Its end came with its beginning, and what was not inflated by then was forgotten."""
    packed = gzip.compress(b": \n\n" * 500_000 + FINE)

    async def pack(peer: Peer) -> None:
        await peer.request()
        head = HEAD.replace(b"transfer-encoding: chunked", b"content-length: %d" % len(packed))
        await peer.say(head + b"content-encoding: gzip\r\n\r\n" + packed)
        await peer.stay()

    async with open_raw_server(pack) as server, opened(server) as session:
        assert (await session.ask("Go on.")).text == "Fine."
        assert len(server.peers) == 1


@pytest.mark.parametrize("cut", [1, 60])
async def test_a_body_compressed_in_parts_is_one(autojump_clock: trio.testing.MockClock, cut: int) -> None:
    """RFC 1952 has members in a row; what stood behind the first was kept for ever, and read never."""
    packed = gzip.compress(FINE[:100]) + gzip.compress(FINE[100:])

    async def pack(peer: Peer) -> None:
        await peer.request()
        await peer.say(HEAD + b"content-encoding: gzip\r\n\r\n")
        for piece in (packed[at : at + cut] for at in range(0, len(packed), cut)):
            await peer.say(b"%x\r\n%b\r\n" % (len(piece), piece))
        await peer.say(b"0\r\n\r\n")
        await peer.stay()

    async with open_raw_server(pack) as server, opened(server) as session:
        assert (await session.ask("Go on.")).text == "Fine."


async def test_garbage_behind_a_compressed_end_is_not_kept() -> None:
    """It filled the memory, without a limit. On the real clock, as all that is large."""

    async def pack(peer: Peer) -> None:
        await peer.request()
        await peer.say(HEAD + b"content-encoding: gzip\r\n\r\n")
        for piece in (gzip.compress(b": alive\n\n"), *[b"garbage" * 1_000] * 100):
            await peer.say(b"%x\r\n%b\r\n" % (len(piece), piece))
        await peer.stay()

    result = await failed(pack)
    assert result.failure is not None
    assert result.failure.code == "invalid_response"
    assert "can't be decompressed" in result.failure.message


async def test_a_million_events_in_a_few_reads_leave_room_for_a_stop() -> None:
    """Each read is a point at which a stop gets through."""

    async def flood(peer: Peer) -> None:
        await peer.request()
        await peer.say(HEAD + b"\r\n")
        many = b"data: 1\n\n" * 100_000
        peer.there.set()
        while True:
            await peer.say(b"%x\r\n%b\r\n" % (len(many), many))

    async with open_raw_server(flood) as server:
        await stopped(server)


async def test_an_event_without_an_end_has_a_limit() -> None:
    """And is not tried again: it would be the same.

    On the real clock: what the kernel carries in bulk takes it moments in which no task runs, and a clock that jumps
    would take the server for silent.
    """

    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.say(HEAD + b"\r\n")
        many = b"x" * 1_000_000
        await peer.say(b"6\r\ndata: \r\n")
        while True:
            await peer.say(b"%x\r\n%b\r\n" % (len(many), many))

    result = await failed(endless)
    assert result.failure is not None
    assert result.failure.code == "invalid_response"
    assert "an event of more than 16,777,216 bytes" in result.failure.message


async def test_a_redirect_is_told_and_not_followed(autojump_clock: trio.testing.MockClock) -> None:
    """In a loop, too: one request is all that is sent."""

    async def redirect(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 307 Go\r\nlocation: https://elsewhere.example/v1?x=1\r\ncontent-length: 0\r\n\r\n")
        await peer.request()
        await peer.say(answer())

    async with open_raw_server(redirect) as server, opened(server) as session:
        result = await session.ask("Go on.")
        assert result.failure is not None
        assert (result.failure.code, result.failure.recoverable) == ("invalid_request", False)
        assert "redirects to elsewhere.example" in result.failure.message
        assert "base_url" in result.failure.message
        assert (await session.ask("And now?")).text == "Fine."
