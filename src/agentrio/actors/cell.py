"""A run as others see it: the handle that is public, and behind it the cell that the run writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any

import trio

from agentrio.domain.errors import RunNotEnded, RunSuspendedError, WouldDeadlock
from agentrio.domain.status import RunResult, Suspension

from .supervise import log, refuse_other_thread
from .tool_pool import Work

current_run: ContextVar[RunCell | None] = ContextVar("agentrio_current_run", default=None)


class Run:
    """One run of a session: its outcome once it has one, and ``stop()``."""

    def __init__(self, cell: RunCell) -> None:
        self._cell = cell

    def __repr__(self) -> str:
        return f"<Run {self.id} {'open' if self.outcome is None else self.outcome}>"

    @property
    def id(self) -> str:
        """The run's id."""
        return self._cell.id

    @property
    def session_id(self) -> str:
        """The id of the run's session."""
        return self._cell.session_id

    @property
    def outcome(self) -> RunResult[Any] | Suspension | None:
        """How the run ended or came to rest; None while it is open."""
        return self._cell.outcome

    @property
    def result(self) -> RunResult[Any]:
        """How the run ended.

        Raises:
            RunNotEnded: it has not.
            RunSuspendedError: it is suspended, and will end another time.
        """
        return self._cell.result

    @property
    def stopping(self) -> bool:
        """Whether it has been stopped, or its deadline has passed, and it is on its way to its end."""
        return self._cell.stopping

    def stop(self, *, reason: str | None = None) -> bool:
        """Cancel the run at once; whether there was one to cancel. The first reason wins.

        The run settles, then tells ``RunEnded`` with status ``cancelled``; ``wait()`` waits for that. Legal from
        anywhere in the runtime's thread: consumers, tools, instruments. A plain ``def`` tool is in another one, and
        calls ``trio.from_thread.run_sync(run.stop)``.

        Raises:
            RuntimeError: called from another thread.
            TypeError: the reason is no text.
        """
        return self._cell.stop(reason)

    async def wait(self) -> RunResult[Any] | Suspension:
        """The outcome, once there is one. Cancelling the wait does not stop the run.

        Raises:
            RuntimeError: called from another thread.
            WouldDeadlock: called by the run's own tool, by a tool of a run that it waits for, or by the task that has
                to read its events.
        """
        return await self._cell.wait()


class RunCell:
    """What the run writes and others read: its outcome, who waits for whom, and the way to stop it."""

    def __init__(self, id: str, session: str, context: Context) -> None:
        self.id = id
        self.session_id = session
        self.handle: Run = Run(self)
        self.outcome: RunResult[Any] | Suspension | None = None
        self.context = context
        self.scope: trio.CancelScope = trio.CancelScope()
        self.stop_reason: str | None = None
        self.stop_after_round: str | None = None
        self.decided: bool = False  # how it ends is settled, and perhaps not committed yet: no stop changes it
        self.asking: str | None = None  # the code of others that it waits for, if it does
        self.works: set[Work] = set()
        self.done: trio.Event = trio.Event()
        self.waits_for: list[RunCell] = []  # the runs that its tools wait for
        self.refuse_reader: Callable[[str], None] = nobody_reads
        self._thread = threading.get_ident()

    @property
    def result(self) -> RunResult[Any]:
        """How the run ended; raises where it has not."""
        if self.outcome is None:
            raise RunNotEnded(f"run {self.id} has not ended: {self._what_to_do()}")
        if isinstance(self.outcome, Suspension):
            raise RunSuspendedError(f"run {self.id} is suspended: {self.outcome.reason}")
        return self.outcome

    def _what_to_do(self) -> str:
        if self.stop_reason is None:
            return "leave its block first, or await wait()"
        return f"it was stopped ({self.stop_reason}){self.held_up}; await wait()"

    @property
    def held_up(self) -> str:
        """What is told of the code that a stopped run waits for; nothing where it waits for none."""
        return "" if self.asking is None else f" and waits for {self.asking}, which ignores that"

    def warn_if_held_up(self) -> None:
        """Name the code that a stopped run still waits for when its grace is over; nobody else would."""
        if self.asking is not None and not self.done.is_set():
            log.warning("run %s was stopped%s; until it does, its session can't end", self.id, self.held_up)

    @property
    def stopping(self) -> bool:
        """Whether its scope was cancelled, and it has not ended yet."""
        return self.outcome is None and self.scope.cancel_called

    def stop(self, reason: str | None = None) -> bool:
        """Cancel it, and what its tools do."""
        refuse_other_thread(self._thread, f"run {self.id}")
        check_reason(reason)
        if self.is_over:
            return False
        if self.stop_reason is None:
            self.stop_reason = self.stop_after_round or reason or "stopped"
        self.scope.cancel()
        for work in tuple(self.works):
            work.cancel("stop")
        return True

    @property
    def is_over(self) -> bool:
        """Whether it is settled how the run ends: from then on a stop comes too late."""
        return self.decided or self.outcome is not None

    async def wait(self) -> RunResult[Any] | Suspension:
        """The outcome, once there is one."""
        refuse_other_thread(self._thread, f"run {self.id}")
        refuse_hang(self, "wait")
        with waited_for(self):
            await self.done.wait()
        assert self.outcome is not None
        return self.outcome

    def leads_to(self, run: RunCell) -> bool:
        """Whether this is the run, or can't end before it because a tool waits for it."""
        return self is run or any(other.leads_to(run) for other in self.waits_for)


def nobody_reads(verb: str) -> None:
    """Of a run without a reader."""


def check_reason(reason: object) -> None:
    """Raise ``TypeError`` where a stop's reason is no text: it goes into events, which are written as JSON."""
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"reason is {reason!r:.100}; it is a text, or left out")


@contextmanager
def waited_for(run: RunCell) -> Generator[None]:
    """While a tool waits for a run in this block, its own run can't end before that one."""
    own = current_run.get()
    if own is None:
        yield
        return
    own.waits_for.append(run)
    try:
        yield
    finally:
        own.waits_for.remove(run)


def refuse_hang(run: RunCell, verb: str) -> None:
    """Raise ``WouldDeadlock`` where this task would wait for the end of a run that waits for this task."""
    if run.outcome is not None:
        return
    refuse_own_run(run, verb)
    if verb != "close":  # that stops the run, and with it whatever its tools wait for
        refuse_chain(run, verb)
    if run.stop_reason is None:
        run.refuse_reader(verb)


def refuse_chain(run: RunCell, verb: str) -> None:
    """Raise ``WouldDeadlock`` where this task is a tool, and the run waits for what it belongs to."""
    own = current_run.get()
    if own is not None and own.outcome is None and run.leads_to(own):
        raise WouldDeadlock(
            f"a tool can't {verb} for run {run.id}, one of whose tools waits for the run that it belongs to ({own.id})"
        )


def refuse_own_run(run: RunCell, verb: str) -> None:
    """Raise ``WouldDeadlock`` where this task is the run, or one of its tools."""
    if current_run.get() is run and run.outcome is None:
        instead = _INSTEAD.get(verb, "return from the tool first; to end the run, stop() it, which does not wait")
        raise WouldDeadlock(f"a tool can't wait in {verb}() for the run that it belongs to ({run.id}): {instead}")


_INSTEAD = {
    "ask": "queue the message with follow_up(), or ask in another session",
    "proceed": "the run goes on by itself when the tool has returned",
    "close": "stop() does not wait; close the session outside of its run",
}
"""What a tool can do in place of a call that would wait for its own run."""
