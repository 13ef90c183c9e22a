"""Faults of ours: a session that breaks takes nobody with it, and lets nobody wait for ever."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import (
    Agent,
    Limits,
    Scripted,
    Session,
    SessionClosed,
    SessionCrashed,
    ToolContext,
    open_runtime,
)
from agentrio.events import CallStarted, MessageStarted
from agentrio.providers.scripted import call
from tests.actors.kit import Canned, names, read_named, results, said


async def _stall(ctx: ToolContext) -> str:
    await trio.sleep_forever()


async def test_a_fault_of_ours_ends_the_run_and_the_session(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The run is told as crashed, its neighbours work on, and the next use says what happened."""
    sick = Agent(model=Canned([ZeroDivisionError("a bug")]))
    async with open_runtime() as runtime, runtime.open_session(sick) as session:
        async with runtime.open_session(Agent(model=Scripted(["Hi."]))) as other:
            result = await session.ask("Go.")
            assert result.failure is not None
            assert (result.status, result.failure.code) == ("error", "crashed")
            assert "ZeroDivisionError" in result.failure.message
            for use in (session.start, session.ask):
                with pytest.raises(SessionCrashed) as caught:
                    await use("Again.")
                assert isinstance(caught.value.__cause__, ZeroDivisionError)
            with pytest.raises(SessionCrashed):
                session.steer("S")
            assert (await other.ask("You?")).text == "Hi."
        async with runtime.open_session(Agent(model=Scripted(["Well."])), value=_renamed(session.value)) as again:
            assert (await again.proceed()).text == "Well."


def _renamed(value: Session) -> Session:
    import attrs

    return attrs.evolve(value, id="again")


async def test_a_stop_that_meets_a_crash_is_a_stop(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever stopped the run reads that it was stopped; the session is none the better for it."""
    stop: list[Any] = []

    def fail(request: Any) -> str:
        stop[0].stop(reason="enough")
        raise ZeroDivisionError

    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted([fail]))) as session:
        stop.append(session)
        result = await session.ask("Go.")
        assert (result.status, result.reason) == ("cancelled", "enough")
        with pytest.raises(SessionCrashed):
            await session.ask("Again.")


class _FailingJournal:
    """Fails at the n-th append, and at each one after it."""

    def __init__(self, good: int) -> None:
        self.good = good

    async def append(self, events: Any) -> None:
        self.good -= 1
        if self.good < 0:
            raise OSError("the disk is full")


@pytest.mark.parametrize("good", range(7))
async def test_a_journal_that_fails_ends_its_session_alone(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, good: int
) -> None:
    """Whichever append it is: who waits gets an answer, a reader comes to its end, the neighbours work on."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Fine."]))) as other:
        monkeypatch.setattr("agentrio.actors.runtime.NullJournal", lambda: _FailingJournal(good))
        async with runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
            async with session.run("Go.") as run:
                events = [event async for event in run]
            if good >= 5:  # begun, round, message, round's end, run's end
                assert run.result.status == "succeeded"
            else:
                assert run.result.failure is not None
                assert run.result.failure.code == "crashed"
                assert "RunEnded" not in names(events)
                with pytest.raises(SessionCrashed):
                    await session.start("Again.")
                await session.wait_idle()
        assert (await other.ask("You?")).text == "Fine."


@pytest.mark.parametrize(("stopped", "status"), [(True, "cancelled"), (False, "error")])
async def test_a_run_that_can_not_settle_is_told_to_its_end_all_the_same(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, stopped: bool, status: str
) -> None:
    """The round is closed before the run, once, whatever became of what was open in it."""

    async def broken(*args: Any, **options: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    monkeypatch.setattr("agentrio.actors.loop.settle", broken)
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
        async with session.run("Go.") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, MessageStarted) and stopped:
                    run.stop()
    assert names(events)[-2:] == ["RoundEnded", "RunEnded"]
    assert names(events).count("RoundEnded") == 1
    assert run.result.status == status


async def test_a_command_that_fails_ends_its_session_alone(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while no run is open."""
    monkeypatch.setattr("agentrio.actors.runtime.NullJournal", lambda: _FailingJournal(0))
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hi."]))) as session:
        session.steer("S")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(SessionCrashed):
            await session.ask("Go.")


class _SlowJournal:
    """Takes some time for each append."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def append(self, events: Any) -> None:
        await trio.sleep(self.seconds)


async def test_a_slow_journal_keeps_the_order_and_loses_no_wake_up(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that ends while another's start is being committed is told as soon as that is done."""
    monkeypatch.setattr("agentrio.actors.runtime.NullJournal", lambda: _SlowJournal(0.01))

    async def quick(ctx: ToolContext) -> str:
        return "quick"

    async def slow(ctx: ToolContext) -> str:
        await trio.sleep(10)
        return "slow"

    tools = [read_named("quick", quick), read_named("slow", slow)]
    agent = Agent(model=Scripted([[call("quick"), call("slow"), call("quick")], "Done."]), tools=tools)
    at: dict[str, float] = {}
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            events = []
            async for event in run:
                events.append(event)
                if type(event).__name__ in ("CallFinished", "MessageStarted"):
                    session.steer("S") if isinstance(event, MessageStarted) and event.round == 1 else None
                    at.setdefault(type(event).__name__, trio.current_time())
    assert [said(item) for item in results(events)] == ["quick", "slow", "quick"]
    assert at["CallFinished"] < 1
    seqs = [event.seq for event in events if event.structural]
    assert seqs == list(range(1, len(seqs) + 1))
    assert run.result.text == "Done."


async def test_a_journal_that_hangs_leaves_the_session_unsettled(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop's grace is over: the block is left, and the session takes on nothing more, since its end is untold."""
    journal = _SlowJournal(0)
    monkeypatch.setattr("agentrio.actors.runtime.NullJournal", lambda: journal)
    agent = Agent(model=Scripted([[call("stall")]]), tools=[read_named("stall", _stall)], limits=Limits(stop_grace=0.5))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            async for event in run:
                if isinstance(event, CallStarted):
                    journal.seconds = 1000
                    break
        assert run.result.status == "cancelled"
        assert not run.stop()
        with pytest.raises(SessionClosed):
            await session.start("Again.")
        await session.wait_idle()


async def test_a_command_that_fails_ends_the_run_it_was_meant_for(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that was accepted and is lost is a fault, not a detail."""
    journal = _FailingJournal(1000)
    monkeypatch.setattr("agentrio.actors.runtime.NullJournal", lambda: journal)
    agent = Agent(model=Scripted([[call("stall")]]), tools=[read_named("stall", _stall)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        journal.good = 0
        session.steer("S")
        await run.wait()
        assert run.result.failure is not None
        assert run.result.failure.code == "crashed"
