"""The sweep: a scenario is played undisturbed, then once for each way and point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import trio

from agentrio.testing.determinism import deterministic_schedule

from .report import Failure, Report, Tally
from .scenario import WAYS, Scenario, Way
from .stage import Stage

__all__ = ["cancel_everywhere"]

Points: TypeAlias = Literal["sample", "all"] | Sequence[int]

SAMPLE = 24  # points of each way in a sample


def cancel_everywhere(
    scenario: Scenario,
    *,
    ways: Sequence[Way] = WAYS,
    points: Points = "sample",
    seed: int = 0,
    sample: int = SAMPLE,
) -> Report:
    """Play a scenario once undisturbed, then end it in each of the ways at each of the points, and judge each replay.

    Call it outside of Trio: every replay is a ``trio.run`` of its own, on a virtual clock, its order of tasks fixed by
    ``seed``. ``points`` is ``"all"``, or ``"sample"`` (``sample`` points of each way, spread evenly, the same each
    time), or the numbers that a failure named. Scenarios that broke the law are in ``failures``; ``check()`` raises
    for them.
    """
    report = Report(scenario.name)
    _replay(scenario, None, 0, seed)  # what is slow only once (imports, certificates) is no part of the count
    calm = _replay(scenario, None, 0, seed)
    if calm.problems:
        report.failures.append(Failure(None, 0, seed, tuple(calm.problems)))
        return report
    for way in ways:
        able = _points(scenario, calm, way)
        steps = 0 if way == "within" or scenario.threads else len(able) // 2
        tally = report.tallies[way] = Tally(steps, len(able))
        for point in _chosen(able, points, sample):
            _count(report, tally, _replay(scenario, way, point, seed), seed)
    return report


def _replay(scenario: Scenario, way: Way | None, point: int, seed: int) -> Stage:
    stage = Stage(scenario, way, point, seed)
    with deterministic_schedule(seed):
        trio.run(stage.perform, clock=stage.clock, instruments=[stage.stepper])
    return stage


def _points(scenario: Scenario, calm: Stage, way: Way) -> range:
    """Where a way can act: one step before there is anything to end, to one behind."""
    marks = calm.marks
    if way == "within" or scenario.threads:
        return range(1, calm.visits + 1)
    if way == "stop":
        return _between(marks.accepted - 2, marks.ended + 2)
    if way == "run scope":
        return _between(marks.accepted - 2, marks.left + 2)
    return _between(1, marks.over)


def _between(first: float, last: float) -> range:
    return range(0) if math.inf in (first, last) else range(max(1, int(first)), int(last) + 1)


def _chosen(able: range, points: Points, sample: int) -> Sequence[int]:
    if points == "all":
        return able
    if points != "sample":
        return [point for point in points if isinstance(point, int)]
    if len(able) <= sample:
        return able
    return sorted({able[_spread(index, len(able), sample)] for index in range(sample)})


def _spread(index: int, among: int, sample: int) -> int:
    """The place of a sampled point: spread evenly, and before and behind a step by turns."""
    place = index * (among - 1) // (sample - 1)
    return place - 1 if place and place % 2 != index % 2 else place


def _count(report: Report, tally: Tally, stage: Stage, seed: int) -> None:
    tally.replays += 1
    tally.cancels += stage.hit
    ending = "not accepted" if stage.run is None else getattr(stage.run.outcome, "status", "no ending")
    tally.endings[ending] += 1
    if stage.latency is not None:
        tally.slowest = max(tally.slowest, stage.latency[0])
        tally.longest = max(tally.longest, stage.latency[1])
    if stage.problems:
        report.failures.append(Failure(stage.way, stage.point, seed, tuple(stage.problems)))
