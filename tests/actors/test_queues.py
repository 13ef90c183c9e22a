"""Messages that wait: steering for the next round, follow-ups for the end, and what a stop leaves of them."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import (
    Agent,
    NothingToProceed,
    Scripted,
    SessionBusy,
    SessionClosed,
    ToolContext,
    open_runtime,
    read_tool,
    write_tool,
)
from agentrio.actors.session import MOST_QUEUED
from agentrio.domain.messages import user_message
from agentrio.domain.parts import Text
from agentrio.domain.session import Queued, Session
from agentrio.events import CallStarted, Event, MessageStarted
from agentrio.providers.scripted import Reply, call
from tests.actors.kit import Broken, Canned, added, answer, names, read_named, refused, results, said, spoken


async def test_steering_goes_before_follow_ups_and_one_at_a_time(autojump_clock: trio.testing.MockClock) -> None:
    """P S1, answer, S2, answer, F1, answer, F2, answer: each message gets an answer of its own."""
    model = Scripted(["a1", "a2", "a3", "a4", "never"])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        session.follow_up("F1")
        session.steer("S1")
        session.follow_up("F2")
        session.steer("S2")
        result = await session.ask("P")
        assert (result.status, result.text, result.rounds, result.queued) == ("succeeded", "a4", 4, 0)
    assert spoken(model.requests[-1]) == ["P", "S1", "a1", "S2", "a2", "F1", "a3", "F2"]


async def test_steering_during_tools_is_in_the_next_request(autojump_clock: trio.testing.MockClock) -> None:
    """After the calls, not instead of them: every call runs, and the model reads the message with their results."""
    sessions: list[Any] = []

    async def work(ctx: ToolContext) -> str:
        if ctx.call_id.endswith("0"):
            sessions[0].steer("S1")
            sessions[0].steer("S2")
        return "worked"

    model = Scripted([[call("work"), call("work")], "a1", "a2"])
    agent = Agent(model=model, tools=[read_named("work", work)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        sessions.append(session)
        async with session.run("P") as run:
            events = [event async for event in run]
    assert [said(item) for item in results(events)] == ["worked", "worked"]
    assert spoken(model.requests[1]) == ["P", "S1"]
    assert spoken(model.requests[2]) == ["P", "S1", "a1", "S2"]


@pytest.mark.parametrize("attempt", range(8))
async def test_a_message_accepted_before_a_call_ends_is_in_the_next_request(
    autojump_clock: trio.testing.MockClock, attempt: int
) -> None:
    """Whichever task the scheduler wakes first, what was accepted is what the next step goes by, in order."""
    sessions: list[Any] = []

    async def work(ctx: ToolContext) -> str:
        for number in range(3):
            sessions[0].steer(f"S{number}")
        return "worked"

    model = Scripted([[call("work")], "a1", "a2", "a3"])
    agent = Agent(model=model, tools=[read_named("work", work)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        sessions.append(session)
        await session.ask("P")
    assert spoken(model.requests[-1]) == ["P", "S0", "a1", "S1", "a2", "S2"]


async def test_a_follow_up_waits_for_the_end_of_the_work(autojump_clock: trio.testing.MockClock) -> None:
    """It is not slipped in between a call and the answer that uses it."""
    model = Scripted([[call("look")], "a1", "a2"])
    agent = Agent(model=model, tools=[read_named("look", _seen)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        session.follow_up("F")
        result = await session.ask("P")
    assert (result.text, result.rounds) == ("a2", 3)
    assert spoken(model.requests[2]) == ["P", "a1", "F"]


@pytest.mark.parametrize("queue", ["follow_up", "steer"])
async def test_an_empty_answer_to_a_queued_message_is_not_the_answer_before_it(
    autojump_clock: trio.testing.MockClock, queue: str
) -> None:
    """G09: how many live there is not answered by "Oslo.", which was asked for earlier."""
    model = Scripted(["Oslo.", Reply("")])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        async with session.run("The capital?") as run:
            async for event in run:
                if isinstance(event, MessageStarted) and event.round == 1:
                    getattr(session, queue)("And how many people live there?")
    assert (run.result.status, run.result.rounds, run.result.text) == ("error", 2, "")
    assert run.result.failure is not None
    assert run.result.failure.code == "invalid_response"


async def test_a_message_queued_while_idle_waits_for_the_next_run(autojump_clock: trio.testing.MockClock) -> None:
    """Queueing starts nothing: the app decides when the model is asked."""
    model = Scripted(["a1", "a2"])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        receipt = session.steer("S")
        await trio.testing.wait_all_tasks_blocked()
        assert (receipt.run_id, receipt.queue, model.requests) == (None, "steering", [])
        assert [item.message.id for item in session.value.queue] == [receipt.message_id]
        assert (await session.ask("P")).text == "a1"
    assert spoken(model.requests[0]) == ["P", "S"]


async def test_a_receipt_names_the_run_that_was_open(autojump_clock: trio.testing.MockClock) -> None:
    """The caller knows which run will most likely answer."""
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Scripted(["a1", "a2"])), id="s") as session:
            run = await session.start("P")
            receipt = session.steer("S")
            assert (receipt.run_id, receipt.message_id) == (run.id, "s-q1")
            assert session.steer("T").message_id == "s-q2"
            await run.wait()


async def test_a_queued_message_can_be_taken_back(autojump_clock: trio.testing.MockClock) -> None:
    """Also at once, before anyone has looked at it; and only as long as it waits."""
    model = Scripted(["a1", "a2"])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        receipt = session.steer("S")
        assert session.unqueue(receipt.message_id)
        await session.ask("P")
        assert spoken(model.requests[0]) == ["P"]
        kept = session.follow_up("F")
        await trio.testing.wait_all_tasks_blocked()
        assert session.unqueue(kept.message_id)
        await trio.testing.wait_all_tasks_blocked()
        assert session.value.queue == ()
        assert not session.unqueue(kept.message_id)
        assert not session.unqueue("nosuch")


async def test_the_queue_is_told_in_events(autojump_clock: trio.testing.MockClock) -> None:
    """A view that was not there when it happened shows the queue all the same."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["a", "b"]))) as session:
        async with session.events(after=0) as events:
            receipt = session.steer("S")
            session.unqueue(receipt.message_id)
            session.follow_up("F")
            await trio.testing.wait_all_tasks_blocked()
            await session.ask("P")
            seen: list[Event] = []
            async for event in events:
                seen.append(event)
                if names(seen)[-1] == "RunEnded":
                    break
    assert names(seen)[:3] == ["MessageQueued", "MessageUnqueued", "MessageQueued"]
    assert added(seen) == ["P", "F"]


async def test_a_stop_leaves_the_queue_as_it_is(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing is eaten by a run that is over: the next one sends its own prompt, then what waited."""
    model = Scripted([[call("stall")], "a1", "a2"])

    async def stall(ctx: ToolContext) -> str:
        await trio.sleep_forever()

    agent = Agent(model=model, tools=[read_named("stall", stall)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("P") as run:
            async for event in run:
                if isinstance(event, CallStarted):
                    session.follow_up("F")
                    session.steer("S")
                    run.stop()
        assert (run.result.status, run.result.queued, len(model.requests)) == ("cancelled", 2, 1)
        assert [item.queue for item in session.value.queue] == ["follow_up", "steering"]
        await session.ask("Q")
    assert spoken(model.requests[1]) == ["P", "Q", "S"]
    assert spoken(model.requests[2]) == ["P", "Q", "S", "a1", "F"]


async def test_an_error_leaves_the_queue_as_it_is(autojump_clock: trio.testing.MockClock) -> None:
    """A message that a broken provider would have eaten is answered once it works again."""
    model = Canned([Broken((Text("Hal"),), refused(retry=None)), answer("a1")])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        async with session.run("P") as run:
            async for event in run:
                if isinstance(event, MessageStarted):
                    session.steer("S")
        assert (run.result.status, run.result.queued) == ("error", 1)
        assert (await session.proceed()).text == "a1"
    assert spoken(model.asked[1]) == ["P", "S"]


async def test_a_cancel_from_outside_loses_no_accepted_message(autojump_clock: trio.testing.MockClock) -> None:
    """It has a receipt: whoever opens the value again finds it waiting."""
    async with open_runtime() as runtime:
        with trio.CancelScope() as scope:
            async with runtime.open_session(Agent(model=Scripted([]))) as session:
                for number in range(3):
                    session.follow_up(f"F{number}")
                scope.cancel()
                await trio.lowlevel.checkpoint()
        assert [item.message.text for item in session.value.queue] == ["F0", "F1", "F2"]
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted([]))) as session:
            for number in range(3):
                session.follow_up(f"F{number}")
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert [item.message.text for item in session.value.queue] == ["F0", "F1", "F2"]


async def _seen(ctx: ToolContext) -> str:
    return "seen"


# Proceeding


async def test_there_is_nothing_to_proceed_from_after_an_answer(autojump_clock: trio.testing.MockClock) -> None:
    """A finished answer needs a new message; a mistake of the program is raised before any event."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["a1"]))) as session:
        with pytest.raises(NothingToProceed):
            await session.proceed()
        await session.ask("P")
        before = session.value
        with pytest.raises(NothingToProceed, match="finished answer"):
            await session.proceed()
        assert session.value == before


async def test_proceeding_answers_what_waits_behind_an_answer(autojump_clock: trio.testing.MockClock) -> None:
    """Steering first, then the follow-up, each with its answer; the model is never asked with nothing new."""
    model = Scripted(["a1", "a2", "a3"])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        await session.ask("P")
        session.follow_up("F")
        session.steer("S")
        assert (await session.proceed()).text == "a3"
    assert [spoken(request)[-1] for request in model.requests] == ["P", "S", "F"]


async def test_proceeding_behind_a_follow_up_alone_sends_it(autojump_clock: trio.testing.MockClock) -> None:
    """After an answer the run would end at once, so its follow-up is due."""
    model = Scripted(["a1", "a2"])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        await session.ask("P")
        session.follow_up("F")
        assert (await session.proceed()).text == "a2"
    assert spoken(model.requests[1]) == ["P", "a1", "F"]


async def test_proceeding_after_a_stop_goes_on_from_the_partial_answer(autojump_clock: trio.testing.MockClock) -> None:
    """The partial text is part of the conversation, and the model is asked to go on."""
    model = Scripted(["A long answer that is cut in its middle.", "And the rest."])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        async with session.run("P") as run:
            async for event in run:
                if event.__class__.__name__ == "TextDelta":
                    break
        assert run.result.status == "cancelled"
        assert session.value.messages[-1].interrupted
        assert (await session.proceed()).text == "And the rest."
        assert len(session.value.messages) == 3


async def test_proceeding_after_an_error_asks_again(autojump_clock: trio.testing.MockClock) -> None:
    """The prompt is there already; sending it twice would be heard twice."""
    model = Scripted([refused(retry=None), "a1"])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        assert (await session.ask("P")).status == "error"
        assert (await session.proceed()).text == "a1"
    assert spoken(model.requests[1]) == ["P"]


async def test_proceeding_while_a_run_is_open_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    """One run at a time, however it was begun."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["a1"]))) as session:
        run = await session.start("P")
        with pytest.raises(SessionBusy):
            await session.proceed()
        await run.wait()


# Stopping behind a round


async def test_a_stop_after_the_round_lets_its_calls_finish(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing is cut off, and nothing new begins: no request follows."""
    model = Scripted([[call("save"), call("save")], "never"])

    @write_tool
    async def save() -> str:
        """Writes."""
        await trio.sleep(1)
        return "saved"

    async with open_runtime() as runtime, runtime.open_session(Agent(model=model, tools=[save])) as session:
        async with session.run("P") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallStarted):
                    assert session.stop(when="after_round", reason="enough")
                    assert session.stop(when="after_round", reason="really")
    assert [said(item) for item in results(events)] == ["saved", "saved"]
    assert (run.result.status, run.result.reason, len(model.requests)) == ("cancelled", "enough", 1)


async def test_a_stop_after_the_round_takes_an_answer_with_it(autojump_clock: trio.testing.MockClock) -> None:
    """The run was stopped, and says so; its text is whole all the same."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["a1"]))) as session:
        run = await session.start("P")
        session.stop(when="after_round")
        await run.wait()
        assert (run.result.status, run.result.text) == ("cancelled", "a1")


async def test_a_stop_now_beats_one_after_the_round(autojump_clock: trio.testing.MockClock) -> None:
    """Who asked to wait may still lose patience; the first reason stays."""

    async def stall(ctx: ToolContext) -> str:
        await trio.sleep_forever()

    agent = Agent(model=Scripted([[call("stall")]]), tools=[read_named("stall", stall)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("P")
        await trio.testing.wait_all_tasks_blocked()
        assert session.stop(when="after_round", reason="first")
        assert session.stop(reason="second")
        await run.wait()
        assert (run.result.status, run.result.reason) == ("cancelled", "first")


async def test_stopping_an_idle_session_is_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """It is not remembered: the next run works."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["a1"]))) as session:
        assert not session.stop()
        assert not session.stop(when="after_round")
        assert (await session.ask("P")).status == "succeeded"
        assert not session.stop()


# Mistakes


async def test_a_mistaken_message_is_refused_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """Before any event, by the line that made the mistake."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["a1"]))) as session:
        with pytest.raises(ValueError, match="empty"):
            session.steer("  ")
        with pytest.raises(ValueError, match="empty"):
            session.follow_up(())
        with pytest.raises(TypeError, match="int"):
            session.follow_up(5)  # type: ignore[arg-type]  # that is the mistake
        with pytest.raises(ValueError, match="after_calls"):
            session.steer("S", mode="now")  # type: ignore[arg-type]  # that is the mistake
        with pytest.raises(ValueError, match="after_round"):
            session.stop(when="later")  # type: ignore[arg-type]  # that is the mistake
        await trio.testing.wait_all_tasks_blocked()
        assert session.value.seq == 0


async def test_a_queue_that_nobody_empties_has_an_end(autojump_clock: trio.testing.MockClock) -> None:
    """Memory is bounded for the patient too; a message taken back makes room."""
    waiting = tuple(Queued(user_message(f"s-q{number}", "F"), "follow_up") for number in range(1, MOST_QUEUED))
    value = Session("s", queue=waiting, queued_total=len(waiting))
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Scripted(["a1"])), value=value) as session:
            last = session.follow_up("F")
            for put in (session.follow_up, session.steer):
                with pytest.raises(SessionBusy, match="1000 messages queued; let runs answer them, or unqueue"):
                    put("one more")
            session.unqueue(last.message_id)
            await trio.testing.wait_all_tasks_blocked()
            assert session.steer("now there is room").message_id == "s-q1001"


async def test_a_runaway_caller_is_told_that_the_mailbox_is_full(autojump_clock: trio.testing.MockClock) -> None:
    """Memory is bounded; what was accepted before is not lost."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["a1"]))) as session:
        accepted = 0
        with pytest.raises(SessionBusy, match="commands waiting"):
            for _ in range(1000):
                session.follow_up("F")
                accepted += 1
        await trio.testing.wait_all_tasks_blocked()
        assert len(session.value.queue) == accepted >= 64


async def test_a_closed_session_queues_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """A message that nobody would ever send is refused, not swallowed."""
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Scripted(["a1"]))) as session:
            session.follow_up("F")
        assert [item.message.text for item in session.value.queue] == ["F"]
        for queue in (session.steer, session.follow_up, session.unqueue):
            with pytest.raises(SessionClosed):
                queue("x")


def test_a_read_tool_can_be_called_in_a_unit_test() -> None:
    """A declared tool stays the function that it was."""

    @read_tool
    def double(number: int) -> int:
        """Doubles."""
        return number * 2

    assert double(4) == 8


async def test_what_was_accepted_before_a_cancel_is_still_queued(autojump_clock: trio.testing.MockClock) -> None:
    """A receipt was given for each; a cancel that comes in the same moment takes none back."""
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime:
            session = await runtime.start_session(Agent(model=Scripted([])))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            receipts = [session.steer(text) for text in ("one", "two", "three")]
    assert [item.message.id for item in session.value.queue] == [receipt.message_id for receipt in receipts]


async def test_what_was_accepted_before_an_exit_is_still_queued(autojump_clock: trio.testing.MockClock) -> None:
    """The exit of a tool cancels every session, also one that has more to take than it was woken for."""
    others: list[Any] = []

    @write_tool
    async def leave() -> None:
        """Leave."""
        for number in range(60):
            others[0].steer(str(number))
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        async with open_runtime() as runtime:
            others.append(await runtime.start_session(Agent(model=Scripted([]))))
            async with runtime.open_session(Agent(model=Scripted([[call("leave")]]), tools=[leave])) as session:
                await session.ask("Leave.")
    assert [item.message.text for item in others[0].value.queue] == [str(number) for number in range(60)]
