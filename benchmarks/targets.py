"""What agentrio must keep to, as data: a measure, what it is held against, and the limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

Against: TypeAlias = Literal["L", "SDK", "agentrio", "value"]
Table: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]
"""Numbers by scenario and contender."""


@attrs.frozen
class Target:
    """``scenario``/``key`` of agentrio, divided by the same of ``against`` (or of ``base``), is at most ``limit``.

    With ``against="value"`` it is the number itself, times ``scale``, less ``minus`` of L.
    """

    what: str
    scenario: str
    key: str
    against: Against
    limit: float
    base: tuple[str, str] | None = None
    scale: float = 1.0
    minus_lean: bool = False
    unit: str = ""
    why: str = ""  # where the rest goes, where it is known to be hard to keep

    def measured(self, table: Table) -> float | None:
        """The number to hold against the limit; None where something was not measured."""
        try:
            value = table[self.scenario, "agentrio"][self.key]
            if self.against == "value":
                less = table[self.scenario, "L"][self.key] if self.minus_lean else 0.0
                return (value - less) * self.scale
            scenario, key = self.base or (self.scenario, self.key)
            return value / table[scenario, self.against][key]
        except KeyError:
            return None


ROUND = """\
Request and response cost about what they cost L; on top of that a round has six events, each numbered, folded, kept and
told (100 µs), a call in a task of the pool, checked and fingerprinted (90 µs), and the request's size, history and
limits looked at again (40 µs)."""
CALL = """\
A call costs about 90 µs more than its task: three events that are folded (20 µs), its own cancel scope, context and
place in the pool (25 µs), the check of its arguments (10 µs), its result as parts and on the wire. The fold would get
cheaper if a run's state held its calls apart from the rest."""
IDLE = """\
The texts themselves are 10 KB, of which the loops without a runtime keep one copy too; the same texts encoded for the
next request 11 KB (without them each round would walk the whole history), the messages as typed values 12 KB, and the
live session (task, nursery, mailbox, state) 12 KB; the rest is what the allocator does not give back. One encoded piece
for all but the last turns, and a mailbox that is made when it is first used, would save some 8 KB."""


def _value(what: str, scenario: str, key: str, limit: float, unit: str, scale: float = 1.0, why: str = "") -> Target:
    return Target(what, scenario, key, "value", limit, scale=scale, unit=unit, why=why)


def _stops() -> list[Target]:
    made: list[Target] = []
    places = {"stream": "in mid-stream", "silent": "on a silent stream", "before-headers": "before headers"}
    for where, words in places.items():
        scenario = f"S5a-{where}"
        made += [
            _value(f"stop {words}: the server sees the disconnect, median", scenario, "server", 5, "ms"),
            _value(f"stop {words}: the same, worst of 30", scenario, "server_worst", 50, "ms"),
            _value(f"stop {words}: control returns, median", scenario, "control", 5, "ms"),
            _value(f"stop {words}: invalid next requests, of 30", scenario, "invalid", 0, ""),
        ]
    made += [
        _value(f"stop {places[where]}: partial texts that were lost, of 30", f"S5a-{where}", "lost", 0, "")
        for where in ("stream", "silent")
    ]
    return made


def _streaming(wire: str = "", on: str = "") -> list[Target]:
    """The same ratios on each wire. ``wire`` stands before the scenarios' names, ``on`` before what is read."""
    one, fast, alone, round_, old = (f"{wire}{name}" for name in ("S1", "S2", "S2p", "S3", "S3h-2000"))
    early, none = (round_, "early"), (f"{wire}S3h-0", "cpu")
    return [
        Target(f"{on}S1, a one-shot run", one, "cpu", "L", 1.6, unit="L"),
        Target(f"{on}S1, a one-shot run", one, "cpu", "SDK", 0.7, unit="SDK"),
        Target(f"{on}S2, a delta of a fast stream", fast, "cpu", "L", 1.5, unit="L"),
        Target(f"{on}S2, a delta of a fast stream", fast, "cpu", "SDK", 0.5, unit="SDK"),
        Target(f"{on}S2p, a delta that comes alone", alone, "cpu", "L", 1.3, unit="L"),
        Target(f"{on}S3, a round with a trivial call", round_, "cpu", "L", 1.6, unit="L", why=ROUND),
        Target(f"{on}S3, rounds 41-50 beside rounds 1-10", round_, "late", "agentrio", 1.3, early),
        Target(f"{on}S3h, a round on 2,000 old messages beside none", old, "cpu", "agentrio", 1.5, none),
    ]


TARGETS: tuple[Target, ...] = (
    *_streaming(),
    *_streaming("chat/", "Chat Completions: "),
    *_streaming("responses/", "Responses: "),
    Target("S4, 64 calls side by side", "S4", "cpu", "L", 1.5, unit="L", why=CALL),
    _value("S4, wall time of the tools beside the ideal 50 ms", "S4", "wall", 1.1, "", 1 / 0.050),
    *_stops(),
    _value("stop while a read tool ignores it for 10 s: control returns, median", "S5b-ignores", "control", 5, "ms"),
    _value("stop while a tool honours it: the tool sees it, median", "S5b-honours", "tool", 2, "ms"),
    _value("stop while a tool honours it: invalid next requests, of 30", "S5b-honours", "invalid", 0, ""),
    _value("stop while a tool ignores it: invalid next requests, of 30", "S5b-ignores", "invalid", 0, ""),
    Target("S6, 200 sessions at once, a delta", "S6-200", "cpu", "L", 1.3, unit="L"),
    Target("S6, 1,000 sessions at once, a delta", "S6-1000", "cpu", "L", 1.3, unit="L"),
    _value("S6, memory of a live session", "S6-200", "rss", 90, "KB", 1 / 1024),
    _value("S6, sessions of 1,000 that did not finish", "S6-1000", "unfinished", 0, ""),
    Target("S7, importing it, more than L", "S7-import", "cpu", "value", 60, scale=1000, minus_lean=True, unit="ms"),
    _value("S7, memory of an idle session of 50 messages", "S7-idle", "rss", 40, "KB", 1 / 1024, IDLE),
    _value("S8, growth of memory beside a slow reader", "S8", "growth", 2, "MB", 1 / 1024 / 1024),
    _value("longest time that the loop stands still, SDK import included", "blocked", "gap", 100, "ms", 1000),
)
