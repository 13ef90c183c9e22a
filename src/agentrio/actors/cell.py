"""A run as others see it: what the run writes and anyone may read, and the way to stop it."""

from __future__ import annotations

import threading
from contextvars import Context, ContextVar
from typing import Any

import trio

from agentrio.domain.errors import RunNotEnded, RunSuspendedError
from agentrio.domain.status import RunResult, Suspension

from .supervise import refuse_other_thread
from .tool_pool import Work

current_run: ContextVar[Run | None] = ContextVar("agentrio_current_run", default=None)


class Run:
    """One run of a session: its outcome once it has one, and ``stop()``."""

    def __init__(self, id: str, session: str, context: Context) -> None:
        self.id = id
        self.session_id = session
        self.outcome: RunResult[Any] | Suspension | None = None
        self.context = context
        self.scope: trio.CancelScope = trio.CancelScope()
        self.stop_reason: str | None = None
        self.stop_after_round: str | None = None
        self.works: set[Work] = set()
        self.done: trio.Event = trio.Event()
        self._thread = threading.get_ident()

    def __repr__(self) -> str:
        return f"<Run {self.id} {'open' if self.outcome is None else self.outcome}>"

    @property
    def result(self) -> RunResult[Any]:
        """How the run ended.

        Raises:
            RunNotEnded: it has not.
            RunSuspendedError: it is suspended, and will end another time.
        """
        if self.outcome is None:
            raise RunNotEnded(
                f"run {self.id} has not ended: leave its block first, or await wait() of a run that start() gave"
            )
        if isinstance(self.outcome, Suspension):
            raise RunSuspendedError(f"run {self.id} is suspended: {self.outcome.reason}")
        return self.outcome

    @property
    def stopping(self) -> bool:
        """Whether it has been stopped, or its deadline has passed, and it is on its way to its end."""
        return self.outcome is None and self.scope.cancel_called

    def stop(self, *, reason: str | None = None) -> bool:
        """Cancel the run at once; whether there was one to cancel. The first reason wins.

        The run settles, then tells ``RunEnded`` with status ``cancelled``; ``wait()`` waits for that. Legal from
        anywhere in the runtime's thread: consumers, tools, instruments. A plain ``def`` tool is in another one, and
        calls ``trio.from_thread.run_sync(run.stop)``.

        Raises:
            RuntimeError: called from another thread.
        """
        refuse_other_thread(self._thread, f"run {self.id}")
        if self.outcome is not None:
            return False
        if self.stop_reason is None:
            self.stop_reason = self.stop_after_round or reason or "stopped"
        self.scope.cancel()
        for work in tuple(self.works):
            work.cancel("stop")
        return True

    async def wait(self) -> RunResult[Any] | Suspension:
        """The outcome, once there is one.

        Raises:
            WouldDeadlock: called by the run's own tool.
        """
        refuse_own_run(self, "wait")
        await self.done.wait()
        assert self.outcome is not None
        return self.outcome


def refuse_own_run(run: Run, verb: str) -> None:
    """Raise ``WouldDeadlock`` where this task is the run, or one of its tools."""
    from agentrio.domain.errors import WouldDeadlock

    if current_run.get() is run and run.outcome is None:
        instead = _INSTEAD.get(verb, "return from the tool first; to end the run, stop() it, which does not wait")
        raise WouldDeadlock(f"a tool can't wait in {verb}() for the run that it belongs to ({run.id}): {instead}")


_INSTEAD = {
    "ask": "queue the message with follow_up(), or ask in another session",
    "proceed": "the run goes on by itself when the tool has returned",
    "close": "stop() does not wait; close the session outside of its run",
}
"""What a tool can do in place of a call that would wait for its own run."""
