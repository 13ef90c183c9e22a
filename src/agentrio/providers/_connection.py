"""One attempt at a model call over HTTP, whoever sends it and whatever its wire is."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import attrs

from ._http import ResponseStream, StreamAssembler, WallClock, close_response, read_failure, send_within
from ._prices import Pricing, Tariff
from ._reading import BodyReader
from ._secrets import redacted
from ._sending import Sender
from .base import ModelStream, ProviderError, Timeouts

log: logging.Logger = logging.getLogger("agentrio")

Assemblers: TypeAlias = tuple[Callable[[], StreamAssembler], Callable[[], StreamAssembler]]
"""What reads a stream, and what reads an answer that is one JSON body."""


@attrs.frozen(eq=False)
class Connection:
    """Sends bodies to one address. No credential stands in what it tells."""

    _sender: Sender
    host: str
    _clock: WallClock

    @asynccontextmanager
    async def stream(
        self, body: bytes, timeouts: Timeouts, assemblers: Assemblers, tariff: Tariff
    ) -> AsyncGenerator[ModelStream]:
        """One attempt. Entering waits for the response's headers; leaving early closes the connection.

        Raises:
            ProviderError: no credential, no answer, or an error's status.
        """
        try:
            response = await send_within(timeouts.connect, self.host, partial(self._sender.send, body, timeouts))
        except ProviderError as failure:
            raise redacted(failure, self._sender.secrets()) from failure.__cause__
        limits = response.request.extensions.get("timeout", {})
        limits["read"] = timeouts.idle  # until the headers the scope was the limit
        reader = BodyReader(response)
        secrets = self._sender.secrets(response.request)
        try:
            if not response.is_success:
                raise redacted(await read_failure(response, reader, self._clock), secrets)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/html":
                raise ProviderError(
                    f"{self.host} answered with a web page, not as a model's server; is the base URL right?",
                    code="dependency_failed",
                )
            of_stream, of_body = assemblers
            assembler = of_body() if kind.endswith("json") else of_stream()
            try:
                yield ResponseStream(reader, assembler, timeouts.idle, Pricing(tariff), secrets)
            finally:
                _tell_unread(self.host, assembler.unread)
        finally:
            await close_response(response, reader)  # noqa: ASYNC102  # it holds the shield, and its deadline


def _tell_unread(host: str, events: int) -> None:
    """Once for a response: what it says is kept, and somebody should know that there was more."""
    if events:
        log.warning("%d events of a response of %s were no JSON, and were passed over", events, host)
