"""Reading a response's body: everything that one read of the socket brought, in one go.

httpx2 gives out one HTTP chunk at a time and does not say whether the next is here already or would have to be waited
for. A model server sends a chunk per token, so a read that brought forty of them would be passed on forty times. Here
the connection's own stream knows: asked to, it pauses the reader just before it would touch the socket. The pause is a
value that the coroutine yields and that we catch, so Trio never sees it; no cancel scope lies between the two, because
httpcore2 opens its own inside of the read.

While the reader is paused in the middle of a chunked body, the stream is read directly: h11, httpcore2 and httpx2 take
three times as long for a chunk as all that is done with it. They are resumed for the body's end, for whatever is no
chunk, and to close the connection; of the chunks in between they know nothing.

Where the stream is not ours (a client that the user made, a proxy), chunks come one by one.
"""

from __future__ import annotations

import math
import re
import ssl
import types
import zlib
from collections.abc import Coroutine, Generator, Iterable
from typing import Any, Final

import httpcore2
import httpx2
import trio

from agentrio.providers.wire.chunks import ChunkMerger

PAUSE: Final = object()
CONNECTIONS = 1_000  # one per running session; above it requests wait for each other
KEEPALIVE = 100
SMALL = 64 * 1024  # bytes of a body that go out with its head; to copy more takes longer than a write of its own
READ = 64 * 1024  # bytes, as httpcore2 reads
INFLATED = 256 * 1024  # bytes that are decompressed in one go
KEEPALIVE_EXPIRY = 30.0  # seconds; model servers close idle connections after a minute or more


@types.coroutine
def _pause() -> Generator[Any, Any, None]:
    yield PAUSE


@types.coroutine
def _step(work: Coroutine[Any, Any, bytes]) -> Generator[Any, Any, bytes | None]:
    """Run until it returns, raises, or pauses (None); whatever else it waits for is Trio's."""
    try:
        trap = work.send(None)
        while trap is not PAUSE:
            try:
                answer = yield trap
            except BaseException as thrown:  # noqa: ASYNC103  # the work has it, and decides
                trap = work.throw(thrown)
            else:
                trap = work.send(answer)
    except StopIteration as returned:
        result: bytes = returned.value
        return result
    return None


class BodyReader:
    """The body of one response: ``read()`` until it returns None, then or earlier ``aclose()``."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        if response.is_stream_consumed:  # by the SDK, which reads the body of an error
            self._chunks = response.aiter_bytes()
            self._inflate: _Inflater | None = None
        else:
            self._chunks = response.aiter_raw()
            self._inflate = _open_inflater(response.headers.get("content-encoding", "identity"))
        stream = response.extensions.get("network_stream")
        self._stream = stream if isinstance(stream, PausingStream) else None
        self._paused: Coroutine[Any, Any, bytes] | None = None
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to read: the body was read to its end, or broke."""
        return self._ended and (self._inflate is None or not self._inflate.waits)

    def watch(self, until: float) -> bool:
        """Whether the connection itself sees to it that its reads end then, however often a byte comes."""
        if self._stream is None:
            return False
        self._stream.patience = until
        return True

    async def read(self) -> bytes | None:
        """What the next read of the socket brings, or None at the end.

        Raises:
            httpx2.HTTPError: the connection broke, was silent for too long, or the body can't be decompressed.
        """
        if self._inflate is not None and self._inflate.waits:
            await trio.lowlevel.checkpoint()
            return self._inflate.feed(b"")
        if self._ended:
            return None
        data = await (self._next() if self._stream is None else self._from(self._stream))
        return data if data is None or self._inflate is None else self._inflate.feed(data)

    async def _from(self, stream: PausingStream) -> bytes | None:
        first = await self._take(stream) if self._paused is not None and stream.in_chunks else b""
        if first and not stream.holds_rest:
            return first
        found = first or await self._next()
        return None if found is None else await self._with_what_is_here(found, stream)

    async def _take(self, stream: PausingStream) -> bytes:
        """What the next read brings in chunks; nothing where it brings something else, which the reader is given."""
        try:
            return await stream.take(self._response.request.extensions.get("timeout", {}).get("read"))
        except httpcore2.ReadTimeout as silent:
            raise httpx2.ReadTimeout(str(silent)) from silent
        except httpcore2.ReadError as broken:
            raise httpx2.ReadError(str(broken)) from broken

    async def _with_what_is_here(self, first: bytes, stream: PausingStream) -> bytes:
        """The first chunk was waited for; the others are taken if they need no waiting."""
        chunks = [first]
        stream.pauses = task = trio.lowlevel.current_task()
        try:
            while (chunk := await self._next()) is not None:
                chunks.append(chunk)
        finally:
            if stream.pauses is task:  # at the body's end another task may have got the connection already
                stream.pauses = None
        return b"".join(chunks)

    async def _next(self) -> bytes | None:
        """The next chunk; None where the reader paused, or the body has ended."""
        work = self._paused or self._chunks.__anext__()
        self._paused = None
        try:
            chunk = await _step(work)
        except StopAsyncIteration:
            self._ended = True
            return None
        except BaseException:
            self._ended = True
            raise
        if chunk is None:
            self._paused = work
        return chunk

    async def aclose(self) -> None:
        """Close the response; if its body was not read to the end, its connection too, at once.

        Done by a read that is cancelled: that unwinds every layer of httpx2's and httpcore2's generators. Closing the
        outermost one would leave the others to the garbage collector.
        """
        if not self._ended:
            with trio.CancelScope() as scope:  # noqa: ASYNC912  # the first read is the cancel point
                scope.cancel()
                while not self._ended:
                    await self._next()
        await self._chunks.aclose()
        await self._response.aclose()


class _Inflater:
    """For servers that compress although they were asked not to. A thousandfold, too: so it is given out in pieces.

    Behind the end of one compressed stream another may begin (RFC 1952 §2.2).
    """

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._work = _decompressor()

    @property
    def waits(self) -> bool:
        """Whether there is more to give out before more is fed."""
        return bool(self._work.unconsumed_tail or self._work.unused_data)

    def feed(self, data: bytes) -> bytes:
        """The next piece.

        Raises:
            httpx2.DecodingError: the data is not what it is said to be.
        """
        data = (self._work.unused_data or self._work.unconsumed_tail) + data
        if self._work.eof and data:
            self._work = _decompressor()
        try:
            return self._work.decompress(data, INFLATED)
        except zlib.error as wrong:
            raise httpx2.DecodingError(f"content-encoding {self._encoding[:40]}: {wrong}") from wrong


def _decompressor() -> zlib._Decompress:
    return zlib.decompressobj(wbits=47)  # gzip or zlib, by its head


def _open_inflater(encoding: str) -> _Inflater | None:
    return None if encoding.strip().lower() in ("identity", "") else _Inflater(encoding)


_HEAD = re.compile(
    rb"POST [^\r\n]*\r\n(?:[^\r\n]+\r\n)*?Content-Length: *[1-9][0-9]*\r\n(?:[^\r\n]+\r\n)*\r\n\Z", re.IGNORECASE
)
"""The head of a request that has a body: nothing else that is written looks like it, TLS least of all."""


class PausingStream(httpcore2.AsyncNetworkStream):
    """A connection that can be told to pause its reader where it would have to read the socket.

    ``pauses`` is the task that asked for it: the next user of the connection must not be paused. What one read brings
    in many chunks is given out in one, and a request's head goes out with the beginning of its body. ``patience`` is
    the time until which bytes are taken for a sign of life: each one puts off the timeout of a read.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._merger = ChunkMerger()
        self._head = b""  # of a request whose body is about to come
        self._rest = b""  # of what was taken, what is not for the taker
        self.pauses: trio.lowlevel.Task | None = None
        self.patience: float = math.inf

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore2's interface
        """As the stream's."""
        while True:
            if self.pauses is not None and self.pauses is trio.lowlevel.current_task():
                await _pause()
            if self._rest:
                rest, self._rest = self._rest, b""
                return rest
            data = await self._stream.read(max_bytes, timeout)
            if trio.current_time() > self.patience:
                raise httpcore2.ReadTimeout("nothing came but signs of life")
            merged = self._merger.feed(data)
            if merged or not data:
                return merged

    @property
    def in_chunks(self) -> bool:
        """Whether it may be read by ``take``."""
        return self._merger.in_chunks

    @property
    def holds_rest(self) -> bool:
        """Whether ``read`` has something to give out without touching the socket."""
        return bool(self._rest)

    async def take(self, timeout: float | None) -> bytes:  # noqa: ASYNC109  # as the others
        """What the next read brings in the chunks of a body; nothing where its end or something else has come, which
        ``read`` gives out.
        """
        while True:
            data = await self._stream.read(READ, timeout)
            if trio.current_time() > self.patience:
                raise httpcore2.ReadTimeout("nothing came but signs of life")
            taken, self._rest = self._merger.take(data)
            if taken or self._rest or not data:
                return taken

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # httpcore2's interface
        """As the stream's; the head of a request waits for its body, which comes at once."""
        self._merger.start()
        self.patience = math.inf
        if _HEAD.match(buffer):
            self._head = buffer
            return
        head, self._head = self._head, b""
        if head and len(buffer) > SMALL:
            await self._stream.write(head, timeout)
            head = b""
        await self._stream.write(head + buffer if head else buffer, timeout)

    async def aclose(self) -> None:
        """As the stream's."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore2's interface
    ) -> httpcore2.AsyncNetworkStream:
        """As the stream's; but a handshake that is cancelled closes the connection, which httpcore2 leaves open."""
        try:
            return PausingStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            await self._stream.aclose()  # the socket is closed before the checkpoint in it
            raise

    def get_extra_info(self, info: str) -> Any:
        """As the stream's; one that brought more than its response is readable, so the pool lets it go."""
        return (info == "is_readable" and self._merger.surplus) or self._stream.get_extra_info(info)


class _PausingBackend(httpcore2.TrioBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore2's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        # pyright takes the stand-in, for programs without Trio, for the class
        opened = super().connect_tcp(host, port, timeout, local_address, socket_options)  # pyright: ignore[reportAttributeAccessIssue]  # see above
        return PausingStream(await opened)


class PausingTransport(httpx2.AsyncHTTPTransport):
    """httpx2's own transport, on connections that can pause."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(verify=context)
        # httpx2 has no parameter for it. Were the attribute renamed, chunks would come one by one; a test would say so.
        self._pool: httpcore2.AsyncConnectionPool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=CONNECTIONS,
            max_keepalive_connections=KEEPALIVE,
            keepalive_expiry=KEEPALIVE_EXPIRY,
            network_backend=_PausingBackend(),  # pyright: ignore[reportArgumentType]  # as above
        )
