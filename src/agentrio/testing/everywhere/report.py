"""What a sweep has to tell."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import attrs

from .scenario import Way

__all__ = ["CancelFailed", "Failure", "Report", "Tally"]

SHOWN = 5  # failures that an exception spells out


class CancelFailed(AssertionError):
    """The law of cancellation does not hold for a scenario. ``failures`` says where, and how to see it again."""

    def __init__(self, scenario: str, failures: Sequence[Failure]) -> None:
        self.failures: tuple[Failure, ...] = tuple(failures)
        lines = [f"{scenario!r}: the law is broken in {len(failures)} replays"]
        lines += [str(failure) for failure in failures[:SHOWN]]
        if len(failures) > SHOWN:
            lines.append(f"... and {len(failures) - SHOWN} more")
        super().__init__("\n".join(lines))


@attrs.frozen
class Failure:
    """One replay that broke the law. ``way`` is None for the replay that nothing ended."""

    way: Way | None
    point: int
    seed: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        head = "undisturbed" if self.way is None else f"ways=[{self.way!r}], points=[{self.point}], seed={self.seed}"
        return "\n".join([f"- {head}:", *(f"    {_indented(problem)}" for problem in self.problems)])


def _indented(text: str) -> str:
    return text.rstrip().replace("\n", "\n      ")


@attrs.define
class Tally:
    """What one way came to: ``points`` it could act at, ``replays`` made, ``cancels`` that found something to end.

    ``steps`` are the scheduler's steps that the points lie round: half as many, or none where the points are events and
    tools.

    ``endings`` counts how the accepted runs ended, by status, and under ``not accepted`` the replays without one.
    ``slowest`` is the most scheduler steps, of all tasks, from the act to the run's ending; ``longest`` the same in
    seconds of the replay's clock.
    """

    steps: int = 0
    points: int = 0
    replays: int = 0
    cancels: int = 0
    endings: collections.Counter[str] = attrs.field(factory=collections.Counter)
    slowest: int = 0
    longest: float = 0.0

    def __str__(self) -> str:
        endings = ", ".join(f"{count} {status}" for status, count in sorted(self.endings.items()))
        return (
            f"{self.steps:5} steps {self.points:5} points {self.replays:5} replays {self.cancels:5} cancels; "
            f"ending at most {self.slowest} steps and {self.longest:.3f} s later; {endings}"
        )


@attrs.define
class Report:
    """A sweep over one scenario. ``str()`` is a table; ``check()`` raises where the law was broken."""

    scenario: str
    tallies: dict[Way, Tally] = attrs.field(factory=dict)
    failures: list[Failure] = attrs.field(factory=list)

    @property
    def steps(self) -> int:
        """Scheduler steps that could be acted at, over all ways."""
        return sum(tally.steps for tally in self.tallies.values())

    @property
    def cancels(self) -> int:
        """Acts that found something to end, over all ways."""
        return sum(tally.cancels for tally in self.tallies.values())

    @property
    def endings(self) -> collections.Counter[str]:
        """How the accepted runs ended, over all ways."""
        return sum((tally.endings for tally in self.tallies.values()), collections.Counter[str]())

    def check(self) -> None:
        """Raise ``CancelFailed`` if a replay broke the law."""
        if self.failures:
            raise CancelFailed(self.scenario, self.failures)

    def __str__(self) -> str:
        lines = [f"{self.scenario}: {len(self.failures)} failures"]
        lines += [f"  {way:14}{tally}" for way, tally in self.tallies.items()]
        return "\n".join(lines)
