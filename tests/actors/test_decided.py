"""Two who want one thing at once: a stop and an end, a run and a user. Each is told the truth about who got it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from agentrio import Agent, Limits, NothingToProceed, Scripted, open_runtime
from agentrio.actors.waiting import Waiting
from agentrio.events import (
    CallStarted,
    MessageAdded,
    MessageCompleted,
    MessageStarted,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
    StructuralEvent,
    TextDelta,
)
from agentrio.providers.base import ProviderError
from agentrio.providers.scripted import call
from agentrio.testing import check_events
from tests.actors.kit import added, read_named, results, said

Hook = Callable[[Sequence[StructuralEvent]], Awaitable[None]]


@attrs.define(eq=False)
class Slow:
    """A journal that takes its time, and does something while it commits."""

    hook: Hook
    seconds: float = 0.02

    async def append(self, batch: Sequence[StructuralEvent]) -> None:
        with trio.move_on_after(5, shield=True):
            await self.hook(batch)
            await trio.sleep(self.seconds)


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Callable[[Hook], None]:
    """Commits slowly from now on."""
    return lambda hook: monkeypatch.setattr("agentrio.actors.runtime.NullJournal", lambda: Slow(hook))


async def nothing(batch: Sequence[StructuralEvent]) -> None:
    await trio.lowlevel.checkpoint()


async def _fine(ctx: Any) -> str:
    return "fine"


FINE = read_named("fine", _fine)

# A stop and an end


@pytest.mark.parametrize("when", ["now", "after_round"])
async def test_a_stop_while_the_end_is_committed_comes_too_late(
    autojump_clock: trio.testing.MockClock, journal: Any, when: Any
) -> None:
    """Who won is decided once; a stop that changes nothing says so."""
    told: list[bool] = []

    async def stop(batch: Sequence[StructuralEvent]) -> None:
        if isinstance(batch[-1], RunEnded):
            told.append(session.stop(when=when))

    journal(stop)
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
        result = await session.ask("Go.")
        assert (told, result.status, result.reason) == ([False], "succeeded", None)


async def test_a_stop_after_the_round_before_the_end_is_due_wins(
    autojump_clock: trio.testing.MockClock, journal: Any
) -> None:
    """Also where the run has nothing more to do; what it said is kept."""

    async def stop(batch: Sequence[StructuralEvent]) -> None:
        if isinstance(batch[-1], RoundEnded):
            assert session.stop(when="after_round", reason="enough")

    journal(stop)
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
        result = await session.ask("Go.")
        assert (result.status, result.reason, result.text) == ("cancelled", "enough", "Hi.")


async def test_a_stop_after_the_round_hides_no_failure(autojump_clock: trio.testing.MockClock, journal: Any) -> None:
    """The run had an end of its own before the stop was due; the user must hear why."""

    async def stop(batch: Sequence[StructuralEvent]) -> None:
        if isinstance(batch[0], RoundStarted) and batch[0].round == 2:
            assert session.stop(when="after_round")

    journal(stop)
    model = Scripted([[call("fine")], ProviderError("No credit is left.", code="unauthorized")])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model, tools=[FINE])) as session:
        result = await session.ask("Go.")
        assert result.failure is not None
        assert (result.status, result.failure.code) == ("error", "unauthorized")


async def test_a_stop_after_the_round_comes_before_a_limit(autojump_clock: trio.testing.MockClock) -> None:
    """A limit ends a run that would go on, and this one would not have."""
    agent = Agent(model=Scripted([[call("fine")]]), tools=[FINE], limits=Limits(max_rounds=1))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            async for event in run:
                if isinstance(event, CallStarted):
                    assert session.stop(when="after_round", reason="enough")
        assert (run.result.status, run.result.reason) == ("cancelled", "enough")


async def test_a_runs_scope_that_somebody_cancels_is_no_crash(autojump_clock: trio.testing.MockClock) -> None:
    """With a deadline that lies ahead, or none: the run is cancelled, and the session goes on."""
    for limits in (Limits(), Limits(deadline=60)):
        agent = Agent(model=Scripted(["word " * 50, "Hi."]), limits=limits)
        async with open_runtime() as runtime, runtime.open_session(agent) as session:
            async with session.run("Go.") as run:
                async for event in run:
                    if isinstance(event, MessageStarted):
                        current = session._actor.current  # no handle shows its scope
                        assert current is not None
                        current.scope.cancel()
            assert (run.result.status, run.result.reason) == ("cancelled", "its scope was cancelled")
            assert (await session.ask("Again.")).text == "Hi."


async def test_a_message_that_is_whole_is_not_lost_while_it_waits_for_its_turn(
    autojump_clock: trio.testing.MockClock, journal: Any
) -> None:
    """A stop between the last delta and its commit finds the message open still, and completes it."""
    journal(nothing)
    text = "A whole answer, in pieces."
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted([text]))) as session:
        events = []
        async with session.run("Go.") as run:
            async for event in run:
                events.append(event)
                if isinstance(event, TextDelta) and event.offset + len(event.text) == len(text):
                    session.follow_up("Later.")  # it takes the turn
                    await trio.sleep(0.01)
                    assert run.stop()
        assert [event.message.text for event in events if isinstance(event, MessageCompleted)] == [text]
        assert check_events(events, run.id) == []
        assert (run.result.status, run.result.text) == ("cancelled", text)


# A run and a user


async def test_a_message_that_a_run_is_adding_can_not_be_taken_back(
    autojump_clock: trio.testing.MockClock, journal: Any
) -> None:
    """True would be a lie: it is on its way to the model."""
    told: list[bool] = []

    async def unqueue(batch: Sequence[StructuralEvent]) -> None:
        for event in batch:
            if isinstance(event, MessageAdded) and event.source == "steering":
                told.append(session.unqueue(event.message.id))

    journal(unqueue)
    model = Scripted([[call("fine")], "Done."])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model, tools=[FINE])) as session:
        async with session.run("Go.") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallStarted):
                    session.steer("S")
        assert (told, added(events)) == ([False], ["Go.", "S"])


async def test_a_message_goes_to_whoever_came_first() -> None:
    """The user gets it once; a run that is too late for it is told so."""
    waiting = Waiting(underway={"q1"})
    assert waiting.may_take_back("q1", [])
    assert waiting.may_take_back("q2", ["q2"])
    assert not waiting.may_take_back("q3", ["q2"])
    waiting.taken_back.add("q2")
    assert not waiting.may_take_back("q2", ["q2"])
    assert not waiting.join("q2")
    assert waiting.join("q1")
    assert not waiting.may_take_back("q1", ["q1"])


async def test_what_was_taken_back_is_nothing_to_proceed_from(autojump_clock: trio.testing.MockClock) -> None:
    """At once, although the command has not been carried out."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi.", "Never."]))) as session:
        await session.ask("Go.")
        receipt = session.follow_up("F")
        await trio.testing.wait_all_tasks_blocked()
        assert session.unqueue(receipt.message_id)
        with pytest.raises(NothingToProceed):
            await session.proceed()


async def test_a_run_whose_only_message_is_taken_back_asks_no_model(
    autojump_clock: trio.testing.MockClock, journal: Any
) -> None:
    """A finished answer is not answered again; the run says why it ended."""
    waiting: list[str] = []

    async def take_back(batch: Sequence[StructuralEvent]) -> None:
        if isinstance(batch[0], RunStarted) and waiting:
            assert session.unqueue(waiting.pop())

    journal(take_back)
    model = Scripted(["Hi.", "Never."])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        await session.ask("Go.")
        waiting.append(session.follow_up("F").message_id)
        result = await session.proceed()
        assert (result.status, len(model.requests)) == ("cancelled", 1)
        assert result.reason == "nothing was left to answer: what was queued has been taken back"


async def test_interrupts_of_an_idle_session_skip_no_call(autojump_clock: trio.testing.MockClock) -> None:
    """There was nothing to interrupt when they came: they steer, one a round."""
    agent = Agent(model=Scripted([[call("fine")], "One.", "Two."]), tools=[FINE])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        session.steer("S1", "interrupt")
        session.steer("S2", "interrupt")
        await trio.testing.wait_all_tasks_blocked()
        async with session.run("Go.") as run:
            events = [event async for event in run]
    assert [said(item) for item in results(events)] == ["fine"]
    assert added(events) == ["Go.", "S1", "S2"]
