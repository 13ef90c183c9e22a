"""What the server saw and when. The values can cross a process border as JSON."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

import attrs
import msgspec
import trio

__all__ = ["Exchange", "Moment", "digest"]

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})


@attrs.frozen
class Moment:
    """A point in time, on two clocks.

    Attributes:
        clock: Seconds on the server's Trio clock (virtual under a mock clock).
        ns: ``time.perf_counter_ns()``. On Linux and macOS this clock is one for all processes of the machine.
    """

    clock: float
    ns: int

    @classmethod
    def now(cls) -> Moment:
        """Return this moment. Call it inside a Trio run."""
        return cls(trio.current_time(), time.perf_counter_ns())


@attrs.define(eq=False)
class Exchange:
    """One request and what became of it. Numbers count from 1.

    Attributes:
        number: Of the request, over all connections, in the order of arrival.
        connection: Of the connection that it came on.
        method: The request's method.
        path: Its path, with the query.
        headers: Its headers by lower-case name; the values of credentials are replaced by a `digest`.
        body: Its JSON body, or None.
        arrived: When the whole request had been read.
        headers_sent: When the response's headers had been handed to the kernel.
        ended_at: When it was over.
        disconnected: When the server saw that the client had closed the connection, be it after the reply.
        frames_sent: Frames of the stream whose last byte was handed to the kernel.
        bytes_sent: Bytes of the body that were handed to the kernel.
        ended: ``sent``, ``client_closed``, ``cut`` (by a fault), ``dead`` (arrived on a connection whose last reply
            had ``dead_reused``), ``server_closed``; None while it is open.
    """

    number: int
    connection: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: object
    arrived: Moment
    headers_sent: Moment | None = None
    ended_at: Moment | None = None
    disconnected: Moment | None = None
    frames_sent: int = 0
    bytes_sent: int = 0
    ended: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values, as ``GET /__record`` sends them."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Exchange:
        """Read what `to_json` wrote."""
        return msgspec.convert(data, cls)


def digest(secret: str) -> str:
    """Return what stands in a record for a credential: equal for equal values, and not the value."""
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()[:12]


def safe_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with the values of credentials digested."""
    return {name: digest(value) if name in SECRET_HEADERS else value for name, value in headers.items()}
