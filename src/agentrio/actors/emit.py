"""The way of a structural event: numbered, committed, published."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from agentrio.domain.events import StructuralEvent
from agentrio.stores.base import Journal

from .hub import Hub


class Emitter:
    """Numbers structural events, commits them, and publishes what is committed, in that order."""

    def __init__(self, hub: Hub, journal: Journal) -> None:
        self._hub = hub
        self._journal = journal
        self._turn = trio.StrictFIFOLock()

    async def emit(self, *events: StructuralEvent) -> None:
        """Publish a batch once it is committed. No checkpoint where the journal needs none."""
        await self.emit_when_due(lambda: events)

    async def emit_when_due(self, make: Callable[[], Sequence[StructuralEvent]]) -> None:
        """The same for a batch that depends on the state: made when all that came before is published."""
        try:
            self._turn.acquire_nowait()
        except trio.WouldBlock:
            await self._turn.acquire()
        try:
            events = make()
            for seq, event in enumerate(events, self._hub.state.session.seq + 1):
                object.__setattr__(event, "seq", seq)  # stamped once, before anyone has seen it
            if events:
                await self._journal.append(events)
                self._hub.publish(events)
        finally:
            self._turn.release()
