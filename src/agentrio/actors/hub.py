"""How a session's events reach its readers: one synchronous publish, and one place where the run waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

import trio

from agentrio.domain.errors import WouldDeadlock
from agentrio.domain.events import DraftSnapshot, Event, Origin, Resync, StructuralEvent
from agentrio.domain.parts import Part
from agentrio.domain.state import SessionState, fold

from .readers import Lossless, Merging, Reader
from .supervise import log

PENDING = 1024  # events that a live reader may lag behind, beside what is replayed to it
KEPT = 4096  # structural events kept for ``events(after=)``; some hundred runs

R = TypeVar("R", bound=Reader)

Draft = Callable[[], tuple[str, tuple[Part, ...]]]


class Hub:
    """A session's state and its readers. Whoever publishes folds: the state is never behind the events."""

    def __init__(self, state: SessionState, taps: Sequence[Reader] = ()) -> None:
        self.state: SessionState = state
        self.draft: Draft | None = None
        self._readers: list[Reader] = []
        self._taps = taps  # the runtime's subscriptions; it owns the list
        self._log: deque[StructuralEvent] = deque(maxlen=KEPT)
        self._waiting = trio.lowlevel.ParkingLot()
        self._ended = False

    def publish(self, events: Sequence[StructuralEvent]) -> None:
        """Fold structural events, which have their ``seq`` already, and tell everyone, at once; never waits."""
        self.state = fold(self.state, events)
        self._log.extend(events)
        self.tell(events)

    def tell(self, events: Sequence[Event]) -> None:
        """Publish events that are not structural: the path of every delta."""
        broken: list[Reader] = []
        for reader in self._readers:
            try:
                reader.put(events)
            except Exception:
                broken.append(reader)
                log.exception("a reader of session %s failed, and is closed", self.state.session.id)
        for tap in self._taps:
            try:
                tap.put(events)
            except Exception:
                broken.append(tap)
                log.exception("a subscriber failed at an event of session %s, and is closed", self.state.session.id)
        for reader in broken:  # it is its reader's loss, not the run's
            reader.close()

    async def room(self, needed: Callable[[], bool] | None = None) -> None:
        """Wait until no reader of this session is full. Without a full one this is no checkpoint.

        Where ``needed`` says no, there is nothing to wait for; it is asked again after each ``make_room``.
        """
        while self._is_full() and (needed is None or needed()):
            await self._waiting.park()

    def _is_full(self) -> bool:
        for reader in self._readers:  # noqa: SIM110  # asked per read of a socket: no generator
            if reader.full:
                return True
        return False

    def read_run(self, run: str) -> Lossless:
        """A reader of everything from now on that ends with the run."""
        return self.join(Lossless(self.forget, self.make_room, run=run))

    def read_after(self, cursor: int | None, origin: Origin) -> Merging:
        """A reader that replays the structural events behind the cursor, then goes live.

        ``None`` is now. Where older events are no longer kept, the first one is a ``Resync``.
        """
        missed = [] if cursor is None else [event for event in self._log if event.seq > cursor]
        reader = Merging(self.forget, max_pending=PENDING + len(missed))
        seq = self.state.session.seq
        lost = 0 if cursor is None else seq - len(missed) - cursor
        if lost > 0:
            reader.put([Resync(origin, seq - len(missed), lost)])
        if missed:
            reader.put(missed)
        if self.draft is not None:
            message_id, parts = self.draft()
            reader.put([DraftSnapshot(origin, seq, message_id, parts)])
        return self.join(reader)

    def make_room(self) -> None:
        """A reader has room again, or is gone."""
        self._waiting.unpark_all()

    def refuse_reader(self, run: str | None, verb: str) -> None:
        """Raise ``WouldDeadlock`` where this task waits for a run, an open one or the next, that waits for its reading.

        It is known by having entered the block, or by having begun to iterate there; where another one iterates, that
        one reads.
        """
        task = trio.lowlevel.current_task()
        for reader in self._readers:
            if isinstance(reader, Lossless) and reader.holds_back(run) and reader.read_by is task:
                raise WouldDeadlock(reader.why_not_wait(verb))

    def end(self) -> None:
        """The session is over: every reader ends behind what it has, also one that joins later."""
        self._ended = True
        for reader in list(self._readers):
            reader.end()

    def join(self, reader: R) -> R:
        """Add a reader of everything from now on."""
        self._readers.append(reader)
        if self._ended:
            reader.end()
        return reader

    def forget(self, reader: Reader) -> None:
        """A reader is gone."""
        self._readers.remove(reader)
        self.make_room()
