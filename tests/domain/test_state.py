"""Folding events: the only way in which a conversation changes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.events import (
    CallFinished,
    CallProposed,
    CallStarted,
    Compacted,
    Event,
    MemoryPatched,
    MessageAdded,
    MessageCompleted,
    MessageQueued,
    MessageUnqueued,
    Notice,
    Origin,
    Resync,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
    RunSuspended,
    TextDelta,
)
from agentrio.domain.limits import Limits
from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import CallError, Text, ToolCall, ToolResult
from agentrio.domain.session import Queued, Session
from agentrio.domain.state import CallState, RunState, SessionState, patched, reduce
from agentrio.domain.state import fold as fold_batch
from agentrio.domain.status import Failure, RunResult, Suspension
from agentrio.domain.usage import Usage

from . import values

ORIGIN = Origin("s", "agent", "s-r1")
EMPTY = SessionState(Session("s", "agent"))
CALLS = (ToolCall("c1", "p1", "look", "{}"), ToolCall("c2", "p2", "look", "{}"))
ANSWER = Message("a1", "assistant", (Text("I look."), *CALLS))


def fold(*events: Event, start: SessionState = EMPTY) -> SessionState:
    """The state after events, numbered as they come."""
    for seq, event in enumerate(events, start.session.seq + 1):
        object.__setattr__(event, "seq", seq)
        start = reduce(start, event)
    return start


def started(limits: Limits | None = None) -> list[Event]:
    """A run that was started with a prompt."""
    return [
        RunStarted(ORIGIN, "m", "p", None, limits or Limits()),
        MessageAdded(ORIGIN, user_message("p1", "hi")),
        RoundStarted(ORIGIN, 1),
    ]


def responded(limits: Limits | None = None) -> list[Event]:
    """A run whose model asked for two calls, which were checked."""
    completed = MessageCompleted(ORIGIN, ANSWER, Usage(input=3), "tool_calls", "tool_use", Usage(input=1))
    return [*started(limits), completed, *(CallProposed(ORIGIN, call, "read", "f") for call in CALLS)]


def run_of(state: SessionState) -> RunState:
    """The run, which there is."""
    assert state.run is not None
    return state.run


def done(call: str, status: Any = "succeeded") -> CallFinished:
    """A result."""
    return CallFinished(ORIGIN, ToolResult(call, "look", status, (Text(call),)))


# Between runs


def test_a_queued_message_waits_in_order_and_can_be_taken_back() -> None:
    """Queues are state: they survive a stop and a restart."""
    one, two = user_message("q1", "a"), user_message("q2", "b")
    queued = fold(MessageQueued(ORIGIN, one, "steering", "interrupt"), MessageQueued(ORIGIN, two, "follow_up"))

    assert queued.session.queue == (Queued(one, "steering", "interrupt"), Queued(two, "follow_up"))
    assert queued.session.queued_total == 2
    taken = fold(MessageUnqueued(ORIGIN, "q1"), start=queued)
    assert taken.session.queue == (Queued(two, "follow_up"),)
    assert taken.session.queued_total == 2  # the next id is a new one all the same


def test_a_memory_patch_sets_and_deletes_keys() -> None:
    """None at the top deletes; below it is a value."""
    memory = fold(MemoryPatched(ORIGIN, {"a": 1, "b": {"x": None}}), MemoryPatched(ORIGIN, {"a": None, "c": []}))

    assert memory.session.memory == {"b": {"x": None}, "c": []}
    assert patched({"a": 1}, {"z": None}) == {"a": 1}
    assert patched({"a": None, "b": 1}, {"b": None, "c": 2}) == {"a": None, "c": 2}  # not the patch's to delete


def test_every_structural_event_moves_the_cursor_and_no_other_does() -> None:
    """``seq`` counts structural events, so that it can be the reader's cursor."""
    state = fold(*started())

    assert state.session.seq == 3
    for event in (TextDelta(ORIGIN, 3, "m", 0, 0, "x"), Notice(ORIGIN, 3, "c", "t"), Resync(ORIGIN, 9)):
        assert reduce(state, event) is state
    assert Resync(ORIGIN, 9).session == "s"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values.states, values.events)
def test_an_event_that_changes_nothing_leaves_the_very_state(state: SessionState, event: Event) -> None:
    """No view needs to compare; and no event can do more than fold or be refused."""
    if not event.structural:
        assert reduce(state, event) is state
        return
    try:
        after = reduce(state, event)
    except ValueError:
        return
    assert after.session.seq == event.seq
    assert after.session.id == state.session.id


# A run


def test_a_run_opens_with_its_limits_and_counts() -> None:
    """What plan needs is in the event: a resumed run has the limits that it started with."""
    limits = Limits(max_rounds=3)
    state = fold(*started(limits)[:2])

    assert run_of(state) == RunState("s-r1", limits, "m", "p")
    assert state.open_run is state.run
    assert state.session.runs == 1
    assert state.session.messages == (user_message("p1", "hi"),)


def test_an_injected_message_leaves_the_queue_and_is_remembered_until_the_next_round() -> None:
    """One queued message a round, and never twice."""
    message = user_message("q1", "wait")
    queued = fold(MessageQueued(ORIGIN, message, "steering"), *started()[:2])
    state = fold(MessageAdded(ORIGIN, message, "steering"), start=queued)

    assert state.session.queue == ()
    assert state.session.messages[-1] == message
    assert run_of(state).injected
    assert not run_of(fold(RoundStarted(ORIGIN, 1), start=state)).injected


def test_an_interrupt_that_waits_when_a_round_starts_interrupts_no_more() -> None:
    """It came before there was a call to skip; one that comes in the open round still does."""
    early, late = (MessageQueued(ORIGIN, user_message(id, id), "steering", "interrupt") for id in ("q1", "q2"))
    state = fold(early, MessageQueued(ORIGIN, user_message("q0", "x"), "follow_up"), *started(), late)
    assert [item.mode for item in state.session.queue] == ["after_calls", "after_calls", "interrupt"]


def test_a_completed_message_brings_calls_text_and_usage() -> None:
    """Usage counts at once: the round's end may never come."""
    run = run_of(fold(*responded()[:4]))

    assert run.responded
    assert run.calls == tuple(CallState(call) for call in CALLS)
    assert (run.stop_reason, run.raw_stop_reason, run.text) == ("tool_calls", "tool_use", "I look.")
    assert (run.usage, run.discarded) == (Usage(input=3), Usage(input=1))


def test_a_proposed_call_takes_its_checked_arguments_kind_and_problem() -> None:
    """What the model is shown of a call is what was checked."""
    problem = CallError("unknown_tool", "no")
    call = ToolCall("c1", "p1", "look", "{}", {"checked": True})
    run = run_of(fold(*responded()[:4], CallProposed(ORIGIN, call, "write", "f", problem)))

    assert run.calls[0] == CallState(call, "write", problem)
    assert run.calls[1].kind is None
    assert run.calls_total == 1


def test_results_join_one_message_and_close_their_calls() -> None:
    """Consecutive results are one tool message, as every wire wants them."""
    state = fold(*responded(), CallStarted(ORIGIN, "c1", "look"), done("c1"), done("c2"))
    run = run_of(state)

    assert [call.started for call in run.calls] == [True, False]
    assert [call.result.call_id for call in run.calls if call.result is not None] == ["c1", "c2"]
    results = state.session.messages[-1]
    assert (results.id, results.role, len(results.parts)) == ("s-r1-1t", "tool", 2)
    assert len(state.session.messages) == 3


@given(st.sets(st.integers(1, 14)))
def test_a_batch_folds_to_the_same_as_its_events_one_by_one(cuts: set[int]) -> None:
    """How many events are committed together is a matter of speed."""
    events = [
        *responded(),
        *(CallStarted(ORIGIN, call.id, "look") for call in CALLS),
        done("c1", "failed"),
        MemoryPatched(ORIGIN, {"seen": 1}),
        done("c2"),
        RoundEnded(ORIGIN, 1, Usage(input=3), "tool_calls"),
        MessageAdded(ORIGIN, user_message("q1", "and?"), "steering"),
        RunEnded(ORIGIN, RunResult("s-r1", "succeeded")),
    ]
    one_by_one = fold(*events)
    ends = [*sorted(cut for cut in cuts if cut < len(events)), len(events)]

    state = EMPTY
    for start, end in itertools.pairwise([0, *ends]):
        state = fold_batch(state, events[start:end])

    assert state == one_by_one


@pytest.mark.parametrize(
    ("statuses", "failures"),
    [
        (("failed",), 1),
        (("denied",), 1),
        (("failed", "succeeded"), 0),
        (("failed", "skipped"), 1),
        (("failed", "cancelled"), 1),
        (("failed", "failed"), 2),
    ],
)
def test_failures_in_a_row_are_counted_and_success_starts_over(statuses: tuple[Any, ...], failures: int) -> None:
    """A skipped or cancelled call says nothing of the tools' health."""
    finished = [done(call.id, status) for call, status in zip(CALLS, statuses, strict=False)]

    assert run_of(fold(*responded(), *finished)).failures == failures


def test_failures_stay_at_the_limit_whatever_follows() -> None:
    """A success beside the last failure must not keep a failing run alive."""
    state = fold(*responded(Limits(max_consecutive_failures=1)), done("c1", "failed"), done("c2"))

    assert run_of(state).failures == 1


def test_the_end_of_a_round_counts_only_what_no_message_has_counted() -> None:
    """A response that was not stored is told of by ``RoundEnded`` alone."""
    failure = Failure("error", "no", "overloaded")
    ended = RoundEnded(ORIGIN, 1, Usage(input=3), "tool_calls", "tool_use", Usage(input=1))
    stored = run_of(fold(*responded(), ended))
    lost = run_of(fold(*started(), RoundEnded(ORIGIN, 1, Usage(input=5), None, None, Usage(input=2), failure)))

    assert (stored.usage, stored.discarded, stored.round_open) == (Usage(input=3), Usage(input=1), False)
    assert (lost.usage, lost.discarded, lost.failure) == (Usage(input=5), Usage(input=2), failure)
    assert (stored.round_usage, lost.round_usage) == (Usage(input=3), Usage(input=5))


def test_a_new_round_forgets_the_stop_reason_of_the_last_one() -> None:
    """A round that is stopped before its response must not end with the words of another."""
    ended = RoundEnded(ORIGIN, 1, Usage(), "tool_calls", "tool_use")
    run = run_of(fold(*responded(), done("c1"), done("c2"), ended, RoundStarted(ORIGIN, 2)))

    assert (run.stop_reason, run.raw_stop_reason, run.calls, run.responded) == (None, None, (), False)
    assert run.text == "I look."


def said(text: str, stop_reason: Any, number: int) -> list[Event]:
    """A round with a response of one text, closed."""
    message = Message(f"a{number}", "assistant", (Text(text),))
    return [MessageCompleted(ORIGIN, message, stop_reason=stop_reason), RoundEnded(ORIGIN, number)]


def test_a_queued_message_that_joins_makes_the_earlier_answer_an_answer_to_something_else() -> None:
    """What the model said before is no answer to a question that came later."""
    follow_up = MessageAdded(ORIGIN, user_message("q", "and then?"), "follow_up")

    assert run_of(fold(*started(), *said("Oslo.", "end", 1), follow_up)).text == ""
    assert run_of(fold(*started(), *said("I look in ", "pause", 1), follow_up)).paused == ""


def test_what_a_pause_parts_is_one_answer() -> None:
    """A provider that pauses goes on where it was: the halves are one text, however many there are."""
    first = fold(*started(), *said("One, ", "pause", 1), RoundStarted(ORIGIN, 2))
    second = fold(*said("two, ", "pause", 2), RoundStarted(ORIGIN, 3), start=first)
    third = fold(*said("three.", "end", 3), start=second)

    assert [run_of(state).text for state in (first, second, third)] == ["One, ", "One, two, ", "One, two, three."]
    assert run_of(third).paused == ""


def test_a_pause_that_asks_for_calls_is_no_half_of_the_answer_behind_them() -> None:
    """The results stand between: what follows is said anew."""
    paused = MessageCompleted(ORIGIN, ANSWER, stop_reason="pause")

    assert run_of(fold(*started(), paused)).paused == ""


def test_what_is_compacted_is_only_counted() -> None:
    """The conversation keeps what is no longer sent."""
    before = fold(*started())
    state = fold(Compacted(ORIGIN, 1, 500), start=before)

    assert (state.session.compacted, state.session.messages) == (1, before.session.messages)
    assert state.run == before.run

    state = fold(Compacted(ORIGIN, 1, 500, ("a",)), start=state)
    state = fold(Compacted(ORIGIN, 2, 500, ("b", "c")), start=state)
    assert (state.session.compacted, state.session.shortened) == (2, ("a", "b", "c"))


def test_a_suspended_run_is_open_and_its_end_ends_the_rest() -> None:
    """Suspended is not ended; an ended run stays to be looked at."""
    resting = fold(*started()[:2], RunSuspended(ORIGIN, "reconciling", ("c1",)))
    result: RunResult[Any] = RunResult("s-r1", "cancelled")
    over = fold(RunEnded(ORIGIN, result), start=resting)

    assert run_of(resting).suspension == Suspension("s-r1", "reconciling", ("c1",))
    assert resting.open_run is not None
    assert (over.open_run, run_of(over).result, run_of(over).suspension) == (None, result, None)
    assert fold(MessageQueued(ORIGIN, user_message("q", "x"), "follow_up"), start=over).session.queue


# What can't follow

OF_A_RUN: list[Event] = [
    MessageAdded(ORIGIN, user_message("p", "x")),
    RoundStarted(ORIGIN, 1),
    RoundEnded(ORIGIN, 1),
    MessageCompleted(ORIGIN, ANSWER),
    CallProposed(ORIGIN, CALLS[0], "read", "f"),
    CallStarted(ORIGIN, "c1", "look"),
    done("c1"),
    RunSuspended(ORIGIN, "detached"),
    RunEnded(ORIGIN, RunResult("s-r1", "succeeded")),
]


@pytest.mark.parametrize("event", OF_A_RUN, ids=lambda event: type(event).__name__)
def test_an_event_of_a_run_that_is_not_open_is_refused(event: Event) -> None:
    """A late result must not land in another run, nor after the end."""
    over = fold(*started()[:2], RunEnded(ORIGIN, RunResult("s-r1", "succeeded")))
    other = fold(RunStarted(Origin("s", "agent", "s-r2"), "m", "p", None, Limits()), start=over)

    with pytest.raises(ValueError, match="no run is open"):
        fold(event, start=EMPTY)
    with pytest.raises(ValueError, match="no run is open"):
        fold(event, start=over)
    with pytest.raises(ValueError, match="is of run 's-r1', but the open run is 's-r2'"):
        fold(event, start=other)


@pytest.mark.parametrize("event", OF_A_RUN[4:7], ids=lambda event: type(event).__name__)
def test_an_event_of_a_call_that_nobody_made_is_refused(event: Event) -> None:
    """A call that is not of the latest response has no place in the state."""
    with pytest.raises(ValueError, match="made no call 'c1'"):
        fold(*started(), event)


def test_a_second_run_is_refused_while_one_is_open() -> None:
    """One run at a time: the first one's end would be lost."""
    second = RunStarted(Origin("s", "agent", "s-r2"), "m", "p", None, Limits())
    with pytest.raises(ValueError, match=r"RunStarted .* is of run 's-r2', but the open run is 's-r1'"):
        fold(*started(), second)
    with pytest.raises(ValueError, match=r"RunStarted 4 can't come in open round 1 of the open run 's-r1'"):
        fold(*started(), started()[0])


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([*started(), RoundStarted(ORIGIN, 2)], "RoundStarted 4 can't come in open round 1"),
        ([*started()[:2], RoundStarted(ORIGIN, 2)], "RoundStarted 3 can't come behind round 0"),
        ([*started()[:2], RoundEnded(ORIGIN, 1)], "RoundEnded 3 can't come behind round 0"),
        ([*started()[:2], MessageCompleted(ORIGIN, ANSWER)], "MessageCompleted 3 can't come behind round 0"),
        ([*started(), RunEnded(ORIGIN, RunResult("s-r1", "succeeded"))], "RunEnded 4 can't come in open round 1"),
    ],
)
def test_rounds_open_and_close_one_by_one_before_the_end(events: list[Event], words: str) -> None:
    """A journal in which they don't is no record of a run, and folding it would make up a state."""
    with pytest.raises(ValueError, match=words):
        fold(*events)


@pytest.mark.parametrize("seq", [0, 3, 5])
def test_a_hole_or_a_step_back_is_refused(seq: int) -> None:
    """What was lost, or came twice, must be noticed: the cursor counts without a gap."""
    state = fold(*started())
    with pytest.raises(ValueError, match=rf"RoundEnded {seq} of session 's' can't come where event 4 of session 's'"):
        reduce(state, RoundEnded(ORIGIN, 1, seq=seq))


def test_an_event_of_another_session_is_refused() -> None:
    """Two journals that were mixed up are no conversation; deltas, which change nothing, pass."""
    other = Origin("t", "agent", "s-r1")
    with pytest.raises(ValueError, match="MessageUnqueued 1 of session 't' can't come where event 1 of session 's'"):
        reduce(EMPTY, MessageUnqueued(other, "q", seq=1))
    assert reduce(EMPTY, TextDelta(other, 9, "m", 0, 0, "x")) is EMPTY
