"""Many small chunks of an HTTP/1.1 response put into few: bytes in, bytes out, the same response.

A model server sends each token as a chunk of its own, and h11 takes ten microseconds for one, more than a delta costs
everywhere else together. Standing between the socket and h11, this puts all chunks of one read into one.

Nothing is judged here: what is no chunked response, or is not well-formed, goes on to h11 as it is. But what stands
behind a response's end is noticed (``surplus``): h11 would keep it, and answer the connection's next request with it.
"""

from __future__ import annotations

import re
from typing import Literal

_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})(?:;[^\r\n]*)?\r\n")
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r\n", re.IGNORECASE)
_INFORMATIONAL = b"HTTP/1.1 1"  # 100 Continue and the like: another head follows
NO_SIZE = b"?\r\n"  # h11 refuses it, as it would have refused a chunk that does not end where it should
MAX_HELD = 64 * 1024  # bytes of a head, or of a chunk's size, that are waited for


class ChunkMerger:
    """One connection's incoming bytes. ``start()`` when a request is sent, then ``feed()`` what comes.

    ``surplus`` is set for good once the server has sent more than its response: such a connection answers nobody else.
    ``alone`` says that the bytes fed last were one whole chunk, and not the last one: there is no more in them.
    """

    def __init__(self) -> None:
        self._next: Literal["head", "size", "data", "end", "anything"] = "head"
        self._held = b""  # the beginning of a head, a size or an end of line
        self._missing = 0  # bytes of the current chunk's data
        self._left: int | None = None  # bytes of a body whose length is known
        self._trailers: bytes | None = None  # what has come of a chunked body's last line and trailers
        self.surplus: bool = False
        self.alone: bool = False

    def start(self) -> None:
        """What comes next is the head of a response."""
        if self._next == "anything":
            self._next = "head"
            self._left = self._trailers = None

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on; none where more have to come first. Nothing fed is the end: all that is held."""
        self.alone = self._next == "size" and not self._held and _is_one_chunk(data)
        if self.alone:
            return data
        if self._next == "anything" or not data:
            self._count(data)
            return self._let_go(data)
        data = self._held + data
        self._held = b""
        at = 0
        while self._next == "head":
            end = data.find(b"\r\n\r\n", at) + 4
            if end < 4:
                return data[:at] + self._hold(data[at:])
            self._next = self._behind(data[at:end])
            at = end
        if self._next == "anything":
            self._count(data[at:])
            return data
        return data[:at] + self._body(data, at)

    def _count(self, data: bytes) -> None:
        """Look whether the response ends in these bytes, and something stands behind it."""
        if self._left is not None:
            self._left -= len(data)
            self.surplus = self.surplus or self._left < 0
        elif self._trailers is not None:
            self._trailers += data
            end = self._trailers.find(b"\r\n\r\n") + 4
            if end >= 4:
                self.surplus = self.surplus or len(self._trailers) > end
                self._left, self._trailers = 0, None
            elif len(self._trailers) > MAX_HELD:
                self._trailers = None  # h11 has refused it by now

    def _behind(self, head: bytes) -> Literal["head", "size", "anything"]:
        if head.startswith(_INFORMATIONAL):
            return "head"
        if _CHUNKED.search(head):
            return "size"
        length = _LENGTH.search(head)
        self._left = None if length is None else int(length[1])
        return "anything"

    def _body(self, data: bytes, at: int) -> bytes:
        """The chunks from ``at`` on, as one, and behind it what is passed on as it is."""
        pieces: list[bytes] = []
        rest = b""
        while at < len(data):
            if self._next == "data":
                piece = data[at : at + self._missing]
                pieces.append(piece)
                at += len(piece)
                self._missing -= len(piece)
                self._next = "data" if self._missing else "end"
            elif self._next == "end" and data.startswith(b"\r\n", at):
                at += 2
                self._next = "size"
            elif self._next == "size" and (match := _SIZE.match(data, at)) and (size := int(match[1], 16)):
                at = match.end()
                self._missing = size
                self._next = "data"
            else:
                rest = self._last(data[at:])
                break
        if not pieces:
            return rest
        merged = b"".join(pieces)
        return b"%x\r\n%b\r\n%b" % (len(merged), merged, rest)

    def _last(self, rest: bytes) -> bytes:
        """What is no further chunk: the start of one, the body's end with its trailers, or nonsense."""
        if self._next == "end":
            return self._hold(rest) if rest == b"\r" else self._let_go(NO_SIZE + rest)
        if b"\n" not in rest:
            return self._hold(rest)
        self._trailers = b""
        self._count(rest)
        return self._let_go(rest)

    def _hold(self, rest: bytes) -> bytes:
        if len(rest) > MAX_HELD:
            return self._let_go(rest)
        self._held = rest
        return b""

    def _let_go(self, rest: bytes) -> bytes:
        held, self._held = self._held, b""
        self._next = "anything"
        return held + rest


def _is_one_chunk(data: bytes) -> bool:
    """What most reads bring of a model that writes word by word."""
    match = _SIZE.match(data)
    size = int(match[1], 16) if match else 0
    return match is not None and size > 0 and match.end() + size + 2 == len(data) and data[-2:] == b"\r\n"
