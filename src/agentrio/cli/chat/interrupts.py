"""What Ctrl-C does in a chat, and SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import attrs
import trio


@attrs.define(eq=False)
class Interrupts:
    """The first stops the open run; the next one, or one without a run, cancels ``scope``; one more ends the process.

    SIGTERM cancels ``scope`` at once: the terminal is put in order, which the signal alone would leave without echo.
    ``stop`` says whether there was a run to stop that was not stopped before; ``left``, by which signal, if any.
    """

    stop: Callable[[], bool]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    left: int | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take the signals until cancelled."""
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                if self.left is not None:
                    kill(number)
                elif number == signal.SIGTERM or not self.stop():
                    self.left = number
                    self.scope.cancel()


def kill(number: int) -> None:
    """End as a program ends that takes no signals: a tool that ignores its cancellation can hold up the orderly way."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
