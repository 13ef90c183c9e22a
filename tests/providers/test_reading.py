"""The reader that pauses where it would have to wait."""

from __future__ import annotations

import gzip
import types
from collections.abc import Generator
from typing import Any

import httpcore2
import httpx2
import pytest

from agentrio import Agent, Anthropic, open_runtime
from agentrio.providers._reading import BodyReader, PausingStream, _step
from agentrio.testing import Pace, TextReply, open_model_server


def test_what_is_thrown_at_a_reader_reaches_the_work_within() -> None:
    """As if there were nothing between the two: the work may answer it, or let it pass."""

    @types.coroutine
    def trap(name: str) -> Generator[Any, Any, Any]:
        return (yield name)

    async def work() -> bytes:
        try:
            answer: bytes = await trap("first")
        except KeyError:
            answer = await trap("second")
        return answer

    stepping = _step(work())
    assert stepping.send(None) == "first"
    assert stepping.throw(KeyError("thrown")) == "second"
    with pytest.raises(StopIteration) as returned:
        stepping.send(b"answer")
    assert returned.value.value == b"answer"
    stepping = _step(work())
    stepping.send(None)
    with pytest.raises(ValueError, match="not caught"):
        stepping.throw(ValueError("not caught"))


class Written(httpcore2.AsyncNetworkStream):
    """A connection that notes what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # its interface
        """Note it."""
        self.sent.append(buffer)


REQUEST = b"POST /v1 HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ([REQUEST + b"Content-Length: 5\r\n\r\n", b"hello"], [REQUEST + b"Content-Length: 5\r\n\r\nhello"]),
        ([REQUEST + b"content-length: 5\r\nX: y\r\n\r\n", b"hel", b"lo"], None),
        ([REQUEST + b"Content-Length: 0\r\n\r\n"], [REQUEST + b"Content-Length: 0\r\n\r\n"]),
        ([b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"]),
        ([b"\x16\x03\x01 hello of a handshake"], [b"\x16\x03\x01 hello of a handshake"]),
    ],
)
async def test_the_head_of_a_request_goes_out_with_its_body(written: list[bytes], sent: list[bytes] | None) -> None:
    """One system call and one packet instead of two; what has no body, and what is no request, goes out at once."""
    below = Written()
    stream = PausingStream(below)
    for buffer in written:
        await stream.write(buffer)
    assert below.sent == (sent or [written[0] + written[1], written[2]])


async def test_a_compressed_body_that_came_whole_is_read_to_its_end() -> None:
    """What one read brought is inflated in pieces: the last of them may hold what was used."""
    body = b"data: x\n\n" * 100_000
    headers = {"content-encoding": "gzip"}
    own = {"network_stream": PausingStream(Written())}
    stream = httpx2.ByteStream(gzip.compress(body))
    reader = BodyReader(httpx2.Response(200, headers=headers, stream=stream, extensions=own))
    found = bytearray()
    while not reader.ended:
        found += await reader.read() or b""
    assert found == body


@pytest.mark.parametrize(
    "pace",
    [
        Pace(),
        Pace(delay=0.01),
        Pace(chunks="bytes:7", delay=0.01),
        Pace(pieces=3, delay=0.01),
        Pace(drip=1, delay=0.001),
    ],
    ids=["at once", "by frames", "by bytes", "anyhow", "each byte alone"],
)
async def test_a_connection_whose_chunks_were_taken_off_answers_again(pace: Pace, autojump_clock: object) -> None:
    """Who owns the connection was told of the body's end, and not of its chunks."""
    words = "A word after a word is power. " * 5
    async with open_model_server([TextReply(words, pace=pace)] * 3) as server, open_runtime() as runtime:
        model = Anthropic("claude-sonnet-5", api_key="key", base_url=server.base_url)
        async with runtime.open_session(Agent(model=model)) as session:
            answers = [(await session.ask("Go on.")).text for _ in range(3)]
    assert answers == [words] * 3
    assert [exchange.connection for exchange in server.record] == [1, 1, 1]


@pytest.mark.parametrize("size", [1000, 100_000])
async def test_a_long_body_is_not_copied_to_go_out_with_its_head(size: int) -> None:
    """A short one saves a write by it; of a long one the copy takes longer."""
    below = Written()
    stream = PausingStream(below)
    head, body = REQUEST + b"Content-Length: %d\r\n\r\n" % size, b"x" * size
    await stream.write(head)
    await stream.write(body)
    assert below.sent == ([head + body] if size == 1000 else [head, body])
    assert below.sent[-1] is body or size == 1000
