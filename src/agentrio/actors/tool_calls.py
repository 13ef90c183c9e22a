"""Tool calls of a run: checked in order, run by segments, their results told in call order."""

from __future__ import annotations

import functools
import hashlib
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import trio

from agentrio.agent.arguments import Arguments, check
from agentrio.agent.context import ToolContext
from agentrio.agent.results import GENERIC_FAILURE, ResultError, advice, check_images, failure, to_parts, truncate
from agentrio.agent.tool import Tool
from agentrio.domain.events import (
    CallFinished,
    CallKind,
    CallProgress,
    CallProposed,
    CallReturned,
    CallStarted,
    MemoryPatched,
    StructuralEvent,
)
from agentrio.domain.parts import CallCategory, CallError, Image, ToolCall, ToolResult
from agentrio.domain.state import CallState

from .bench import Bench
from .cell import current_run
from .supervise import log
from .tool_pool import Work

INTERRUPTED = "Skipped due to queued user message."


@attrs.define(eq=False)
class Item:
    """A call of the running segment: ``work`` once it has started, ``result`` once nothing more is awaited of it."""

    call: CallState
    context: ToolContext
    work: Work | None = None
    result: ToolResult | None = None
    patches: tuple[dict[str, Any], ...] = ()
    deadline: float = math.inf
    abandon_at: float = math.inf


class ToolCalls:
    """Performs ``ProposeCalls``, ``RunCalls`` and ``SkipCalls`` for one run."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._checked: dict[str, Arguments] = {}
        self._told = 0
        self.changed: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        self._missed = False  # something changed while nobody was parked
        self._interrupted = False
        self._images = 0
        self.items: list[Item] = []

    # Proposing

    async def propose(self, calls: tuple[CallState, ...]) -> None:
        """Parse and check calls, in call order; a rejected one never blocks the others."""
        if calls:
            await self._bench.emitter.emit(*[self._proposal(item.call) for item in calls])

    def _proposal(self, call: ToolCall) -> CallProposed:
        bench = self._bench
        tool = bench.agent.by_name.get(call.name)
        kind: CallKind = "read" if tool is None else tool.kind
        checked = _unknown(call.name) if tool is None else self._check(tool, call)
        if isinstance(checked, CallError):
            return CallProposed(bench.origin, call, kind, "", checked)
        return CallProposed(
            bench.origin, attrs.evolve(call, arguments=checked.data), kind, _fingerprint(tool, call.arguments_json)
        )

    def _check(self, tool: Tool[..., Any], call: ToolCall) -> Arguments | CallError:
        checked = check(tool, call.arguments_json)
        if isinstance(checked, Arguments):
            self._checked[call.id] = checked
        return checked

    # Running

    async def run_segment(self, calls: tuple[CallState, ...]) -> None:
        """Run calls side by side, as many at once as the limits allow; tell their results in call order.

        Returns early, with the rest unstarted, when the user interrupts.
        """
        memory = self._bench.session_state.session.memory
        self.items = [Item(call, self._context(call.call, memory)) for call in calls]
        self._told = 0
        self._interrupted = False
        waiting = deque(self.items)
        while waiting or self._running():
            self._missed = False
            await self._start_some(waiting)
            await self._tell_finished()
            if self._interrupted:
                waiting.clear()
            if self._running() and not self._missed:
                await self._wait_for_change()
        await self._tell_finished()
        self.items = []

    def _running(self) -> list[Item]:
        return [item for item in self.items if item.work is not None and item.result is None]

    async def _start_some(self, waiting: deque[Item]) -> None:
        """Start as many as may run at once; they are told of together."""
        await trio.lowlevel.checkpoint_if_cancelled()
        room = self._bench.limits.max_parallel_calls - len(self._running())
        starting: list[tuple[Item, Tool[..., Any], Arguments]] = []
        while waiting and len(starting) < room and not self._interrupted:
            item = waiting.popleft()
            found = self._runnable(item.call)
            if isinstance(found, CallError):
                item.result = failed(item.call.call, found)
            else:
                starting.append((item, *found))
        if starting:
            origin = self._bench.origin
            told = [CallStarted(origin, item.call.call.id, tool.name) for item, tool, _ in starting]
            await self._bench.emitter.emit(*told)
        for item, tool, checked in starting:
            self._hand_over(item, tool, checked)

    def _runnable(self, item: CallState) -> tuple[Tool[..., Any], Arguments] | CallError:
        """What runs a call, or why it can't run. A call that was proposed by another process is checked again."""
        call = item.call
        tool = self._bench.agent.by_name.get(call.name)
        if item.problem is not None or tool is None:
            return item.problem or _unknown(call.name)
        checked = self._checked.get(call.id) or self._check(tool, call)
        return checked if isinstance(checked, CallError) else (tool, checked)

    def _hand_over(self, item: Item, tool: Tool[..., Any], checked: Arguments) -> None:
        bench = self._bench
        work = Work(
            tool.name,
            bench.run.session_id,
            tool.threaded,
            functools.partial(tool.invoke, checked, item.context),
            functools.partial(self._returned, item),
            bench.run.context.copy(),
        )
        work.context.run(current_run.set, bench.run)
        work.grace = bench.limits.stop_grace if tool.kind == "write" else 0.0
        timeout = tool.timeout if tool.timeout is not None else bench.limits.call_timeout
        if timeout is not None:
            item.deadline = trio.current_time() + timeout
        item.work = work
        bench.run.works.add(work)
        bench.pool.start(work)

    def _returned(self, item: Item, work: Work) -> None:
        """In the pool's task: a call has ended. Nobody is told of one that was abandoned."""
        self._bench.run.works.discard(work)
        if item.result is None and item in self.items:
            self._conclude(item)
            self._change()

    def _change(self) -> None:
        self._missed = True
        self.changed.unpark_all()

    def _conclude(self, item: Item) -> None:
        bench, work = self._bench, item.work
        assert work is not None
        item.result = self._result(item, work)
        if work.ended in ("returned", "raised"):  # one that was cut off is in no state to be remembered
            item.patches = tuple(item.context.patches)
        told = CallReturned(bench.origin, bench.seq, item.call.call.id, item.result.status)
        bench.hub.tell([told])

    async def _wait_for_change(self) -> None:
        """Until a call ends, the user interrupts, or a deadline passes."""
        soonest = min(min(item.deadline, item.abandon_at) for item in self._running())
        if soonest == math.inf:
            await self.changed.park()
            return
        with trio.move_on_at(soonest):
            await self.changed.park()
            return
        now = trio.current_time()
        for item in self._running():
            assert item.work is not None
            if item.abandon_at <= now:
                self.abandon(item)
            elif item.deadline <= now:
                item.work.cancel("timeout")
                self._abandon_soon(item, now)

    def _abandon_soon(self, item: Item, now: float) -> None:
        """As a stop does: what a write leaves undone, or undoes, must not meet the write behind it."""
        limits = self._bench.limits
        grace = limits.stop_grace if item.call.kind == "write" else limits.unwind_grace
        item.deadline = math.inf
        item.abandon_at = min(item.abandon_at, now + grace)

    def abandon(self, item: Item) -> None:
        """Wait no longer for a call that ignores its cancellation."""
        assert item.work is not None
        self._bench.run.works.discard(item.work)
        self._bench.pool.abandon(item.work)
        self._conclude(item)

    def interrupt(self) -> None:
        """Cancel the running reads, start nothing more; a running write finishes."""
        self._interrupted = True
        now = trio.current_time()
        for item in self._running():
            assert item.work is not None
            if item.call.kind == "read":
                item.work.cancel("interrupt")
                self._abandon_soon(item, now)
        self._change()

    # Results

    async def _tell_finished(self) -> None:
        finished: list[StructuralEvent] = []
        while self._told < len(self.items) and self.items[self._told].result is not None:
            finished += self.events(self.items[self._told])
            self._told += 1
        if finished:
            await self._bench.emitter.emit(*finished)

    def events(self, item: Item) -> list[StructuralEvent]:
        """What a call with a result has to tell: the result, then the memory it set."""
        assert item.result is not None
        origin = self._bench.origin
        events: list[StructuralEvent] = [CallFinished(origin, self._within_images(item.call.call, item.result))]
        events += [MemoryPatched(origin, patch, item.call.call.id) for patch in item.patches]
        return events

    def _within_images(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """The result, unless its images are too many for the run: counted in call order, whichever returned first."""
        images = sum(isinstance(part, Image) for part in result.parts)
        most = self._bench.limits.max_images
        if self._images + images > most:
            why = f"it holds {images} images, and a run may return {most} in all; {self._images} were returned before"
            return failed(call, failure(ResultError(why)))
        self._images += images
        return result

    async def skip(self, calls: tuple[CallState, ...], why: str) -> None:
        """Answer calls without running them. One that was rejected keeps its own reason.

        In one commit: a run that went on from the middle of it might find another reason.
        """
        errors = [item.problem or CallError("skipped", why) for item in calls]
        results = [failed(item.call, error) for item, error in zip(calls, errors, strict=True)]
        await self._bench.emitter.emit(*[CallFinished(self._bench.origin, result) for result in results])

    def _result(self, item: Item, work: Work) -> ToolResult:
        call = item.call.call
        if work.ended == "returned":
            return self._returned_value(call, work.value)
        if work.ended == "raised":
            return failed(call, _raised(call, work.error))
        return stopped(item.call, work)

    def _returned_value(self, call: ToolCall, value: Any) -> ToolResult:
        limits = self._bench.limits
        try:
            parts = to_parts(value)
            check_images(parts, max_bytes=limits.max_image_bytes, max_images=limits.max_images)
        except ResultError as error:
            log.warning(
                "tool %r of call %s returned what can't be sent: %s%s", call.name, call.id, error, advice(value)
            )
            return failed(call, failure(error))
        return ToolResult(call.id, call.name, "succeeded", truncate(parts, limits.max_output_chars))

    def _context(self, call: ToolCall, memory: Any) -> ToolContext:
        bench = self._bench
        return ToolContext(
            session_id=bench.run.session_id,
            run_id=bench.run.id,
            call_id=call.id,
            agent=bench.agent.name,
            identity=bench.identity,
            memory=memory,
            services=bench.services,
            report=self._reporter(call.id),
        )

    def _reporter(self, call_id: str) -> Callable[..., Any]:
        bench = self._bench

        async def report(text: str, done: float | None, total: float | None) -> None:
            await bench.hub.room()
            await trio.lowlevel.checkpoint()
            if any(item.call.call.id == call_id and item.result is None for item in self.items):
                bench.hub.tell([CallProgress(bench.origin, bench.seq, call_id, text, done, total)])

        return report


def _unknown(name: str) -> CallError:
    return CallError("unknown_tool", f"There is no tool called {name!r}.")


def _fingerprint(tool: Tool[..., Any] | None, arguments_json: str) -> str:
    assert tool is not None
    return hashlib.sha256(f"{tool.fingerprint}\n{arguments_json}".encode("utf-8", "replace")).hexdigest()[:32]


def failed(call: ToolCall, error: CallError) -> ToolResult:
    """The result of a call that did not do what was asked."""
    statuses: dict[CallCategory, Any] = {"denied": "denied", "skipped": "skipped", "cancelled": "cancelled"}
    return ToolResult(call.id, call.name, statuses.get(error.category, "failed"), error=error)


def _raised(call: ToolCall, error: Exception | None) -> CallError:
    assert error is not None
    told = failure(error)
    if told.message == GENERIC_FAILURE:
        log.warning("tool %r of call %s failed", call.name, call.id, exc_info=error)
    return told


def stopped(call: CallState, work: Work) -> ToolResult:
    """The result of a call whose work was cancelled, or is no longer waited for."""
    uncertain = call.kind == "write"
    tail = " It may have taken effect." if uncertain else ""
    if work.why == "timeout":
        error = CallError("timeout", "The tool took too long and was stopped." + tail)
    elif work.why == "interrupt":
        error = CallError("skipped", INTERRUPTED)
    else:
        error = CallError("cancelled", "The call was stopped while running." + tail)
    return attrs.evolve(failed(call.call, error), uncertain=uncertain)
