"""Server-sent events: bytes in, events out, however the bytes are cut.

The rules are WHATWG HTML §9.2.6 "Interpreting an event stream": LF, CR and CRLF end lines, one leading byte order mark
goes, ``:`` lines are comments, ``data`` lines are joined by LF. One deviation: an event that the end of the stream
leaves without its blank line is given out by ``close()`` where WHATWG drops it, because servers do end that way.
"""

from __future__ import annotations

from typing import TypeAlias

from agentrio.providers.base import ProviderError

Event: TypeAlias = tuple[bytes, bytes]
"""The event's name, perhaps empty, and its data."""

MAX_EVENT = 16 * 1024 * 1024  # bytes; the largest block a server sends in one event (a fetched PDF) stays below
BOM = b"\xef\xbb\xbf"


class SSEDecoder:
    """An incremental decoder.

    A whole read is split at once, and the shapes that servers really send (``event: x`` LF ``data: y``, or the latter
    alone) are taken apart without looking at their lines. What is not complete waits in pieces, so a long event costs
    its length once.
    """

    __slots__ = ("_after_cr", "_limit", "_pieces", "_size", "_start")

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._limit = max_event
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._start: bytes | None = b""  # what may yet become a byte order mark; None once that is settled

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete.

        Raises:
            ProviderError: one event is larger than the limit (``invalid_response``).
        """
        if self._start is not None:
            chunk = self._skip_bom(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_lf(chunk)
        pieces = self._pieces
        if b"\n\n" not in chunk and not (pieces and chunk[:1] == b"\n" and pieces[-1][-1:] == b"\n"):
            if chunk:
                self._keep(chunk)
            return []
        if pieces:
            pieces.append(chunk)
            chunk = b"".join(pieces)
            pieces.clear()
            self._size = 0
        frames = chunk.split(b"\n\n")
        if rest := frames.pop():
            self._keep(rest)
        if len(chunk) > self._limit and max(map(len, frames)) > self._limit:
            raise self._too_large()
        return _events(frames)

    def close(self) -> list[Event]:
        """The event that the end of the stream left open, if any."""
        rest = (self._start or b"") + b"".join(self._pieces)
        self._start = None
        self._pieces.clear()
        self._size = 0
        return _events([rest.removesuffix(b"\n")])

    def _keep(self, rest: bytes) -> None:
        self._pieces.append(rest)
        self._size += len(rest)
        if self._size > self._limit + 1:  # the first half of the blank line may be here already
            raise self._too_large()

    def _skip_bom(self, chunk: bytes) -> bytes:
        chunk = (self._start or b"") + chunk
        if len(chunk) < len(BOM) and BOM.startswith(chunk):
            self._start = chunk
            return b""
        self._start = None
        return chunk.removeprefix(BOM)

    def _with_lf(self, chunk: bytes) -> bytes:
        if not chunk:
            return chunk
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk[-1:] == b"\r"
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _too_large(self) -> ProviderError:
        return ProviderError(
            f"The server sent an event of more than {self._limit:,} bytes; that is the limit.", code="invalid_response"
        )


def _events(frames: list[bytes]) -> list[Event]:
    events: list[Event] = []
    for frame in frames:
        if frame[:6] == b"data: " and b"\n" not in frame and len(frame) > 6:
            events.append((b"", frame[6:]))
            continue
        head, found, data = frame.partition(b"\ndata: ")
        if found and data and head[:7] == b"event: " and b"\n" not in data and b"\n" not in head:
            events.append((head[7:], data))
        elif frame and (event := _read_lines(frame)) is not None:
            events.append(event)
    return events


def _read_lines(frame: bytes) -> Event | None:
    name = b""
    data: list[bytes] = []
    for line in frame.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    joined = b"\n".join(data)
    return (name, joined) if joined else None
