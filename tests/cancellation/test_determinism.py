"""Trio's order of tasks can be fixed, with the two private names that this takes."""

from __future__ import annotations

import pytest
import trio

from agentrio.testing import NotDeterministic, deterministic_schedule


async def _order() -> list[int]:
    """In which order ten tasks take three steps each."""
    seen: list[int] = []

    async def step(number: int) -> None:
        for _ in range(3):
            seen.append(number)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(step, number)
    return seen


def _run(seed: int) -> list[int]:
    with deterministic_schedule(seed):
        return trio.run(_order)


def test_trio_still_has_what_the_schedule_is_fixed_with() -> None:
    """They are private names of Trio's. If this fails, look how Trio's own tests fix the order now."""
    assert trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING in (False, True)  # True where Hypothesis has set it
    assert trio._core._run._r.getstate()


def test_the_same_seed_gives_the_same_order() -> None:
    """A failure that a sweep found at step 57 must be found there again."""
    assert _run(1) == _run(1)


def test_seeds_give_different_orders() -> None:
    """Otherwise a sweep would see one order of tasks only, whatever its seed."""
    assert len({tuple(_run(seed)) for seed in range(5)}) > 1


def test_trio_is_as_it_was_after_the_block() -> None:
    """Other tests of the same process rely on Trio's shuffle."""
    switch, state = trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING, trio._core._run._r.getstate()
    _run(1)
    assert trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING is switch
    assert trio._core._run._r.getstate() == state


def test_a_trio_without_the_switch_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting steps in a random order would give failures that nobody can see again."""
    monkeypatch.delattr(trio._core._run, "_r")
    with pytest.raises(NotDeterministic, match="no _r in its scheduler"):
        with deterministic_schedule(0):
            pass
