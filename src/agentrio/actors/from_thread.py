"""What a plain tool awaits from its thread, by ``trio.from_thread.run``: a cancel of its call has to reach it.

The pool's threads can be abandoned. For such a thread Trio runs what it awaits in a system task, where no cancel of
the call arrives: a model that is asked there would stream on when the run was stopped, and when the runtime has closed.
Here it runs in the task that waits for the thread, as for any other thread of Trio, and once that was cancelled in a
task that is cancelled from the start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import attrs
import trio

# What Trio keeps for a thread that it started: of this much of it there is no public form. In a Trio that has it no
# more, things are as Trio has made them, and a test says so.
_OF_THREAD: Any = getattr(sys.modules.get("trio._threads"), "PARENT_TASK_DATA", None)


def let_cancels_through() -> None:
    """In a thread of ``trio.to_thread.run_sync(..., abandon_on_cancel=True)``, before it asks the loop for anything."""
    mine = _OF_THREAD
    if hasattr(mine, "token") and hasattr(mine, "task_register") and hasattr(mine, "abandon_on_cancel"):
        mine.token = _Door(mine.token, mine.task_register)
        mine.abandon_on_cancel = False


@attrs.define(eq=False)
class _Door:
    """Stands for the loop's token in one thread, which asks for one thing at a time.

    ``host`` is Trio's: a list of one, the task that waits for the thread, or None once that has been cancelled. What
    the thread asks for is handed to the task found there.
    """

    token: trio.lowlevel.TrioToken
    host: list[trio.lowlevel.Task | None]

    def run_sync_soon(self, hand_over: Callable[[], object]) -> None:
        """In the thread. Raises what Trio does where its loop is about to end."""
        taken: SimpleQueue[bool] = SimpleQueue()
        left = self.host[0] is None
        self.token.run_sync_soon(self._take, hand_over, taken)
        if left and not taken.get():
            raise trio.RunFinishedError("the loop ends, and takes nothing more")

    def _take(self, hand_over: Callable[[], object], taken: SimpleQueue[bool]) -> None:
        if self.host[0] is not None:
            hand_over()
            return
        try:
            trio.lowlevel.spawn_system_task(self._stand_in, hand_over)
        except RuntimeError:  # raised here, it would be the loop's crash
            taken.put(False)
        else:
            taken.put(True)

    async def _stand_in(self, hand_over: Callable[[], object]) -> None:
        self.host[0] = trio.lowlevel.current_task()
        self.token.run_sync_soon(hand_over)
        asked: Any = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
        self.host[0] = None
        with trio.CancelScope() as scope:  # noqa: ASYNC912  # it is cancelled from the start
            scope.cancel()
            if hasattr(asked, "run_sync"):
                asked.run_sync()
            else:
                await asked.run()
