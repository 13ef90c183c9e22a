"""Trio's order of tasks, made the same in every run with the same seed.

Trio shuffles the tasks that are ready, so that nobody comes to rely on an order. Its own tests make the shuffle
repeatable by two private names. They are used here and nowhere else; a test says so when a new Trio drops them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import trio

__all__ = ["NotDeterministic", "deterministic_schedule"]

FLAG = "_ALLOW_DETERMINISTIC_SCHEDULING"
SOURCE = "_r"


class NotDeterministic(RuntimeError):
    """This Trio has no longer what a repeatable order of tasks is made with."""


@contextmanager
def deterministic_schedule(seed: int) -> Generator[None]:
    """Every ``trio.run`` started in this block takes its tasks in an order that depends on the seed alone.

    It covers one ``trio.run``, or several whose order is fixed too; what the operating system decides (threads,
    sockets to other processes) stays as it is. Trio is as it was after the block.

    Raises:
        NotDeterministic: this Trio has no such switch.
    """
    scheduler: Any = trio._core._run
    missing = [name for name in (FLAG, SOURCE) if not hasattr(scheduler, name)]
    if missing:
        raise NotDeterministic(f"trio {trio.__version__} has no {' and no '.join(missing)} in its scheduler")
    was, source = getattr(scheduler, FLAG), getattr(scheduler, SOURCE)
    state = source.getstate()
    setattr(scheduler, FLAG, True)
    source.seed(seed)
    try:
        yield
    finally:
        setattr(scheduler, FLAG, was)
        source.setstate(state)
