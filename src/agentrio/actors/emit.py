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
        self._taken = False
        self._next = trio.lowlevel.ParkingLot()

    async def emit(self, *events: StructuralEvent) -> None:
        """Publish a batch once it is committed. No checkpoint where the journal needs none."""
        if self._taken:
            await self._next.park()
        self._taken = True
        try:
            await self._commit(events)
        finally:
            self._pass_on()

    async def emit_when_due(self, make: Callable[[], Sequence[StructuralEvent]]) -> None:
        """The same for a batch that depends on the state: made when all that came before is published."""
        if self._taken:
            await self._next.park()
        self._taken = True
        try:
            await self._commit(make())
        finally:
            self._pass_on()

    async def _commit(self, events: Sequence[StructuralEvent]) -> None:
        if not events:
            return
        for seq, event in enumerate(events, self._hub.state.session.seq + 1):
            object.__setattr__(event, "seq", seq)  # stamped once, before anyone has seen it
        await self._journal.append(events)
        self._hub.publish(events)

    def _pass_on(self) -> None:
        """Whoever has waited longest has the turn from here on, before its task has even woken: nobody overtakes."""
        if self._next:
            self._next.unpark()
        else:
            self._taken = False
