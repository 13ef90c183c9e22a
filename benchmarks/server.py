"""The model server of the benchmarks: a process of its own, cheap enough never to be what is measured.

What it sends is named by the path before ``/v1/messages``, ``/v1/chat/completions`` or ``/v1/responses``; ``GET /gone``
answers with the disconnects it saw in the middle of a response (and forgets them): nanoseconds on CLOCK_MONOTONIC, and
bytes sent by then.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec
import trio

from . import chat_wire, responses_wire, wire

PIECE = 32 * 1024  # bytes handed to the kernel at once, so that what was sent can be counted
Words: TypeAlias = list[str]


class Wire(Protocol):
    """What the frames of a wire are made with: a module of ours."""

    RESULT: bytes

    def opening(self) -> bytes:
        """The frames before a text."""

    def text_delta(self, text: str, /) -> bytes:
        """More of a text."""

    def closing(self, text: str, /) -> bytes:
        """The frames after it."""

    def text(self, deltas: int, size: int, /) -> bytes:
        """A whole response."""

    def calls(self, names: Sequence[str], first: int, /) -> bytes:
        """A whole response that calls tools."""


WIRES: dict[str, Wire] = {"messages": wire, "completions": chat_wire, "responses": responses_wire}


class Connection:
    """Answers the requests of one client, one after the other."""

    def __init__(self, stream: trio.SocketStream, gone: list[tuple[int, int]]) -> None:
        self._stream = stream
        self._gone = gone
        self._buffer = b""
        self._sent = 0
        self.wire: Wire = wire

    async def run(self) -> None:
        """Serve until the client hangs up."""
        async with self._stream:
            try:
                while await self._serve():
                    pass
            except trio.BrokenResourceError:
                self._note()

    async def _serve(self) -> bool:
        request = await self._read()
        if request is None:
            return False
        path, body = request
        self._sent = 0
        words = path.partition("?")[0].strip("/").split("/")
        if words[0] == "gone":
            answer = msgspec.json.encode(self._gone)
            self._gone.clear()
            await self._stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(answer), answer))
            return True
        self.wire = WIRES[words[-1]]
        return await ANSWERS[words[0]](self, words[1 : words.index("v1")], body)

    async def _read(self) -> tuple[str, bytes] | None:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if not await self._more():
                return None
        head = self._buffer[:end]
        start = head.lower().find(b"content-length:")
        length = 0 if start < 0 else int(head[start + 15 :].split(b"\r\n", 1)[0])
        parts = [self._buffer[end + 4 :]]
        missing = length - len(parts[0])
        while missing > 0:
            parts.append(await self._stream.receive_some(1 << 20))
            missing -= len(parts[-1])
        body = b"".join(parts)
        self._buffer = body[length:]
        return head.split(b" ", 2)[1].decode(), body[:length]

    async def _more(self) -> bool:
        data = await self._stream.receive_some(1 << 16)
        self._buffer += data
        return bool(data)

    async def send(self, data: bytes) -> None:
        """Send, and count what was sent."""
        for at in range(0, len(data), PIECE):
            await self._stream.send_all(data[at : at + PIECE])
            self._sent += len(data[at : at + PIECE])

    async def watched(self, send: Callable[[], Awaitable[None]]) -> bool:
        """Send while watching for the client to hang up; whether it did not."""
        stays = True

        def gone() -> None:
            nonlocal stays
            if stays:
                stays = False
                self._note()
            nursery.cancel_scope.cancel()

        async def watch() -> None:
            try:
                if not await self._more():
                    gone()
            except trio.BrokenResourceError:
                gone()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            try:
                await send()
            except trio.BrokenResourceError:
                gone()
            nursery.cancel_scope.cancel()
        return stays

    def _note(self) -> None:
        self._gone.append((time.monotonic_ns(), self._sent))


async def text(connection: Connection, words: Words, body: bytes) -> bool:
    """``text/DELTAS/SIZE``: a whole response at once."""
    await connection.send(connection.wire.text(int(words[0]), int(words[1])))
    return True


async def paced(connection: Connection, words: Words, body: bytes) -> bool:
    """``paced/DELTAS/MICROSECONDS``: one delta at a time; each says when it was sent."""
    deltas, delay = int(words[0]), int(words[1]) / 1e6
    said: list[str] = []

    async def send() -> None:
        await connection.send(wire.HEAD + connection.wire.opening())
        due = trio.current_time()
        for _ in range(deltas):
            due += delay
            await trio.sleep_until(due)
            said.append(f"{time.monotonic_ns():016x}")
            await connection.send(connection.wire.text_delta(said[-1]))
        await connection.send(connection.wire.closing("".join(said)))

    return await connection.watched(send)


async def tools(connection: Connection, words: Words, body: bytes) -> bool:
    """``tools/ROUNDS``: one call a round since the last "Hello", then a text."""
    spoken = connection.wire
    done = body.count(spoken.RESULT, body.rfind(b'"Hello"'))
    again = done < int(words[0])
    first = body.count(spoken.RESULT) if again else 0
    await connection.send(spoken.calls(("echo",), first) if again else spoken.text(1, 8))
    return True


async def calls(connection: Connection, words: Words, body: bytes) -> bool:
    """``calls/COUNT``: that many calls of two tools in turn; then whether the results came in order."""
    count, found = int(words[0]), wire.results(body)
    if not found:
        await connection.send(wire.calls(("slow", "slower") * (count // 2), 0))
    else:
        await connection.send(wire.say("in order" if found == list(range(count)) else "out of order"))
    return True


async def stop(connection: Connection, words: Words, body: bytes) -> bool:
    """``stop/WHERE``: what is to be stopped; and, asked ``again``, whether the history is valid after that."""
    if b'"again"' in body:
        await connection.send(wire.say(wire.fault(body) or "valid"))
        return True
    if words[0] == "tool":
        await connection.send(wire.calls(("work",), 0))
        return True

    async def send() -> None:
        if words[0] != "before-headers":
            await connection.send(wire.HEAD + wire.opening() + wire.text_delta("partial "))
        while words[0] == "stream":
            await trio.sleep(0.001)
            await connection.send(wire.text_delta("more "))
        await trio.sleep_forever()

    return await connection.watched(send)


ANSWERS: dict[str, Callable[[Connection, Words, bytes], Awaitable[bool]]] = {
    "text": text,
    "paced": paced,
    "tools": tools,
    "calls": calls,
    "stop": stop,
}


async def serve() -> None:
    """Listen on a free port, print it, serve until stdin ends."""
    gone: list[tuple[int, int]] = []
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=2048)
    print(listeners[0].socket.getsockname()[1], flush=True)

    async def handle(stream: trio.SocketStream) -> None:
        await Connection(stream, gone).run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handle, listeners)
        while await trio.to_thread.run_sync(os.read, 0, 4096):
            pass
        nursery.cancel_scope.cancel()


def main() -> None:
    """``python -m benchmarks.server [CORE]``."""
    from .measure import pin

    pin(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    trio.run(serve)


if __name__ == "__main__":
    main()
