"""What Ctrl-C does in a chat, and SIGTERM, and a terminal that is closed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType

import attrs
import trio

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOST_UNTAKEN = {signal.SIGINT: 2, signal.SIGTERM: 1}  # the first Ctrl-C stops the run, the second leaves
LAST_WORDS = 10.0  # seconds to end in order in when the terminal is gone: nobody is there to press once more


@attrs.define(eq=False)
class Interrupts:
    """The first stops the open run; the next one, or one without a run, cancels ``scope``; one more ends the process.

    SIGTERM cancels ``scope`` at once: the terminal is put in order, which the signal alone would leave without echo.
    So does SIGHUP, for tools that are at work when the terminal is closed; it comes from the kernel and from the shell,
    so the second one means no more than the first. ``stop`` says whether there was a run to stop that was not stopped
    before; ``left``, by which signal, if any.

    A loop that is held up, by a tool that blocks it or an output that nobody reads, takes no signals. One more than it
    would have needed ends the process.
    """

    stop: Callable[[], bool]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    left: int | None = None
    _untaken: Counter[int] = attrs.field(factory=Counter)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take the signals until cancelled. Those that were ignored from the beginning, as by nohup, stay so."""
        taken = [number for number in NUMBERS if signal.getsignal(number) != signal.SIG_IGN]
        if not taken:
            task_status.started()
            return
        try:
            with trio.open_signal_receiver(*taken) as signals, _told_first(taken, self._count):
                task_status.started()
                async for number in signals:
                    self._untaken.clear()
                    if self.left is not None:
                        if number != signal.SIGHUP:
                            kill(number)
                    elif number != signal.SIGINT or not self.stop():
                        self.left = number
                        self.scope.cancel()
        finally:
            if self.left == signal.SIGHUP:
                signal.setitimer(signal.ITIMER_REAL, 0)  # it did end in order

    def _count(self, number: int) -> None:
        """Called in the middle of whatever the main thread does."""
        self._untaken[number] += 1
        most = MOST_UNTAKEN.get(signal.Signals(number))
        if most is None:
            signal.setitimer(signal.ITIMER_REAL, LAST_WORDS)  # SIGALRM ends the process
        elif self._untaken[number] > most:
            kill(number)


@contextmanager
def _told_first(numbers: Sequence[int], tell: Callable[[int], None]) -> Generator[None]:
    """Tell of these signals before the handlers that they have."""
    found = {number: signal.getsignal(number) for number in numbers}

    def handle(number: int, frame: FrameType | None) -> None:
        tell(number)
        handler = found[number]
        assert callable(handler)
        handler(number, frame)

    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in found.items():
            signal.signal(number, handler)


def kill(number: int) -> None:
    """End as a program ends that takes no signals: a tool that ignores its cancellation can hold up the orderly way."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
