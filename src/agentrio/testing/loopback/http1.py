"""The server's half of HTTP/1.1 over bytes: h11 reads requests, answers are written as plain bytes. No I/O.

h11 costs about ten microseconds per chunk, so it is kept away from the answers: a stream of 20,000 deltas is mere
concatenation here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus

import attrs
import h11

__all__ = ["LAST_CHUNK", "RawRequest", "RequestParser", "chunk", "head"]

LAST_CHUNK = b"0\r\n\r\n"
MAX_HEAD = 64 * 1024  # bytes of request line and headers


@attrs.frozen
class RawRequest:
    """A request that was read whole. Header names are lower case; a repeated header's values are joined."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def wants_close(self) -> bool:
        """Whether the client asked for the connection to end after the answer."""
        return "close" in self.headers.get("connection", "").lower()


class RequestParser:
    """Reads the requests of one connection, wherever the bytes are cut."""

    def __init__(self) -> None:
        self._head: h11.Request | None = None
        self._start(b"")

    def feed(self, data: bytes) -> Iterator[RawRequest]:
        """Take bytes, which must not be empty, and yield each request that is whole now.

        Raises `h11.RemoteProtocolError` on what is not HTTP; the connection is of no more use then.
        """
        self._http.receive_data(data)
        while True:
            match self._http.next_event():
                case h11.Request() as request:
                    self._head = request
                case h11.Data(data=part):
                    self._body += part
                case h11.EndOfMessage():
                    yield self._whole()
                    self._start(self._http.trailing_data[0])
                case _:
                    return

    def _start(self, rest: bytes) -> None:
        # A state machine per request: it never hears of our answer, so it could not go on to the next.
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._head = None
        self._body = bytearray()
        if rest:
            self._http.receive_data(rest)

    def _whole(self) -> RawRequest:
        assert self._head is not None  # h11 gives the head before the end
        headers: dict[str, str] = {}
        for raw_name, raw_value in self._head.headers:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        method, target = self._head.method.decode("ascii"), self._head.target.decode("ascii")
        return RawRequest(method, target, headers, bytes(self._body))


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return a response's status line and headers."""
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Other"
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """Return the data as one chunk of a chunked body. Empty data would end the body, so it must not be empty."""
    return b"%x\r\n%b\r\n" % (len(data), data)
