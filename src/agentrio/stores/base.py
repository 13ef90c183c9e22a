"""What the runtime asks of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentrio.domain.events import StructuralEvent


class Journal(Protocol):
    """Where a session's structural events are committed before anyone sees them."""

    async def append(self, batch: Sequence[StructuralEvent]) -> None:
        """Commit a batch, whole or not at all. One that need not wait returns without a checkpoint.

        An implementation that waits shields its commit with a deadline of its own: what is on its way to the disk
        can't be taken back by a cancel.
        """


class NullJournal:
    """Commits nothing: the session lives as long as its process."""

    async def append(self, batch: Sequence[StructuralEvent]) -> None:
        """Return at once."""
