"""The course of a response that all wires' assemblers share: bytes in, deltas out, and how it ends."""

from __future__ import annotations

from typing import Any

from agentrio.providers.base import PartDelta, ProviderError

from .failures import unwrapped
from .json import decode, is_json
from .sse import MAX_EVENT, Event, SSEDecoder

DONE = b"[DONE]"  # what OpenAI's streams end with, and those of many others
MAX_BODY = 4 * MAX_EVENT  # bytes of an answer that is no stream
MAX_STREAM = 8 * MAX_EVENT  # bytes of one that is: the longest answers there are take a third of it
MAX_PARTS = 10_000  # of one answer; a real one has a few hundred at most


class EventAssembler:
    """Feed it the stream's bytes, close it at their end.

    ``finished`` is set once the stop reason is known, ``done`` once nothing more is to be expected, ``failure`` once
    the response can't be completed any more; it is raised by the next ``feed`` or ``close``. ``idle`` is whether the
    last bytes brought nothing but signs of life: comments, pings, and events that say nothing. ``unread`` counts the
    events that were no JSON, which are passed over.
    """

    def __init__(self, max_event: int = MAX_EVENT, max_stream: int = MAX_STREAM) -> None:
        self._sse = SSEDecoder(max_event)
        self._room = max_stream
        self.finished = False
        self.done: bool = False
        self.idle: bool = False
        self.failure: ProviderError | None = None
        self.unread: int = 0

    def feed(self, data: bytes) -> list[PartDelta]:
        """The deltas in these bytes, all events at once. Once ``done``, nothing is looked at any more.

        Raises:
            ProviderError: the server told an error, or sent what can't be read. Deltas before it were given out.
        """
        if self.failure is not None:
            raise self.failure
        out: list[PartDelta] = []
        if self.done:
            return out
        self.idle = True  # until something is found; a wire says so of what gives no delta
        self._room -= len(data)
        try:
            if self._room < 0:
                raise endless()
            self._read(self._sse.feed(data), out)
        except ProviderError as failure:
            if self.finished:  # the response is whole, whatever else is sent
                self.done = True
                return out
            self.failure = failure
            if not out:
                raise
        if out:
            self.idle = False
        return out

    def close(self) -> list[PartDelta]:
        """The body has ended.

        Raises:
            ProviderError: before the stop reason came (``stream_dropped``), or the server had told an error.
        """
        if self.failure is not None:
            raise self.failure
        out: list[PartDelta] = []
        if self.done:
            return out
        try:
            self._read(self._sse.close(), out)
        except ProviderError as failure:
            self.failure = failure
            raise
        self.done = True
        if not self.finished:
            self.failure = dropped("The response ended before its stop reason came.")
            if not out:
                raise self.failure
        return out

    def _read(self, events: list[Event], out: list[PartDelta]) -> None:
        """What a wire makes of its events."""
        ...

    def _pass_over(self, data: bytes) -> None:
        """An event that says nothing known."""
        if data.strip() != DONE and not is_json(data):
            self.unread += 1


class WholeBody(EventAssembler):
    """For servers that answer with one JSON body although a stream was asked for: the same outcome.

    ``what`` says in errors what the body should have been; ``reading`` is what the wire's assembler is given.
    """

    what = "a response"
    failure: ProviderError | None
    idle: bool

    def __init__(self, max_body: int = MAX_BODY, **reading: Any) -> None:
        super().__init__(**reading)
        self._body = bytearray()
        self._max_body = max_body

    def feed(self, data: bytes) -> list[PartDelta]:
        """Nothing yet: the body is read at its end.

        Raises:
            ProviderError: it is larger than the limit (``invalid_response``).
        """
        self._body += data
        self.idle = not data.strip()  # DeepSeek sends empty lines while it works
        if len(self._body) > self._max_body:
            self.failure = ProviderError(
                f"The server sent a body of more than {self._max_body:,} bytes; that is the limit.",
                code="invalid_response",
            )
            raise self.failure
        return []

    def close(self) -> list[PartDelta]:
        """All parts as deltas.

        Raises:
            ProviderError: the body is an error, no JSON, or not what it should be (``invalid_response``).
        """
        self.done = True
        out: list[PartDelta] = []
        try:
            self._read_body(self._decoded(), out)
        except ProviderError as failure:
            self.failure = failure
            raise
        return out

    def _decoded(self) -> dict[str, Any]:
        try:
            found = unwrapped(decode(bytes(self._body)))
        except ValueError:
            raise self._unfit("it is no JSON") from None
        if not isinstance(found, dict):
            raise self._unfit("it is no JSON object")
        return found

    def _unfit(self, why: str) -> ProviderError:
        return ProviderError(f"The server's answer is not {self.what}: {why}.", code="invalid_response")

    def _read_body(self, found: dict[str, Any], out: list[PartDelta]) -> None:
        """What a wire makes of its body."""
        ...


def endless() -> ProviderError:
    """A response that would fill the memory."""
    return ProviderError(
        f"The response has more than {MAX_STREAM:,} bytes or {MAX_PARTS:,} parts; that is the limit.",
        code="invalid_response",
    )


def dropped(message: str) -> ProviderError:
    """A response that broke off."""
    return ProviderError(message, code="stream_dropped", retry="stream")
