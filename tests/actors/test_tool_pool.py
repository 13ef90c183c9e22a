"""Tools in tasks and threads of the runtime's own: what is cancelled, left behind, counted and waited for."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import logging
import threading
import time
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, Scripted, ToolContext, open_runtime, read_tool, write_tool
from agentrio.actors import tool_pool
from agentrio.actors.runtime import Runtime
from agentrio.actors.tool_pool import ToolPool, Work
from agentrio.events import CallProgress, CallStarted
from agentrio.parts import ToolResult
from agentrio.providers.scripted import call
from tests.actors.kit import Log, read_named, results, said, watch


class Gate:
    """Where threads of tools wait until the test lets them go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()

    def wait(self) -> None:
        """In the thread: say that it is here, and wait."""
        self.entered.release()
        assert self.open.wait(20)

    async def wait_entered(self, count: int = 1) -> None:
        """In the test: until so many more threads are here."""
        for _ in range(count):
            assert await trio.to_thread.run_sync(self.entered.acquire, True, 20)


async def test_a_plain_function_runs_in_a_thread() -> None:
    """It may block; the loop goes on meanwhile, and its result is like any other."""

    @read_tool
    def look(ctx: ToolContext) -> str:
        """Looks."""
        ctx.remember({"thread": True})
        return threading.current_thread().name

    events, _ = await watch(Agent(model=Scripted([[call("look")], "Done."]), tools=[look]))
    assert [said(item) for item in results(events)] == ["tool look"]


async def test_a_thread_can_tell_its_progress() -> None:
    """By Trio's own way back from a thread."""

    @read_tool
    def look(ctx: ToolContext) -> str:
        """Looks."""
        trio.from_thread.run(ctx.progress, "half")
        return "seen"

    events, _ = await watch(Agent(model=Scripted([[call("look")], "Done."]), tools=[look]))
    assert [event.text for event in events if isinstance(event, CallProgress)] == ["half"]


async def test_a_stop_does_not_wait_for_a_thread() -> None:
    """The run ends; the thread is counted as an orphan until it comes back, and what it brings is dropped."""
    gate = Gate()

    @read_tool
    def stall(ctx: ToolContext) -> str:
        """Waits."""
        gate.wait()
        ctx.remember({"late": True})
        return "late"

    agent = Agent(model=Scripted([[call("stall")], "Done."]), tools=[stall])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallStarted):
                    await gate.wait_entered()
                    run.stop()
        assert [said(item) for item in results(events)] == ["cancelled"]
        assert (run.result.status, runtime.orphans) == ("cancelled", 1)
        assert (await session.ask("Again.")).text == "Done."
        gate.open.set()
        await runtime.wait_quiet()
        assert (runtime.orphans, session.value.memory) == (0, {})


async def test_a_thread_is_left_behind_at_its_timeout(autojump_clock: trio.testing.MockClock) -> None:
    """The wait for a thread is no shield against the clock."""
    gate = Gate()

    @read_tool(timeout=0.5)
    def stall() -> str:
        """Waits."""
        gate.wait()
        return "late"

    agent = Agent(model=Scripted([[call("stall")], "Done."]), tools=[stall])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            events = [event async for event in run]
        assert [said(item) for item in results(events)] == ["timeout"]
        assert (run.result.text, runtime.orphans) == ("Done.", 1)
        gate.open.set()
        await runtime.wait_quiet()


async def test_a_thread_can_ask_whether_it_was_stopped() -> None:
    """A loop that calls ``check_cancelled`` ends with its call."""
    gate, log = Gate(), Log()

    @read_tool
    def stall() -> str:
        """Asks."""
        gate.wait()
        try:
            trio.from_thread.check_cancelled()
        except trio.Cancelled:
            log("told")
            raise
        return "not told"

    agent = Agent(model=Scripted([[call("stall")]]), tools=[stall])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await gate.wait_entered()
        run.stop()
        gate.open.set()
        await runtime.wait_quiet()
    assert (run.result.status, log.lines) == ("cancelled", ["told"])


async def test_orphaned_threads_take_no_place_from_others() -> None:
    """With one place and one orphan in it, the next tool still runs; when the orphan is back, there is one place."""
    gate = Gate()

    @read_tool
    def stall() -> str:
        """Waits."""
        gate.wait()
        return ""

    @read_tool
    def look() -> str:
        """Looks."""
        return "seen"

    turns: list[Any] = [[call("stall")], [call("look")], "Done."]
    async with open_runtime(threads=1) as runtime:
        async with runtime.open_session(Agent(model=Scripted(turns), tools=[stall, look])) as session:
            run = await session.start("Go.")
            await gate.wait_entered()
            run.stop()
            await run.wait()
            limiter = runtime._pool._threads  # the door does not tell its size
            assert limiter.total_tokens == 2
            async with session.run("Again.") as again:
                events = [event async for event in again]
            assert [said(item) for item in results(events)] == ["seen"]
            gate.open.set()
            await runtime.wait_quiet()
            assert limiter.total_tokens == 1


async def test_no_more_than_some_orphans_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that always hangs must not make threads without end; all of them are counted."""
    monkeypatch.setattr(tool_pool, "MOST_ORPHANED_THREADS", 2)
    gate = Gate()

    @read_tool
    def stall() -> str:
        """Waits."""
        gate.wait()
        return ""

    agent = Agent(model=Scripted([[call("stall")] * 3]), tools=[stall])
    async with open_runtime(threads=3) as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await gate.wait_entered(3)
        run.stop()
        await run.wait()
        limiter = runtime._pool._threads  # the door does not tell its size
        assert (runtime.orphans, limiter.total_tokens) == (3, 5)
        gate.open.set()
        await runtime.wait_quiet()
        assert (runtime.orphans, limiter.total_tokens) == (0, 3)


async def test_what_runs_though_nobody_waits_is_named(autojump_clock: trio.testing.MockClock) -> None:
    """An orphan is found by its tool, and by the line that it is stuck at."""

    @read_tool
    async def dig() -> str:
        """Digs on."""
        with trio.CancelScope(shield=True):
            await trio.sleep(20)
        return ""

    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Scripted([[call("dig")]]), tools=[dig]), id="s") as session:
            run = await session.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            assert runtime.describe_orphans() == []
            run.stop()
            await run.wait()
            (told,) = runtime.describe_orphans()
            assert told.startswith("tool 'dig' of session s, at\n")
            assert "await trio.sleep(20)" in told
            assert (runtime.orphans, runtime.orphaned_threads) == (1, 0)
            await runtime.wait_quiet()
            assert runtime.describe_orphans() == []


async def test_a_call_that_waits_for_a_thread_is_stopped_like_any_other() -> None:
    """It never had a thread, so it leaves none behind."""
    gate, log = Gate(), Log()

    @read_tool
    def stall(number: int) -> str:
        """Waits."""
        log(str(number))
        gate.wait()
        return ""

    agent = Agent(model=Scripted([[call("stall", number=1), call("stall", number=2)]]), tools=[stall])
    async with open_runtime(threads=1) as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await gate.wait_entered()
        run.stop()
        await run.wait()
        assert runtime.orphans == 1
        gate.open.set()
        await runtime.wait_quiet()
    assert len(log.lines) == 1


async def test_a_runtime_leaves_its_threads_behind_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Python can't end a thread; waiting for one could be for ever."""
    gate = Gate()

    @read_tool
    def stall() -> str:
        """Waits."""
        gate.wait()
        return ""

    agent = Agent(model=Scripted([[call("stall")]]), tools=[stall])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        await session.start("Go.")
        await gate.wait_entered()
    assert "closing leaves 1 thread of tools behind: stall" in caplog.text
    gate.open.set()
    await runtime.wait_quiet()
    assert runtime.orphans == 0


DEAF = "tool 'deaf' of session s has not ended within 1 s of its cancel; nobody waits for it any more"


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The first lines of what was logged as a warning."""
    return [item.getMessage().splitlines()[0] for item in caplog.records if item.levelno == logging.WARNING]


async def test_a_task_that_does_not_end_when_it_is_cancelled_is_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Once when it was left for a second, and with its stack when the runtime has to wait for it at the end."""

    async def deaf_in_its_sleep(ctx: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        return ""

    turns: list[Any] = [[call("deaf"), call("deaf")], "Done."]
    tool = read_named("deaf", deaf_in_its_sleep)
    agent = Agent(model=Scripted(turns), tools=[tool], limits=Limits(call_timeout=1.0))
    start = trio.current_time()
    async with open_runtime() as runtime, runtime.open_session(agent, id="s") as session:
        await session.ask("Go.")
        assert runtime.orphans == 2
        await trio.sleep(0.9)
        assert warned(caplog) == []
        await trio.sleep(0.2)
        assert warned(caplog) == [DEAF]
    assert trio.current_time() - start == pytest.approx(30)
    assert (
        warned(caplog)[1:]
        == ["closing waits for tool 'deaf' of session s, which has not ended within 1 s of its cancel:"] * 2
    )
    assert "deaf_in_its_sleep" in caplog.text


async def test_a_thread_that_does_not_end_when_it_is_cancelled_is_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for it from the moment of the stop."""
    gate = Gate()

    @read_tool
    def deaf() -> str:
        """Waits."""
        gate.wait()
        return ""

    agent = Agent(model=Scripted([[call("deaf")]]), tools=[deaf])
    async with open_runtime() as runtime, runtime.open_session(agent, id="s") as session:
        run = await session.start("Go.")
        await gate.wait_entered()
        run.stop()
        await run.wait()
        await trio.sleep(2)
        assert warned(caplog) == [DEAF]
        gate.open.set()
        await runtime.wait_quiet()
    assert warned(caplog) == [DEAF]


async def test_a_tool_that_needs_a_moment_to_end_is_not_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A polite close takes longer than a read's grace; to call that deaf sends its author looking for a fault."""

    async def close_politely(ctx: ToolContext) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.01)

    agent = Agent(model=Scripted([[call("look")]]), tools=[read_named("look", close_politely)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        for _ in range(2):
            run = await session.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            run.stop()
            await run.wait()
            await trio.sleep(2)
    assert warned(caplog) == []


async def test_a_thread_that_asks_now_and_then_is_not_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    """A runtime that closes right behind a stop gives it the moment that it needs."""
    begun = trio.Event()

    @read_tool
    def look() -> str:
        """Asks."""
        trio.from_thread.run_sync(begun.set)
        while True:
            time.sleep(0.01)
            trio.from_thread.check_cancelled()

    agent = Agent(model=Scripted([[call("look")]]), tools=[look])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        await session.start("Go.")
        await begun.wait()
    assert runtime.orphans == 0
    assert warned(caplog) == []


async def test_a_tool_that_ends_soon_after_the_close_is_not_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A second is patience enough for ordinary clean-up."""

    async def tidy(ctx: ToolContext) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)

    agent = Agent(model=Scripted([[call("tidy")]]), tools=[read_named("tidy", tidy)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
    assert "closing waits" not in caplog.text


async def test_a_call_that_was_stopped_before_it_began_never_runs(autojump_clock: trio.testing.MockClock) -> None:
    """Between the hand-over and the first step of its task lies a step of the scheduler."""
    log = Log()

    async def look(ctx: ToolContext) -> str:
        log("ran")
        return ""

    agent = Agent(model=Scripted([[call("look")]]), tools=[read_named("look", look)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            async for event in run:
                if isinstance(event, CallStarted):
                    run.stop()
    assert run.result.status == "cancelled"
    assert len(log.lines) <= 1  # where the scheduler began it first, it ran to its end


async def test_no_call_begins_once_a_tool_has_ended_the_program(autojump_clock: trio.testing.MockClock) -> None:
    """Runs of other sessions are on their way out, and must not do more on it."""
    log, left, closing = Log(), list[BaseException](), trio.Event()
    pool = ToolPool(1, left.append)

    def work(name: str, invoke: Any) -> Work:
        return Work(name, "s", False, invoke, lambda work: log(work.name), contextvars.copy_context())

    async def leave() -> None:
        raise SystemExit(3)

    async with trio.open_nursery() as nursery:
        await nursery.start(pool.run, closing)
        pool.start(work("leave", leave))
        await trio.testing.wait_all_tasks_blocked()
        pool.start(work("late", leave))
        await pool.wait_quiet()
        closing.set()
    assert [type(error) for error in left] == [SystemExit]
    assert log.lines == []


def test_the_stack_of_a_call_without_a_task_is_said_to_be_none() -> None:
    """The warning comes from a shutdown, which must not fail over it."""
    work = Work("look", "s", False, lambda: None, lambda work: None, contextvars.copy_context())
    assert tool_pool._stack(work) == "(not started)"


@contextlib.asynccontextmanager
async def open_pool() -> AsyncIterator[ToolPool]:
    """A pool by itself."""
    pool, closing = ToolPool(1, lambda error: None), trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(pool.run, closing)
        yield pool
        closing.set()


def work_for(invoke: Any, report: Any = lambda work: None, name: str = "look", threaded: bool = False) -> Work:
    return Work(name, "s", threaded, invoke, report, contextvars.copy_context())


async def test_a_report_that_fails_is_not_the_pools_end(caplog: pytest.LogCaptureFixture) -> None:
    """It has the calls of other sessions in it: they go on, and the fault is logged."""
    log = Log()

    async def look() -> str:
        await trio.lowlevel.checkpoint()
        return "seen"

    def fail(work: Work) -> None:
        raise ZeroDivisionError

    async with open_pool() as pool:
        pool.start(work_for(look, fail))
        await pool.wait_quiet()
        pool.start(work_for(look, lambda work: log(work.value)))
        await pool.wait_quiet()
    assert log.lines == ["seen"]
    assert "the end of a call of tool 'look' of session s could not be told" in caplog.text


async def test_what_a_call_came_to_is_kept_until_it_was_told_and_no_longer() -> None:
    """The traceback of an error leads to the session, and an image may be large."""
    told: list[tuple[Any, Any]] = []

    async def give() -> str:
        await trio.lowlevel.checkpoint()
        return "seen"

    async def fail() -> str:
        await trio.lowlevel.checkpoint()
        raise ValueError("x")

    works = [work_for(invoke, lambda work: told.append((work.value, type(work.error)))) for invoke in (give, fail)]
    async with open_pool() as pool:
        for work in works:
            pool.start(work)
            await pool.wait_quiet()
    assert told == [("seen", type(None)), (None, ValueError)]
    assert [(work.value, work.error, work.late, work.task) for work in works] == [(None,) * 4] * 2


async def test_a_closed_session_is_not_kept_alive_by_a_thread() -> None:
    """Nobody can end the thread, which may hang for hours; the conversation must not hang on it."""
    gate = Gate()

    @read_tool(timeout=0.01)
    def stall(ctx: ToolContext) -> str:
        """Waits."""
        gate.wait()
        trio.from_thread.run(ctx.progress, "nobody is told")
        raise ValueError(ctx.call_id)

    async def converse(runtime: Runtime) -> weakref.ref[Any]:
        agent = Agent(model=Scripted([[call("stall")], "Done."]), tools=[stall])
        async with runtime.open_session(agent) as session:
            await session.ask("Go.")
            return weakref.ref(session._actor.hub)  # the door does not show it

    async with open_runtime() as runtime:
        hub = await converse(runtime)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        assert (hub(), runtime.orphans) == (None, 1)
        gate.open.set()
        await runtime.wait_quiet()


async def test_a_deaf_tool_is_named_again_only_after_many_others(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A runtime that lives for months must not remember each session that ever had one."""
    monkeypatch.setattr(tool_pool, "MOST_WARNED", 2)

    async def deaf() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)

    async with open_pool() as pool:
        for name in ("a", "b", "a", "c", "a"):
            work = work_for(deaf, name=name)
            pool.start(work)
            await trio.testing.wait_all_tasks_blocked()
            work.cancel("stop")
            pool.abandon(work)
        pool.abandon(work_for(deaf, name="never started"))
        await pool.wait_quiet()
    assert [line.split("'")[1] for line in warned(caplog)] == ["a", "b", "c", "a"]


@pytest.mark.parametrize("raises", [False, True])
async def test_a_run_whose_pool_is_cancelled_is_stopped(autojump_clock: trio.testing.MockClock, raises: bool) -> None:
    """The runtime is falling apart: the model must not be told that its write was stopped, as if by someone, and asked
    what to do next."""

    @write_tool
    async def pay() -> str:
        """Pays."""
        try:
            await trio.sleep_forever()
        finally:
            if raises:
                raise OSError("torn down")

    model = Scripted([[call("pay")], "What a pity."])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model, tools=[pay])) as session:
        run = await session.start("Pay.")
        await trio.testing.wait_all_tasks_blocked()
        assert runtime._pool._nursery is not None  # only a fault of the runtime would do it
        runtime._pool._nursery.cancel_scope.cancel()
        await run.wait()
        result = session.value.messages[-1].parts[0]
    assert isinstance(result, ToolResult)
    assert (run.result.status, run.result.reason) == ("cancelled", "the runtime's tools were cancelled")
    assert (result.status, result.uncertain, len(model.requests)) == (
        "failed" if raises else "cancelled",
        True,
        1,
    )
