"""The run: ask the plan, perform the step, publish what came of it, until the end or a stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from agentrio.domain.events import MessageAdded, RunEnded, RunStarted
from agentrio.domain.limits import Limits
from agentrio.domain.messages import Message
from agentrio.domain.plan import (
    CallModel,
    CloseRound,
    Finish,
    Inject,
    ProposeCalls,
    RunCalls,
    SkipCalls,
    Step,
    ending,
    plan,
)
from agentrio.domain.session import Queued
from agentrio.domain.state import RunState
from agentrio.domain.status import Failure, RunResult, Status

from .bench import Bench
from .cell import current_run, nobody_reads
from .model_calls import ModelCalls
from .settle import round_ended, settle
from .supervise import log, shielded
from .tool_calls import ToolCalls


class Loop:
    """One run from ``RunStarted`` to ``RunEnded``. ``crash`` is the fault of ours that ended it, if one did.

    With ``resume`` the state has the run already, and it goes on where its events end.
    """

    def __init__(
        self,
        bench: Bench,
        prompt: Message | None,
        limits: Limits,
        drain: Callable[[], Awaitable[None]],
        *,
        resume: bool = False,
    ) -> None:
        self._bench = bench
        self._prompt = prompt
        self.limits = limits
        self._drain = drain
        self._resume = resume
        self.models: ModelCalls = ModelCalls(bench)
        self.calls: ToolCalls = ToolCalls(bench)
        self.crash: Exception | None = None

    async def run(self) -> None:
        """Work the run to its end. However it ends, ``RunEnded`` is published before this returns or raises."""
        run = self._bench.run
        current_run.set(run)
        finish: Finish | None = None
        try:
            with run.scope:
                finish = await self._drive()
        except Exception as fault:
            log.exception("run %s crashed", run.id)
            self.crash = fault
        except BaseException:  # a cancel from outside, or an exit: the run still gets its end
            await self._end(None)  # noqa: ASYNC102  # it shields itself
            raise
        await self._end(finish)

    async def _drive(self) -> Finish:
        bench = self._bench
        if not self._resume:
            await self._begin()
        while True:
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._drain()
            if self._stops_after_round():
                return Finish("cancelled", None, bench.state.text)
            step = plan(bench.session_state)
            assert step is not None
            if isinstance(step, Finish):
                return step
            await self._perform(step)

    async def _begin(self) -> None:
        bench = self._bench
        tag = bench.agent.model.tag
        started = RunStarted(bench.origin, tag.model, tag.provider, bench.agent.thinking, self.limits)
        if self._prompt is None:
            await bench.emitter.emit(started)
        else:
            await bench.emitter.emit(started, MessageAdded(bench.origin, self._prompt))

    async def _perform(self, step: Step) -> None:
        match step:
            case CallModel(round=number):
                await self.models.call(number)
            case Inject(queued=queued):
                await self._inject(queued)
            case ProposeCalls(calls=calls):
                await self.calls.propose(calls)
            case RunCalls(segment=segment):
                await self.calls.run_segment(segment)
            case SkipCalls(calls=calls, why=why):
                await self.calls.skip(calls, why)
            case CloseRound():
                await self._bench.emitter.emit(round_ended(self._bench))
            case _:  # pragma: no cover - a write of a process that is gone: reconciling it comes with durable runs
                raise NotImplementedError(f"a run of this process can't perform {step}")

    async def _inject(self, queued: Queued) -> None:
        """Add a queued message, unless the user takes it back before its turn has come."""
        bench, id = self._bench, queued.message.id
        added = MessageAdded(bench.origin, queued.message, queued.queue)
        try:
            await bench.emitter.emit_when_due(lambda: [added] if bench.waiting.join(id) else [])
        finally:
            bench.waiting.joining = None

    def _stops_after_round(self) -> bool:
        """Whether a round is over behind which the run is to stop. One that ended in a failure ends with that."""
        state = self._bench.state
        if self._bench.run.stop_after_round is None or state.round_open or state.rounds == 0:
            return False
        natural = ending(state)
        return natural is None or natural.failure is None

    async def _end(self, finish: Finish | None) -> None:
        """Settle what is open, then end. The run is over when ``RunEnded`` is out: nothing awaits behind it."""
        bench = self._bench
        try:
            with shielded(self.limits.stop_grace) as grace:
                await self._tell_end(finish)
            if grace.cancelled_caught:
                log.error("run %s could not settle within its grace", bench.run.id)
        except Exception as fault:  # whoever waits for the end must not wait for ever
            log.exception("run %s crashed while it told its end", bench.run.id)
            self.crash = fault
        bench.run.outcome = self._state.result or self._result(finish)
        bench.run.works.clear()
        bench.run.refuse_reader = nobody_reads  # a run that is kept keeps no session alive
        bench.run.done.set()

    async def _tell_end(self, finish: Finish | None) -> None:
        bench = self._bench
        if not self._begun:
            await self._begin()
        await self._settle()
        await self._drain()  # what was accepted before the end is queued before it, and counted
        await bench.emitter.emit_when_due(lambda: [RunEnded(bench.origin, self._decide(finish))])

    def _decide(self, finish: Finish | None) -> RunResult[Any]:
        """The result, from here on for good: a stop that comes while it is committed comes too late."""
        result = self._result(finish)
        self._bench.run.decided = True
        return result

    async def _settle(self) -> None:
        try:
            await settle(self._bench, self.models, self.calls, why="stopped" if self.crash is None else "crashed")
        except Exception as fault:  # the end must come all the same
            log.exception("run %s crashed while it settled", self._bench.run.id)
            self.crash = fault
            if self._bench.state.round_open:
                await self._bench.emitter.emit(round_ended(self._bench, self.models.discarded))

    @property
    def settled(self) -> bool:
        """Whether ``RunEnded`` was published."""
        return self._state.result is not None

    @property
    def _begun(self) -> bool:
        run = self._bench.session_state.run
        return run is not None and run.id == self._bench.run.id

    @property
    def _state(self) -> RunState:
        return self._bench.state if self._begun else RunState(self._bench.run.id, self.limits)

    def _result(self, finish: Finish | None) -> RunResult[Any]:
        bench, state = self._bench, self._state
        status, failure = self._verdict(finish)
        text = finish.text if finish is not None and status == finish.status else state.text
        return RunResult(
            run_id=state.id,
            status=status,
            text=text,
            usage=state.usage,
            stop_reason=state.stop_reason,
            raw_stop_reason=state.raw_stop_reason,
            failure=failure,
            model=state.model,
            provider=state.provider,
            rounds=state.rounds,
            discarded=state.discarded,
            reason=bench.run.stop_reason,
            queued=len(bench.session_state.session.queue),
        )

    def _verdict(self, finish: Finish | None) -> tuple[Status, Failure | None]:
        """Who won: the one place where a requested stop beats whatever the loop came to."""
        run = self._bench.run
        if self.crash is not None and run.stop_reason is None:
            return "error", Failure("error", f"The run crashed: {type(self.crash).__name__}.", "crashed")
        if run.stop_reason is None and finish is not None and finish.failure is None:
            run.stop_reason = run.stop_after_round or finish.reason
        if run.stop_reason is not None:
            return "cancelled", None
        if finish is not None:
            return finish.status, finish.failure
        if not run.scope.cancelled_caught:
            run.stop_reason = "the task that hosts the session was cancelled"
            return "cancelled", None
        limit = self.limits.deadline
        if limit is None or run.scope.deadline > trio.current_time():
            run.stop_reason = "its scope was cancelled"
            return "cancelled", None
        return "error", Failure("error", f"The run did not end within its {limit:g} seconds.", "deadline", True)
