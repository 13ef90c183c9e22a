"""Tools that take too long, or do not listen when they are told so."""

from __future__ import annotations

import time
from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, Scripted, ToolContext, open_runtime, read_tool, write_tool
from agentrio.domain.parts import Image
from agentrio.parts import ToolResult
from agentrio.providers.scripted import call
from tests.actors.kit import Log, read_named, results, said, watch

PNG = Image("iVBORw0KGgo=", "image/png")


async def _give(value: Any) -> Any:
    return value


@pytest.mark.parametrize("where", ["the tool", "the limits"])
async def test_a_tool_that_takes_too_long_is_stopped(autojump_clock: trio.testing.MockClock, where: str) -> None:
    """The tool's own timeout beats the default; either way the run goes on with a timeout result."""

    async def stall() -> str:
        """Takes for ever."""
        await trio.sleep_forever()

    tool = read_tool(timeout=2.0)(stall) if where == "the tool" else read_tool(stall)
    default = 9.0 if where == "the tool" else 2.0
    agent = Agent(model=Scripted([[call("stall")], "Done."]), tools=[tool], limits=Limits(call_timeout=default))
    start = trio.current_time()
    events, result = await watch(agent)
    assert [said(item) for item in results(events)] == ["timeout"]
    assert trio.current_time() - start == pytest.approx(2)
    assert result.status == "succeeded"


async def test_a_write_that_took_too_long_may_have_taken_effect(autojump_clock: trio.testing.MockClock) -> None:
    """The model must not believe that nothing happened."""

    @write_tool(timeout=1.0)
    async def save() -> str:
        """Takes for ever."""
        await trio.sleep_forever()

    events, _ = await watch(Agent(model=Scripted([[call("save")], "Done."]), tools=[save]))
    (result,) = results(events)
    assert result.uncertain
    assert result.error is not None
    assert (result.error.category, "may have taken effect" in result.error.message) == ("timeout", True)


async def test_a_tool_that_ignores_its_timeout_delays_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """Its slot is free for the call behind it, its late value is dropped, and the pool counts it meanwhile."""

    async def deaf(ctx: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(50)
        ctx.remember({"late": True})
        await ctx.progress("late")
        return "late"

    quick = read_named("quick", lambda ctx: _give("quick"))
    agent = Agent(
        model=Scripted([[call("deaf"), call("quick")], "Done."]),
        tools=[read_named("deaf", deaf), quick],
        limits=Limits(max_parallel_calls=1, call_timeout=2.0),
    )
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        start = trio.current_time()
        async with session.run("Go.") as run:
            events = [event async for event in run]
        assert trio.current_time() - start == pytest.approx(2.003)
        assert [said(item) for item in results(events)] == ["timeout", "quick"]
        assert runtime.orphans == 1
        await runtime.wait_quiet()
        assert trio.current_time() - start == pytest.approx(50)
        assert runtime.orphans == 0
        assert session.value.memory == {}


async def test_what_a_tool_returns_within_its_grace_counts(autojump_clock: trio.testing.MockClock) -> None:
    """A tool that winds up quickly gives a real result, though its time was over."""

    async def polite(ctx: ToolContext) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:  # noqa: ASYNC103  # a tool may well do it
            return "what I have"  # noqa: ASYNC104  # as above, a tool may

    tool = read_named("polite", polite)
    agent = Agent(model=Scripted([[call("polite")], "Done."]), tools=[tool], limits=Limits(call_timeout=1.0))
    events, _ = await watch(agent)
    assert [said(item) for item in results(events)] == ["what I have"]


async def test_each_call_has_a_time_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    """One that is over does not take its neighbours with it."""

    async def stall(ctx: ToolContext) -> str:
        await trio.sleep_forever()

    async def slow(ctx: ToolContext) -> str:
        await trio.sleep(5)
        return "slow"

    hasty = read_tool(name="hasty", description="Stalls.", timeout=1.0)(stall)
    agent = Agent(model=Scripted([[call("hasty"), call("slow")], "Done."]), tools=[hasty, read_named("slow", slow)])
    events, _ = await watch(agent)
    assert [said(item) for item in results(events)] == ["timeout", "slow"]


@pytest.mark.parametrize("policy", ["continue", "skip"])
@pytest.mark.parametrize("threaded", [False, True])
async def test_d04_a_write_that_rolls_back_after_its_timeout_meets_no_other(policy: Any, threaded: bool) -> None:
    """The next write, of the same response or of the next, sees what it has undone, as a stop lets it finish too."""
    log = Log()

    async def roll_back() -> str:
        """Takes too long."""
        log("+slow")
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.1)
            log("-slow")

    def roll_back_in_thread() -> str:
        """Takes too long, and asks."""
        log("+slow")
        while True:
            time.sleep(0.01)
            try:
                trio.from_thread.check_cancelled()
            except trio.Cancelled:
                time.sleep(0.1)
                log("-slow")
                raise

    @write_tool
    async def save() -> str:
        """Writes."""
        log("+save")
        await trio.sleep(0.01)
        log("-save")
        return "saved"

    slow = write_tool(name="slow", timeout=0.05)(roll_back_in_thread if threaded else roll_back)
    agent = Agent(
        model=Scripted([[call("slow"), call("save")], [call("save")], "Done."]),
        tools=[slow, save],
        limits=Limits(on_failed_write=policy, stop_grace=5.0),
    )
    events, result = await watch(agent)
    saved = 2 if policy == "continue" else 1
    assert log.lines == ["+slow", "-slow", *["+save", "-save"] * saved]
    assert said(results(events)[0]) == "timeout"
    assert result.status == "succeeded"


async def test_a_write_that_ignores_its_timeout_is_left_behind_after_the_stop_grace(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The run can't wait for ever; it has waited as long as a stop would."""

    @write_tool(timeout=2.0)
    async def deaf() -> str:
        """Does not listen."""
        with trio.CancelScope(shield=True):
            await trio.sleep(50)
        return "late"

    agent = Agent(model=Scripted([[call("deaf")], "Done."]), tools=[deaf], limits=Limits(stop_grace=0.5))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        start = trio.current_time()
        await session.ask("Go.")
        assert trio.current_time() - start == pytest.approx(2.5)
        result = session.value.messages[2].parts[0]
        assert isinstance(result, ToolResult)
        assert (said(result), result.uncertain) == ("timeout", True)
