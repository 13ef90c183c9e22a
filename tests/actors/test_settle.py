"""What a stop leaves behind: the partial answer, a result for each call, and a conversation that goes on."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, Scripted, ToolContext, Usage, open_runtime, write_tool
from agentrio.actors.readers import FULL
from agentrio.domain.parts import Image, Part, RawBlock, Text, Thinking, ToolCall
from agentrio.events import CallStarted, Event, MessageStarted, ToolInputDelta
from agentrio.providers.base import ModelResponse
from agentrio.providers.scripted import call
from tests.actors.kit import Broken, Canned, Log, answer, names, read_named, refused, results, said


async def stopped_in(model: Any, tools: Any = (), limits: Limits | None = None, at: Any = MessageStarted) -> Any:
    """The events and the result of a run that is stopped at its first event of a kind, and the messages it left."""
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model, tools=tools, limits=limits or Limits())) as session:
            async with session.run("Go.") as run:
                events: list[Event] = []
                async for event in run:
                    events.append(event)
                    if isinstance(event, at):
                        run.stop()
            return events, run.result, session.value.messages


@pytest.mark.parametrize(
    ("arrived", "kept"),
    [
        ((Thinking("Hm."), Text("Hal")), (Thinking("Hm."), Text("Hal"))),
        ((Thinking("Hm."),), (Thinking("Hm."),)),
        ((Thinking("", signature="sig"), Text("")), (Thinking("", signature="sig"),)),
        ((RawBlock("search", "{}"), Text("Hal")), (RawBlock("search", "{}"), Text("Hal"))),
        ((Text("Hal"), ToolCall("", "", "look", '{"pa', None)), (Text("Hal"),)),
        ((Image("aGk=", "image/png"), Text("Hal")), (Text("Hal"),)),
        ((RawBlock("search", "{}"),), None),
        ((Text(""),), None),
        ((ToolCall("", "", "look", '{"pa', None),), None),
        ((), None),
    ],
)
async def test_what_has_arrived_of_an_answer_is_kept(
    autojump_clock: trio.testing.MockClock, arrived: tuple[Part, ...], kept: tuple[Part, ...] | None
) -> None:
    """Marked as interrupted; a call without all of its arguments goes, and nothing at all is no message."""
    model = Canned([Broken(arrived, refused(retry=None), Usage(input=3)), answer("Better.")])
    events, result, messages = await stopped_in(model)
    assert result.status == "cancelled"
    if kept is None:
        assert (len(messages), "MessageDiscarded" in names(events)) == (1, True)
        assert (result.usage, result.discarded) == (Usage(), Usage(input=3))
    else:
        assert (messages[1].parts, messages[1].interrupted) == (kept, True)
        assert (result.usage, result.text) == (Usage(input=3), messages[1].text)


async def test_calls_that_had_all_their_arguments_are_answered_as_not_started(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The history stays valid for every provider, and the model reads that nothing happened."""
    whole = ToolCall("", "a", "look", '{"x":1}', {"x": 1})
    model = Canned([Broken((Text("I look."), whole), refused(retry=None))])
    events, _, messages = await stopped_in(model, at=MessageStarted)
    (result,) = results(events)
    assert [message.role for message in messages] == ["user", "assistant", "tool"]
    assert (result.status, result.uncertain) == ("failed", False)  # there is no such tool, and that is what it is told


async def test_each_open_call_is_told_what_became_of_it(autojump_clock: trio.testing.MockClock) -> None:
    """Finished, stopped while running, and never started are three different things to a model."""

    async def quick(ctx: ToolContext) -> str:
        return "quick"

    async def stall(ctx: ToolContext) -> str:
        await trio.sleep_forever()

    @write_tool
    async def save() -> str:
        """Must not run."""
        raise AssertionError

    tools = [read_named("quick", quick), read_named("stall", stall), save]
    model = Scripted([[call("quick"), call("stall"), call("save"), call("quick"), call("nosuch")]])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model, tools=tools)) as session:
        async with session.run("Go.") as run:
            events: list[Event] = []
            async for event in run:
                events.append(event)
                if names(events)[-1] == "CallFinished":
                    run.stop()
    told = [said(item) for item in results(events)]
    assert told == ["quick", "cancelled", "cancelled", "cancelled", "unknown_tool"]
    words = [item.error.message for item in results(events)[1:4] if item.error]
    assert words[0] == "The call was stopped while running."
    assert words[1:] == ["Not started: the run was stopped."] * 2


@pytest.mark.parametrize(("takes", "outcome"), [(0.5, "saved"), (5.0, "cancelled")])
async def test_a_running_write_is_given_the_grace(
    autojump_clock: trio.testing.MockClock, takes: float, outcome: str
) -> None:
    """What it returns by then is its real result; else nobody knows what it did, and the result says so."""

    @write_tool
    async def save() -> str:
        """Is not to be cut short."""
        with trio.CancelScope(shield=True):
            await trio.sleep(takes)
        return "saved"

    start = trio.current_time()
    async with (
        open_runtime() as runtime,
        runtime.open_session(Agent(model=Scripted([[call("save")]]), tools=[save])) as session,
    ):
        async with session.run("Go.") as run:
            events: list[Event] = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallStarted):
                    await trio.testing.wait_all_tasks_blocked()
                    run.stop()
        took = trio.current_time() - start
    (result,) = results(events)
    assert (said(result), result.uncertain) == (outcome, outcome == "cancelled")
    assert took == pytest.approx(min(takes, 0.9))


async def test_a_stop_in_the_middle_of_a_call_keeps_the_text_before_it(autojump_clock: trio.testing.MockClock) -> None:
    """A call whose arguments had not all come was never asked for."""
    model = Scripted([[call("look", city="A city with a long name")]])
    events, result, messages = await stopped_in(model, at=ToolInputDelta)
    assert (result.status, len(messages)) == ("cancelled", 1)
    assert "CallProposed" not in names(events)


async def test_a_complete_answer_that_the_stop_overtook_is_not_marked(autojump_clock: trio.testing.MockClock) -> None:
    """It is whole; only its run was stopped."""
    model = Canned([ModelResponse((Text("Whole."),), "end", "end_turn", Usage(input=1))])
    _, result, messages = await stopped_in(model)
    assert (result.status, messages[1].text, messages[1].interrupted) == ("cancelled", "Whole.", False)


@pytest.mark.parametrize("way", ["stop", "timeout"])
async def test_a_stopped_write_tells_its_progress_without_waiting_for_a_reader(
    autojump_clock: trio.testing.MockClock, way: str
) -> None:
    """Its grace is for its work: a reader that does not read must not use it up."""
    began, log = trio.Event(), Log()

    @write_tool(timeout=5 if way == "timeout" else None)
    async def save(ctx: ToolContext) -> str:
        """Saves, and tells of it at length."""
        began.set()
        with trio.CancelScope(shield=True):
            for step in range(2 * FULL):
                await ctx.progress(f"step {step}")
            await trio.lowlevel.checkpoint()
        log("whole")
        return "saved"

    agent = Agent(model=Scripted([[call("save")], "Done."]), tools=[save])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with runtime.subscribe(session=session.id, on_lag="wait"):
            run = await session.start("Go.")
            await began.wait()
            await trio.testing.wait_all_tasks_blocked()
            assert log.lines == []
            if way == "timeout":
                await trio.sleep(5.5)
            else:
                run.stop()
            await trio.testing.wait_all_tasks_blocked()
            assert log.lines == ["whole"]
