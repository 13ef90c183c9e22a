"""Reading a response's body: everything that one read of the socket brought, in one go.

httpx2 gives out one HTTP chunk at a time and does not say whether the next is here already or would have to be waited
for. A model server sends a chunk per token, so a read that brought forty of them would be passed on forty times. Here
the connection's own stream knows: asked to, it pauses the reader just before it would touch the socket. The reader is
then resumed by the next ``read()``. The pause is a value that the coroutine yields and that we catch, so Trio never
sees it; no cancel scope lies between the two, because httpcore2 opens its own inside of the read.

Where the stream is not ours (a client that the user made, a proxy), chunks come one by one.
"""

from __future__ import annotations

import ssl
import types
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable
from typing import Any, Final

import httpcore2
import httpx2

PAUSE: Final = object()
CONNECTIONS = 1_000  # one per running session; above it requests wait for each other
KEEPALIVE = 100
KEEPALIVE_EXPIRY = 30.0  # seconds; model servers close idle connections after a minute or more


class _Left(Exception):
    """Thrown into a paused reader so that it unwinds and closes its connection."""


@types.coroutine
def _pause() -> Generator[Any, Any, None]:
    yield PAUSE


@types.coroutine
def _step(work: Coroutine[Any, Any, bytes], error: Exception | None = None) -> Generator[Any, Any, bytes | None]:
    """Run until it returns, raises, or pauses (None); whatever else it waits for is Trio's."""
    try:
        trap = work.send(None) if error is None else work.throw(error)
        while trap is not PAUSE:
            try:
                answer = yield trap
            except BaseException as thrown:
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
        self._chunks: AsyncGenerator[bytes, None] = (
            response.aiter_raw() if _is_plain(response) else response.aiter_bytes()
        )
        stream = response.extensions.get("network_stream")
        self._stream = stream if isinstance(stream, PausingStream) else None
        self._paused: Coroutine[Any, Any, bytes] | None = None
        self._ended = False

    async def read(self) -> bytes | None:
        """What the next read of the socket brings, or None at the end.

        Raises:
            httpx2.HTTPError: the connection broke, or was silent for too long.
        """
        if self._ended:
            return None
        chunks: list[bytes] = []
        try:
            while (chunk := await self._next()) is not None:
                chunks.append(chunk)
                if self._stream is None:
                    break
                self._stream.pausing = True  # the first chunk is waited for, the others are taken if they are here
        except StopAsyncIteration:
            self._ended = True
        finally:
            if self._stream is not None:
                self._stream.pausing = False
        return b"".join(chunks) if chunks or not self._ended else None

    async def _next(self) -> bytes | None:
        work = self._paused or self._chunks.__anext__()
        self._paused = None
        chunk = await _step(work)
        if chunk is None:
            self._paused = work
        return chunk

    async def aclose(self) -> None:
        """Close the response; if its body was not read to the end, its connection too, at once."""
        paused, self._paused = self._paused, None
        if paused is not None:
            try:
                await _step(paused, _Left())
            except _Left:
                pass
        await self._chunks.aclose()
        await self._response.aclose()


def _is_plain(response: httpx2.Response) -> bool:
    """Whether the bytes of the wire are those of the body, and not yet read by someone else."""
    return not response.is_stream_consumed and "content-encoding" not in response.headers


class PausingStream(httpcore2.AsyncNetworkStream):
    """A connection that can be told to pause its reader where it would have to read the socket."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self.pausing = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore2's interface
        """As the stream's."""
        if self.pausing:
            await _pause()
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # httpcore2's interface
        """As the stream's."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """As the stream's."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore2's interface
    ) -> httpcore2.AsyncNetworkStream:
        """As the stream's."""
        return PausingStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """As the stream's."""
        return self._stream.get_extra_info(info)


class _PausingBackend(httpcore2.TrioBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore2's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return PausingStream(await super().connect_tcp(host, port, timeout, local_address, socket_options))


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
            network_backend=_PausingBackend(),
        )
