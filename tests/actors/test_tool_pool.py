"""Tools in tasks and threads of the runtime's own: what is cancelled, left behind, counted and waited for."""

from __future__ import annotations

import contextvars
import logging
import threading
from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, Scripted, ToolContext, open_runtime, read_tool
from agentrio.actors import tool_pool
from agentrio.actors.tool_pool import ToolPool, Work
from agentrio.events import CallProgress, CallStarted
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
    assert "closing leaves 1 threads of tools behind: stall" in caplog.text
    gate.open.set()
    await runtime.wait_quiet()
    assert runtime.orphans == 0


async def test_a_task_that_ignores_its_cancel_is_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Once when it is left to itself, and with its stack when the runtime has to wait for it at the end."""

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
    assert trio.current_time() - start == pytest.approx(30)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings[0] == "tool 'deaf' of session s ignores its cancellation; it is left to itself"
    assert [line.splitlines()[0] for line in warnings[1:]] == [
        "closing waits for tool 'deaf' of session s, which ignores its cancellation:"
    ] * 2
    assert "deaf_in_its_sleep" in warnings[1]


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
