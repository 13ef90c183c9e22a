"""How soon a stop is felt, in scheduler steps: a clock would measure the machine."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
import trio
import trio.testing

from agentrio import Agent, Scripted, open_runtime, read_tool
from agentrio.actors.cell import Run
from agentrio.events import CallStarted, TextDelta
from agentrio.providers.scripted import call


@attrs.define(eq=False)
class Passes(trio.abc.Instrument):
    """Counts the scheduler's passes over the tasks that are ready, and their steps."""

    passes: int = 0
    steps: int = 0

    def after_io_wait(self, timeout: float) -> None:
        self.passes += 1

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1


async def _steps_to_the_end(run: Run, act: Callable[[], object]) -> int:
    """Steps of all tasks from a stop to the run's outcome, all other tasks being blocked or done."""
    count = Passes()
    trio.lowlevel.add_instrument(count)
    act()
    while run.outcome is None:  # noqa: ASYNC110  # an event would be set a step later
        await trio.lowlevel.checkpoint()
    trio.lowlevel.remove_instrument(count)
    return count.steps


async def test_a_stop_in_mid_stream_ends_the_run_in_few_steps(autojump_clock: trio.testing.MockClock) -> None:
    """The run's own, and those that this test takes to look."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["word " * 100]))) as session:
        async with session.run("Go.") as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    break
            current = session.current_run
            assert current is not None
            assert await _steps_to_the_end(current, run.stop) <= 6


@pytest.mark.parametrize("tools", [1, 4])
async def test_a_stop_of_running_tools_costs_some_steps_for_each(
    tools: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Never a timer, and never a poll: each tool unwinds, then the run settles."""

    @read_tool
    async def wait() -> str:
        """Waits."""
        await trio.sleep(60)
        return "waited"

    agent = Agent(model=Scripted([[call("wait")] * tools]), tools=[wait])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        assert await _steps_to_the_end(run, run.stop) <= 8 + 4 * tools
        assert trio.current_time() == 0


@pytest.mark.parametrize("how", ["session.stop()", "the block is left", "a scope", "runtime.close()"])
async def test_a_tool_feels_a_stop_in_the_same_pass(how: str, autojump_clock: trio.testing.MockClock) -> None:
    """Its cancel is there before any other task could run twice; it is out of band, not behind a queue."""
    count = Passes()
    felt: list[int] = []

    @read_tool
    async def wait() -> str:
        """Waits."""
        try:
            await trio.sleep(60)
        except trio.Cancelled:
            felt.append(count.passes)
            raise
        return "waited"

    agent = Agent(model=Scripted([[call("wait")]]), tools=[wait])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        with trio.CancelScope() as scope:
            async with session.run("Go.") as run:
                async for event in run:
                    if isinstance(event, CallStarted):
                        break
                await trio.testing.wait_all_tasks_blocked()
                trio.lowlevel.add_instrument(count)
                if how == "session.stop()":
                    session.stop()
                elif how == "a scope":
                    scope.cancel()
                elif how == "runtime.close()":
                    await runtime.close()
        trio.lowlevel.remove_instrument(count)
        assert run.result.status == "cancelled"
    assert felt[0] <= 1
