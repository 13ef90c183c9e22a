"""The hub: one publish for everybody, one place where the run waits, and readers that join and leave at any moment."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio import Agent, WouldDeadlock, open_runtime, read_tool
from agentrio.actors.emit import Emitter
from agentrio.actors.hub import KEPT, Hub
from agentrio.actors.readers import FULL, Merging, Reader
from agentrio.domain.events import (
    DraftSnapshot,
    Event,
    MessageAdded,
    MessageCompleted,
    Origin,
    Resync,
    RoundEnded,
    RunEnded,
    RunStarted,
    StructuralEvent,
    TextDelta,
)
from agentrio.domain.limits import Limits
from agentrio.domain.parts import Text
from agentrio.domain.session import Session
from agentrio.domain.state import SessionState, reduce
from agentrio.providers.scripted import Reply, Scripted, call
from agentrio.stores.base import NullJournal

from .feeding import added, ended, origin, read_all, started, text, texts


@read_tool
async def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


def an_agent(*replies: Any) -> Agent[Any]:
    """An agent with a script and one tool."""
    return Agent(model=Scripted(replies), tools=[look])


def a_hub(events: Sequence[StructuralEvent] = ()) -> Hub:
    """A hub with an open run and its events, numbered."""
    hub = Hub(SessionState(Session("s")))
    for seq, event in enumerate([RunStarted(origin(), "m", "p", None, Limits()), *events], 1):
        object.__setattr__(event, "seq", seq)
        hub.publish([event])
    return hub


# Joining


async def test_a_late_reader_gets_what_it_missed_then_what_comes(autojump_clock: Any) -> None:
    """A cursor is enough to come back: no hole, no repeat."""
    hub = a_hub([added(2), added(3), added(4)])
    reader = hub.read_after(2, origin())
    hub.publish([added(5)])

    assert [event.seq for event in await read_all(reader)] == [3, 4, 5]
    assert await read_all(hub.read_after(None, origin())) == []
    assert await read_all(hub.read_after(99, origin())) == []


async def test_a_long_replay_is_no_lag(autojump_clock: Any) -> None:
    """More than a lagging reader may have pending is replayed whole: it has not had the chance to read."""
    hub = a_hub([added(number) for number in range(2, 3_001)])
    reader = hub.read_after(0, origin())
    hub.publish([added(3_001)])

    assert [event.seq for event in await read_all(reader)] == list(range(1, 3_002))


async def test_what_is_no_longer_kept_is_told_as_a_resync(autojump_clock: Any) -> None:
    """Memory is bounded; a reader that was away too long reads ``session.value`` and goes on."""
    hub = a_hub([added(number) for number in range(2, KEPT + 11)])
    first, *rest = await read_all(hub.read_after(3, origin()))

    assert first == Resync(origin(), 10, 7)
    assert [event.seq for event in rest] == list(range(11, KEPT + 11))


async def test_a_session_that_was_opened_from_a_value_has_no_events_from_before(autojump_clock: Any) -> None:
    """The value is what there is of them."""
    hub = Hub(SessionState(Session("s", seq=57)))

    assert await read_all(hub.read_after(57, origin())) == []
    assert await read_all(hub.read_after(50, origin())) == [Resync(origin(), 57, 7)]


async def test_a_reader_that_joins_within_a_message_gets_its_draft(autojump_clock: Any) -> None:
    """What was streamed before it came is shown once, and the next delta goes on behind it."""
    hub = a_hub()
    hub.draft = lambda: ("m", (Text("It "),))
    reader = hub.read_after(None, origin())
    hub.tell([text(3, "rains")])

    assert await read_all(reader) == [DraftSnapshot(origin(), 1, "m", (Text("It "),)), text(3, "rains")]


async def test_a_reader_that_joins_after_the_end_ends(autojump_clock: Any) -> None:
    """Nobody may wait for a session that is closed, also not who comes a moment too late."""
    hub = a_hub([added(2)])
    hub.end()

    with trio.fail_after(1):
        assert [event.seq async for event in hub.read_after(0, origin())] == [1, 2]
        assert [event async for event in hub.read_run("s-r9")] == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 120), st.booleans())
def test_joined_at_any_step_replay_and_live_are_the_whole_stream(step: int, from_start: bool) -> None:
    """Wherever a client comes back, it has each structural event once and each text without a hole."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    whole, late, cursor = trio.run(_join, step, from_start, clock=clock)

    structural = [event for event in whole if event.structural and event.seq > cursor]
    assert [event for event in late if event.structural] == structural
    assert not any(isinstance(event, Resync) for event in late)
    shown: dict[str, str] = {}
    for event in late:
        if isinstance(event, DraftSnapshot):
            shown[event.message_id] = "".join(part.text for part in event.parts if isinstance(part, Text))
        elif isinstance(event, TextDelta):
            assert event.offset == len(shown.setdefault(event.message_id, ""))
            shown[event.message_id] += event.text
    texts_of = {event.message.id: event.message.text for event in structural if isinstance(event, MessageCompleted)}
    for id, said in shown.items():
        assert texts_of[id] == said


async def _join(step: int, from_start: bool) -> tuple[list[Event], list[Event], int]:
    """The whole stream, and that of a reader that joined after so many scheduler steps of the run."""
    whole: list[Event] = []
    late: list[Event] = []
    agent = an_agent(
        Reply("I shall look at it twice.", [call("look", n=1), call("look", n=2)]), "It rains in Oslo, so take a coat."
    )
    async with open_runtime(rng=random.Random(0)) as runtime, runtime.open_session(agent, id="s") as session:
        async with session.events(after=0) as first, trio.open_nursery() as nursery:
            nursery.start_soon(_read_into, first, whole)
            await session.start("hi")
            for _ in range(step):
                await trio.lowlevel.checkpoint()
            cursor = 0 if from_start else session.value.seq
            async with session.events(after=cursor) as reader:
                await _read_into(reader, late)
    return whole, late, cursor


async def _read_into(reader: Reader, seen: list[Event]) -> None:
    with trio.move_on_after(0.02):
        async for event in reader:
            seen.append(event)
            if isinstance(event, RunEnded):
                return


# Publishing


async def test_an_event_that_is_made_when_it_is_due_may_turn_out_to_be_none(autojump_clock: Any) -> None:
    """A message that has been sent meanwhile can't be taken back: nothing is told, and no number is used."""
    hub = a_hub()
    emitter = Emitter(hub, NullJournal())
    await emitter.emit_when_due(lambda: [])
    await emitter.emit(added(0), added(0))

    assert [event.seq for event in await read_all(hub.read_after(0, origin()))] == [1, 2, 3]


async def test_commits_are_published_in_the_order_in_which_they_were_asked_for(autojump_clock: Any) -> None:
    """Two tasks of a session may tell at once; a journal that takes its time must not mix them."""

    class Slow(NullJournal):
        async def append(self, batch: Sequence[StructuralEvent]) -> None:
            await trio.sleep(1)

    hub = a_hub()
    emitter = Emitter(hub, Slow())
    async with trio.open_nursery() as nursery:
        for number in (2, 3, 4):
            nursery.start_soon(emitter.emit, added(number))
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(emitter.emit_when_due, lambda: [added(hub.state.session.seq + 1)])

    told = await read_all(hub.read_after(1, origin()))
    assert [(event.seq, event.message.id) for event in told if isinstance(event, MessageAdded)] == [
        (2, "m2"),
        (3, "m3"),
        (4, "m4"),
        (5, "m5"),  # made when its turn came, of the state that it then found
    ]


async def test_what_is_not_structural_is_told_and_not_kept(autojump_clock: Any) -> None:
    """A delta can be had again from its message, once that is complete."""
    hub = a_hub()
    live = hub.read_after(None, origin())
    hub.tell([text(0, "It ")])

    assert await read_all(live) == [text(0, "It ")]
    assert [event.seq for event in await read_all(hub.read_after(0, origin()))] == [1]


async def test_the_one_task_that_a_run_waits_for_is_known() -> None:
    """So that it is not let wait for that run."""
    hub = a_hub()
    hub.read_after(None, origin())
    reader = hub.read_run("s-r9")
    hub.refuse_reader("s-r9", "wait")
    reader.owner = trio.lowlevel.current_task()
    with pytest.raises(WouldDeadlock, match=r"wait\(\) inside the block of run s-r9"):
        hub.refuse_reader("s-r9", "wait")
    hub.refuse_reader("s-r10", "wait")
    reader.put([started("s-r9"), ended("s-r9")])
    hub.refuse_reader("s-r9", "wait")


async def test_a_reader_that_fails_is_closed_and_nobody_else_misses_anything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The fault is of who reads: it must not end the run, nor keep the event from those behind it."""

    class Failing(Merging):
        def put(self, events: Sequence[Event]) -> None:
            raise ZeroDivisionError

    taps: list[Reader] = [Failing(lambda reader: taps.remove(reader)), Merging(lambda reader: taps.remove(reader))]
    hub = Hub(SessionState(Session("s")), taps)
    bad, good = hub.join(Failing(hub.forget)), hub.join(Merging(hub.forget))
    failing_tap, tap = taps
    hub.tell([text(0, "It ")])
    hub.tell([text(3, "rains.")])
    assert await read_all(good) == await read_all(tap) == [text(0, "It rains.")]
    assert (bad.closed, failing_tap.closed, taps) == (True, True, [tap])
    assert await read_all(bad) == []
    assert caplog.text.count("and is closed") == 2


# Waiting


async def test_the_run_waits_for_its_reader_and_goes_on_when_that_reads(autojump_clock: Any) -> None:
    """N02: a stalled consumer stops the stream instead of growing the memory."""
    hub = a_hub()
    reader = hub.join(hub.read_run("s-r9"))
    reader._begun = True
    hub.tell(texts(FULL + 1))
    waited: list[float] = []

    async def run() -> None:
        await hub.room()
        waited.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        assert not waited
        await read_all(reader)
    assert waited


async def test_forgetting_a_full_reader_lets_the_run_go_on(autojump_clock: Any) -> None:
    """N02, the other half: a consumer that leaves is fed no longer and waited for no longer."""
    hub = a_hub()
    reader = hub.read_run("s-r9")
    reader._begun = True
    hub.tell(texts(FULL + 1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hub.room)
        await trio.testing.wait_all_tasks_blocked()
        reader.close()
    hub.tell(texts(3))
    assert await read_all(reader) == []


# Named faults


async def test_b10_after_a_stop_what_was_published_is_followed_by_the_end_and_nothing(autojump_clock: Any) -> None:
    """B10: a stop does not flush a backlog for ever: what was out is read, then the end, then nothing."""
    async with open_runtime() as runtime, runtime.open_session(an_agent("x" * 20_000)) as session:
        async with session.run("hi") as run:
            first = await anext(run)
            await trio.sleep(1)  # the run is far ahead by now, and waits
            run.stop()
            rest = [event async for event in run]

    assert isinstance(first, RunStarted)
    assert isinstance(rest[-1], RunEnded)
    assert rest[-1].result.status == "cancelled"
    assert FULL <= len(rest) < FULL + 10


async def test_n02_a_stalled_and_a_dropped_consumer_bound_memory_and_still_get_the_end(autojump_clock: Any) -> None:
    """N02: 8,000 deltas for a consumer that reads one event and stalls; another one leaves."""
    async with open_runtime() as runtime, runtime.open_session(an_agent("x" * 100_000)) as session:
        async with runtime.subscribe(max_pending=100) as stalled, runtime.subscribe() as dropped:
            dropped.close()
            run = await session.start("hi")
            await run.wait()
            assert len(stalled._pending) <= 101  # type: ignore[attr-defined]  # a Merging reader
            seen = await read_all(stalled)
            assert isinstance(seen[-1], RunEnded)
            assert await read_all(dropped) == []


async def test_n04_every_run_has_its_own_result_whoever_started_it(autojump_clock: Any) -> None:
    """N04: a run that a consumer did not start must not shift what it takes for its own."""
    async with open_runtime() as runtime, runtime.open_session(an_agent("one", "two", "three"), id="s") as session:
        async with session.run("1") as first:
            async for _ in first:
                pass
            background = await session.start("2")
            await background.wait()
            assert [event async for event in first] == []
        third = await session.ask("3")

    assert (first.result.text, background.result.text, third.text) == ("one", "two", "three")
    assert [first.result.run_id, background.result.run_id, third.run_id] == ["s-r1", "s-r2", "s-r3"]


async def test_n06_sessions_on_one_stream_fold_to_three_transcripts_and_usages(autojump_clock: Any) -> None:
    """N06: each event names its session, so that interleaved ones are told apart and nothing is counted twice."""
    agents = [an_agent(Reply(f"answer {n}", [call("look", n=n)]), f"done {n}") for n in range(3)]
    async with open_runtime() as runtime, runtime.subscribe() as events:
        async with trio.open_nursery() as nursery:
            sessions = [await runtime.start_session(agent, id=f"s{n}") for n, agent in enumerate(agents)]
            for session in sessions:
                nursery.start_soon(session.ask, "hi")
        seen = await read_all(events)
        values = [session.value for session in sessions]

    for number, value in enumerate(values):
        state = SessionState(Session(f"s{number}", "agent"))
        for event in seen:
            if event.origin.session == value.id:
                state = reduce(state, event)
        assert state.session == value
        assert state.run is not None
        assert state.run.text == f"done {number}"
        assert state.run.usage.input == 20


async def test_n10_the_result_is_the_same_with_and_without_observers(autojump_clock: Any) -> None:
    """N10: whoever reads half of the stream, or none, changes nothing of the run."""

    async def result(read: int) -> Any:
        agent = an_agent(Reply("I look.", [call("look", n=1)]), "done")
        async with open_runtime() as runtime, runtime.open_session(agent, id="s") as session:
            async with session.events() as events:
                run = await session.start("hi")
                for _ in range(read):
                    await anext(events)
            await run.wait()
            return run.result, session.value

    assert await result(0) == await result(1) == await result(8)


async def test_o07_a_rounds_usage_is_what_it_was_when_the_run_has_gone_on(autojump_clock: Any) -> None:
    """O07: the total is another object than its parts."""
    agent = an_agent(Reply("", [call("look", n=1)]), "done")
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("hi") as run:
            rounds = [(event.usage, event.usage.total) async for event in run if isinstance(event, RoundEnded)]

    assert [usage.total for usage, _ in rounds] == [total for _, total in rounds] == [15, 15]
    assert run.result.usage.total == 30


# Subscriptions


async def test_a_subscriber_that_makes_others_wait_must_name_one_session() -> None:
    """One slow reader must not stop every session of a process."""
    async with open_runtime() as runtime:
        with pytest.raises(ValueError, match="name the session it reads"):
            runtime.subscribe(on_lag="wait")
        with pytest.raises(ValueError, match="it is 'merge', 'drop' or 'wait'"):
            runtime.subscribe(on_lag="block")  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.parametrize("on_lag", ["merge", "drop", "wait"])
async def test_a_subscriber_of_one_session_sees_that_one_to_its_end(on_lag: Any, autojump_clock: Any) -> None:
    """A monitor of a conversation ends with it."""
    async with open_runtime() as runtime:
        other = await runtime.start_session(an_agent("no"), id="other")
        session = await runtime.start_session(an_agent("yes"), id="s")
        async with runtime.subscribe(session="s", on_lag=on_lag) as events:
            await other.ask("hi")
            await session.start("hi")
            await trio.testing.wait_all_tasks_blocked()
            await session.close()
            seen = [event async for event in events]

    assert {event.origin.session for event in seen} == {"s"}
    assert isinstance(seen[-1], RunEnded)


async def test_events_of_an_origin_without_a_run_reach_readers_too(autojump_clock: Any) -> None:
    """What happens between runs belongs to the session."""
    async with open_runtime() as runtime, runtime.open_session(an_agent("yes"), id="s") as session:
        async with session.events() as events:
            session.follow_up("later")
            queued = await anext(events)

    assert queued.origin == Origin("s", "agent", "")


class SlowJournal:
    """Commits when it is let."""

    def __init__(self) -> None:
        self.let = trio.lowlevel.ParkingLot()
        self.failing = False

    async def append(self, batch: Sequence[StructuralEvent]) -> None:
        """Wait to be let."""
        await self.let.park()
        if self.failing:
            raise OSError("the disk is full")


async def test_batches_are_committed_in_the_order_in_which_they_came(autojump_clock: Any) -> None:
    """Nobody overtakes, not even who comes after the turn was passed on and before the next task has woken."""
    hub, journal = a_hub(), SlowJournal()
    emitter = Emitter(hub, journal)
    reader = hub.read_after(None, origin())
    async with trio.open_nursery() as nursery:
        for name in (5, 6):
            nursery.start_soon(emitter.emit, added(name))
            await trio.testing.wait_all_tasks_blocked()
        journal.let.unpark()
        await trio.lowlevel.checkpoint()  # the first one is through, the second one has the turn
        nursery.start_soon(emitter.emit, added(7))
        for _ in range(2):
            await trio.testing.wait_all_tasks_blocked()
            journal.let.unpark()

    told = await read_all(reader)
    assert [event.message.id for event in told if isinstance(event, MessageAdded)] == ["m5", "m6", "m7"]
    assert [event.seq for event in told] == [2, 3, 4]


async def test_who_leaves_while_waiting_takes_no_turn_with_it(autojump_clock: Any) -> None:
    """A cancelled writer, one that fails, and the next one commits all the same."""
    hub, journal = a_hub(), SlowJournal()
    emitter = Emitter(hub, journal)
    reader = hub.read_after(None, origin())
    journal.failing = True
    async with trio.open_nursery() as nursery:

        async def fails() -> None:
            with pytest.raises(OSError, match="full"):
                await emitter.emit(added(5))

        nursery.start_soon(fails)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(1):
            await emitter.emit(added(6))
        journal.let.unpark()
        await trio.testing.wait_all_tasks_blocked()
        journal.failing = False
        nursery.start_soon(emitter.emit, added(7))
        await trio.testing.wait_all_tasks_blocked()
        journal.let.unpark()

    told = await read_all(reader)
    assert [(event.message.id, event.seq) for event in told if isinstance(event, MessageAdded)] == [("m7", 2)]
