"""What the runtime asks of a provider.

A ``Model`` is the declaration an agent carries: immutable, holds the credential, touches no network. ``open()`` gives a
``ModelClient``, owned by the runtime that opened it; ``client.stream(request)`` is one attempt at one model call. The
stream hands over one batch of deltas per read of the socket, and at its end the whole response.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from agentrio.domain.errors import AgentrioError
from agentrio.domain.messages import ModelTag
from agentrio.domain.parts import Part
from agentrio.domain.render import ModelRequest
from agentrio.domain.status import Code, StopReason
from agentrio.domain.usage import NO_USAGE, Usage

__all__ = [
    "Code",
    "DeltaKind",
    "Model",
    "ModelClient",
    "ModelRequest",
    "ModelResponse",
    "ModelStream",
    "ModelTag",
    "PartDelta",
    "ProviderError",
    "Timeouts",
]

DeltaKind: TypeAlias = Literal["text", "thinking", "input"]


@attrs.define
class PartDelta:
    """More of one part: ``offset`` counts the characters of that part before this. ``name`` is a called tool's.

    Made once per token, so it is a plain slotted class: immutable by agreement.
    """

    kind: DeltaKind
    part: int
    offset: int
    text: str
    name: str = ""


@attrs.frozen
class ModelResponse:
    """A response, or what has arrived of one.

    ``parts`` hold the blocks in order. While ``stop_reason`` is None the response is not complete: then calls whose
    arguments are still open are left out, and reasoning without its signature is kept as text only. ``ToolCall.id`` is
    empty: the runtime gives it. ``model`` is what the server says it ran; ``stop_detail`` is what it says of the stop
    reason, such as the category of a refusal.
    """

    parts: tuple[Part, ...] = ()
    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    usage: Usage = NO_USAGE
    model: str = ""
    response_id: str = ""
    stop_detail: str | None = None


class ProviderError(AgentrioError):
    """A model call failed: typed, never read from digits in a text.

    ``code`` is the failure that the run ends with if nothing helps. ``retry`` says which schedule may help: ``request``
    for a call that brought nothing yet, ``stream`` for one whose response broke off, None for none. ``retry_after`` is
    in seconds, as the server asked. The message is safe to show: it quotes the server's own error message at most.
    """

    def __init__(
        self,
        message: str,
        *,
        code: Code,
        retry: Literal["request", "stream"] | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        type: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code: Code = code
        self.retry: Literal["request", "stream"] | None = retry
        self.status = status
        self.retry_after = retry_after
        self.request_id = request_id
        self.type = type


class ModelStream(Protocol):
    """One response on its way."""

    async def receive(self) -> Sequence[PartDelta]:
        """The deltas of the next read, perhaps none.

        Raises:
            trio.EndOfChannel: the response is complete; ``response()`` is its outcome.
            ProviderError: it is not, and will not be.
        """
        ...

    def response(self) -> ModelResponse:
        """What has arrived so far; never raises."""
        ...


class ModelClient(Protocol):
    """A model opened by a runtime: it holds connections until the runtime closes it."""

    def stream(self, request: ModelRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[ModelStream]:
        """Send the request. Entering waits for the response's headers; leaving early closes the connection.

        Raises:
            ProviderError: the server could not be reached, or answered with an error.
        """
        ...


@runtime_checkable
class PricedClient(Protocol):
    """A client that may say beforehand that no response of its model will have a cost."""

    @property
    def unpriced(self) -> str | None:
        """Why that is, and what to do; None where responses may have one."""
        ...


@attrs.frozen
class Timeouts:
    """In seconds: until the response's headers, and between two reads of it."""

    connect: float = 60.0
    idle: float = 120.0


@runtime_checkable
class Model(Protocol):
    """What an agent declares as its model."""

    @property
    def tag(self) -> ModelTag:
        """Provider, api and model: blocks kept verbatim go back to exactly this."""
        ...

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        """A client for one runtime. Slow imports happen here, in a thread."""
        ...
