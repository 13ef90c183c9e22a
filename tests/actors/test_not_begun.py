"""Calls whose tool was never entered: they have had no effect, and are told so, whatever ended them."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import trio

from agentrio import Agent, Limits, Scripted, open_runtime, read_tool, write_tool
from agentrio.actors.call_results import result_of
from agentrio.actors.tool_pool import Why, Work, _noted
from agentrio.domain.state import CallState
from agentrio.events import CallStarted
from agentrio.parts import ToolCall, ToolResult
from agentrio.providers.scripted import call
from tests.actors.kit import Log, results

Told: TypeAlias = tuple[str, bool, str | None]

NOT_STARTED = ("cancelled", False, "Not started: the run was stopped.")
TOO_LATE = ("failed", False, "Not started: no thread was free for it in time.")
INTERRUPTED = ("skipped", False, "Skipped due to queued user message.")


def told(result: ToolResult) -> Told:
    return result.status, result.uncertain, result.error.message if result.error else None


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("by_leaving", [False, True])
async def test_a_write_that_is_stopped_when_it_is_announced_was_not_started(threaded: bool, by_leaving: bool) -> None:
    """Whoever vetoes a payment at this event must not be told that it may have been made.

    Where the scheduler was quicker than the veto it was paid, and is told so.
    """
    log = Log()

    async def pay() -> str:
        """Pays."""
        log("paid")
        return ""

    def pay_in_thread() -> str:
        """Pays."""
        log("paid")
        return ""

    tool = write_tool(pay_in_thread if threaded else pay, name="pay")
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Scripted([[call("pay")]]), tools=[tool])) as session:
            async with session.run("Go.") as run:
                async for event in run:
                    if isinstance(event, CallStarted):
                        if by_leaving:
                            break
                        run.stop()
            (result,) = [part for part in session.value.messages[-1].parts if isinstance(part, ToolResult)]
        await runtime.wait_quiet()
    assert told(result) == (NOT_STARTED if not log.lines else ("succeeded", False, None))


class Queue:
    """One thread for all tools, which is taken by the tool of another session until the block is left."""

    def __init__(self, declare: Callable[..., Any], **options: Any) -> None:
        self.log = Log()
        self.entered, self._open = trio.Event(), threading.Event()

        @read_tool
        def block() -> str:
            """Takes the thread."""
            trio.from_thread.run_sync(self.entered.set)
            assert self._open.wait(20)
            return ""

        def work() -> str:
            """Works."""
            self.log("worked")
            return ""

        self.blocker = Agent(name="blocker", model=Scripted([[call("block")], "Done."]), tools=[block])
        waits: list[Any] = [[call("work")], "Done."]
        self.waiter = Agent(name="waiter", model=Scripted(waits), tools=[declare(work)], limits=Limits(**options))

    async def result(self, act: Callable[[Any], None] = lambda session: None) -> ToolResult:
        """What a call is told that waits for the thread, and meets ``act`` there."""
        async with open_runtime(threads=1) as runtime:
            async with runtime.open_session(self.blocker) as first, runtime.open_session(self.waiter) as second:
                await first.start("Go.")
                await self.entered.wait()
                async with second.run("Go.") as run:
                    events = []
                    async for event in run:
                        events.append(event)
                        if isinstance(event, CallStarted):
                            await trio.testing.wait_all_tasks_blocked()
                            act(second)
                self._open.set()
                await first.wait_idle()
            await runtime.wait_quiet()
        assert self.log.lines == []
        (result,) = results(events)
        return result


async def test_a_write_that_waits_for_a_thread_and_is_stopped_was_not_started() -> None:
    """Its code was not entered, and never will be."""
    result = await Queue(write_tool).result(lambda session: session.stop())
    assert told(result) == NOT_STARTED


async def test_a_write_that_waits_for_a_thread_for_too_long_was_not_started() -> None:
    """The model may ask again without fear."""
    result = await Queue(write_tool, call_timeout=0.01).result()
    assert told(result) == TOO_LATE
    assert result.error is not None
    assert result.error.category == "timeout"


async def test_a_read_that_waits_for_a_thread_and_is_interrupted_is_skipped() -> None:
    """As any other call that a message of the user overtakes."""
    result = await Queue(read_tool).result(lambda session: session.steer("Wait.", mode="interrupt"))
    assert told(result) == INTERRUPTED


@pytest.mark.parametrize(
    ("why", "expected"), [("stop", NOT_STARTED), ("timeout", TOO_LATE), ("interrupt", INTERRUPTED)]
)
async def test_a_thread_that_starts_behind_the_cancel_does_not_enter_the_tool(why: Why, expected: Told) -> None:
    """Between the start of the thread and its first line the loop may have told the model that nothing was done."""
    log = Log()
    work = Work("pay", "s", True, lambda: log("paid"), lambda work: None, contextvars.copy_context())
    work.cancel(why)
    await trio.to_thread.run_sync(_noted, work)
    pay = CallState(ToolCall("c1", "p1", "pay", "{}", {}), kind="write", started=True)
    assert (log.lines, told(result_of(pay, work, Limits()))) == ([], expected)
