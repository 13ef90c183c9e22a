"""Servers of plain bytes, with TLS or without: what a connection can be made to stand still in, or to end with."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
import trio

Handler: TypeAlias = Callable[["Peer"], Awaitable[None]]

FINE = (
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Fine."}}\n\n'
    b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    b'data: {"type":"message_stop"}\n\n'
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"


def answer(frames: bytes = FINE) -> bytes:
    """A whole response."""
    return HEAD + b"\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(frames), frames)


@attrs.define(eq=False)
class Peer:
    """The server's side of one connection."""

    stream: trio.abc.HalfCloseableStream | trio.SSLStream[trio.SocketStream]
    there: trio.Event = attrs.field(factory=trio.Event)  # where the handler wants to be
    gone: trio.Event = attrs.field(factory=trio.Event)  # the client has left

    async def request(self) -> bytes:
        """A whole request."""
        data = b""
        while not data.endswith(b"}"):
            data += await self.stream.receive_some(65536)
        return data

    async def say(self, data: bytes) -> None:
        """Send."""
        await self.stream.send_all(data)

    async def stay(self) -> None:
        """Say no more, until the client leaves."""
        self.there.set()
        await self.left()

    async def left(self) -> None:
        """Wait until the client has left, whatever it still says."""
        while await self.stream.receive_some(65536):
            pass


@attrs.define(eq=False)
class RawServer:
    """Hands its first connections to the handlers, and answers on the others. ``peers`` are all there were."""

    base_url: str
    peers: list[Peer] = attrs.field(factory=list)
    came: trio.Event = attrs.field(factory=trio.Event)  # the next one has

    def add(self, peer: Peer) -> None:
        """A connection has come."""
        self.peers.append(peer)
        self.came.set()
        self.came = trio.Event()

    async def peer(self, number: int = 0) -> Peer:
        """The connection of that number, once its handler is where it wants to be."""
        while len(self.peers) <= number:
            await self.came.wait()
        await self.peers[number].there.wait()
        return self.peers[number]


@asynccontextmanager
async def open_raw_server(
    *handlers: Handler, tls: ssl.SSLContext | None = None, secure: bool | None = None
) -> AsyncIterator[RawServer]:
    """Serve on loopback for the length of the block; ``secure`` names the server ``https`` whatever it speaks."""
    left = list(handlers)

    async def serve(stream: Any) -> None:
        peer = Peer(stream)
        server.add(peer)
        try:
            if left:
                await left.pop(0)(peer)
            else:
                while True:
                    await peer.request()
                    await peer.say(answer())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            peer.there.set()
            peer.gone.set()

    async with trio.open_nursery() as nursery:
        if tls is None:
            [listener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
            port = listener.socket.getsockname()[1]
        else:
            serve_tls = partial(trio.serve_ssl_over_tcp, serve, 0, tls, host="127.0.0.1")
            [secured] = await nursery.start(serve_tls)
            port = secured.transport_listener.socket.getsockname()[1]
        scheme = "https" if secure or tls is not None else "http"
        server = RawServer(f"{scheme}://127.0.0.1:{port}")
        yield server
        nursery.cancel_scope.cancel()


def make_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context, and the certificate that a client has to trust; skips where there is no openssl."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(make, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no openssl to make a certificate with")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return context, cert
