"""Who reads a session's events: buffers that the hub fills without waiting, and tasks that empty them.

A reader that keeps everything (``Lossless``) asks the run to wait while it is full. One that may not slow anybody
(``Merging``, ``Dropping``) melts or drops deltas instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
import trio

from agentrio.domain.events import (
    Event,
    Resync,
    RunEnded,
    RunStarted,
    RunSuspended,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)

FULL = 512  # events; about 100 KB of deltas, several reads of the socket
LOW = 256  # events; once full, the run goes on when this few are left

_DELTAS = (TextDelta, ThinkingDelta, ToolInputDelta)

T = TypeVar("T")


class Reader:
    """An endless or ended stream of events for one task. Iterating is a checkpoint per batch, not per event."""

    def __init__(self, forget: Callable[[Reader], None]) -> None:
        self._forget = forget
        self._task: trio.lowlevel.Task | None = None  # the one that waits, until it has been given its event
        self._parked = False
        self._ended = False
        self.closed: bool = False

    def put(self, events: Sequence[Event]) -> None:
        """Take a batch; never waits."""
        raise NotImplementedError

    @property
    def full(self) -> bool:
        """Whether the run has to wait for this reader."""
        return False

    def end(self) -> None:
        """Nothing will follow; what is buffered can still be read."""
        self._ended = True
        self._wake()

    def close(self) -> None:
        """Read no more; the hub forgets this reader."""
        if not self.closed:
            self.closed = True
            self._drop_all()
            self._forget(self)
            self.end()

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Event:
        if self._task is not None:
            raise trio.BusyResourceError("another task is already reading this stream of events")
        if self._has_events():
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await self._wait()
        return self._next()

    async def _wait(self) -> None:
        self._task = trio.lowlevel.current_task()
        try:
            while not self._has_events():
                if self._ended:
                    raise StopAsyncIteration
                self._parked = True
                await trio.lowlevel.wait_task_rescheduled(self._leave)
        finally:
            self._task = None

    def _leave(self, raise_cancel: object) -> trio.lowlevel.Abort:
        self._parked = False
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        if self._parked and self._task is not None:
            self._parked = False
            trio.lowlevel.reschedule(self._task)

    def _has_events(self) -> bool:
        raise NotImplementedError

    def _next(self) -> Event:
        raise NotImplementedError

    def _drop_all(self) -> None:
        raise NotImplementedError


class Lossless(Reader):
    """Every event, in order; the run waits before its next read while more than ``FULL`` are unread.

    With a ``run``, the stream begins with that run and ends behind its ending: what the session does before and after
    is none of it.
    """

    def __init__(self, forget: Callable[[Reader], None], room: Callable[[], None], *, run: str | None = None) -> None:
        super().__init__(forget)
        self._events: deque[Event] = deque()
        self._room = room
        self._run = run
        self._begun = run is None
        self._waited_for = False
        self.owner: trio.lowlevel.Task | None = None  # whose block it is
        self._iterating: trio.lowlevel.Task | None = None  # who last began to iterate

    def __aiter__(self) -> Lossless:
        self._iterating = trio.lowlevel.current_task()
        return self

    @property
    def read_by(self) -> trio.lowlevel.Task | None:
        """The task that empties it: who waits for an event, or who iterates, or whose block it is."""
        iterating = self._iterating
        if iterating is not None and getattr(iterating.coro, "cr_frame", iterating) is None:
            iterating = None  # it has ended
        return self._task or iterating or self.owner

    def holds_back(self, run: str | None) -> bool:
        """Whether that run, or without one the next, has to wait for this reader if it is slow."""
        return not self._ended and self._run in (None, run)

    def why_not_wait(self, verb: str) -> str:
        """What is told to its task, where that would wait for a run that waits for it."""
        if self._run is None:
            return (
                f"{verb}() inside a subscription with on_lag='wait' would wait for a run that waits to be read here; "
                "read in another task, or leave the subscription first"
            )
        return (
            f"{verb}() inside the block of run {self._run} would wait for a run that waits to be read here; "
            "read its events to the end, stop it, or leave the block first"
        )

    def put(self, events: Sequence[Event]) -> None:
        if self._ended or not (self._begun or self._begins(events[0])):
            return
        self._events.extend(events)
        last = events[-1]
        if type(last) is RunEnded or type(last) is RunSuspended:
            self._ended = last.origin.run == self._run
        self._wake()

    def _begins(self, first: Event) -> bool:
        self._begun = type(first) is RunStarted and first.origin.run == self._run
        return self._begun

    @property
    def full(self) -> bool:
        if len(self._events) > FULL:
            self._waited_for = True
        return self._waited_for

    def _has_events(self) -> bool:
        return bool(self._events)

    def _next(self) -> Event:
        event = self._events.popleft()
        if self._waited_for and len(self._events) <= LOW:
            self._make_room()
        return event

    def _drop_all(self) -> None:
        self._events.clear()
        self._make_room()

    def _make_room(self) -> None:
        self._waited_for = False
        self._room()


@attrs.define(eq=False)
class _Pending:
    """An event that waits to be read; a delta collects the pieces that melt into it."""

    event: Event
    pieces: list[str] | None = None

    def take(self) -> Event:
        if self.pieces is None or not isinstance(self.event, _DELTAS):
            return self.event
        return attrs.evolve(self.event, text="".join(self.pieces))


class Merging(Reader):
    """Structural events always, deltas melted into the pending one of their part, never slowing the run.

    Over ``max_pending`` events, those of the session that has most are replaced by one ``Resync``, and so on until
    there is room. Where more sessions than that are told of, each may have one event more.
    """

    def __init__(self, forget: Callable[[Reader], None], *, max_pending: int = 1024) -> None:
        super().__init__(forget)
        self._max = max_pending
        self._limit = max_pending
        self._pending: deque[_Pending] = deque()
        self._melting: dict[tuple[str, str, int], _Pending] = {}

    def put(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, _DELTAS):
                self._melt(event)
            else:
                self._add(event)
        if len(self._pending) > self._limit:
            self._shrink()
        self._wake()

    def _add(self, event: Event) -> None:
        if event.structural and self._melting:
            session = event.origin.session
            self._melting = {key: item for key, item in self._melting.items() if key[0] != session}
        self._pending.append(_Pending(event))

    def _melt(self, event: TextDelta | ThinkingDelta | ToolInputDelta) -> None:
        key = (event.origin.session, event.message_id, event.part)
        pending = self._melting.get(key)
        if pending is None:
            pending = self._melting[key] = _Pending(event)
            self._pending.append(pending)
        elif pending.pieces is None:
            held = pending.event
            assert isinstance(held, _DELTAS)
            pending.pieces = [held.text, event.text]
        else:
            pending.pieces.append(event.text)

    def _shrink(self) -> None:
        """Replace whole sessions. A quarter is freed at a time, so that no event pays for a walk of its own."""
        left = len(self._pending)
        by_session: dict[str, list[Event]] = {}
        for item in self._pending:
            by_session.setdefault(item.event.origin.session, []).append(item.event)
        for session, events in sorted(by_session.items(), key=lambda entry: -len(entry[1])):
            if left <= self._max * 3 // 4 or len(events) == 1:
                break
            self._resync(session, events)
            left -= len(events) - 1
        self._limit = max(self._max, left + left // 4)

    def _resync(self, session: str, events: list[Event]) -> None:
        dropped = sum(event.dropped if isinstance(event, Resync) else 1 for event in events)
        self._pending = deque(item for item in self._pending if item.event.origin.session != session)
        self._melting = {key: item for key, item in self._melting.items() if key[0] != session}
        self._pending.append(_Pending(Resync(events[-1].origin, events[-1].seq, dropped)))

    def _has_events(self) -> bool:
        return bool(self._pending)

    def _next(self) -> Event:
        item = self._pending.popleft()
        if isinstance(item.event, _DELTAS):
            self._melting.pop((item.event.origin.session, item.event.message_id, item.event.part), None)
        return item.take()

    def _drop_all(self) -> None:
        self._pending.clear()
        self._melting.clear()


class Dropping(Merging):
    """Deltas only while fewer than ``max_pending`` events wait; ``dropped`` counts the others.

    What is structural is kept at the cost of deltas that wait; only where it alone is over ``max_pending`` it is
    replaced by a ``Resync``.
    """

    def __init__(self, forget: Callable[[Reader], None], *, max_pending: int = 1024) -> None:
        super().__init__(forget, max_pending=max_pending)
        self.dropped: int = 0

    def _melt(self, event: TextDelta | ThinkingDelta | ToolInputDelta) -> None:
        if len(self._pending) < self._max:
            self._pending.append(_Pending(event))
        else:
            self.dropped += 1

    def _shrink(self) -> None:
        before = len(self._pending)
        self._pending = deque(item for item in self._pending if not isinstance(item.event, _DELTAS))
        self.dropped += before - len(self._pending)
        if len(self._pending) > self._max:
            super()._shrink()
