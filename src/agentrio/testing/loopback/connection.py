"""One connection of the loopback server: a reader that never stops, beside the writer of replies.

The reader is how a disconnect is seen at once, also in the middle of a silence: it waits for bytes whatever the writer
does, and its end cancels the writer's scope.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import attrs
import h11
import msgspec
import trio
import trio.testing

from agentrio.testing.loopback.delivery import Response, respond
from agentrio.testing.loopback.desk import Desk
from agentrio.testing.loopback.http1 import RawRequest, RequestParser, head
from agentrio.testing.loopback.record import Exchange, Moment
from agentrio.testing.loopback.script import ErrorReply, Received, Reply
from agentrio.testing.loopback.wires import MESSAGES, WIRES, Wire, wire_of

__all__ = ["Connection"]

READ_SIZE = 65536  # bytes
CONTROL = "/__record"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds: close() sends a reset


@attrs.frozen
class _Arrival:
    raw: RawRequest
    received: Received
    exchange: Exchange


class Connection:
    """Serves one accepted stream until either side ends it. The caller closes the stream."""

    def __init__(self, desk: Desk, stream: trio.SocketStream) -> None:
        self._desk = desk
        self._stream = stream
        self._number = desk.next_connection()
        # One slot: an HTTP client sends its next request after our reply. One that does not is cut off.
        self._to_writer, self._arrivals = trio.open_memory_channel[_Arrival | RawRequest](1)
        self._exchanges: list[Exchange] = []
        self._scope = trio.CancelScope()
        self._gone: Moment | None = None
        self._dead = False

    async def run(self) -> None:
        """Serve. Returns when the client is gone, or a fault or the client's wish closes the connection."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                with self._scope:
                    await self._write()
                nursery.cancel_scope.cancel()
        finally:
            for exchange in self._exchanges:
                self._end(exchange, "client_closed" if self._gone else "server_closed")

    async def _read(self) -> None:
        parser = RequestParser()
        with self._to_writer as inbox:
            try:
                while data := await self._receive():
                    for raw in parser.feed(data):
                        inbox.send_nowait(self._arrival(raw))
            except (h11.RemoteProtocolError, trio.WouldBlock, trio.BrokenResourceError):
                self._scope.cancel()  # not HTTP/1.1, or pipelined, or too late: we hang up
                return
        self._client_gone()

    async def _receive(self) -> bytes:
        try:
            return bytes(await self._stream.receive_some(READ_SIZE))
        except trio.BrokenResourceError:
            return b""  # a reset is a disconnect too

    def _arrival(self, raw: RawRequest) -> _Arrival | RawRequest:
        if raw.target.startswith(CONTROL):
            return raw
        received, exchange = self._desk.arrived(raw, self._number)
        self._exchanges = [each for each in self._exchanges if each.ended is None] + [exchange]
        return _Arrival(raw, received, exchange)

    def _client_gone(self) -> None:
        if self._gone is None:
            self._gone = Moment.now()
            for exchange in self._exchanges:
                exchange.disconnected = self._gone
            self._scope.cancel()
            self._desk.changed()

    async def _write(self) -> None:
        try:
            with self._arrivals as arrivals:
                async for arrival in arrivals:
                    if not await self._serve(arrival):
                        return
        except trio.BrokenResourceError:
            self._client_gone()

    async def _serve(self, arrival: _Arrival | RawRequest) -> bool:
        if isinstance(arrival, RawRequest):
            await self._send_record(arrival)
            return not arrival.wants_close
        if self._dead:
            self._end(arrival.exchange, "dead")
            return False
        stays = await self._answer(arrival)
        return stays and not arrival.raw.wants_close

    async def _answer(self, arrival: _Arrival) -> bool:
        exchange = arrival.exchange
        wire, received = wire_of(arrival.received)
        reply = self._reply(received, wire)
        fault, pace = reply.fault, reply.pace
        if pace.before_headers:
            await trio.sleep(pace.before_headers)
        if fault.stall_before_headers:
            await trio.sleep_forever()
        if fault.cut_before_headers:
            return self._cut(exchange, reply)
        response = respond(reply, received, wire or MESSAGES)
        await self._send(exchange, response, pace.delay)
        if response.stalls:
            await trio.sleep_forever()
        if response.cuts:
            return self._cut(exchange, reply)
        self._end(exchange, "sent")
        self._dead = fault.dead_reused
        return not fault.close_after

    def _reply(self, received: Received, wire: Wire | None) -> Reply:
        if wire is None:
            return self._desk.reply_to(received) if self._desk.next_is_raw() else _no_such_path(received)
        return self._desk.refusal_of(received, wire) or self._desk.reply_to(received)

    async def _send(self, exchange: Exchange, response: Response, delay: float) -> None:
        await self._stream.send_all(head(response.status, response.headers))
        exchange.headers_sent = Moment.now()
        self._desk.changed()
        due = trio.current_time()
        for send in response.sends:
            await self._stream.send_all(send.data)
            exchange.bytes_sent += send.body_bytes
            exchange.frames_sent += send.frames
            if delay:
                due += delay  # a schedule, not a pause: the time that a send takes must not add up
                await trio.sleep_until(due)

    async def _send_record(self, request: RawRequest) -> None:
        """Answer ``GET /__record?request=3`` and the like: wait for what the query names, then send the record."""
        status, answer = 200, b""
        for condition, number in parse_qsl(urlsplit(request.target).query):
            if condition in WAITS and number.isdigit() and int(number) > 0:
                await self._desk.wait(int(number), WAITS[condition])
            else:
                status, answer = 400, f"a condition is one of {', '.join(WAITS)}, with a number from 1".encode()
        answer = answer or msgspec.json.encode([exchange.to_json() for exchange in self._desk.record])
        headers = [("content-type", "application/json"), ("content-length", str(len(answer)))]
        await self._stream.send_all(head(status, headers) + answer)

    def _cut(self, exchange: Exchange, reply: Reply) -> bool:
        if reply.fault.reset:
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._end(exchange, "cut")
        return False

    def _end(self, exchange: Exchange, how: str) -> None:
        if exchange.ended is None:
            exchange.ended = how
            exchange.ended_at = Moment.now()
            self._desk.changed()


WAITS: dict[str, Callable[[Exchange], bool]] = {
    "request": lambda _: True,
    "headers": lambda exchange: exchange.headers_sent is not None,
    "ended": lambda exchange: exchange.ended is not None,
    "disconnect": lambda exchange: exchange.disconnected is not None,
}


def _no_such_path(request: Received) -> Reply:
    return ErrorReply(404, message=f"no wire at {request.path}; there is {', '.join(WIRES)}")
