"""The loopback server as its users see it: replies, scripts, the record, the block."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anthropic
import httpx2
import pytest
import trio
import trio.testing
from anthropic.types import MessageParam

from agentrio.testing import (
    Call,
    CallsReply,
    ErrorReply,
    HoldingClock,
    LoopbackCrashed,
    ModelServer,
    Pace,
    RawReply,
    Received,
    Reply,
    Script,
    TextReply,
    WireUsage,
    digest,
    no_leaks,
    open_model_server,
)

OpenClient = Callable[[ModelServer], AbstractAsyncContextManager[httpx2.AsyncClient]]
STREAM = {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
WHOLE = STREAM | {"stream": False}


def _events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]


async def test_the_official_sdk_reads_every_kind_of_block() -> None:
    """The wire is right if a client that we did not write gets out of it what the script put in."""
    reply = CallsReply(
        [Call("forecast", {"city": "Tromsø", "days": 3}, id="toolu_a"), Call("now")],
        text="I shall look.",
        thinking="Weather, then.",
        signature="c2ln",
        usage=WireUsage(input=7, output=11, cache_read=13, cache_write=17),
    )
    async with open_model_server([reply]) as server:
        client = anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)
        question: list[MessageParam] = [{"role": "user", "content": "Hi"}]
        async with client, client.messages.stream(model="m", max_tokens=9, messages=question) as stream:
            message = await stream.get_final_message()

    thinking, text, first, second = (block.to_dict() for block in message.content)
    assert (thinking["thinking"], thinking["signature"]) == ("Weather, then.", "c2ln")
    assert text["text"] == "I shall look."
    assert (first["id"], first["name"], first["input"]) == ("toolu_a", "forecast", {"city": "Tromsø", "days": 3})
    assert (second["name"], second["input"]) == ("now", {})
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (7, 11)
    assert (message.usage.cache_read_input_tokens, message.usage.cache_creation_input_tokens) == (13, 17)


async def test_the_official_sdk_reads_an_answer_that_is_no_stream() -> None:
    """The same reply serves both: what differs is what the client asked for."""
    reply = CallsReply([Call("forecast", {"city": "Oslo"})], text="So.", thinking="Hm.")
    async with open_model_server([reply]) as server:
        client = anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)
        async with client:
            message = await client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
            )

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].to_dict()["input"] == {"city": "Oslo"}


async def test_a_typed_error_of_the_sdk_comes_from_an_error_reply() -> None:
    """Retries look at status, type and Retry-After, so all three must arrive."""
    replies = [ErrorReply(429, message="slow down", headers={"retry-after": "3"}), ErrorReply(529)]
    async with open_model_server(replies) as server:
        client = anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)
        async with client:
            with pytest.raises(anthropic.RateLimitError, match="slow down") as limited:
                await client.messages.create(**STREAM)  # type: ignore[call-overload]  # a plain dict
            with pytest.raises(anthropic.APIStatusError, match="overloaded_error") as overloaded:
                await client.messages.create(**STREAM)  # type: ignore[call-overload]  # a plain dict

    assert limited.value.response.headers["retry-after"] == "3"
    assert overloaded.value.status_code == 529


async def test_replies_come_in_order_on_one_kept_connection(model_server: Any, open_client: OpenClient) -> None:
    """A script is read as a scene: first this, then that."""
    async with model_server([TextReply("one"), TextReply("two")]) as server, open_client(server) as client:
        answers = [(await client.post("/v1/messages", json=WHOLE)).json() for _ in range(2)]

        assert [answer["content"][0]["text"] for answer in answers] == ["one", "two"]
        assert [exchange.connection for exchange in server.record] == [1, 1]


async def test_a_request_beyond_the_script_is_told_so(open_client: OpenClient) -> None:
    """A loop that asks once too often must fail where it does, with the count."""
    async with open_model_server([TextReply("only")]) as server, open_client(server) as client:
        await client.post("/v1/messages", json=WHOLE)
        answer = await client.post("/v1/messages", json=WHOLE)

    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "the script has 1 replies, and this is request 2"


async def test_a_repeated_script_begins_again(open_client: OpenClient) -> None:
    """A benchmark asks thousands of times."""
    script = Script([TextReply("a"), TextReply("b")], repeat=True)
    async with open_model_server(script) as server, open_client(server) as client:
        texts = [(await client.post("/v1/messages", json=WHOLE)).json()["content"][0]["text"] for _ in range(5)]

    assert texts == ["a", "b", "a", "b", "a"]


async def test_a_function_answers_by_what_was_asked(open_client: OpenClient) -> None:
    """Concurrent sessions ask in no fixed order; each must get its own answer."""

    def answer(request: Received) -> Reply:
        assert isinstance(request.body, dict)
        return TextReply(f"{request.number}: {request.body['messages'][0]['content']} on {request.model}")

    async with open_model_server(answer) as server, open_client(server) as client:
        body = (await client.post("/v1/messages?beta=true", json=WHOLE)).json()

    assert body["content"][0]["text"] == "1: Hi on m"


async def test_an_unknown_path_takes_no_reply_from_the_script(open_client: OpenClient) -> None:
    """A client with a wrong base URL gets an answer that names the path."""
    async with open_model_server([TextReply("kept")]) as server, open_client(server) as client:
        wrong = await client.post("/v2/messages", json=WHOLE)
        right = await client.post("/v1/messages", json=WHOLE)

    assert wrong.status_code == 404
    assert "/v2/messages" in wrong.json()["error"]["message"]
    assert right.status_code == 200


async def test_the_record_has_what_came_and_when_but_no_credential(open_client: OpenClient) -> None:
    """Tests print the record when they fail, so it must be safe to show."""
    async with open_model_server([TextReply("Hello", pace=Pace())]) as server, open_client(server) as client:
        headers = {"x-api-key": "secret", "authorization": "Bearer secret", "x-plain": "seen"}
        body = (await client.post("/v1/messages", json=STREAM, headers=headers)).content
        exchange = await server.wait_ended(1)

    assert (exchange.number, exchange.method, exchange.path) == (1, "POST", "/v1/messages")
    assert exchange.body == STREAM
    assert exchange.headers["x-plain"] == "seen"
    assert exchange.headers["x-api-key"] == digest("secret")
    assert "secret" not in str(exchange)
    assert exchange.ended == "sent"
    assert exchange.frames_sent == len(_events(body))
    assert exchange.bytes_sent == len(body)
    assert exchange.headers_sent is not None
    assert exchange.ended_at is not None
    assert exchange.arrived.ns <= exchange.headers_sent.ns <= exchange.ended_at.ns


async def test_the_record_is_at_an_address_too_and_that_is_no_request(open_client: OpenClient) -> None:
    """It serves who looks from another process; asking for it must not change it."""
    async with open_model_server([TextReply("Hello")]) as server, open_client(server) as client:
        await client.post("/v1/messages", json=STREAM)
        told = (await client.get("/__record?ended=1&headers=1")).json()
        refused = [await client.get(f"/__record?{query}") for query in ("ended=x", "disconnect=0", "never=1")]

        assert [(each["number"], each["ended"], each["body"]) for each in told] == [(1, "sent", STREAM)]
        assert [answer.status_code for answer in refused] == [400, 400, 400]
        assert len(server.record) == 1


async def test_a_body_that_is_no_json_is_recorded_as_none(open_client: OpenClient) -> None:
    """A client's broken body is for the test to find, not for the server to fail on."""
    async with open_model_server([TextReply("Hello")], validate=False) as server, open_client(server) as client:
        answer = await client.post("/v1/messages", content=b"{not json")

    assert server.record[0].body is None
    assert answer.json()["model"] == "loopback"


async def test_each_frame_is_a_chunk_of_its_own_also_when_sends_are_coalesced(open_client: OpenClient) -> None:
    """Load is made with few sends, and what the client parses must not change by it."""
    deltas = [f"{n} " for n in range(1000)]
    counts = []
    replies = [
        TextReply(deltas),
        TextReply(deltas, pace=Pace(coalesce=64)),
        TextReply(deltas, pace=Pace(chunks="bytes:7")),
    ]
    async with open_model_server(replies) as server:
        for _ in replies:
            raw = await _raw_answer(server)
            frames = [data for data in _chunks(raw) if data]
            counts.append(sum(frame.endswith(b"\n\n") and frame.startswith(b"event: ") for frame in frames))
            assert "".join(
                e["delta"]["text"] for e in _events(b"".join(frames)) if "index" in e and "delta" in e
            ) == "".join(deltas)
            assert raw.endswith(b"0\r\n\r\n")

    assert counts == [1006, 1006, 0]


async def _raw_answer(server: ModelServer) -> bytes:
    body = json.dumps(STREAM).encode()
    port = int(server.base_url.rpartition(":")[2])
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(
            b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        answer = b"".join([data async for data in stream])
    return answer.partition(b"\r\n\r\n")[2]


def _chunks(raw: bytes) -> list[bytes]:
    chunks = []
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        raw = rest[int(size, 16) + 2 :]
    return chunks


async def test_paced_deltas_come_by_the_clock(holding_clock: HoldingClock, open_client: OpenClient) -> None:
    """One delta per millisecond is the realistic load; a delay is a schedule, and does not drift."""
    reply = TextReply(["a"] * 100, pace=Pace(delay=0.001, before_headers=2))
    async with open_model_server([reply]) as server, open_client(server) as client:
        await client.post("/v1/messages", json=STREAM)
        exchange = await server.wait_ended(1)

    assert exchange.headers_sent is not None
    assert exchange.ended_at is not None
    assert exchange.headers_sent.clock - exchange.arrived.clock == pytest.approx(2)
    assert exchange.ended_at.clock - exchange.headers_sent.clock == pytest.approx(0.107, abs=0.0011)


async def test_pieces_and_drips_change_no_byte(open_client: OpenClient) -> None:
    """Where the bytes are cut must not matter to a client, so the same bytes must come."""
    text = "æøå 🌦 日本 " * 20
    ways = [Pace(), Pace(pieces=1), Pace(pieces=2), Pace(drip=1), Pace(chunks="bytes:5", coalesce=3)]
    async with (
        open_model_server([TextReply(text, pace=pace) for pace in ways]) as server,
        open_client(server) as client,
    ):
        bodies = [(await client.post("/v1/messages", json=STREAM)).content for _ in ways]
        frames = [(await server.wait_ended(number)).frames_sent for number in range(1, len(ways) + 1)]

    texts = ["".join(e["delta"].get("text", "") for e in _events(body) if "delta" in e) for body in bodies]
    assert set(texts) == {text}
    assert len({body.replace(b"msg_00000%d" % n, b"") for n, body in enumerate(bodies, 1)}) == 1
    assert len(set(frames)) == 1


async def test_a_raw_reply_is_sent_byte_for_byte(open_client: OpenClient) -> None:
    """Recordings hold oddities on purpose; the server must not tidy them up."""
    body = b"\xef\xbb\xbfdata:x\r\n\r\ndata: y\n\n\xf0\x9f"
    replies = [RawReply(body), RawReply(b"{}", status=418, headers={"x-odd": "1"}, content_type="application/json")]
    async with open_model_server(replies) as server, open_client(server) as client:
        stream = await client.post("/v1/messages", json=STREAM)
        answer = await client.post("/v1/messages", json=STREAM)

    assert stream.content == body
    assert server.record[0].frames_sent == 3
    assert (answer.status_code, answer.headers["x-odd"], answer.content) == (418, "1", b"{}")


async def test_a_server_and_its_connections_leave_nothing_behind(open_client: OpenClient) -> None:
    """The leak check of a test must not find the test's own tools."""
    async with no_leaks(), open_model_server([TextReply("x")]) as server, open_client(server) as client:
        await client.post("/v1/messages", json=STREAM)


async def test_the_bodys_own_exception_passes_unwrapped() -> None:
    """The server hides a nursery, and nobody should see it."""
    with pytest.raises(KeyError, match="mine"):
        async with open_model_server([]):
            raise KeyError("mine")


async def test_cancelling_the_block_is_no_error() -> None:
    """A caller's timeout round the block works as round anything."""
    with trio.CancelScope() as scope:
        async with open_model_server([]):
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught


def _fails(request: Received) -> Reply:
    assert request.body == "never so"
    return TextReply("x")


async def test_a_failing_script_function_ends_the_block(open_client: OpenClient) -> None:
    """An assertion in a script's function is the test's assertion: a client must not be able to retry it away."""
    with pytest.raises(LoopbackCrashed, match="AssertionError"):
        async with open_model_server(_fails) as server, open_client(server) as client:
            await client.post("/v1/messages", json=STREAM)


async def test_a_failing_body_and_a_failing_script_are_both_told(open_client: OpenClient) -> None:
    """Neither may hide the other."""
    with pytest.RaisesGroup(KeyError, LoopbackCrashed):
        async with open_model_server(_fails) as server:
            try:
                async with open_client(server) as client:
                    await client.post("/v1/messages", json=STREAM)
            finally:
                raise KeyError("mine")
