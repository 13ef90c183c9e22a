"""The calls of one round on a shared time line."""

from __future__ import annotations

import attrs

from agentrio.domain.parts import CallStatus, ToolCall

BAR = 28  # cells of the time line


@attrs.define
class Row:
    """One call. Times are seconds on any one clock; ``place`` is its rank among those that have returned."""

    call: ToolCall
    started: float | None = None
    returned: float | None = None
    place: int = 0
    progress: str = ""
    status: CallStatus | None = None


@attrs.define(eq=False)
class CallBoard:
    """Collects what the events say of a round's calls, in call order."""

    rows: dict[str, Row] = attrs.field(factory=dict)
    _finished: set[str] = attrs.field(factory=set)

    def propose(self, call: ToolCall) -> None:
        """The model has asked for a call."""
        self.rows[call.id] = Row(call)

    def start(self, call_id: str, now: float) -> None:
        """A call begins."""
        self.rows[call_id].started = now

    def tell(self, call_id: str, text: str, done: float | None, total: float | None) -> None:
        """A call tells how far it is."""
        share = f" {done:g} of {total:g}" if done is not None and total is not None else ""
        self.rows[call_id].progress = f"{text}{share}".strip()

    def give_back(self, call_id: str, now: float, status: CallStatus) -> None:
        """A call has returned."""
        row = self.rows[call_id]
        row.returned, row.status = now, status
        row.place = sum(other.returned is not None for other in self.rows.values())

    def finish(self, call_id: str, status: CallStatus) -> bool:
        """A call has its result; whether all have. One that never returned was cancelled, or not started."""
        self.rows[call_id].status = status
        self._finished.add(call_id)
        return len(self._finished) == len(self.rows)

    def bar(self, row: Row, now: float) -> str:
        """When the call ran, as a stretch of the time line that all share."""
        if row.started is None:
            return ""
        start, end = self._span(now)
        scale = BAR / (end - start or 1.0)
        before = int((row.started - start) * scale)
        length = max(1, round(((now if row.returned is None else row.returned) - row.started) * scale))
        return " " * before + "█" * min(length, BAR - before)

    def state(self, row: Row, now: float) -> str:
        """How the call stands, in words."""
        if row.started is None:
            return "waits" if row.status is None else row.status
        if row.returned is None:
            return row.progress if row.status is None else row.status
        failed = "" if row.status == "succeeded" else f", {row.status}"
        return f"{row.returned - row.started:.2f} s, returned {_nth(row.place)}{failed}"

    def summary(self) -> str:
        """What running side by side was worth; empty unless two calls or more have returned."""
        took = [row.returned - row.started for row in self.rows.values() if row.started and row.returned]
        if len(took) < 2:
            return ""
        start, end = self._span(0.0)
        return (
            f"{len(took)} calls took {end - start:.2f} s together; one after another they would have taken "
            f"{sum(took):.2f} s."
        )

    def _span(self, now: float) -> tuple[float, float]:
        starts = [row.started for row in self.rows.values() if row.started is not None]
        ends = [row.returned for row in self.rows.values() if row.returned is not None]
        open_ones = any(row.started is not None and row.returned is None for row in self.rows.values())
        return min(starts), max([*ends, now] if open_ones else ends)


def _nth(place: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(place, f"{place}th")
