"""A message that interrupts: what it stops, what it lets finish, and what never starts."""

from __future__ import annotations

import pytest
import trio

from agentrio import (
    Agent,
    Scripted,
    ToolContext,
    open_runtime,
    write_tool,
)
from agentrio.events import CallFinished, CallStarted, Event, MessageStarted
from agentrio.providers.scripted import call
from tests.actors.kit import Log, read_named, results, said, spoken


async def _seen(ctx: ToolContext) -> str:
    return "seen"


async def test_an_interrupt_stops_reads_and_skips_what_has_not_started(autojump_clock: trio.testing.MockClock) -> None:
    """The user has changed their mind: the model is asked again at once, with their words."""
    log = Log()

    async def stall(ctx: ToolContext) -> str:
        ctx.remember({"stalled": True})
        await trio.sleep_forever()

    @write_tool
    async def save() -> str:
        """Must not run."""
        log("saved")
        return ""

    model = Scripted([[call("quick"), call("stall"), call("save"), call("quick")], "a1"])
    tools = [read_named("quick", _seen), read_named("stall", stall), save]
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model, tools=tools)) as session:
        async with session.run("P") as run:
            events: list[Event] = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallFinished) and len(results(events)) == 1:
                    session.steer("No, wait.", mode="interrupt")
        assert session.value.memory == {}
    assert [item.status for item in results(events)] == ["succeeded", "skipped", "skipped", "skipped"]
    words = {item.error.message for item in results(events) if item.error}
    assert words == {"Skipped due to queued user message."}
    assert log.lines == []
    assert (run.result.status, run.result.text) == ("succeeded", "a1")
    assert spoken(model.requests[1]) == ["P", "No, wait."]


async def test_an_interrupt_lets_a_running_write_finish(autojump_clock: trio.testing.MockClock) -> None:
    """Half a write is worse than one too many."""
    model = Scripted([[call("save"), call("look")], "a1"])

    @write_tool
    async def save() -> str:
        """Writes."""
        await trio.sleep(5)
        return "saved"

    agent = Agent(model=model, tools=[save, read_named("look", _seen)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("P") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallStarted):
                    session.steer("Wait.", mode="interrupt")
    assert [said(item) for item in results(events)] == ["saved", "skipped"]
    assert run.result.text == "a1"


async def test_an_interrupt_does_not_start_reads_that_wait_for_a_slot(autojump_clock: trio.testing.MockClock) -> None:
    """Whatever has not started when the message comes, does not."""
    log = Log()

    async def look(ctx: ToolContext) -> str:
        log(ctx.call_id[-1])
        await trio.sleep(5)
        return ""

    model = Scripted([[call("look")] * 6, "a1"])
    agent = Agent(model=model, tools=[read_named("look", look)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("P") as run:
            async for event in run:
                if isinstance(event, CallStarted) and event.call_id.endswith("3"):
                    await trio.testing.wait_all_tasks_blocked()
                    session.steer("Wait.", mode="interrupt")
    assert sorted(log.lines) == ["0", "1", "2", "3"]
    assert run.result.text == "a1"


async def test_a_read_that_ignores_the_interrupt_delays_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """It becomes an orphan of the pool, as with a stop."""

    async def deaf(ctx: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
        return ""

    agent = Agent(model=Scripted([[call("deaf")], "a1"]), tools=[read_named("deaf", deaf)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        start = trio.current_time()
        async with session.run("P") as run:
            async for event in run:
                if isinstance(event, CallStarted):
                    await trio.testing.wait_all_tasks_blocked()
                    session.steer("Wait.", mode="interrupt")
        assert trio.current_time() - start == pytest.approx(0.003)
        assert (run.result.text, runtime.orphans) == ("a1", 1)


async def test_an_interrupt_while_the_model_speaks_skips_the_calls_it_asks_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The response is heard to its end; its calls belong to what the user no longer wants."""
    model = Scripted([[call("look")], "a1"])
    agent = Agent(model=model, tools=[read_named("look", _seen)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("P") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, MessageStarted) and event.round == 1:
                    session.steer("Wait.", mode="interrupt")
    assert [said(item) for item in results(events)] == ["skipped"]
    assert run.result.text == "a1"
