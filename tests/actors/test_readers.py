"""Readers: buffers that the hub fills without waiting, and tasks that empty them."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.actors.readers import FULL, LOW, Dropping, Lossless, Merging, Reader
from agentrio.domain.events import Event, Resync, TextDelta

from .feeding import (
    added,
    arguments,
    ended,
    nobody,
    origin,
    progress,
    read_all,
    started,
    suspended,
    text,
    texts,
)

KINDS = [
    pytest.param(lambda: Lossless(nobody, lambda: None), id="lossless"),
    pytest.param(lambda: Merging(nobody), id="merging"),
    pytest.param(lambda: Dropping(nobody), id="dropping"),
]


# Every reader


@pytest.mark.parametrize("make", KINDS)
async def test_a_reader_gives_what_it_was_given_in_order_and_ends_behind_it(make: Any, autojump_clock: Any) -> None:
    """An ended stream can still be read to its end."""
    reader = make()
    events = [added(1), text(0, "a"), added(2), progress(1)]
    reader.put(events)
    reader.end()

    assert [event async for event in reader] == events
    assert [event async for event in reader] == []


@pytest.mark.parametrize("make", KINDS)
async def test_a_parked_reader_wakes_for_an_event(make: Any, autojump_clock: Any) -> None:
    """The one who publishes never waits, and the one who reads never polls."""
    reader = make()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_put_later, reader, added(1))
        assert await anext(reader) == added(1)


async def _put_later(reader: Reader, event: Event) -> None:
    await trio.testing.wait_all_tasks_blocked()
    reader.put([event])


@pytest.mark.parametrize("make", KINDS)
async def test_closing_a_parked_reader_ends_its_stream(make: Any, autojump_clock: Any) -> None:
    """A reader may be closed from another task: its own must not hang for ever."""
    reader = make()
    seen: list[Event] = []

    async def read() -> None:
        seen.extend([event async for event in reader])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        reader.close()

    assert seen == []
    assert reader.closed


@pytest.mark.parametrize("make", KINDS)
async def test_a_closed_reader_holds_nothing_and_is_forgotten_once(make: Any, autojump_clock: Any) -> None:
    """N02: an abandoned consumer must not be fed for ever."""
    reader = make()
    forgotten: list[Reader] = []
    reader._forget = forgotten.append
    reader.put([added(1), text(0, "a")])
    reader.close()
    reader.close()

    assert forgotten == [reader]
    assert [event async for event in reader] == []
    assert not reader.full


@pytest.mark.parametrize("make", KINDS)
async def test_two_tasks_on_one_stream_is_a_mistake_told_at_once(make: Any, autojump_clock: Any) -> None:
    """Each would get half of the events: a mistake of the program, not a race to be lived with."""
    reader = make()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_all, reader)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await anext(reader)
        reader.put([added(1)])  # the first one is woken, and has not run yet
        with pytest.raises(trio.BusyResourceError):
            await anext(reader)
        reader.end()


@pytest.mark.parametrize("make", KINDS)
async def test_a_reader_whose_task_was_cancelled_can_be_read_again(make: Any, autojump_clock: Any) -> None:
    """A timeout round a read is no reason to lose the stream."""
    reader = make()
    with trio.move_on_after(1):
        await anext(reader)
    reader.put([added(1)])

    assert await anext(reader) == added(1)


@pytest.mark.parametrize("make", KINDS)
async def test_a_full_buffer_is_no_shelter_from_a_cancel(make: Any) -> None:
    """A consumer with much to read must still be stoppable."""
    reader = make()
    reader.put([added(number) for number in range(100)])
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(reader)

    assert scope.cancelled_caught
    assert await anext(reader) == added(0)


async def test_what_a_reader_is_must_be_said() -> None:
    """The base leaves open what is kept."""
    reader = Reader(nobody)
    for ask in (lambda: reader.put([]), reader._has_events, reader._next, reader._drop_all):
        with pytest.raises(NotImplementedError):
            ask()
    assert not reader.full
    assert aiter(reader) is reader


# Lossless


async def test_the_run_waits_for_a_full_lossless_reader_until_few_are_left() -> None:
    """Back-pressure with a gap between its two marks: one wake for many events, not one each."""
    room: list[int] = []
    reader = Lossless(nobody, lambda: room.append(1))
    reader.put(texts(FULL))
    was_full = [reader.full]
    reader.put(texts(1))
    was_full.append(reader.full)
    for _ in range(FULL - LOW + 1):
        await anext(reader)
        was_full.append(reader.full)
        assert len(room) == (not reader.full)

    assert was_full == [False] + [True] * (1 + FULL - LOW) + [False]


async def test_closing_a_full_lossless_reader_makes_room() -> None:
    """Leaving a block must let the run go on, or it could not even be stopped."""
    room: list[int] = []
    reader = Lossless(nobody, lambda: room.append(1))
    reader.put(texts(FULL + 1))
    assert reader.full
    reader.close()

    assert room
    assert not reader.full


@pytest.mark.parametrize("ending", [ended, suspended])
async def test_the_reader_of_a_run_ends_with_it_and_takes_nothing_after(ending: Any, autojump_clock: Any) -> None:
    """Law 1: whatever the session does next is not of this stream, and can't make it wait."""
    reader = Lossless(nobody, lambda: None, run="s-r1")
    reader.put([started(), added(2)])
    reader.put([ending()])
    reader.put([started("s-r2")])
    reader.put(texts(2 * FULL))

    seen = [event async for event in reader]
    assert seen == [started(), added(2), ending()]
    assert not reader.full


async def test_the_reader_of_a_run_begins_with_it(autojump_clock: Any) -> None:
    """Law 1: a message that was queued before the run was taken on is none of its events."""
    reader = Lossless(nobody, lambda: None, run="s-r2")
    reader.put([added(1)])
    reader.put([ended("s-r1")])
    reader.put([started("s-r2"), added(2)])

    assert await read_all(reader) == [started("s-r2"), added(2)]


async def test_a_lossless_reader_without_a_run_reads_on(autojump_clock: Any) -> None:
    """``subscribe(session=..., on_lag='wait')`` reads a session, not a run."""
    reader = Lossless(nobody, lambda: None)
    reader.put([ended()])
    reader.put([started("s-r2")])

    assert await read_all(reader) == [ended(), started("s-r2")]


# Merging


async def test_pending_deltas_of_a_part_melt_into_one(autojump_clock: Any) -> None:
    """A reader that lags gets the same text in fewer events."""
    reader = Merging(nobody)
    reader.put([text(0, "It "), text(0, "{", part=2), arguments(0, '{"a'), text(3, "ra"), arguments(3, '":1}')])
    reader.put([text(5, "ins")])

    assert await read_all(reader) == [text(0, "It rains"), text(0, "{", part=2), arguments(0, '{"a":1}')]


async def test_a_delta_that_was_read_is_not_melted_into(autojump_clock: Any) -> None:
    """What a view holds must never change under it."""
    reader = Merging(nobody)
    reader.put([text(0, "It ")])
    first = await anext(reader)
    reader.put([text(3, "ra"), text(5, "ins")])

    assert first == text(0, "It ")
    assert await read_all(reader) == [text(3, "rains")]


async def test_no_delta_melts_over_a_structural_event_of_its_session(autojump_clock: Any) -> None:
    """The order of what changes the state is kept; another session's events are no border."""
    reader = Merging(nobody)
    reader.put([text(0, "a"), text(0, "A", session="t")])
    reader.put([added(1), progress(1)])
    reader.put([text(1, "b"), text(1, "B", session="t")])

    assert await read_all(reader) == [text(0, "a"), text(0, "AB", session="t"), added(1), progress(1), text(1, "b")]


async def test_the_event_that_others_hold_is_not_changed_by_melting(autojump_clock: Any) -> None:
    """One delta goes to every reader: melting makes a new one."""
    reader = Merging(nobody)
    shared = text(0, "a")
    reader.put([shared, text(1, "b")])
    await read_all(reader)

    assert shared.text == "a"


async def test_over_max_pending_a_session_is_replaced_by_a_resync_and_others_are_untouched(autojump_clock: Any) -> None:
    """N02: memory is bounded whatever a consumer does, and the loss is told by session and number."""
    reader = Merging(nobody, max_pending=10)
    reader.put([added(1, "quiet")])
    reader.put([added(number) for number in range(10)])
    reader.put([added(2, "quiet")])

    assert await read_all(reader) == [added(1, "quiet"), Resync(origin(), 9, 10), added(2, "quiet")]


async def test_a_second_resync_takes_in_the_first(autojump_clock: Any) -> None:
    """``dropped`` counts events, and a reader need not read a chain of apologies."""
    reader = Merging(nobody, max_pending=4)
    for number in range(14):
        reader.put([added(number)])

    seen = await read_all(reader)
    assert isinstance(seen[0], Resync)
    assert seen[0].dropped + len(seen) - 1 == 14
    assert [event for event in seen if isinstance(event, Resync)] == seen[:1]
    assert len(seen) <= 5


async def test_no_delta_melts_over_a_resync(autojump_clock: Any) -> None:
    """After a hole the text goes on behind it, at its own offset."""
    reader = Merging(nobody, max_pending=2)
    reader.put([text(0, "a"), progress(1), progress(2)])
    reader.put([text(1, "b")])

    seen = await read_all(reader)
    assert seen == [Resync(origin(), 1, 3), text(1, "b")]


async def test_many_sessions_on_one_stalled_reader_stay_cheap(autojump_clock: Any) -> None:
    """Its publisher must not walk the whole buffer for each event once there are more sessions than ``max_pending``."""
    reader = Merging(nobody, max_pending=10)
    walks: list[int] = []
    shrink = reader._shrink
    reader._shrink = lambda: (walks.append(1), shrink())[1]  # type: ignore[method-assign, func-returns-value]  # counts its calls
    for number in range(2_000):
        reader.put([added(number // 100, f"s{number % 100}")])

    assert len(walks) < 100
    assert len(await read_all(reader)) < 250


pieces = st.lists(
    st.tuples(st.sampled_from("st"), st.sampled_from(["text", "text", "text", "structural", "read"])), max_size=40
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(pieces, st.integers(1, 30))
def test_a_merged_stream_says_the_same_or_says_where_it_does_not(script: list[tuple[str, str]], most: int) -> None:
    """Melting is concatenation: text and structure are those that were published, but for what a Resync stands for."""

    async def main() -> None:
        reader = Merging(nobody, max_pending=most)
        said: dict[str, str] = {"s": "", "t": ""}
        seen: list[Event] = []
        for number, (session, what) in enumerate(script):
            if what == "text":
                reader.put([text(len(said[session]), str(number % 10), session=session)])
                said[session] += str(number % 10)
            elif what == "structural":
                reader.put([added(number, session)])
            elif reader._has_events():
                seen.append(await anext(reader))
            assert len(reader._pending) <= most + 1
        reader.end()
        seen += [event async for event in reader]
        for session in "st":
            _same_but_for_holes([event for event in seen if event.origin.session == session], said[session])

    trio.run(main)


def _same_but_for_holes(seen: list[Event], said: str) -> None:
    at, hole = 0, False
    for event in seen:
        if isinstance(event, Resync):
            hole = True
        elif isinstance(event, TextDelta):
            assert event.offset == at or (hole and event.offset > at)
            assert said[event.offset :].startswith(event.text)
            at, hole = event.offset + len(event.text), False
    assert at == len(said) or hole


# Dropping


async def test_a_dropping_reader_drops_deltas_and_counts_them(autojump_clock: Any) -> None:
    """What it can't show in time is not worth keeping, but how much that was is."""
    reader = Dropping(nobody, max_pending=3)
    reader.put(texts(5))
    reader.put([text(0, "late")])

    assert await read_all(reader) == texts(3)
    assert reader.dropped == 3


async def test_a_dropping_reader_gives_up_deltas_before_anything_structural(autojump_clock: Any) -> None:
    """A stalled view must still learn what became of every run."""
    reader = Dropping(nobody, max_pending=4)
    reader.put(texts(4))
    reader.put([added(1), added(2), progress(1), ended()])

    assert await read_all(reader) == [added(1), added(2), progress(1), ended()]
    assert reader.dropped == 4


async def test_a_dropping_reader_with_too_much_that_is_structural_says_so(autojump_clock: Any) -> None:
    """Bounded, all the same."""
    reader = Dropping(nobody, max_pending=4)
    reader.put([added(number) for number in range(9)])

    assert await read_all(reader) == [Resync(origin(), 8, 9)]


async def test_a_dropping_reader_does_not_melt(autojump_clock: Any) -> None:
    """It shows the stream as it was, or not at all."""
    reader = Dropping(nobody)
    reader.put([text(0, "a"), text(1, "b")])

    assert await read_all(reader) == [text(0, "a"), text(1, "b")]
