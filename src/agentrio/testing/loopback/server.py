"""The loopback model server in the caller's own Trio loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import trio
import trio.testing

from agentrio.testing.loopback.connection import WAITS, Connection
from agentrio.testing.loopback.desk import Desk, ScriptLike
from agentrio.testing.loopback.record import Exchange
from agentrio.testing.validators import Demands

__all__ = ["LoopbackCrashed", "ModelServer", "open_model_server"]

HOST = "127.0.0.1"  # never another: the server knows no credentials


class LoopbackCrashed(Exception):
    """The server itself failed, most likely in a script's function. The cause is the group of what was raised."""


class ModelServer:
    """Handle of a running server.

    Attributes:
        base_url: Where it listens, without a slash at the end; what Anthropic's clients take as ``base_url``. Those of
            OpenAI take it with ``/v1`` behind it.
    """

    def __init__(self, base_url: str, desk: Desk) -> None:
        self.base_url = base_url
        self._desk = desk

    @property
    def record(self) -> list[Exchange]:
        """What the server saw so far, in the order of arrival. The list is live: do not change it."""
        return self._desk.record

    async def wait_request(self, number: int = 1) -> Exchange:
        """Wait until request ``number`` (from 1) has arrived, and return its exchange."""
        return await self._desk.wait(number, WAITS["request"])

    async def wait_headers(self, number: int = 1) -> Exchange:
        """Wait until the headers of the reply to request ``number`` were sent."""
        return await self._desk.wait(number, WAITS["headers"])

    async def wait_ended(self, number: int = 1) -> Exchange:
        """Wait until the exchange is over, however it ended."""
        return await self._desk.wait(number, WAITS["ended"])

    async def wait_disconnect(self, number: int = 1) -> Exchange:
        """Wait until the client was seen to close the connection of request ``number``.

        Waits for ever where the server closes it, and while the client keeps it alive for its next request.
        """
        return await self._desk.wait(number, WAITS["disconnect"])


@asynccontextmanager
async def open_model_server(
    script: ScriptLike, *, port: int = 0, validate: bool | Demands = True
) -> AsyncGenerator[ModelServer]:
    """Serve a script on 127.0.0.1 for the length of the block.

    Args:
        script: Replies in the order of the requests, a `Script`, or a function from `Received` to a reply.
        port: Port to listen on; 0 takes a free one.
        validate: Whether a request that the wire's provider would refuse is answered with its error 400, and takes no
            reply of the script. `Demands` are those of a particular server.

    Leaving the block closes every connection. The body's own exception passes as it is. A function of the script
    that raises ends the block with `LoopbackCrashed`; a body that failed as well makes it a group of both.

    Raises:
        OSError: The port is taken.
    """
    demands = validate if isinstance(validate, Demands) else Demands() if validate else None
    desk = Desk(script, demands)
    body_error: BaseException | None = None
    crashes: list[Exception] = []
    listeners = await trio.open_tcp_listeners(port, host=HOST)
    try:
        async with trio.open_nursery() as nursery:
            handle = partial(_handle, desk, crashes, nursery.cancel_scope)
            await nursery.start(trio.serve_listeners, handle, listeners)
            try:
                yield ModelServer(f"http://{HOST}:{_port(listeners)}", desk)
            except BaseException as error:  # noqa: ASYNC103  # raised below: the nursery would wrap it here
                body_error = error
            nursery.cancel_scope.cancel()
    except* Exception as group:
        crashes.append(group)
    try:
        if crashes:
            raise _crashed(crashes, body_error)
        if body_error is not None:
            raise body_error
    finally:
        del body_error, crashes  # their tracebacks hold this frame


async def _handle(desk: Desk, crashes: list[Exception], block: trio.CancelScope, stream: trio.SocketStream) -> None:
    try:
        await Connection(desk, stream).run()
    except Exception as error:
        # Not raised through serve_listeners: it closes the stream first, and the body would see a mere disconnect,
        # and once the block is cancelled, that closing raises Cancelled and buries the error.
        crashes.append(error)
        block.cancel()


def _port(listeners: list[trio.SocketListener]) -> int:
    return int(listeners[0].socket.getsockname()[1])


def _crashed(crashes: list[Exception], body_error: BaseException | None) -> BaseException:
    crash = LoopbackCrashed(f"the model server failed: {_first(crashes[0])!r}")
    crash.__cause__ = ExceptionGroup("of the model server", crashes)
    if body_error is None or isinstance(body_error, trio.Cancelled):  # cancelled by the crash itself
        return crash
    return BaseExceptionGroup("the block failed, and its model server too", [body_error, crash])


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
