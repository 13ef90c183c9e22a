"""What Ctrl-C does in a chat."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import attrs
import trio


@attrs.define(eq=False)
class Interrupts:
    """The first stops the open run; the next one, or one without a run, cancels ``scope``; one more ends the process.

    ``stop`` says whether there was a run to stop that was not stopped before.
    """

    stop: Callable[[], bool]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    left: bool = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take the signal until cancelled."""
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                if self.left:
                    kill()
                elif not self.stop():
                    self.left = True
                    self.scope.cancel()


def kill() -> None:
    """End as a program ends that takes no signals: a tool that ignores its cancellation can hold up the orderly way."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
