"""Runs are ended at every scheduler step, in every way, and the law of cancellation is held against each."""

from __future__ import annotations

from typing import Any

import pytest

from agentrio import Limits
from agentrio.testing import WAYS, Report, cancel_everywhere
from tests.cancellation.scenarios import PLOTS, Player, Plot, scenario

SAMPLE = 12  # points of each way in the usual run; about every fifth of a scenario's steps
SEEDS = range(3)  # orders of tasks in the full run
ON_OTHER_WIRES = ("text", "four reads", "stream retry")
UNDER_LIMITS = ("read, write, read", "stubborn read", "stubborn write")
MOST_STEPS = 24  # of all tasks, from a stop to the run's ending


def _named(plot: Plot) -> str:
    return plot.name


every_plot = pytest.mark.parametrize("plot", PLOTS, ids=_named)
every_player = pytest.mark.parametrize("player", ["scripted", "anthropic"])


@every_player
@every_plot
def test_wherever_a_run_is_ended_the_law_holds(plot: Plot, player: Player, capsys: pytest.CaptureFixture[str]) -> None:
    """One ending, and last; a history that providers take; nothing left behind; and the next prompt works."""
    report = cancel_everywhere(scenario(plot, player), sample=SAMPLE)
    _told(report, capsys)
    for way in WAYS:
        tally = report.tallies[way]
        assert tally.cancels > 0, f"{way} never hit the run"
        assert tally.endings["cancelled"] > 0
        assert tally.slowest <= MOST_STEPS


other_wires = pytest.mark.parametrize("player", ["openai chat", "openai responses"])
plots_there = pytest.mark.parametrize("plot", [plot for plot in PLOTS if plot.name in ON_OTHER_WIRES], ids=_named)


@other_wires
@plots_there
def test_on_every_wire_the_law_holds(plot: Plot, player: Player, capsys: pytest.CaptureFixture[str]) -> None:
    """Providers share their sending and reading, but each has its own way to begin and to end."""
    _told(cancel_everywhere(scenario(plot, player), sample=SAMPLE), capsys)


@pytest.mark.sweep
@other_wires
@every_plot
def test_on_every_wire_the_law_holds_at_every_single_step(
    plot: Plot, player: Player, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same without a sample, in every plot."""
    _told(cancel_everywhere(scenario(plot, player), **_all_points(plot)), capsys)


@pytest.mark.parametrize(
    "limits",
    [
        Limits(stop_grace=0.001),
        Limits(unwind_grace=0),
        Limits(deadline=0.15),
        Limits(call_timeout=0.05),
        Limits(max_parallel_calls=1),
    ],
    ids=["less grace than reads get", "no grace for reads", "a deadline", "a timeout of calls", "one call at a time"],
)
@pytest.mark.parametrize("plot", [plot for plot in PLOTS if plot.name in UNDER_LIMITS], ids=_named)
def test_under_limits_of_every_kind_the_law_holds(
    plot: Plot, limits: Limits, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deadlines and timeouts are cancels too, and meet the others at every step."""
    _told(cancel_everywhere(scenario(plot, "scripted", limits), sample=SAMPLE // 2), capsys)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@every_player
@every_plot
def test_at_every_single_step_the_law_holds(
    plot: Plot, player: Player, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same without a sample, in several orders of tasks."""
    _told(cancel_everywhere(scenario(plot, player), **_all_points(plot), seed=seed), capsys)


def _all_points(plot: Plot) -> dict[str, Any]:
    """Every step; of hundreds that are alike, some."""
    return {"sample": 60} if plot.alike else {"points": "all"}


def _told(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{report}", end=" ")
    report.check()
