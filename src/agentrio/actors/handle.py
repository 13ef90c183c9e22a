"""What others hold of a session: it can only send, and read what the actor wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import trio

from agentrio.domain.events import Event, SteerMode
from agentrio.domain.session import Session
from agentrio.domain.status import RunResult, Suspension

from .cell import Run, RunCell, check_reason, refuse_hang, waited_for
from .checks import check_cursor
from .readers import Lossless, Reader
from .session import Content, Receipt, SessionActor
from .supervise import refuse_other_thread, shielded

SETTLED = 1.0  # seconds beyond the stop grace that a left block waits for its run's end


class RunStream:
    """A run and its events, in the hands of one task."""

    def __init__(self, run: Run, reader: Lossless) -> None:
        self._run = run
        self._reader = reader

    def __aiter__(self) -> Lossless:
        return self._reader.__aiter__()

    async def __anext__(self) -> Event:
        return await self._reader.__anext__()

    @property
    def id(self) -> str:
        """The run's id."""
        return self._run.id

    @property
    def session_id(self) -> str:
        """The id of the run's session."""
        return self._run.session_id

    @property
    def outcome(self) -> RunResult[Any] | Suspension | None:
        """How the run ended or came to rest; None while it is open."""
        return self._run.outcome

    @property
    def result(self) -> RunResult[Any]:
        """How the run ended; raises ``RunNotEnded`` or ``RunSuspendedError``."""
        return self._run.result

    def stop(self, *, reason: str | None = None) -> bool:
        """Cancel the run; the events already published and its ending can still be read."""
        return self._run.stop(reason=reason)

    async def wait(self) -> RunResult[Any] | Suspension:
        """The outcome, once there is one; for a task beside the one that reads the events.

        Raises:
            WouldDeadlock: the run waits for this very task to read its events, or it is the run's own tool.
        """
        return await self._run.wait()


class _Block:
    """What must be entered says so where it is awaited or iterated instead; type checkers see neither method."""

    if not TYPE_CHECKING:  # pragma: no branch - a type checker takes the other one

        def __await__(self) -> NoReturn:
            raise TypeError(
                f"this can't be awaited: write `{self._enter}`; await session.ask(text) for the result alone"
            )

        def __aiter__(self) -> NoReturn:
            raise TypeError(f"enter this first: write `{self._enter}`, and iterate inside of the block")


class RunBlock(_Block):
    """``async with session.run(text) as run``: the run is accepted on entering, stopped on leaving early."""

    _enter = "async with session.run(text) as run:"

    def __init__(self, actor: SessionActor, content: Content) -> None:
        self._actor = actor
        self._content = content
        self._run: RunCell | None = None
        self._reader: Lossless | None = None

    async def __aenter__(self) -> RunStream:
        if self._run is not None:
            raise RuntimeError("this run's block has been entered already; call session.run() again")
        self._run = self._actor.accept(self._content)
        self._reader = self._actor.hub.read_run(self._run.id)
        self._reader.owner = trio.lowlevel.current_task()
        return RunStream(self._run.handle, self._reader)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._run is not None
        assert self._reader is not None
        self._reader.close()
        if not self._run.done.is_set():
            grace = self._actor.agent.limits.stop_grace
            await stop_and_wait(self._run, "its block was left", grace)  # noqa: ASYNC102  # it shields itself


async def stop_and_wait(run: RunCell, reason: str, grace: float) -> None:
    """Stop a run and wait for its end, whatever happens to the caller meanwhile."""
    run.stop(reason)
    with shielded(grace + SETTLED):
        await run.done.wait()
    run.warn_if_held_up()


class ReaderBlock(_Block):
    """``async with ... as events``: a reader for the time of the block."""

    _enter = "async with ... as events:"

    def __init__(self, open: Callable[[], Reader]) -> None:
        self._open = open
        self._thread = threading.get_ident()
        self._reader: Reader | None = None

    async def __aenter__(self) -> Reader:
        refuse_other_thread(self._thread, "this reader")
        if self._reader is not None:
            raise RuntimeError("this reader's block has been entered already; call events() or subscribe() again")
        self._reader = self._open()
        if isinstance(self._reader, Lossless):
            self._reader.owner = trio.lowlevel.current_task()
        return self._reader

    async def __aexit__(self, *_: object) -> None:
        assert self._reader is not None
        self._reader.close()


class SessionHandle:
    """A live session. Everything synchronous here takes effect at once and is legal from anywhere in the loop."""

    def __init__(self, actor: SessionActor) -> None:
        self._actor = actor

    def __repr__(self) -> str:
        return f"<SessionHandle {self.id} of agent {self._actor.agent.name!r}>"

    @property
    def id(self) -> str:
        """The session's id."""
        return self._actor.value.id

    @property
    def value(self) -> Session:
        """The conversation as it stands: immutable, JSON-safe, and yours to keep after the session is closed."""
        return self._actor.value

    @property
    def current_run(self) -> Run | None:
        """The open run, if there is one."""
        run = self._actor.current
        return None if run is None else run.handle

    def run(self, content: Content) -> RunBlock:
        """A block that runs one user message and iterates its events; leaving it early stops the run.

        Nothing happens before the block is entered. Entering raises ``SessionBusy``, ``SessionClosed`` or
        ``SessionCrashed`` where the run can't be taken on.
        """
        return RunBlock(self._actor, content)

    async def start(self, content: Content) -> Run:
        """Run one user message without reading it here: the session owns the run."""
        return self._actor.accept(content).handle

    async def ask(self, content: Content) -> RunResult[Any]:
        """Run one user message and wait for its end. Cancelling the caller stops the run."""
        self._refuse_deadlock("ask")
        return await self._wait(self._actor.accept(content))

    async def proceed(self) -> RunResult[Any]:
        """Answer the conversation as it stands, without a new message, and wait for the end.

        Raises:
            NothingToProceed: it ends with a finished answer, and nothing is queued.
        """
        self._refuse_deadlock("proceed")
        return await self._wait(self._actor.proceed())

    async def _wait(self, run: RunCell) -> RunResult[Any]:
        try:
            with waited_for(run):
                await run.done.wait()
        except BaseException:
            grace = self._actor.agent.limits.stop_grace
            await stop_and_wait(run, "its caller was cancelled", grace)  # noqa: ASYNC102  # it shields itself
            raise
        return run.result

    def stop(self, *, reason: str | None = None, when: Literal["now", "after_round"] = "now") -> bool:
        """Stop the open run, at once or when its round is over; whether there was one. The first reason wins."""
        if when not in ("now", "after_round"):
            raise ValueError(f"when is {when!r}; it is 'now' or 'after_round'")
        check_reason(reason)
        self._actor.check_thread()
        run = self._actor.current
        if run is None or run.is_over:
            return False
        if when == "now":
            return run.stop(reason)
        run.stop_after_round = run.stop_after_round or reason or "stopped after the round"
        return True

    def steer(self, content: Content, mode: SteerMode = "after_calls") -> Receipt:
        """Queue a message for the next round of the open run, or for the next run.

        ``interrupt`` also cancels running read tools, lets a running write finish, and skips calls not yet started.

        Raises:
            SessionBusy: 1,000 messages wait already, or the session had no chance to take the last 64 commands.
        """
        if mode not in ("after_calls", "interrupt"):
            raise ValueError(f"mode is {mode!r}; it is 'after_calls' or 'interrupt'")
        return self._actor.queue(content, "steering", mode)

    def follow_up(self, content: Content) -> Receipt:
        """Queue a message for when the open run would end, or for the next run.

        Raises:
            SessionBusy: as ``steer``.
        """
        return self._actor.queue(content, "follow_up")

    def unqueue(self, message_id: str) -> bool:
        """Take a queued message back; whether it was still waiting."""
        return self._actor.unqueue(message_id)

    def events(self, after: int | None = None) -> ReaderBlock:
        """A block that reads the session's events: those behind the cursor ``after``, then live ones.

        An event's ``seq`` is the cursor. None starts now. Deltas of a reader that lags are melted together, and a
        reader far behind finds a ``Resync``. The stream ends when the session closes.

        Raises:
            RuntimeError: called from another thread.
            TypeError, ValueError: the cursor is none that an event of this session has, or 0.
        """
        self._actor.check_thread()
        check_cursor(after, self._actor.value)
        hub = self._actor.hub
        return ReaderBlock(lambda: hub.read_after(after, self._actor.origin()))

    async def wait_idle(self) -> None:
        """Wait until no run is open.

        Raises:
            WouldDeadlock: the open run waits for this very task to read its events.
        """
        self._refuse_deadlock("wait_idle")
        while (run := self._actor.current) is not None and not self._actor.ended.is_set():
            with waited_for(run):
                await run.done.wait()
            if self._actor.current is run:  # its end could not be told, and the session goes with it
                await self._actor.ended.wait()

    async def close(self) -> None:
        """Stop the open run and end the session. Closing twice is fine.

        Raises:
            WouldDeadlock: called in the block of the open run, or by one of its tools.
        """
        self._refuse_deadlock("close")
        await self.close_quietly()

    async def close_quietly(self) -> None:
        """Close on the way out: waits for the end even under a cancel."""
        run = self._actor.current
        self._actor.close()
        with shielded(self._actor.agent.limits.stop_grace + SETTLED):
            await self._actor.ended.wait()
        if run is not None:
            run.warn_if_held_up()

    def _refuse_deadlock(self, verb: str) -> None:
        self._actor.check_thread()
        run = self._actor.current
        if run is not None:
            refuse_hang(run, verb)
        elif verb in ("ask", "proceed"):
            self._actor.hub.refuse_reader(None, verb)
