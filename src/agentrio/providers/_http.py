"""What all HTTP providers share: TLS, the client, one attempt at a request, and its errors in our terms."""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Literal, Protocol
from urllib.request import getproxies, proxy_bypass

import attrs
import httpx2
import trio

from agentrio.domain.status import Code
from agentrio.providers._prices import Pricing
from agentrio.providers._reading import CONNECTIONS, KEEPALIVE, KEEPALIVE_EXPIRY, BodyReader, PausingTransport
from agentrio.providers._secrets import redacted, redacted_response
from agentrio.providers.base import ModelResponse, PartDelta, ProviderError, Timeouts
from agentrio.providers.wire.billing import Bill
from agentrio.providers.wire.failures import from_status

CLOSE_GRACE = 1.0  # seconds; closing a socket needs none, the bound is for a transport that the user brought
LINGER = 0.5  # seconds for a body's end behind its last frame: once it was read, the connection is used again
ERROR_BODY = 64 * 1024  # bytes of an error's body that are read
ERROR_GRACE = 5.0  # seconds for them
HEARTBEATS = 5  # times the longest silence: how long signs of life alone are taken for work

WallClock = Callable[[], float]
wall_clock: WallClock = time.time


@cache
def tls_context(secure: bool) -> ssl.SSLContext:
    """One context for the process: loading the authorities' certificates takes tens of milliseconds, so in a thread.

    For plain ``http`` there is nothing to load; that context trusts nobody.
    """
    return httpx2.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def make_client(base_url: str) -> httpx2.AsyncClient:
    """Our own client, for one server. Slow: call it in a thread.

    Behind a proxy that the environment names it is httpx2's plain one, and chunks come one by one.
    """
    url = httpx2.URL(base_url)
    context = tls_context(url.scheme != "http")
    if set(getproxies()) & {"http", "https", "all"} and not proxy_bypass(url.host):
        limits = httpx2.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=KEEPALIVE, keepalive_expiry=KEEPALIVE_EXPIRY
        )
        return httpx2.AsyncClient(verify=context, limits=limits)
    return httpx2.AsyncClient(transport=PausingTransport(context))


def unreachable(host: str, error: Exception) -> ProviderError:
    """A request that brought no response: a connection refused, or one of the pool that was dead."""
    if isinstance(error, (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL, UnicodeError)):
        return ProviderError(f"The request to {host} can't be sent: {_words(error)}", code="invalid_request")
    return ProviderError(
        f"The model server at {host} could not be reached: {_words(error)}", code="dependency_failed", retry="request"
    )


def _words(error: BaseException) -> str:
    """What an error says; of one that says nothing, what its cause says (httpx2's of a failed handshake)."""
    found: BaseException | None = error
    while found is not None and not str(found):
        found = found.__cause__ or found.__context__
    return str(found or "")[:200] or type(error).__name__


async def send_within(seconds: float, host: str, send: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
    """The response's head.

    Raises:
        ProviderError: no response came, or not in time.
    """
    with trio.move_on_after(seconds) as scope:
        try:
            return await send()
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:  # the last of a host that IDNA refuses
            raise unreachable(host, error) from error
    assert scope.cancelled_caught
    raise ProviderError(
        f"The model server at {host} sent no response within {seconds:g} s.", code="dependency_failed", retry="request"
    )


async def read_failure(response: httpx2.Response, reader: BodyReader, clock: WallClock) -> ProviderError:
    """The error that a response with an error's status is, as far as its body can be read."""
    body = bytearray()
    with trio.move_on_after(ERROR_GRACE):  # noqa: ASYNC912  # each read is a cancel point, and there is one at least
        try:
            while len(body) < ERROR_BODY and (data := await reader.read()) is not None:
                body += data
        except httpx2.HTTPError:
            pass  # what came of it will do
    return from_status(response.status_code, response.headers, bytes(body[:ERROR_BODY]), clock())


async def close_response(response: httpx2.Response, reader: BodyReader) -> None:
    """Close the response, also when cancelled. A server whose response was not read to its end sees it at once."""
    if reader.ended and response.is_closed:
        return
    with trio.move_on_after(CLOSE_GRACE, shield=True):
        try:
            await reader.aclose()
        except httpx2.HTTPError:
            pass  # it was broken already
        finally:
            await response.aclose()


class StreamAssembler(Protocol):
    """What a wire's assembler offers."""

    @property
    def finished(self) -> bool: ...

    @property
    def done(self) -> bool: ...

    @property
    def idle(self) -> bool: ...

    @property
    def failure(self) -> ProviderError | None: ...

    @property
    def unread(self) -> int: ...

    def feed(self, data: bytes) -> list[PartDelta]: ...

    def close(self) -> list[PartDelta]: ...

    def response(self) -> ModelResponse: ...

    def bill(self) -> Bill: ...


@attrs.define(eq=False)
class ResponseStream:
    """A response on its way: what one read brings is one batch."""

    _reader: BodyReader
    _assembler: StreamAssembler
    _idle: float
    _pricing: Pricing
    _secrets: Sequence[str] = attrs.field(default=(), repr=False)
    _linger: float | None = attrs.field(default=None, init=False)  # the time until which the rest is waited for
    _ended: bool = attrs.field(default=False, init=False)
    _moved: float = attrs.field(factory=trio.current_time, init=False)  # when there was more than a sign of life

    async def receive(self) -> Sequence[PartDelta]:
        """The deltas of the next read.

        Raises:
            trio.EndOfChannel: the response is complete.
            ProviderError: it broke off, or the server told an error.
        """
        try:
            return await self._receive()
        except ProviderError as failure:
            raise redacted(failure, self._secrets) from failure.__cause__

    async def _receive(self) -> Sequence[PartDelta]:
        assembler = self._assembler
        if assembler.failure is not None:
            raise assembler.failure
        if self._ended:
            raise trio.EndOfChannel
        data = await (self._rest() if assembler.finished else self._read())
        if data is not None:
            deltas = assembler.feed(data)
            if not assembler.idle:
                self._moved = trio.current_time()
            return deltas
        self._ended = True
        last = assembler.close()
        if not last:
            raise trio.EndOfChannel
        return last

    def response(self) -> ModelResponse:
        """What has arrived so far, and what it cost."""
        priced = self._pricing.priced(self._assembler.response(), self._assembler.bill())
        return redacted_response(priced, self._secrets)

    async def _read(self) -> bytes | None:
        patience = self._moved + HEARTBEATS * self._idle
        if self._reader.watch(patience):
            return await self._read_some(patience)
        with trio.move_on_at(patience):  # noqa: ASYNC912  # the read is the cancel point
            return await self._read_some(patience)
        raise self._lost_patience()

    async def _read_some(self, patience: float) -> bytes | None:
        try:
            return await self._reader.read()
        except httpx2.ReadTimeout as silent:
            if trio.current_time() > patience:
                raise self._lost_patience() from silent
            raise self._broken(f"The server was silent for {self._idle:g} s in the middle of its response.") from silent
        except httpx2.DecodingError as garbled:
            message = f"The response can't be decompressed: {_words(garbled)}"
            raise self._broken(message, "invalid_response", None) from garbled
        except httpx2.HTTPError as broken:
            raise self._broken(f"The connection broke in the middle of the response: {_words(broken)}") from broken

    def _lost_patience(self) -> ProviderError:
        return self._broken(
            f"The server has sent nothing but signs of life for {HEARTBEATS * self._idle:g} s. If its model works "
            f"longer than that without a word, raise Limits.idle_timeout (this is {HEARTBEATS} times as long).",
            retry=None,
        )

    async def _rest(self) -> bytes | None:
        """Behind the stop reason nothing can go wrong any more: the response is whole.

        A server that goes on sending does not hold the run; and behind the last frame nothing it sends is looked at.
        """
        reader = self._reader
        if reader.ended:
            return None
        if self._linger is None:
            self._linger = trio.current_time() + LINGER
        with trio.move_on_at(self._linger):  # noqa: ASYNC912  # the read is the cancel point
            try:
                while not reader.ended:
                    data = await reader.read()
                    if not self._assembler.done:
                        return data
            except httpx2.HTTPError:
                return None
        return None

    def _broken(
        self, message: str, code: Code = "stream_dropped", retry: Literal["stream"] | None = "stream"
    ) -> ProviderError:
        self._ended = True
        return ProviderError(message, code=code, retry=retry)


def timeout_extension(timeouts: Timeouts) -> dict[str, float | None]:
    """httpx2's timeouts, read when each wait begins. Until the headers the caller's own scope is the limit."""
    return {"connect": None, "read": None, "write": timeouts.connect, "pool": None}
