"""A session in the hands of its user: who may do what, when, and what a mistake is answered with."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import (
    Agent,
    RunNotEnded,
    RunResult,
    Scripted,
    Session,
    SessionBusy,
    SessionClosed,
    ToolContext,
    WouldDeadlock,
    open_runtime,
)
from agentrio.actors.cell import RunCell, current_run
from agentrio.domain.errors import RunSuspendedError
from agentrio.domain.parts import Image, Text
from agentrio.domain.status import Suspension
from agentrio.events import CallStarted, Event, RunEnded
from agentrio.providers.scripted import call
from tests.actors.kit import names, read_named, results, said


async def _stall(ctx: ToolContext) -> str:
    await trio.sleep_forever()


def stalling() -> Agent[Any]:
    """An agent whose first run hangs in a tool; later ones answer."""
    return Agent(model=Scripted([[call("stall")], "Better."]), tools=[read_named("stall", _stall)])


# One run at a time


async def test_a_second_run_is_refused_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """Two answers would write one conversation; what to do instead is in the message."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        for second in (session.start, session.ask):
            with pytest.raises(SessionBusy, match=r"steer\(\) it"):
                await second("And this?")
        with pytest.raises(SessionBusy):
            async with session.run("And this?"):
                pass
        current = session.current_run
        assert current is run
        run.stop()
        await run.wait()
        assert session.current_run is None
        assert (await session.ask("Again.")).text == "Better."


async def test_a_run_does_nothing_before_its_block_is_entered(autojump_clock: trio.testing.MockClock) -> None:
    """A run that nobody entered would have no one to stop it."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
        block = session.run("Go.")
        await trio.testing.wait_all_tasks_blocked()
        assert (session.value.seq, session.current_run) == (0, None)
        async with block as run:
            async for _ in run:
                pass
        assert run.result.text == "Hi."
        with pytest.raises(RuntimeError, match="entered already"):
            async with block:
                pass


async def test_a_started_run_needs_no_reader(autojump_clock: trio.testing.MockClock) -> None:
    """The session owns it: its events are kept for who comes late."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."])), id="s") as session:
        run = await session.start("Go.")
        assert repr(run) == "<Run s-r1 open>"
        with pytest.raises(RunNotEnded, match="s-r1"):
            _ = run.result
        outcome = await run.wait()
        assert outcome is run.result
        assert not run.stop()
        async with session.events(after=0) as events:
            seen: list[Event] = []
            async for event in events:
                seen.append(event)
                if isinstance(event, RunEnded):
                    break
        assert names(seen)[0] == "RunStarted"


async def test_events_behind_a_cursor_are_told_once(autojump_clock: trio.testing.MockClock) -> None:
    """A reader that was away goes on where it was; without a cursor it starts now."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi.", "Ho."]))) as session:
        await session.ask("1")
        cursor = session.value.seq
        async with session.events(after=cursor) as behind, session.events() as live:
            await session.ask("2")
            for reader in (behind, live):
                first = await reader.__anext__()
                assert (first.seq, names([first])) == (cursor + 1, ["RunStarted"])


async def test_asking_waits_for_the_end_without_watching(autojump_clock: trio.testing.MockClock) -> None:
    """The short way for who wants the answer only; content may be parts."""
    model = Scripted(["A cat."])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        result = await session.ask((Text("What is this?"), Image("aGk=", "image/png")))
    assert result.text == "A cat."
    assert model.requests[0].messages[0].parts == (Text("What is this?"), Image("aGk=", "image/png"))


async def test_cancelling_who_asks_stops_the_run(autojump_clock: trio.testing.MockClock) -> None:
    """A caller's timeout reaches the tools; the session lives on."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        with trio.move_on_after(3) as scope:
            await session.ask("Go.")
        assert scope.cancelled_caught
        assert session.current_run is None
        assert session.value.messages[-1].role == "tool"
        assert (await session.ask("Again.")).text == "Better."


async def test_a_deadline_that_was_moved_cuts_no_tool(autojump_clock: trio.testing.MockClock) -> None:
    """What counts is when the caller is cancelled, not when it once was going to be."""

    async def work(ctx: ToolContext) -> str:
        await trio.sleep(5)
        return "worked"

    agent = Agent(model=Scripted([[call("work")], "Done."]), tools=[read_named("work", work)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        with trio.move_on_after(1) as scope:
            async with session.run("Go.") as run:
                scope.deadline += 10
                events = [event async for event in run]
    assert [said(item) for item in results(events)] == ["worked"]
    assert run.result.text == "Done."


# Leaving


@pytest.mark.parametrize("where", ["its first event", "a call"])
async def test_leaving_a_block_early_stops_its_run(autojump_clock: trio.testing.MockClock, where: str) -> None:
    """``break`` is a stop: nothing works on unseen."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        async with session.run("Go.") as run:
            async for event in run:
                if where == "its first event" or isinstance(event, CallStarted):
                    break
        assert (run.result.status, run.result.reason) == ("cancelled", "its block was left")
        assert session.current_run is None


async def test_the_bodys_own_exception_comes_unwrapped(autojump_clock: trio.testing.MockClock) -> None:
    """``except KeyError`` round a block works as it reads."""
    with pytest.raises(KeyError, match="mine"):
        async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
            async with session.run("Go."):
                raise KeyError("mine")
    with pytest.raises(SessionClosed):
        await session.start("Again.")


async def test_a_stop_in_the_block_still_tells_the_end(autojump_clock: trio.testing.MockClock) -> None:
    """What was published can be read, and the ending is the last of it; the first reason stays."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        async with session.run("Go.") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallStarted):
                    assert run.outcome is None
                    assert run.stop(reason="enough")
                    assert run.stop(reason="really")
            assert not run.stop()
        assert names(events)[-1] == "RunEnded"
        assert run.outcome is run.result
        assert (run.result.reason, run.id) == ("enough", session.value.id + "-r1")


async def test_two_tasks_can_not_read_one_stream(autojump_clock: trio.testing.MockClock) -> None:
    """Each would see half of it."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        async with session.run("Go.") as run:
            async with trio.open_nursery() as nursery:

                async def read() -> None:
                    async for _ in run:
                        pass

                nursery.start_soon(read)
                await trio.testing.wait_all_tasks_blocked()
                with pytest.raises(trio.BusyResourceError):
                    await run.__anext__()
                run.stop()


# Waits that could only hang


@pytest.mark.parametrize("verb", ["wait_idle", "close", "ask", "proceed"])
async def test_waiting_for_a_run_that_waits_to_be_read_here_is_refused(
    autojump_clock: trio.testing.MockClock, verb: str
) -> None:
    """The mistake is told at the line that made it, not found in a hang; stopping the run makes the wait safe."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        waiting = {
            "wait_idle": session.wait_idle,
            "close": session.close,
            "ask": lambda: session.ask("x"),
            "proceed": session.proceed,
        }[verb]
        async with session.run("Go.") as run:
            with pytest.raises(WouldDeadlock, match=rf"{verb}\(\) inside the block"):
                await waiting()
            run.stop()
            await session.wait_idle()
        assert run.result.status == "cancelled"
        await session.wait_idle()


async def test_another_task_may_wait_for_a_run_that_is_read(autojump_clock: trio.testing.MockClock) -> None:
    """Only who holds the block would hang."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
        async with trio.open_nursery() as nursery:
            async with session.run("Go.") as run:
                nursery.start_soon(session.wait_idle)
                await trio.testing.wait_all_tasks_blocked()
                async for _ in run:
                    pass
                await session.wait_idle()


async def test_a_run_that_is_stopping_has_to_be_waited_for(autojump_clock: trio.testing.MockClock) -> None:
    """To steer it would be wrong advice: it takes nothing more, and is over in a moment."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        session.stop()
        for second in (session.start, session.ask):
            with pytest.raises(SessionBusy, match=r"stopping: await its wait\(\), or the session's wait_idle\(\)"):
                await second("And this?")
        await session.wait_idle()
        assert run.result.status == "cancelled"
        assert (await session.ask("And this?")).text == "Better."


async def test_a_tool_is_not_told_to_wait_for_its_own_run(autojump_clock: trio.testing.MockClock) -> None:
    """What a refusal says instead must not be refused itself."""
    told: list[str] = []

    async def work(ctx: ToolContext) -> str:
        with pytest.raises(SessionBusy) as refused:
            await held[0].start("And this?")
        told.append(str(refused.value))
        return "refused"

    held: list[Any] = []
    agent = Agent(model=Scripted([[call("work")], "Done."]), tools=[read_named("work", work)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        held.append(session)
        await session.ask("Go.")
    assert ["follow_up()" in text and "wait_idle" not in text for text in told] == [True]


@pytest.mark.parametrize("verb", ["wait_idle", "close", "ask", "proceed", "wait"])
async def test_a_tool_can_not_wait_for_its_own_run(autojump_clock: trio.testing.MockClock, verb: str) -> None:
    """The run waits for the tool."""
    held: list[Any] = []

    async def work(ctx: ToolContext) -> str:
        session = held[0]
        waiting = {
            "wait_idle": session.wait_idle,
            "close": session.close,
            "ask": lambda: session.ask("x"),
            "proceed": session.proceed,
            "wait": session.current_run.wait,
        }[verb]
        with pytest.raises(WouldDeadlock, match=rf"a tool can't wait in {verb}\(\)") as refused:
            await waiting()
        assert {"ask": "follow_up()", "proceed": "by itself"}.get(verb, "stop()") in str(refused.value)
        return "refused"

    agent = Agent(model=Scripted([[call("work")], "Done."]), tools=[read_named("work", work)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        held.append(session)
        async with session.run("Go.") as run:
            events = [event async for event in run]
    assert [said(item) for item in results(events)] == ["refused"]


async def test_a_tool_may_stop_its_run_and_ask_another_session(autojump_clock: trio.testing.MockClock) -> None:
    """Commands that do not wait are legal from anywhere; another session's run is not its own."""
    held: list[Any] = []

    async def work(ctx: ToolContext) -> str:
        answer: RunResult[Any] = await held[1].ask("Sub-question")
        held[0].stop(reason=answer.text)
        await trio.sleep_forever()

    agent = Agent(model=Scripted([[call("work")]]), tools=[read_named("work", work)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with runtime.open_session(Agent(model=Scripted(["42"]))) as other:
            held += [session, other]
            result = await session.ask("Go.")
    assert (result.status, result.reason) == ("cancelled", "42")


# The end of a session


async def test_a_closed_session_takes_nothing_and_keeps_its_value(autojump_clock: trio.testing.MockClock) -> None:
    """Closing twice is fine; its readers come to their end."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
        await session.ask("Go.")
        async with session.events(after=0) as events:
            await session.close()
            await session.close()
            seen = [event async for event in events]
        assert names(seen)[-1] == "RunEnded"
        for use in (session.start, session.ask):
            with pytest.raises(SessionClosed, match="value can be opened again"):
                await use("More")
        with pytest.raises(SessionClosed):
            await session.proceed()
        assert len(session.value.messages) == 2
        await session.wait_idle()


async def test_closing_stops_the_open_run(autojump_clock: trio.testing.MockClock) -> None:
    """It ends as cancelled, with the reason."""
    async with open_runtime() as runtime, runtime.open_session(stalling()) as session:
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        await session.close()
        assert (run.result.status, run.result.reason) == ("cancelled", "the session was closed")


async def test_a_value_goes_on_where_it_was(autojump_clock: trio.testing.MockClock) -> None:
    """Numbers of events, runs and messages continue, through JSON too: no id is given twice in a conversation."""
    model = Scripted(["a1", "a2"])
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model), id="s") as session:
            session.follow_up("F1")
            await trio.testing.wait_all_tasks_blocked()
            session.unqueue("s-q1")
            await session.ask("P1")
        value = Session.from_json(session.value.to_json())
        assert value == session.value
        async with runtime.open_session(Agent(model=model), value=value) as again:
            assert again.follow_up("F2").message_id == "s-q2"
            again.unqueue("s-q2")
            await trio.testing.wait_all_tasks_blocked()
            seq = again.value.seq
            async with again.run("P2") as run:
                first = await run.__anext__()
                async for _ in run:
                    pass
    assert (run.id, first.seq, seq) == ("s-r2", seq + 1, value.seq + 2)
    assert [message.text for message in again.value.messages] == ["P1", "a1", "P2", "a2"]
    assert "<SessionHandle s of agent 'agent'>" in repr(again)


# The cell


async def test_a_suspended_run_has_no_result_yet() -> None:
    """It will end another time; who asks for its result is told why there is none."""
    import contextvars

    cell = RunCell("r1", "s", contextvars.copy_context())
    cell.outcome = Suspension("r1", "detached")
    run = cell.handle
    assert "detached" in repr(run)
    with pytest.raises(RunSuspendedError, match="detached"):
        _ = run.result
    assert current_run.get() is None
