"""One replay of a scenario: played, ended at its point, and held against the law."""

from __future__ import annotations

import math
import random
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, assert_never

import attrs
import trio

from agentrio.actors.cell import Run
from agentrio.actors.handle import RunStream, SessionHandle
from agentrio.actors.readers import Reader
from agentrio.actors.runtime import Runtime, open_runtime
from agentrio.agent.agent import Agent
from agentrio.agent.tool import Tool
from agentrio.domain.errors import SessionClosed
from agentrio.domain.events import CallStarted, Event, MessageAdded, RoundStarted, RunEnded, RunStarted
from agentrio.domain.session import Session
from agentrio.domain.state import SessionState, reduce
from agentrio.testing.clock import HoldingClock
from agentrio.testing.leaks import LeakCheck, LeakError, TaskCounter, ThreadCounter

from .law import check_events, check_history
from .scenario import PROBE, Scenario, Way
from .steps import Stepper
from .tools import Watch, visited

__all__ = ["Stage"]

KEPT = 1_000_000  # events that the observer may have waiting: all
PATIENCE = 3_600.0  # virtual seconds; a replay that lasts longer hangs
LAST_WAITS = 1.0  # virtual seconds that a thread may wait in the loop when the runtime has closed
ROUNDING = 1e-6  # seconds
UNWINDING = 1.0  # virtual seconds that a cancelled tool may take to end: it may have something to close


@attrs.define(eq=False)
class Marks:
    """Where in the count of points something happened; infinite where it did not."""

    opened: float = math.inf
    accepted: float = math.inf
    ended: float = math.inf
    left: float = math.inf
    over: float = math.inf


class Stage:
    """Where a replay takes place. A scenario's ``consume`` is given it.

    Attributes:
        session: The session, once it is open.
        runtime: The runtime, once it is open.
        seen: The events that the scenario's own reader got.
        problems: What was found to be wrong.
    """

    def __init__(self, scenario: Scenario, way: Way | None, point: int, seed: int) -> None:
        self.scenario: Scenario = scenario
        self.way: Way | None = way
        self.point: int = point
        self._seed = seed
        self.runtime: Runtime | None = None
        self.session: SessionHandle | None = None
        self.run: Run | None = None
        self.seen: list[Event] = []
        self.problems: list[str] = []
        self.marks: Marks = Marks()
        self.clock: HoldingClock = HoldingClock()
        self.hit: bool = False
        self.visits: int = 0  # of events and tools, where those are what is acted at
        self.latency: tuple[int, float] | None = None
        by_step = way is not None and way != "within" and not scenario.threads
        self.stepper: Stepper = Stepper(point if by_step else None, self._act, self._watch, self._give_up)
        self._acted: tuple[int, float] | None = None
        self._seq_then = 0  # the last event before the act
        self._finished = False  # the run's stream was read to its end
        self._felt = False  # a cancel came out of the scenario's own code
        self._run_scope, self._runtime_scope = trio.CancelScope(), trio.CancelScope()
        self._whole = trio.CancelScope()
        self._close_now, self._played = trio.Event(), trio.Event()
        self._observer: Reader | None = None
        self._heard: list[Event] = []
        self._before: Session | None = None

    # For scenarios

    async def _read(self, run: RunStream) -> Event:
        event = await run.__anext__()
        self.seen.append(event)
        if not self.scenario.threads:
            self._visit()
        return event

    def events(self, run: RunStream) -> _Events:
        """The run's events, each seen by the stage before the scenario gets it."""
        return _Events(self._read, run, self._read_out)

    def _read_out(self) -> None:
        self._finished = True

    # Acting

    def _visit(self) -> None:
        """An event was read, or a tool was entered or left: the points of the ways that do not count steps."""
        if not self.stepper.counting:
            return
        self.visits += 1
        if (self.way == "within" or self.scenario.threads) and self.visits == self.point:
            self._act()

    def _swallowed(self, tool: Tool[..., Any]) -> None:
        if not self.scenario.stubborn:
            self.problems.append(f"the tool {tool.name!r} swallowed its cancel: it was to end there, and went on")

    def _act(self) -> None:
        self.hit = self.run is not None and self.run.outcome is None
        self._acted = (self.stepper.total, trio.current_time())
        self._seq_then = 0 if self.session is None else self.session.value.seq
        match self.way:
            case "stop" | "within":
                told = self.session is not None and self.session.stop(reason="cancelled everywhere")
                if told != self.hit:
                    self.problems.append(f"stop() said {told} where a run was {'open' if self.hit else 'not open'}")
            case "run scope":
                self._run_scope.cancel()
            case "runtime scope":
                self._runtime_scope.cancel()
            case "close":
                self._close_now.set()
            case None:
                pass
            case _:
                assert_never(self.way)

    def _watch(self) -> None:
        if self.run is None or self.run.outcome is None or self.marks.ended < math.inf:
            return
        self.marks.ended = self.stepper.points
        if self.hit and self._acted is not None:
            steps, time = self._acted
            self.latency = (self.stepper.total - steps, trio.current_time() - time)

    def _give_up(self) -> None:
        self.problems.append("tasks take steps without end:\n" + _tasks())
        self._whole.cancel()

    async def _close_when_told(self) -> None:
        await self._close_now.wait()
        if self.runtime is not None:
            await self.runtime.close()

    # Playing

    async def perform(self) -> None:
        """Play the scenario once. Whatever is wrong is in ``problems`` afterwards."""
        with self._whole:
            async with self.scenario.open_agent() as agent:
                with visited(agent.tools, Watch(self._visit, self.stepper, self._swallowed)):
                    leaks = LeakCheck()
                    async with AsyncExitStack() as outside:
                        await self._play(agent, outside)
                        await self._drain_observer()
                    self._judge()
                    await self._reopen(agent)
                await self._let_threads_end()
                await self._none_left(leaks, "after the runtime has closed")
        self.problems += self.stepper.faults
        self.problems += self.scenario.also(self)

    async def _play(self, agent: Agent[Any], outside: AsyncExitStack) -> None:
        with trio.move_on_after(PATIENCE) as patience:
            async with trio.open_nursery() as hall:
                hall.start_soon(self._close_when_told)
                hall.start_soon(self._scene, agent, outside, hall)
                await self._played.wait()
                hall.cancel_scope.cancel()
        if patience.cancelled_caught:
            self.problems.append(f"the replay hung; {PATIENCE:g} seconds passed")

    async def _scene(self, agent: Agent[Any], outside: AsyncExitStack, hall: trio.Nursery) -> None:
        self.stepper.adopt(trio.lowlevel.current_task())
        try:
            with self._runtime_scope:
                async with open_runtime(rng=random.Random(self._seed)) as runtime:
                    self.runtime = runtime
                    self._observer = await outside.enter_async_context(runtime.subscribe(max_pending=KEPT))
                    await self._converse(runtime, agent, hall)
        except SessionClosed as error:
            if self.way != "close":
                self._unexpected(error)
        except Exception as error:
            self._unexpected(error)
        finally:
            self.marks.over = self.stepper.points
            self._played.set()

    async def _converse(self, runtime: Runtime, agent: Agent[Any], hall: trio.Nursery) -> None:
        async with runtime.open_session(agent, id="s_everywhere") as session:
            self.session, self._before = session, session.value
            self.marks.opened = self.stepper.points
            tasks = LeakCheck(TaskCounter(hall), ThreadCounter())
            with self._run_scope:
                await self._run(session)
            self.marks.left = self.stepper.points
            if self.way not in ("runtime scope", "close"):
                self.stepper.counting = False
                await self._no_orphans(runtime)
                await self._quiet(runtime)
                await self._none_left(tasks, "after wait_quiet()")
                await self._probe(session)
                self.stepper.counting = True

    async def _no_orphans(self, runtime: Runtime) -> None:
        """A tool that is still at it is one that ignores its cancel; threads may, for nobody can cancel them."""
        with trio.move_on_after(UNWINDING):
            await runtime.wait_quiet()
        if not self.scenario.stubborn:
            self.problems += [f"still there {UNWINDING:g} s later: {orphan}" for orphan in runtime.describe_orphans()]

    async def _quiet(self, runtime: Runtime) -> None:
        if not self.scenario.threads:
            await runtime.wait_quiet()
            return
        with self.clock.hold(lambda: runtime.orphaned_threads):  # they are what is waited for here
            await runtime.wait_quiet()

    async def _let_threads_end(self) -> None:
        """What a thread that was left behind awaits of the loop may take time of this clock, as its work may of all."""
        if self.scenario.threads and self.runtime is not None:
            with trio.move_on_after(LAST_WAITS):
                await self.runtime.wait_quiet()

    async def _run(self, session: SessionHandle) -> None:
        async with session.run(self.scenario.prompt) as run:
            self.run = session.current_run
            self.marks.accepted = self.stepper.points
            try:
                await self.scenario.consume(self, run)
            except trio.Cancelled:
                self._felt = True
                raise

    async def _probe(self, session: SessionHandle) -> None:
        result = await session.ask(PROBE)
        if result.status != "succeeded":
            self.problems.append(f"the next prompt ended {result.status}: {result.failure}")
        self.problems += [f"after the next prompt: {problem}" for problem in check_history(session.value.messages)]

    async def _reopen(self, agent: Agent[Any]) -> None:
        """Where the runtime was ended, the conversation goes on in another one, from its last value."""
        if self.way not in ("runtime scope", "close") or self.problems:
            return
        self.stepper.counting = False
        async with open_runtime() as runtime:
            async with runtime.open_session(agent, value=self._last_value()) as session:
                await self._probe(session)

    def _last_value(self) -> Session | None:
        """The session's value, by way of JSON: what a program would have kept."""
        return None if self.session is None else Session.from_json(self.session.value.to_json())

    async def _none_left(self, leaks: LeakCheck, when: str) -> None:
        try:
            await leaks.check()
        except LeakError as error:
            self.problems.append(f"{when}: {error}")

    def _unexpected(self, error: BaseException) -> None:
        self.problems.append("raised: " + "".join(traceback.format_exception(error)))

    # Judging

    async def _drain_observer(self) -> None:
        """Read what the observer has: it saw everything, and outlived the runtime."""
        if self._observer is not None:
            with trio.move_on_after(1.0) as patience:
                self._heard = [event async for event in self._observer]
            if patience.cancelled_caught:
                self.problems.append("the runtime's subscription does not end with the runtime")

    def _judge(self) -> None:
        if self.session is not None:
            self.problems += check_history(self.session.value.messages)
        if self.run is None:
            return
        self.problems += check_events(self._heard, self.run.id)
        if self.run.outcome is None:
            self.problems.append("the run has no outcome")
        if self._finished and not (self.seen and isinstance(self.seen[-1], RunEnded)):
            self.problems.append("the run's own stream ended without RunEnded")
        self._judge_fold()
        self._judge_stop()

    def _judge_fold(self) -> None:
        assert self.session is not None
        assert self._before is not None
        state = SessionState(self._before)
        try:
            for event in self._heard:
                state = reduce(state, event)
        except ValueError as error:
            self.problems.append(f"the events can't be folded: {error}")
            return
        if state.session != self.session.value:
            self.problems.append("the fold of the events is not the session's value")

    def _judge_stop(self) -> None:
        assert self.run is not None
        status = getattr(self.run.outcome, "status", "suspended")
        if self.hit and self.way in ("stop", "within"):
            if status != "cancelled":
                self.problems.append(f"stop() hit the run, which ended {status}")
            self.problems += [
                f"{type(event).__name__} came after the stop" for event in self._heard if self._new(event)
            ]
        if self.latency is not None and self.latency[1] > self._grace() + ROUNDING:
            self.problems.append(f"the run ended {self.latency[1]:g} s after its cancel")
        scope = {"run scope": self._run_scope, "runtime scope": self._runtime_scope}.get(self.way or "")
        if self._felt and scope is not None and not scope.cancelled_caught:
            self.problems.append(f"the cancel of the {self.way} was swallowed: it left the reader, and never came back")

    def _new(self, event: Event) -> bool:
        """Whether it starts something after the act; a run that had not begun still tells its prompt."""
        if not event.structural or event.seq <= self._seq_then or event.origin.run != self._run_id:
            return False
        added = isinstance(event, MessageAdded) and event.source != "prompt"
        return added or isinstance(event, (RoundStarted, CallStarted))

    @property
    def _run_id(self) -> str:
        return "" if self.run is None else self.run.id

    def _grace(self) -> float:
        graces = (event.limits.stop_grace for event in self._heard if isinstance(event, RunStarted))
        return next(graces, math.inf)


@attrs.define(eq=False)
class _Events:
    _read: Callable[[RunStream], Any]
    _run: RunStream
    _out: Callable[[], None]

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> Event:
        try:
            event: Event = await self._read(self._run)
        except StopAsyncIteration:
            self._out()
            raise
        return event


def _tasks() -> str:
    root = trio.lowlevel.current_root_task()
    counter = TaskCounter()
    return "" if root is None else "\n".join(str(counter.describe(task)) for task in counter.snapshot().values())
