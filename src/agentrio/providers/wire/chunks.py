"""Many small chunks of an HTTP/1.1 response put into few: bytes in, bytes out, the same response.

A model server sends each token as a chunk of its own, and h11 takes ten microseconds for one, more than a delta costs
everywhere else together. Standing between the socket and h11, this puts all chunks of one read into one.

Nothing is judged here: what is no chunked response, or is not well-formed, goes on to h11 as it is. But what stands
behind a response's end is noticed (``surplus``): h11 would keep it, and answer the connection's next request with it.
Where a response ends in a way that h11 knows and this does not (a length that is told twice, or on a line of its own),
what stands behind could not be noticed, so it is taken for granted.
"""

from __future__ import annotations

import re
from typing import Literal

_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})(?:;[^\r\n]*)?\r\n")
_LAST = re.compile(rb"0+(?:;[^\r\n]*)?\r\n")
_BLANK = re.compile(rb"\n\r?\n")  # a line may end in LF alone
_CHUNKED = re.compile(rb"\r?\ntransfer-encoding:[ \t]*chunked[ \t]*\r?\n(?![ \t])", re.IGNORECASE)
_LENGTH = re.compile(rb"\r?\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r?\n(?![ \t])", re.IGNORECASE)
_INFORMATIONAL = b"HTTP/1.1 1"  # 100 Continue and the like: another head follows
_BODILESS = re.compile(rb"HTTP/[0-9.]+ (?:204|304)")
NO_SIZE = b"?\r\n"  # h11 refuses it, as it would have refused a chunk that does not end where it should
MAX_HELD = 64 * 1024  # bytes of a head, or of a chunk's size, that are waited for


class ChunkMerger:
    """One connection's incoming bytes. ``start()`` when a request is sent, then ``feed()`` what comes.

    ``surplus`` is set for good once the server has sent more than its response, or may have: such a connection answers
    nobody else.
    """

    def __init__(self) -> None:
        self._next: Literal["head", "size", "data", "end", "anything"] = "head"
        self._held = b""  # the beginning of a head, a size or an end of line
        self._missing = 0  # bytes of the current chunk's data
        self._left: int | None = None  # bytes of a body whose length is known
        self._trailers: bytes | None = None  # what has come of a chunked body's last line and trailers
        self.surplus: bool = False

    def start(self) -> None:
        """What comes next is the head of a response."""
        if self._next == "anything":
            self._next = "head"
            self._left = self._trailers = None

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on; none where more have to come first. Nothing fed is the end: all that is held."""
        if self._next == "anything" or not data:
            self._count(data)
            return self._let_go(data)
        data = self._held + data
        self._held = b""
        at = 0
        while self._next == "head":
            blank = _BLANK.search(data, at)
            if blank is None:
                return data[:at] + self._hold(data[at:])
            self._next = self._behind(data[at : blank.end()])
            at = blank.end()
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
            if blank := _BLANK.search(self._trailers):
                self.surplus = self.surplus or len(self._trailers) > blank.end()
                self._left, self._trailers = 0, None
            elif len(self._trailers) > MAX_HELD:
                self.surplus, self._trailers = True, None

    def _behind(self, head: bytes) -> Literal["head", "size", "anything"]:
        if head.startswith(_INFORMATIONAL):
            return "head"
        bodiless = _BODILESS.match(head)
        if not bodiless and _CHUNKED.search(head):
            return "size"
        length = None if bodiless else _LENGTH.search(head)
        if length is None:
            self.surplus = True
        else:
            self._left = int(length[1])
        return "anything"

    @property
    def in_chunks(self) -> bool:
        """Whether what comes next are chunks, as far as is known."""
        return self._next in ("size", "data", "end")

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Of bytes that come ``in_chunks``: what they carry, and what has to be passed on instead: the body's end, or
        what is no chunk. h11 is not told of the chunks that are taken: to it they are none.
        """
        if not data:
            return b"", self._let_go(data)
        held, self._held = self._held, b""
        return self._chunks(held + data, 0)

    def _body(self, data: bytes, at: int) -> bytes:
        """The chunks from ``at`` on, as one, and behind it what is passed on as it is."""
        merged, rest = self._chunks(data, at)
        return b"%x\r\n%b\r\n%b" % (len(merged), merged, rest) if merged else rest

    def _chunks(self, data: bytes, at: int) -> tuple[bytes, bytes]:
        """What the chunks from ``at`` on carry, and what is behind them."""
        pieces: list[bytes] = []
        rest = b""
        while at < len(data):
            if self._next == "size" and (match := _SIZE.match(data, at)) and (size := int(match[1], 16)):
                at = match.end()
                if data.startswith(b"\r\n", at + size):  # nearly every chunk is here as a whole
                    pieces.append(data[at : at + size])
                    at += size + 2
                    continue
                self._missing = size
                self._next = "data"
            elif self._next == "data":
                piece = data[at : at + self._missing]
                pieces.append(piece)
                at += len(piece)
                self._missing -= len(piece)
                self._next = "data" if self._missing else "end"
            elif self._next == "end" and data.startswith(b"\r\n", at):
                at += 2
                self._next = "size"
            else:
                rest = self._last(data[at:])
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), rest

    def _last(self, rest: bytes) -> bytes:
        """What is no further chunk: the start of one, the body's end with its trailers, or nonsense."""
        if self._next == "end":
            return self._hold(rest) if rest == b"\r" else self._let_go(NO_SIZE + rest)
        if b"\n" not in rest:
            return self._hold(rest)
        self._trailers = b""
        self._count(rest)
        self.surplus = self.surplus or not _LAST.match(rest)
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
