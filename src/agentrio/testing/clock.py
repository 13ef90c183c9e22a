"""A clock that jumps over idle time, and holds while a thread is in flight.

Trio's own autojump clock jumps to the next deadline whenever every task is blocked. A task that waits for a worker
thread is blocked too, so every timeout of the program fires while the thread is still working. This clock waits for
the thread first.

The clock installs an instrument in its own run, and that instrument sees an I/O wait come to its end with nobody made
runnable. Of Trio, only public parts are used but for one: its own frames alone tell which threads wait for the loop.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import trio
import trio.testing

__all__ = ["HoldingClock"]

NEVER = 999_999_999.0  # seconds; what Trio's own mock clock answers for "no timeout"


class HoldingClock(trio.abc.Clock):
    """Virtual time: jumps to the next deadline when all is idle, but never past a thread that is at work.

    Hand it to ``trio.run(main, clock=HoldingClock())``, or ask for the fixture ``holding_clock``. One clock serves
    one run.

    What it cannot see, and what to do:

    - A timeout that shall fire *while* a thread is blocked: time stands still, so it does not come. Give
      ``rate_while_held=1.0`` (time then passes as on the wall while a thread is in flight) or call `jump`. A thread
      that waits for the loop (``trio.from_thread.run(trio.sleep, 5)``) does not hold it meanwhile.
    - Threads not started by ``trio.to_thread`` and other processes: wrap the wait in ``with clock.hold():``.
    - A thread that was abandoned (``abandon_on_cancel=True``, then cancelled) no longer holds the clock.
    - ``wait_all_tasks_blocked(cushion)`` goes before a jump only if its cushion is below ``idle``.
    """

    def __init__(self, *, idle: float = 0.001, rate_while_held: float = 0.0) -> None:
        """Make a clock.

        Args:
            idle: Real seconds that all tasks must be blocked before a jump; above zero, so that
                ``wait_all_tasks_blocked()`` goes first.
            rate_while_held: Virtual seconds per real second while a thread is in flight or `hold` is open.

        Raises:
            ValueError: ``idle`` is not above zero, or the rate is negative.
        """
        if not idle > 0:
            raise ValueError("idle must be above 0: at 0, a jump would overtake wait_all_tasks_blocked()")
        if rate_while_held < 0:
            raise ValueError("rate_while_held must not be negative")
        self._idle = idle
        self._rate_while_held = rate_while_held
        self._time = trio.testing.MockClock()
        self._holds = 0
        self._abandoned: Callable[[], int] = lambda: 0
        self._offer = NEVER
        self.jumps: int = 0

    def __repr__(self) -> str:
        return f"<HoldingClock time={self.current_time():.6f} jumps={self.jumps} holds={self._holds}>"

    @property
    def held(self) -> bool:
        """Whether the clock holds right now. Call it inside the Trio run."""
        if self._holds > 0:
            return True
        abandoned = self._abandoned()
        threads = trio.testing.active_thread_count() + abandoned
        if threads == 0:
            return False
        asked = trio.lowlevel.current_statistics().run_sync_soon_queue_size  # and the loop has not looked yet
        return asked > 0 or threads > _waiting_for_the_loop(abandoned=abandoned > 0)

    @contextmanager
    def hold(self, abandoned: Callable[[], int] | None = None) -> Generator[None]:
        """Keep the clock from jumping inside the block, for work that Trio does not count (see the class).

        With ``abandoned``, threads that were abandoned hold as others do: while they are at work, and do not wait for
        the loop. It says how many there are just now.
        """
        before = self._abandoned
        if abandoned is None:
            self._holds += 1
        else:
            self._abandoned = abandoned
        try:
            yield
        finally:
            self._abandoned = before
            self._holds -= abandoned is None

    def jump(self, seconds: float) -> None:
        """Go forward by hand, held or not. A negative number is a `ValueError`."""
        self._time.jump(seconds)

    def start_clock(self) -> None:
        """Part of Trio's protocol: called once, at the start of the run."""
        trio.lowlevel.add_instrument(_Jumper(self))

    def current_time(self) -> float:
        """Virtual seconds since the clock was made."""
        return self._time.current_time()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Part of Trio's protocol: real seconds to wait for I/O when no task can run."""
        held = self.held
        self._time.rate = self._rate_while_held if held else 0.0
        wait = self._time.deadline_to_sleep_time(deadline)
        if held or wait == 0 or math.isinf(deadline):
            self._offer = NEVER
            return wait
        self._offer = self._idle
        return self._idle

    def _waited(self, timeout: float) -> None:
        # Another timeout than ours means that somebody else is to be woken: a runnable task, or a task in
        # wait_all_tasks_blocked, which goes first.
        offer, self._offer = self._offer, NEVER
        if timeout != offer or offer == NEVER or self.held:
            return
        statistics = trio.lowlevel.current_statistics()
        if statistics.tasks_runnable == 0 and 0 < statistics.seconds_to_next_deadline < math.inf:
            self.jumps += 1
            self._time.jump(statistics.seconds_to_next_deadline)


def _waiting_for_the_loop(*, abandoned: bool) -> int:
    """How many threads wait for what they asked of the loop: a task is at work for each, so none goes on before it."""
    waiting = 0
    tasks = [trio.lowlevel.current_root_task()]
    while tasks:
        task = tasks.pop()
        if task is not None:
            waiting += _works_for_a_thread(task, abandoned)
            tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return waiting


def _works_for_a_thread(task: trio.lowlevel.Task, abandoned: bool) -> bool:
    # Trio tells nobody; its own frames do. Where a new Trio has others, a thread holds the clock, and a test says so.
    frames = {frame.f_code.co_name: frame for frame, _ in task.iter_await_frames() if _is_trios(frame)}
    if "run" not in frames and "run_system" not in frames:
        return False
    if abandoned or "to_thread_run_sync" in frames:
        return True
    return "run_system" in frames and _is_awaited(frames["run_system"].f_locals["self"])


def _is_awaited(message: object) -> bool:
    """Whether the thread that has asked this was not abandoned meanwhile."""
    for top in sys._current_frames().values():
        asking: FrameType | None = top
        asks = False
        while asking is not None:
            if _is_trios(asking) and asking.f_code.co_name == "_send_message_to_trio":
                asks = asking.f_locals["message_to_trio"] is message
            elif asks and _is_trios(asking) and asking.f_code.co_name == "worker_fn":
                return asking.f_locals["task_register"][0] is not None
            asking = asking.f_back
    return False


def _is_trios(frame: FrameType) -> bool:
    return frame.f_code.co_filename == _THREADS


_THREADS = trio.to_thread.run_sync.__code__.co_filename


class _Jumper(trio.abc.Instrument):
    """Tells the clock that a wait for I/O is over."""

    def __init__(self, clock: HoldingClock) -> None:
        self._clock = clock

    def after_io_wait(self, timeout: float) -> None:
        self._clock._waited(timeout)  # one room: the instrument is the clock's other half
