"""What a plain ``def`` tool awaits by ``trio.from_thread.run``: the stop of its call reaches it, as in plain Trio.

Trio's own names for what it keeps of a thread are used for that. Where a new Trio has others, these tests say so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio

from agentrio import Agent, Anthropic, Scripted, ToolContext, ask, open_runtime, read_tool, write_tool
from agentrio.actors import from_thread
from agentrio.events import CallProgress
from agentrio.parts import ToolResult
from agentrio.providers.scripted import call
from agentrio.testing import Fault, HoldingClock, TextReply, open_model_server
from tests.actors.kit import Log, results, watch

DECLARE = pytest.mark.parametrize("declare", [read_tool, write_tool])


async def wait_for_ever(log: Log, begun: trio.Event) -> None:
    """What a tool awaits: it says when it has begun, and how it is ended."""
    begun.set()
    try:
        await trio.sleep_forever()
    except trio.Cancelled:
        log("cancelled in the loop")
        raise


def waiting(declare: Callable[..., Any], log: Log, begun: trio.Event, **options: Any) -> Any:
    """A tool that waits by way of the loop."""

    def wait() -> str:
        """Waits."""
        try:
            trio.from_thread.run(wait_for_ever, log, begun)
        except trio.Cancelled:
            log("told in the thread")
            raise
        return "waited"

    return declare(wait, **options)


@DECLARE
async def test_a_stop_reaches_what_a_thread_awaits(declare: Callable[..., Any]) -> None:
    """Whatever is asked there, a model or a database, is let go of."""
    log, begun = Log(), trio.Event()
    agent = Agent(model=Scripted([[call("wait")]]), tools=[waiting(declare, log, begun)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await begun.wait()
        run.stop()
        await run.wait()
        await runtime.wait_quiet()
        result = session.value.messages[-1].parts[0]
    assert log.lines == ["cancelled in the loop", "told in the thread"]
    assert isinstance(result, ToolResult)
    assert (result.status, result.uncertain) == ("cancelled", declare is write_tool)


@DECLARE
async def test_a_timeout_reaches_what_a_thread_awaits(holding_clock: HoldingClock, declare: Callable[..., Any]) -> None:
    """As a stop does."""
    log, begun = Log(), trio.Event()
    tool = waiting(declare, log, begun, timeout=1.0)
    agent = Agent(model=Scripted([[call("wait")], "Done."]), tools=[tool])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            events = [event async for event in run]
        await runtime.wait_quiet()
    assert [result.error and result.error.category for result in results(events)] == ["timeout"]
    assert log.lines == ["cancelled in the loop", "told in the thread"]


async def test_a_model_that_a_thread_asks_sees_its_client_leave() -> None:
    """The inner stream would go on, and cost, when the outer run was stopped and its runtime closed."""
    async with open_model_server([TextReply("More. ", fault=Fault(endless=True))]) as server:
        inner = Agent(name="inner", model=Anthropic("any", api_key="not-a-key", base_url=server.base_url))

        @read_tool
        def consult() -> str:
            """Asks a colleague."""
            return trio.from_thread.run(ask, inner, "Hi.").text

        agent = Agent(model=Scripted([[call("consult")]]), tools=[consult])
        async with open_runtime() as runtime, runtime.open_session(agent) as session:
            run = await session.start("Go.")
            await server.wait_headers(1)
            run.stop()
            await run.wait()
        exchange = await server.wait_disconnect(1)
    assert exchange.ended == "client_closed"


class Leaving:
    """A read that was stopped and goes on in its thread, at what it is told to do."""

    def __init__(self) -> None:
        self.log = Log()
        self.begun, self.ended = trio.Event(), trio.Event()
        self.go = threading.Event()

    def tool(self, then: Callable[[], Any]) -> Any:
        """The tool that does so."""
        token = trio.lowlevel.current_trio_token()

        @read_tool
        def linger() -> str:
            """Lingers."""
            trio.from_thread.run_sync(self.begun.set)
            assert self.go.wait(20)
            try:
                then()
            except BaseException as error:
                self.log(type(error).__name__)
                raise
            finally:
                trio.from_thread.run_sync(self.ended.set, trio_token=token)
            return ""

        return linger

    async def play(self, then: Callable[[], Any], *, closed: bool) -> list[str]:
        """Stop the tool, close its runtime or not, let it go on, and give back what it met."""
        agent = Agent(model=Scripted([[call("linger")]]), tools=[self.tool(then)])
        async with open_runtime() as runtime, runtime.open_session(agent) as session:
            run = await session.start("Go.")
            await self.begun.wait()
            run.stop()
            await run.wait()
            if not closed:
                self.go.set()
                await runtime.wait_quiet()
        self.go.set()
        await self.ended.wait()
        return self.log.lines


CLOSED = pytest.mark.parametrize("closed", [False, True])


@CLOSED
async def test_nothing_new_is_awaited_for_a_thread_that_was_stopped(closed: bool) -> None:
    """It is told at its next wait, also when nobody waits for it any more, and when the runtime is gone."""
    leaving = Leaving()
    assert await leaving.play(lambda: trio.from_thread.run(trio.sleep, 0), closed=closed) == ["Cancelled"]


@CLOSED
async def test_a_thread_that_was_stopped_can_clean_up_in_the_loop(closed: bool) -> None:
    """As in plain Trio: what needs no wait is done, and what is shielded takes its time."""
    leaving = Leaving()

    async def close() -> None:
        with trio.move_on_after(1, shield=True):
            await trio.sleep(0.001)
            leaving.log("closed")

    def then() -> None:
        trio.from_thread.run_sync(leaving.log, "noted")
        trio.from_thread.run(close)

    assert await leaving.play(then, closed=closed) == ["noted", "closed"]


async def test_a_thread_whose_loop_is_about_to_end_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trio takes no new task then: the thread must not wait for ever, nor the loop crash."""
    leaving = Leaving()

    def refuse(*args: Any, **options: Any) -> None:
        raise RuntimeError("Nursery is closed to new arrivals")

    def then() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(trio.lowlevel, "spawn_system_task", refuse)
            trio.from_thread.run(trio.sleep, 0)

    assert await leaving.play(then, closed=False) == ["RunFinishedError"]


async def test_a_write_that_was_stopped_is_told_when_it_reports_its_progress() -> None:
    """It feels its cancel where an async tool would, and may have taken effect."""
    begun, go = trio.Event(), threading.Event()

    @write_tool
    def save(ctx: ToolContext) -> str:
        """Saves."""
        trio.from_thread.run_sync(begun.set)
        assert go.wait(20)
        trio.from_thread.run(ctx.progress, "half")
        return "saved"

    agent = Agent(model=Scripted([[call("save")]]), tools=[save])
    async with open_runtime() as runtime, runtime.open_session(agent) as session, session.run("Go.") as run:
        await begun.wait()
        run.stop()
        go.set()
        events = [event async for event in run]
    (result,) = results(events)
    assert (result.status, result.uncertain) == ("cancelled", True)
    assert not any(isinstance(event, CallProgress) for event in events)


async def test_what_a_thread_awaits_without_end_is_named_with_its_stack(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """What shields itself in the loop is an orphan like any other that does."""

    begun = trio.Event()

    async def deaf() -> None:
        with trio.CancelScope(shield=True):
            begun.set()
            await trio.sleep(30)

    @read_tool
    def listen() -> str:
        """Listens to nobody."""
        trio.from_thread.run(deaf)
        return ""

    agent = Agent(model=Scripted([[call("listen")]]), tools=[listen])
    async with open_runtime() as runtime, runtime.open_session(agent, id="s") as session:
        run = await session.start("Go.")
        await begun.wait()
        run.stop()
        await run.wait()
        (told,) = runtime.describe_orphans()
        assert "await trio.sleep(30)" in told
    assert "closing waits for tool 'listen' of session s" in caplog.text


async def test_with_an_unknown_trio_tools_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they await is then not told of a stop; all else is as it was."""
    monkeypatch.setattr(from_thread, "_OF_THREAD", None)

    @read_tool
    def look() -> str:
        """Looks."""
        trio.from_thread.run(trio.sleep, 0)
        return "seen"

    events, _ = await watch(Agent(model=Scripted([[call("look")], "Done."]), tools=[look]))
    assert [result.status for result in results(events)] == ["succeeded"]
