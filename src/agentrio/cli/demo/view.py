"""What the demo tells those who show it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

import attrs

from agentrio.domain.events import Event
from agentrio.testing.loopback import Exchange


@attrs.frozen
class Scene:
    """What is about to happen, the lines of code that make it happen, and the example that has them whole."""

    title: str
    about: str
    code: str
    example: str


@attrs.frozen
class Stop:
    """A run was stopped: which request was open, and how many milliseconds later the server saw its client leave.

    ``seen_after`` is None where no request was open, or the server has not seen it.
    """

    exchange: int
    reason: str
    seen_after: float | None


class View(Protocol):
    """Shows the demo. Entered for its whole length; leaving it puts the terminal in order, whatever happened."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def scene(self, scene: Scene) -> None:
        """A scene begins."""

    def event(self, event: Event) -> None:
        """The session tells an event."""

    def note(self, text: str) -> None:
        """The narrator says something."""

    def close(self, record: Sequence[Exchange], stops: Sequence[Stop]) -> None:
        """All is over: what the server saw."""
