"""Tool calls of a run: checked in order, run by segments, their results told in call order."""

from __future__ import annotations

import functools
import hashlib
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs
import trio

from agentrio.agent.arguments import Arguments, check
from agentrio.agent.context import ToolContext
from agentrio.agent.results import ResultError, failure
from agentrio.agent.tool import Tool
from agentrio.domain import ids
from agentrio.domain.events import (
    CallFinished,
    CallProgress,
    CallProposed,
    CallReturned,
    CallStarted,
    MemoryPatched,
    StructuralEvent,
)
from agentrio.domain.parts import CallError, Image, ToolCall, ToolResult
from agentrio.domain.state import CallState, SessionState

from .bench import Bench
from .call_results import failed, result_of, stopped
from .cell import current_run
from .supervise import EXITS
from .tool_pool import Why, Work

NAME_SHOWN = 80  # characters of a tool's name that there is not; models make up names of any length


@attrs.define(eq=False)
class Progress:
    """Takes what a call has to say of its progress, until it has its result.

    From then on it holds nothing: the tool may keep its context for ever, or be a thread that nobody can end, and must
    not keep a session alive that is closed.
    """

    call_id: str
    bench: Bench | None
    waits: bool = True
    """Whether it may hold the call up while a reader is full; not once the call is cancelled."""

    async def __call__(self, text: str, done: float | None, total: float | None) -> None:
        if self.bench is not None:
            await self.bench.hub.room(lambda: self.waits)
        await trio.lowlevel.checkpoint()
        bench = self.bench
        if bench is not None:
            bench.hub.tell([CallProgress(bench.origin, bench.seq, self.call_id, text, done, total)])


@attrs.define(eq=False)
class Item:
    """A call of the running segment: ``work`` once it has started, ``result`` once nothing more is awaited of it.

    ``final`` says that the result's images were counted, once and for all.
    """

    call: CallState
    context: ToolContext
    progress: Progress
    work: Work | None = None
    result: ToolResult | None = None
    final: bool = False
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
        self._images: int | None = None  # those that the run has returned; None until one returns some
        self.items: list[Item] = []

    # Proposing

    async def propose(self, calls: tuple[CallState, ...]) -> None:
        """Parse and check calls, in call order; a rejected one never blocks the others."""
        if calls:
            await self._bench.emitter.emit(*[self._proposal(item.call) for item in calls])

    def _proposal(self, call: ToolCall) -> CallProposed:
        bench = self._bench
        tool = bench.agent.by_name.get(call.name)
        if tool is None:
            return CallProposed(bench.origin, call, "read", "", _unknown(call.name))
        checked = check(tool, call.arguments_json)
        if isinstance(checked, CallError):
            return CallProposed(bench.origin, call, tool.kind, "", checked)
        self._checked[call.id] = checked
        known = ToolCall(call.id, call.provider_id, call.name, call.arguments_json, checked.data, call.raw)
        return CallProposed(bench.origin, known, tool.kind, _fingerprint(tool, checked.data))

    # Running

    async def run_segment(self, calls: tuple[CallState, ...]) -> None:
        """Run calls side by side, as many at once as the limits allow; tell their results in call order.

        Returns early, with the rest unstarted, when the user interrupts.
        """
        memory = self._bench.session_state.session.memory
        self.items = [self._item(call, memory) for call in calls]
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
        checked = self._checked.pop(call.id, None) or check(tool, call.arguments_json)
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
        """In the pool's task: a call has ended that is still waited for; one that was abandoned tells nobody."""
        run = self._bench.run
        run.works.discard(work)
        if work.lost:
            run.stop("the runtime's tools were cancelled")
        try:
            self._conclude(item)
        finally:
            self._change()

    def _change(self) -> None:
        self._missed = True
        self.changed.unpark_all()

    def _conclude(self, item: Item) -> None:
        bench, work = self._bench, item.work
        assert work is not None
        try:
            item.result = result_of(item.call, work, bench.limits)
        except EXITS:
            item.result = stopped(item.call, work.why)  # or the run, while it settles, would read it again
            raise
        if work.ended in ("returned", "raised"):  # one that was cut off is in no state to be remembered
            item.patches = item.context.patches
        work.forget()
        item.progress.bench = None
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
                self.cancel(item, "timeout")
                self._abandon_soon(item, now)

    def _abandon_soon(self, item: Item, now: float) -> None:
        """As a stop does: what a write leaves undone, or undoes, must not meet the write behind it."""
        limits = self._bench.limits
        grace = limits.stop_grace if item.call.kind == "write" else limits.unwind_grace
        item.deadline = math.inf
        item.abandon_at = min(item.abandon_at, now + grace)

    def cancel(self, item: Item, why: Why) -> None:
        """Stop a call; what it tells of its progress waits for no reader any more: its grace is for its work."""
        assert item.work is not None
        item.work.cancel(why)
        item.progress.waits = False
        self._bench.hub.make_room()

    def abandon(self, item: Item) -> None:
        """Wait no longer for a call that has not ended when it was cancelled."""
        assert item.work is not None
        self._bench.run.works.discard(item.work)
        self._bench.pool.abandon(item.work)
        self._conclude(item)

    def interrupt(self) -> None:
        """Cancel the running reads, start nothing more; a running write finishes."""
        self._interrupted = True
        now = trio.current_time()
        for item in self._running():
            if item.call.kind == "read":
                self.cancel(item, "interrupt")
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
        origin, call_id = self._bench.origin, item.call.call.id
        finished = CallFinished(origin, self._within_images(item))
        return [finished, *[MemoryPatched(origin, patch, call_id) for patch in item.patches]]

    def _within_images(self, item: Item) -> ToolResult:
        """The result, unless its images are too many for the run: counted in call order, whichever returned first.

        Asked again, where a cancel came before the events were out, it says the same.
        """
        result = item.result
        assert result is not None
        images = 0 if item.final else _images(result)
        item.final = True
        if not images:
            return result
        if self._images is None:
            self._images = _images_of_run(self._bench.session_state)
        most = self._bench.limits.max_images
        if self._images + images <= most:
            self._images += images
            return result
        why = f"it holds {images} images, and a run may return {most} in all; {self._images} were returned before"
        item.result = failed(item.call.call, failure(ResultError(why)))
        return item.result

    async def skip(self, calls: tuple[CallState, ...], why: str) -> None:
        """Answer calls without running them. One that was rejected keeps its own reason.

        In one commit: a run that went on from the middle of it might find another reason.
        """
        errors = [item.problem or CallError("skipped", why) for item in calls]
        results = [failed(item.call, error) for item, error in zip(calls, errors, strict=True)]
        await self._bench.emitter.emit(*[CallFinished(self._bench.origin, result) for result in results])

    def _item(self, call: CallState, memory: Mapping[str, Any]) -> Item:
        bench, call_id = self._bench, call.call.id
        progress = Progress(call_id, bench)
        context = ToolContext(
            session_id=bench.run.session_id,
            run_id=bench.run.id,
            call_id=call_id,
            agent=bench.agent.name,
            identity=bench.identity,
            memory=memory,
            services=bench.services,
            report=progress,
        )
        return Item(call, context, progress)


def _images(result: ToolResult) -> int:
    return sum(isinstance(part, Image) for part in result.parts)


def _images_of_run(state: SessionState) -> int:
    """How many images the open run has returned, also before it was resumed."""
    run = state.run
    assert run is not None
    ours = {ids.results_id(run.id, round) for round in range(1, run.rounds + 1)}
    messages = [message for message in state.session.messages if message.id in ours]
    return sum(_images(part) for message in messages for part in message.parts if isinstance(part, ToolResult))


def _unknown(name: str) -> CallError:
    return CallError("unknown_tool", f"There is no tool called {name[:NAME_SHOWN]!r}.")


def _fingerprint(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> str:
    """Of what is asked for, however the model spells it: the order of names and white space make no difference."""
    return hashlib.sha256(f"{tool.fingerprint}\n{_ordered(arguments)!a}".encode()).hexdigest()[:32]


def _ordered(value: Any) -> Any:
    """JSON with its names in order, as tuples and lists: a third of the time that JSON text would take."""
    if type(value) is dict:
        return tuple([(name, _ordered(value[name])) for name in sorted(value)])
    if type(value) is list:
        return [_ordered(item) for item in value]
    return value
