"""What all connections of one server share: the script, the record, and those who wait for the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import trio
import trio.testing

from agentrio.testing.loopback.http1 import RawRequest
from agentrio.testing.loopback.record import Exchange, Moment, safe_headers
from agentrio.testing.loopback.script import Answer, ErrorReply, RawReply, Received, Reply, Script
from agentrio.testing.loopback.wires import Wire, refusal
from agentrio.testing.validators import Demands

__all__ = ["Desk", "ScriptLike"]

ScriptLike = Script | Sequence[Reply] | Answer


class Desk:
    """Hands out replies in the order of the requests, and keeps the record.

    With ``demands``, a request that breaks them is refused, and takes no reply.
    """

    def __init__(self, script: ScriptLike, demands: Demands | None = None) -> None:
        self._script: Script | Answer = script if isinstance(script, Script) or callable(script) else Script(script)
        self._demands = demands
        self._taken = 0
        self._connections = 0
        self._waiters = trio.lowlevel.ParkingLot()
        self.record: list[Exchange] = []

    def next_connection(self) -> int:
        """Return the number of a connection that was just accepted."""
        self._connections += 1
        return self._connections

    def arrived(self, request: RawRequest, connection: int) -> tuple[Received, Exchange]:
        """Write a request into the record."""
        number = len(self.record) + 1
        body = _as_json(request.body)
        headers = request.headers
        received = Received(number, connection, request.method, request.target, headers, body)
        safe = safe_headers(headers)
        exchange = Exchange(number, connection, request.method, request.target, safe, body, Moment.now())
        self.record.append(exchange)
        self.changed()
        return received, exchange

    def refusal_of(self, request: Received, wire: Wire) -> Reply | None:
        """Return what a provider would answer to a request that it does not take; None where it does."""
        return None if self._demands is None else refusal(wire, request, self._demands)

    def reply_to(self, request: Received) -> Reply:
        """Return the next reply; after the last one, an error 500 that names the counts.

        A script's function may raise: that ends the server, and so the block that opened it.
        """
        if not isinstance(self._script, Script):
            return self._script(request)
        replies = self._script.replies
        taken, self._taken = self._taken, self._taken + 1
        if taken < len(replies) or (replies and self._script.repeat):
            return replies[taken % len(replies)]
        message = f"the script has {len(replies)} replies, and this is request {taken + 1}"
        return ErrorReply(500, message=message, headers={"x-should-retry": "false"})

    def next_is_raw(self) -> bool:
        """Whether the script's next reply is a body as it is: it needs no wire, so its path may be any."""
        replies = self._script.replies if isinstance(self._script, Script) else ()
        return bool(replies) and isinstance(replies[self._taken % len(replies)], RawReply)

    def changed(self) -> None:
        """Wake those who wait for the record. Called after each change that `wait` may look for."""
        self._waiters.unpark_all()

    async def wait(self, number: int, ready: Callable[[Exchange], bool]) -> Exchange:
        """Wait until there is an exchange of that number and it is ready."""
        await trio.lowlevel.checkpoint()
        while len(self.record) < number or not ready(self.record[number - 1]):
            await self._waiters.park()
        return self.record[number - 1]


def _as_json(body: bytes) -> object:
    try:
        return msgspec.json.decode(body) if body else None
    except msgspec.DecodeError:
        return None
