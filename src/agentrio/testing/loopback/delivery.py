"""From a reply to the sends that carry it: which frames, cut where, in which HTTP framing. Pure.

Frames -> faults that count frames -> cut anew by the pace -> cut off at a byte -> chunks -> sends.
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from typing import assert_never

import attrs

from agentrio.testing.loopback.http1 import LAST_CHUNK, chunk
from agentrio.testing.loopback.script import (
    CallsReply,
    ErrorReply,
    Fault,
    Pace,
    RawReply,
    Received,
    Reply,
    TextReply,
)
from agentrio.testing.loopback.wires import Wire

__all__ = ["Response", "Send", "respond"]

RANDOM_SIZES = (1, 3, 17, 100, 1000, 4096)  # bytes; the first two cut characters and line ends
EVENT = re.compile(rb"(?s).+?(?:\r\n\r\n|\n\n|\r\r|\Z)")


@attrs.frozen
class Send:
    """Bytes for one send, with how many bytes of the body and ends of frames they hold."""

    data: bytes
    body_bytes: int
    frames: int


@attrs.frozen
class Response:
    """An answer ready to be sent. ``sends`` is lazy, and endless for an endless reply.

    Attributes:
        status: HTTP status.
        headers: All headers, framing included.
        sends: What to send after them, in order.
        stalls: Silence follows the last send.
        cuts: A hang-up follows the last send.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    sends: Iterator[Send]
    stalls: bool
    cuts: bool


@attrs.frozen
class _Plan:
    status: int
    content_type: str
    headers: dict[str, str]
    frames: Iterable[bytes]
    streamed: bool


def respond(reply: Reply, request: Received, wire: Wire) -> Response:
    """Return the answer that the reply makes to this request on this wire."""
    plan = _plan(reply, request, wire)
    stalls = reply.fault.stall_after is not None
    cuts = reply.fault.cut_at_byte is not None
    headers = {"content-type": plan.content_type, wire.request_id: f"req_{request.number:06d}", **plan.headers}
    if plan.streamed:
        headers |= {"cache-control": "no-cache", "transfer-encoding": "chunked"}
    else:
        frames = tuple(plan.frames)
        plan = attrs.evolve(plan, frames=frames)
        headers |= {"content-length": str(sum(map(len, frames)))}
    pieces = _cut_off(_recut(_faulty(plan, reply.fault, wire), reply.pace), reply.fault.cut_at_byte)
    last = LAST_CHUNK if plan.streamed and not stalls and not cuts else b""
    sends = _sends(pieces, plan.streamed, reply.pace.coalesce, last)
    return Response(plan.status, tuple(headers.items()), sends, stalls, cuts)


def _plan(reply: Reply, request: Received, wire: Wire) -> _Plan:
    match reply:
        case ErrorReply(status=status, headers=headers):
            body = wire.error_body(status, reply.error_type, reply.message)
            return _Plan(status, "application/json", dict(headers), (body,), streamed=False)
        case RawReply(body=body, content_type=content_type):
            streamed = content_type.startswith("text/event-stream")
            events: list[bytes] = EVENT.findall(body) if streamed else [body]
            return _Plan(reply.status, content_type, dict(reply.headers), events, streamed)
        case TextReply() | CallsReply() if not request.streamed:
            return _Plan(200, "application/json", {}, (wire.body(reply, request),), streamed=False)
        case TextReply() | CallsReply():
            frames = wire.endless(reply, request) if reply.fault.endless else wire.frames(reply, request)
            return _Plan(200, "text/event-stream; charset=utf-8", {}, frames, streamed=True)
        case _:
            assert_never(reply)


def _faulty(plan: _Plan, fault: Fault, wire: Wire) -> Iterator[bytes]:
    frames = iter(plan.frames)
    if fault.error_frame_after is not None and plan.streamed:
        error = wire.error_frame(fault.error_type, fault.error_message)
        frames = chain(islice(frames, fault.error_frame_after), (error,))
    return frames if fault.stall_after is None else islice(frames, fault.stall_after)


def _recut(frames: Iterator[bytes], pace: Pace) -> Iterator[tuple[bytes, int]]:
    """Yield pieces of the body, each with how many frames end in it."""
    sizes = _sizes(pace)
    if sizes is None:
        return ((frame, 1) for frame in frames if frame)
    return _recut_by(frames, sizes)


def _sizes(pace: Pace) -> Iterator[int] | None:
    if pace.drip is not None:
        return repeat(pace.drip)
    if pace.pieces is not None:
        source = random.Random(pace.pieces)
        return iter(lambda: source.choice(RANDOM_SIZES), 0)
    kind, _, size = pace.chunks.partition(":")
    return repeat(int(size)) if kind == "bytes" else None


def _recut_by(frames: Iterator[bytes], sizes: Iterator[int]) -> Iterator[tuple[bytes, int]]:
    buffer = bytearray()
    ends: deque[int] = deque()  # of the frames not yet passed on, counted from the body's start
    taken = passed = 0
    size = next(sizes)
    for frame in frames:
        buffer += frame
        taken += len(frame)
        ends.append(taken)
        while len(buffer) >= size:
            piece = bytes(buffer[:size])
            del buffer[:size]
            passed += size
            yield piece, _pop_ended(ends, passed)
            size = next(sizes)
    if buffer:
        yield bytes(buffer), len(ends)


def _pop_ended(ends: deque[int], passed: int) -> int:
    count = 0
    while ends and ends[0] <= passed:
        ends.popleft()
        count += 1
    return count


def _cut_off(pieces: Iterator[tuple[bytes, int]], limit: int | None) -> Iterator[tuple[bytes, int]]:
    if limit is None:
        yield from pieces
        return
    for piece, frames in pieces:
        if len(piece) >= limit:
            if limit:
                yield piece[:limit], frames if len(piece) == limit else 0
            return
        limit -= len(piece)
        yield piece, frames


def _sends(pieces: Iterator[tuple[bytes, int]], chunked: bool, coalesce: int, last: bytes) -> Iterator[Send]:
    # The end of the body goes along with the last chunks, if a send is still open, and else alone.
    while batch := tuple(islice(pieces, coalesce)):
        data = b"".join([chunk(piece) for piece, _ in batch] if chunked else [piece for piece, _ in batch])
        end = last if len(batch) < coalesce else b""
        yield Send(data + end, sum(len(piece) for piece, _ in batch), sum(frames for _, frames in batch))
        if len(batch) < coalesce:
            return
    if last:
        yield Send(last, 0, 0)
