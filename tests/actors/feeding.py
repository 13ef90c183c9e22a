"""Events made by hand, for readers and hubs that no run feeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from agentrio.actors.readers import Reader
from agentrio.domain.events import (
    CallProgress,
    Event,
    MessageAdded,
    Origin,
    RunEnded,
    RunStarted,
    RunSuspended,
    TextDelta,
    ToolInputDelta,
)
from agentrio.domain.limits import Limits
from agentrio.domain.messages import user_message
from agentrio.domain.status import RunResult

Forget = Callable[[Reader], None]


def origin(session: str = "s", run: str = "s-r1") -> Origin:
    """Whose event it is."""
    return Origin(session, "agent", run)


def started(run: str = "s-r1", session: str = "s") -> RunStarted:
    """The beginning of a run."""
    return RunStarted(origin(session, run), "m", "p", None, Limits())


def added(seq: int, session: str = "s") -> MessageAdded:
    """A structural event."""
    return MessageAdded(origin(session), user_message(f"m{seq}", "x"), seq=seq)


def ended(run: str = "s-r1", session: str = "s") -> RunEnded:
    """The end of a run."""
    result: RunResult[Any] = RunResult(run, "succeeded")
    return RunEnded(origin(session, run), result)


def suspended(run: str = "s-r1") -> RunSuspended:
    """The rest of a run."""
    return RunSuspended(origin(run=run), "detached")


def text(offset: int, said: str, message: str = "m", part: int = 0, session: str = "s") -> TextDelta:
    """A piece of text."""
    return TextDelta(origin(session), 1, message, part, offset, said)


def arguments(offset: int, said: str) -> ToolInputDelta:
    """A piece of a call's arguments."""
    return ToolInputDelta(origin(), 1, "m", 1, offset, said, "look")


def progress(number: int) -> CallProgress:
    """An event that is neither structural nor a delta."""
    return CallProgress(origin(), 1, "c", str(number))


def texts(count: int, session: str = "s") -> list[Event]:
    """So many deltas that can't melt, each of a message of its own."""
    return [text(0, "x", f"m{number}", session=session) for number in range(count)]


async def read_all(reader: Reader) -> list[Event]:
    """What can be read without waiting."""
    seen: list[Event] = []
    with trio.move_on_after(0.01):
        async for event in reader:
            seen.append(event)
    return seen


def nobody(_: Reader) -> None:
    """Forgets nothing."""
