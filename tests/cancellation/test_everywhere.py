"""Runs are ended at every scheduler step, in every way, and the law of cancellation is held against each."""

from __future__ import annotations

import os

import pytest

from agentrio.testing import WAYS, cancel_everywhere
from tests.cancellation.scenarios import PLOTS, Player, Plot, scenario

FULL = os.environ.get("AGENTRIO_FULL") == "1"


def _named(plot: Plot) -> str:
    return plot.name


@pytest.mark.parametrize("player", ["scripted", "anthropic"])
@pytest.mark.parametrize("plot", PLOTS, ids=_named)
def test_wherever_a_run_is_ended_the_law_holds(plot: Plot, player: Player, capsys: pytest.CaptureFixture[str]) -> None:
    """One ending, and last; a history that providers take; nothing left behind; and the next prompt works."""
    report = cancel_everywhere(scenario(plot, player), steps="all" if FULL else "sample")
    with capsys.disabled():
        print(f"\n{report}", end=" ")
    report.check()
    for way in WAYS:
        assert report.tallies[way].cancels > 0, f"{way} never hit the run"
        assert report.tallies[way].endings["cancelled"] > 0
