"""Counting the scheduler's steps of some tasks, and acting at one of them."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import attrs
import trio

__all__ = ["Stepper"]

RUNAWAY = 200_000  # steps of all tasks; far more than any scenario takes, soon reached by a loop that spins


@attrs.define(eq=False)
class Stepper(trio.abc.Instrument):
    """Counts points in the life of the adopted tasks and their descendants, and calls ``act`` at point ``at``.

    Each step has two: just before it, when what the task waited for has come, and just behind it, when the task waits
    again, perhaps for long. ``tools`` are called before each step of their task, ``watch`` after every step of any
    task, and ``total`` counts those. ``faults`` are exceptions of all these, which Trio would only log. ``runaway`` is
    called once, when tasks take steps without end.
    """

    at: int | None
    act: Callable[[], None]
    watch: Callable[[], None]
    runaway: Callable[[], None]
    points: int = 0
    total: int = 0
    counting: bool = True
    faults: list[str] = attrs.field(factory=list)
    tools: dict[trio.lowlevel.Task, Callable[[trio.lowlevel.Task], None]] = attrs.field(factory=dict)
    _ours: set[trio.lowlevel.Task] = attrs.field(factory=set)

    def adopt(self, task: trio.lowlevel.Task) -> None:
        """Count this task and whatever it will start."""
        self._ours.add(task)

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """Part of Trio's protocol."""
        if task.parent_nursery is not None and task.parent_nursery.parent_task in self._ours:
            self._ours.add(task)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        """Part of Trio's protocol."""
        self._ours.discard(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Part of Trio's protocol."""
        try:
            if task in self.tools:
                self.tools[task](task)
            self._step(task)
        except Exception:
            self.faults.append(traceback.format_exc())

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Part of Trio's protocol."""
        try:
            self._point(task)
            self.watch()
        except Exception:
            self.faults.append(traceback.format_exc())

    def _step(self, task: trio.lowlevel.Task) -> None:
        self.total += 1
        if self.total == RUNAWAY:
            self.runaway()
        self._point(task)

    def _point(self, task: trio.lowlevel.Task) -> None:
        if self.counting and task in self._ours:
            self.points += 1
            if self.points == self.at:
                self.act()
