"""A plain ``def`` tool that writes, stopped while it runs: what it comes to within the grace is its real result.

No mocked clock: it would jump over the grace, since a thread that was told to stop is no longer waited for by Trio.
"""

from __future__ import annotations

import threading

import trio

from agentrio import Agent, Limits, Scripted, ToolError, open_runtime, write_tool
from agentrio.events import CallFinished
from agentrio.parts import ToolResult
from agentrio.providers.scripted import call


async def stopped_write(*, fails: bool) -> ToolResult:
    """The result of a write whose thread ends once the run has been stopped."""
    begun, stopped = trio.Event(), threading.Event()

    @write_tool
    def save() -> str:
        """Save."""
        trio.from_thread.run_sync(begun.set)
        stopped.wait(10)
        if fails:
            raise ToolError("The disk is full.")
        return "saved"

    async with open_runtime() as runtime:
        agent = Agent(model=Scripted([[call("save")]]), tools=[save])
        async with runtime.open_session(agent) as session, session.run("Save.") as run:
            await begun.wait()
            run.stop()
            stopped.set()
            results = [event.result async for event in run if isinstance(event, CallFinished)]
        await runtime.wait_quiet()
    return results[0]


async def test_a_write_that_came_back_is_told_as_what_it_did() -> None:
    """It is saved: "it may have taken effect" would make the model ask, or save again."""
    result = await stopped_write(fails=False)
    assert (result.status, result.uncertain) == ("succeeded", False)


async def test_a_write_that_failed_meanwhile_is_told_with_both() -> None:
    """Its own words are known by then; whether they come of the stop is not."""
    result = await stopped_write(fails=True)
    assert result.error is not None
    assert (result.status, result.uncertain) == ("failed", True)
    assert result.error.message == "The disk is full. (The call was stopped while running. It may have taken effect.)"


async def test_a_write_that_does_not_come_back_is_uncertain() -> None:
    """The run does not wait for longer than its grace, and what the thread brings afterwards is nobody's."""
    begun, leave = trio.Event(), threading.Event()

    @write_tool
    def save() -> str:
        """Save."""
        trio.from_thread.run_sync(begun.set)
        leave.wait(10)
        return "too late"

    async with open_runtime() as runtime:
        agent = Agent(model=Scripted([[call("save")]]), tools=[save], limits=Limits(stop_grace=0.05))
        async with runtime.open_session(agent) as session, session.run("Save.") as run:
            await begun.wait()
            run.stop()
            (result,) = [event.result async for event in run if isinstance(event, CallFinished)]
        leave.set()
        await runtime.wait_quiet()
    assert (result.status, result.uncertain) == ("cancelled", True)
