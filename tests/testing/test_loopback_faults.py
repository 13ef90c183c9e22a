"""Every fault of the loopback server, as a client meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anthropic
import httpx2
import pytest
import trio
import trio.testing

from agentrio.testing import ErrorReply, Exchange, Fault, ModelServer, Pace, RawReply, TextReply, open_model_server

OpenClient = Callable[[ModelServer], AbstractAsyncContextManager[httpx2.AsyncClient]]
STREAM = {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}


async def _read(client: httpx2.AsyncClient, into: bytearray, *, until: int | None = None) -> None:
    """Read the answer's body, up to its end or a number of bytes; then go away."""
    with trio.CancelScope() as scope:  # not break: httpcore2 leaves its inner generators to the collector then
        async with client.stream("POST", "/v1/messages", json=STREAM) as response:
            async for data in response.aiter_raw():
                into += data
                if until is not None and len(into) >= until:
                    scope.cancel()


async def test_a_stall_is_silent_until_the_client_goes_and_that_is_seen(open_client: OpenClient) -> None:
    """A stop must reach the server in mid-silence; here the server proves that it can see so."""
    body = bytearray()
    async with (
        open_model_server([TextReply("abc", fault=Fault(stall_after=3))]) as server,
        open_client(server) as client,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, client, body)
            exchange = await server.wait_headers(1)
            await trio.testing.wait_all_tasks_blocked()
            assert (exchange.frames_sent, exchange.ended) == (3, None)
            nursery.cancel_scope.cancel()
        exchange = await server.wait_disconnect(1)
        await server.wait_ended(1)

    assert body.count(b"event: ") == 3
    assert exchange.ended == "client_closed"


async def test_a_stall_of_zero_frames_is_silence_after_the_headers(open_client: OpenClient) -> None:
    """A server that accepts and then says nothing at all is a fault of its own."""
    body = bytearray()
    async with (
        open_model_server([TextReply("abc", fault=Fault(stall_after=0))]) as server,
        open_client(server) as client,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, client, body)
            await server.wait_headers(1)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await server.wait_disconnect(1)

    assert body == b""


async def test_a_stall_before_the_headers_sees_the_client_go(open_client: OpenClient) -> None:
    """Stopped before the headers, a client has no response object to close; the server must see it all the same."""
    replies = [TextReply("abc", fault=Fault(stall_before_headers=True))]
    async with open_model_server(replies) as server, open_client(server) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, client, bytearray())
            await server.wait_request(1)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        exchange = await server.wait_disconnect(1)

    assert exchange.headers_sent is None
    assert exchange.disconnected is not None
    assert exchange.arrived.ns < exchange.disconnected.ns


async def test_a_hang_up_before_the_headers(open_client: OpenClient) -> None:
    """Nothing was answered, so a client may send again."""
    replies = [TextReply("abc", fault=Fault(cut_before_headers=True))]
    async with open_model_server(replies) as server, open_client(server) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await _read(client, bytearray())
        exchange = server.record[0]

    assert (exchange.ended, exchange.headers_sent) == ("cut", None)


@pytest.mark.parametrize("pace", [Pace(), Pace(pieces=3), Pace(coalesce=8)], ids=["frames", "pieces", "coalesced"])
@pytest.mark.parametrize("byte", [0, 1, 200, 537])
async def test_a_cut_comes_at_its_very_byte(byte: int, pace: Pace, open_client: OpenClient) -> None:
    """Cut off at every border and between them: the client gets so much and no more, and then an error."""
    body = bytearray()
    reply = TextReply("a long enough text " * 9, fault=Fault(cut_at_byte=byte), pace=pace)
    async with open_model_server([reply]) as server, open_client(server) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await _read(client, body)
        exchange = server.record[0]

    assert len(body) == exchange.bytes_sent == byte
    assert exchange.ended == "cut"


async def test_a_cut_in_an_answer_with_a_length(open_client: OpenClient) -> None:
    """An answer that is no stream can break off as well."""
    reply = RawReply(b'{"a": "long"}', content_type="application/json", fault=Fault(cut_at_byte=4))
    async with open_model_server([reply]) as server, open_client(server) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await _read(client, bytearray())


async def test_a_cut_can_be_a_reset(open_client: OpenClient) -> None:
    """The kernel's reset is another exception of the client than an end without an end."""
    reply = TextReply("abc", fault=Fault(cut_at_byte=50, reset=True))
    async with open_model_server([reply]) as server, open_client(server) as client:
        with pytest.raises(httpx2.ReadError):
            await _read(client, bytearray())


async def test_an_error_frame_within_a_good_stream_is_typed_by_the_sdk() -> None:
    """The status was 200 long ago; the type in the frame is all that a retry can go by."""
    fault = Fault(error_frame_after=4, error_type="overloaded_error", error_message="Overloaded")
    async with open_model_server([TextReply("abcdef", fault=fault)]) as server:
        client = anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)
        seen = []
        async with client:
            with pytest.raises(anthropic.APIStatusError, match="Overloaded") as caught:
                async for event in await client.messages.create(**STREAM):  # type: ignore[call-overload]  # a plain dict
                    seen.append(event.type)

    assert seen == ["message_start", "content_block_start", "content_block_delta"]
    assert caught.value.status_code == 200


async def test_an_endless_stream_ends_with_its_client(open_client: OpenClient) -> None:
    """A client that only counts on the end would read for ever."""
    body = bytearray()
    reply = TextReply("round and round ", fault=Fault(endless=True), pace=Pace(coalesce=16))
    async with open_model_server([reply]) as server, open_client(server) as client:
        await _read(client, body, until=100_000)
        exchange = await server.wait_ended(1)

    assert len(body) >= 100_000
    assert exchange.ended == "client_closed"


async def test_a_slow_drip_takes_its_time(autojump_clock: trio.testing.MockClock, open_client: OpenClient) -> None:
    """Bytes that keep coming are no silence, however few they are."""
    reply = TextReply("abc", pace=Pace(drip=10, delay=5))
    body = bytearray()
    async with open_model_server([reply]) as server, open_client(server) as client:
        await _read(client, body)

    assert trio.current_time() >= 5 * (len(body) // 10)


async def test_a_kept_connection_found_dead(open_client: OpenClient) -> None:
    """It looked alive when the request was sent: the fault that only the next request finds."""
    replies = [TextReply("one", fault=Fault(dead_reused=True)), TextReply("two")]
    async with open_model_server(replies) as server, open_client(server) as client:
        await _read(client, bytearray())
        with pytest.raises(httpx2.RemoteProtocolError, match="without sending a response"):
            await _read(client, bytearray())
        answer = bytearray()
        await _read(client, answer)
        await server.wait_ended(3)
        ends = [(exchange.connection, exchange.ended) for exchange in server.record]

    assert b'"two"' in answer, "the dead request must not have taken a reply"
    assert ends == [(1, "sent"), (1, "dead"), (2, "sent")]


async def test_a_connection_closed_right_after_the_reply(open_client: OpenClient) -> None:
    """Unannounced, but visible to who looks: a client must open another one."""
    replies = [TextReply("one", fault=Fault(close_after=True)), TextReply("two")]
    async with open_model_server(replies) as server, open_client(server) as client:
        await _read(client, bytearray())
        await trio.testing.wait_all_tasks_blocked()
        await _read(client, bytearray())
        connections = [exchange.connection for exchange in server.record]

    assert connections == [1, 2]


async def test_an_error_reply_can_hang_too(open_client: OpenClient) -> None:
    """Faults belong to any reply: a 503 whose body never comes is a fault that proxies have."""
    reply = ErrorReply(503, fault=Fault(stall_after=0))
    async with open_model_server([reply]) as server, open_client(server) as client:
        async with client.stream("POST", "/v1/messages", json=STREAM) as response:
            assert response.status_code == 503
            assert int(response.headers["content-length"]) > 0
        exchange = await server.wait_disconnect(1)

    assert exchange.bytes_sent == 0


async def test_a_disconnect_is_seen_while_the_server_is_blocked_in_a_send(open_client: OpenClient) -> None:
    """With full buffers the writer waits in the kernel; the reader beside it still hears the client go."""
    reply = TextReply("x" * 1000, fault=Fault(endless=True), pace=Pace(coalesce=64))
    async with open_model_server([reply]) as server, open_client(server) as client:
        async with client.stream("POST", "/v1/messages", json=STREAM):
            exchange = await server.wait_headers(1)
            await _until_blocked(exchange)
        await server.wait_disconnect(1)

    assert exchange.ended == "client_closed"


async def _until_blocked(exchange: Exchange) -> None:
    sent = -1
    while exchange.bytes_sent > sent:
        sent = exchange.bytes_sent
        await trio.testing.wait_all_tasks_blocked()


async def test_who_does_not_speak_http_is_hung_up_on() -> None:
    """The server serves tests, and a test should not hang on a broken client."""
    async with open_model_server([]) as server:
        port = int(server.base_url.rpartition(":")[2])
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(b"\x16\x03\x01 not http\r\n\r\n")
            assert await stream.receive_some() == b""
        assert server.record == []


async def test_faults_and_their_numbers_survive_json() -> None:
    """A fault in a script file is the same fault."""
    from agentrio.testing import Script, script_from_json, script_to_json

    fault = Fault(stall_after=2, cut_at_byte=9, error_frame_after=1, endless=True, dead_reused=True, reset=True)
    script = Script([TextReply("x", fault=fault, pace=Pace(drip=3, delay=0.5))])
    again = script_from_json(script_to_json(script)).replies[0]

    assert (again.fault, again.pace) == (fault, Pace(drip=3, delay=0.5))
    assert json.loads(script_to_json(script))["replies"][0]["fault"]["stall_after"] == 2
