"""Who gets a message that waits: the run that adds it to the conversation, or the user who takes it back."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.define(eq=False)
class Waiting:
    """Decides between the two at once, although what either does about it takes its time.

    ``underway`` are messages that were accepted and are not in the queue yet, ``taken_back`` those that the user has
    and that are in the queue still, ``joining`` the one that a run is adding.
    """

    underway: set[str] = attrs.field(factory=set)
    taken_back: set[str] = attrs.field(factory=set)
    joining: str | None = None

    def any(self, queue: Iterable[str]) -> bool:
        """Whether a message waits that nobody has taken back; ``queue`` are the ids of the queue."""
        return any(id not in self.taken_back for id in (*self.underway, *queue))

    def may_take_back(self, id: str, queue: Iterable[str]) -> bool:
        """Whether the user gets it back if he wants it."""
        free = id not in self.taken_back and id != self.joining
        return free and (id in self.underway or id in queue)

    def join(self, id: str) -> bool:
        """A run wants to add it; whether it may."""
        if id in self.taken_back:
            return False
        self.joining = id
        return True
