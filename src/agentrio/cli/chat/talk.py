"""The conversation: lines go to the session, its events to the view."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import attrs
import trio

from agentrio.actors.handle import SETTLED, RunStream, SessionHandle
from agentrio.actors.runtime import Runtime, open_runtime
from agentrio.actors.supervise import shielded
from agentrio.agent.agent import Agent
from agentrio.domain.errors import DeclarationError
from agentrio.domain.session import Session
from agentrio.domain.status import RunResult
from agentrio.domain.usage import NO_USAGE, Usage

from ..command import BY_SIGNAL, FAILED, INTERRUPTED, UNAVAILABLE, USAGE, Refusal
from .interrupts import Interrupts
from .lines import Left, Lines
from .slash import Command, Talked, parse, perform
from .view import View

NEEDS = ("not_provisioned", "dependency_failed", "overloaded", "rate_limited")  # codes: the server can't be had

Outcome: TypeAlias = int | Session
"""How a session's part of the chat ends: with an exit code, or with the conversation to go on with."""


@attrs.define(eq=False)
class Talk:
    """A chat with one agent. ``usage`` counts all runs: of earlier conversations, and attempts in vain too."""

    agent: Agent[Any]
    view: View
    usage: Usage = NO_USAGE
    _session: SessionHandle | None = None

    def stop(self) -> bool:
        """Stop the open run; whether there was one that nobody had stopped yet."""
        run = None if self._session is None else self._session.current_run
        return run is not None and not run.stopping and run.stop(reason="Ctrl-C")

    async def converse(self, lines: Lines) -> int:
        """Talk until somebody leaves; the exit code."""
        outcome: Outcome | None = None
        async with open_runtime() as runtime:
            while not isinstance(outcome, int):
                async with self._open(runtime, outcome) as session:
                    outcome = await self._lines(session, lines)
        return outcome

    async def once(self, read: Callable[[], Awaitable[str]]) -> int:
        """Answer the one message that is read; the exit code."""
        text = await read()
        if not text.strip():
            raise Refusal("there is nothing to answer: the input is empty", USAGE)
        async with open_runtime() as runtime, self._open(runtime) as session:
            return exit_code(await self.answer(session, text))

    @asynccontextmanager
    async def _open(self, runtime: Runtime, value: Session | None = None) -> AsyncGenerator[SessionHandle]:
        try:
            session = await runtime.start_session(self.agent, value=value)
        except DeclarationError as wrong:
            raise Refusal(str(wrong), USAGE) from wrong
        self._session = session
        try:
            yield session
        finally:
            await session.close_quietly()  # noqa: ASYNC102  # it shields itself

    async def _lines(self, session: SessionHandle, lines: Lines) -> Outcome:
        while True:
            line = await lines.read()
            if isinstance(line, Left):
                return INTERRUPTED if line is Left.INTERRUPTED else 0
            outcome = await self._take(session, line)
            if outcome is not None:
                return outcome

    async def _take(self, session: SessionHandle, line: str) -> Outcome | None:
        command = parse(line)
        if command is not None:
            return await self._command(session, command)
        if not line.strip():
            return None
        try:
            result = await self.answer(session, line)
        except Refusal as told:
            self.view.note(str(told))
            return None
        failure = result.failure
        if failure is not None and failure.code == "crashed":
            return session.value  # this session is over; another goes on with what was said
        if failure is not None and failure.code == "not_provisioned" and not failure.recoverable:
            return UNAVAILABLE  # nothing that can be typed here would set a key
        if failure is not None and failure.code in ("context_overflow", "limit"):
            self.view.note("[/new begins another conversation]")
        return None

    async def answer(self, session: SessionHandle, text: str) -> RunResult[Any]:
        """Run one message, and show it.

        Raises:
            Refusal: the message is too long.
        """
        async with AsyncExitStack() as stack:
            try:
                run = await stack.enter_async_context(session.run(text))
            except ValueError as wrong:
                raise Refusal(str(wrong), USAGE) from wrong
            try:
                await self._show(run)
            except trio.Cancelled:  # who is told to end tells the run's end, too
                run.stop(reason="the chat was left")
                with shielded(self.agent.limits.stop_grace + SETTLED):
                    await self._show(run)  # noqa: ASYNC102  # shielded, by our helper
                raise
        self.usage += run.result.usage + run.result.discarded
        return run.result

    async def _show(self, run: RunStream) -> None:
        async for event in run:
            self.view.event(event)

    async def _command(self, session: SessionHandle, command: Command) -> Outcome | None:
        done = await trio.to_thread.run_sync(perform, command, Talked(session.value, self.usage))
        if done.note:
            self.view.note(done.note)
        return done.outcome


async def converse(agent: Agent[Any], view: View, lines: Lines) -> int:
    """Talk in a terminal until somebody leaves; the exit code.

    Raises:
        Refusal, OSError: the chat can't begin; the output can't be written, or nobody reads it any more.
    """
    return await _interruptible(agent, view, partial(Talk.converse, lines=lines))


async def once(agent: Agent[Any], view: View, read: Callable[[], Awaitable[str]]) -> int:
    """Answer one message; the exit code. Raises as ``converse``."""
    return await _interruptible(agent, view, partial(Talk.once, read=read))


async def _interruptible(agent: Agent[Any], view: View, talk: Callable[[Talk], Awaitable[int]]) -> int:
    code = INTERRUPTED
    failure: Refusal | OSError | None = None
    async with trio.open_nursery() as nursery:
        it = Talk(agent, view)
        interrupts = Interrupts(it.stop)
        await nursery.start(interrupts.run)
        with interrupts.scope:
            try:
                code = await talk(it)
            except (Refusal, OSError) as told:  # raised below: out of a nursery it would come in a group
                failure = told
            except SystemExit as ended:
                failure = Refusal(f"a tool ended the program (SystemExit: {ended})")
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return code if interrupts.left is None else BY_SIGNAL + interrupts.left


def exit_code(result: RunResult[Any]) -> int:
    """What a shell is told of a run."""
    if result.status == "succeeded":
        return 0
    if result.status == "cancelled":
        return INTERRUPTED
    return UNAVAILABLE if result.failure is not None and result.failure.code in NEEDS else FAILED
