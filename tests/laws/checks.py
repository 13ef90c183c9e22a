"""What must hold of any recorded scene. Each check is a law, or a part of one."""

from __future__ import annotations

from collections import defaultdict

from agentrio.domain.events import (
    CallFinished,
    CallProgress,
    CallProposed,
    CallReturned,
    CallStarted,
    Event,
    MemoryPatched,
    MessageCompleted,
    MessageDiscarded,
    MessageStarted,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from agentrio.domain.messages import Message
from agentrio.domain.parts import Thinking
from agentrio.domain.render import RequestInputs, render
from agentrio.domain.usage import NO_USAGE, Usage

from .stage import Record


def runs(record: Record) -> dict[str, list[Event]]:
    """The events by run, those between runs left out."""
    found: dict[str, list[Event]] = {}
    for event in record.events:
        if event.origin.run:
            found.setdefault(event.origin.run, []).append(event)
    return found


def one_ending_and_last(record: Record) -> None:
    """One ``RunStarted`` first and one ``RunEnded`` last, also in what the run's consumer read."""
    by_run = runs(record)
    assert set(by_run) == set(record.streams)
    for run, events in by_run.items():
        assert isinstance(events[0], RunStarted)
        endings = [event for event in events if isinstance(event, RunEnded)]
        assert len(endings) == 1
        assert events[-1] is endings[0]
        assert record.results[run] == endings[0].result
        seen = record.streams[run]
        if record.scene.pace != "leaving":
            assert [event for event in events if event in seen] == events
            assert seen[-1] is endings[0]


class _Open:
    """What a view has open: a round, in it one message, behind it calls."""

    def __init__(self) -> None:
        self.run: str | None = None
        self.round: int | None = None
        self.message: str | None = None
        self.calls: dict[str, str] = {}
        self.completed: set[str] = set()

    def see(self, event: Event) -> None:
        match event:
            case RunStarted(origin=origin):
                assert self.run is None
                self.run = origin.run
            case RunEnded():
                assert (self.round, self.message, self.calls) == (None, None, {})
                self.run = None
            case RoundStarted(round=number):
                assert self.run is not None
                assert self.round is None
                self.round = number
            case RoundEnded(round=number):
                assert (self.round, self.message, self.calls) == (number, None, {})
                self.round = None
            case MessageStarted() | MessageCompleted() | MessageDiscarded():
                self._message(event)
            case CallProposed() | CallStarted() | CallFinished() | CallProgress() | CallReturned():
                self._call(event)

    def _message(self, event: MessageStarted | MessageCompleted | MessageDiscarded) -> None:
        match event:
            case MessageStarted(message_id=id):
                assert self.round is not None
                assert (self.message, self.calls) == (None, {})
                self.message = id
            case MessageCompleted(message=Message(id=id)):
                assert self.message == id
                self.message = None
                self.completed.add(id)
            case MessageDiscarded(message_id=id):
                assert self.message == id
                assert id not in self.completed
                self.message = None

    def _call(self, event: CallProposed | CallStarted | CallFinished | CallProgress | CallReturned) -> None:
        match event:
            case CallProposed(call=call):
                assert self.round is not None
                assert self.message is None
                assert call.id not in self.calls
                self.calls[call.id] = "proposed"
            case CallStarted(call_id=id):
                assert self.calls[id] == "proposed"
                self.calls[id] = "started"
            case CallProgress(call_id=id):
                assert self.calls[id] == "started"
            case CallReturned(call_id=id):
                assert self.calls[id] == "started"
                self.calls[id] = "returned"
            case CallFinished(result=result):
                assert self.calls.pop(result.call_id) in ("proposed", "returned")


def closed_innermost_first(record: Record) -> None:
    """Rounds hold messages and calls, runs hold rounds, and nothing outlives what holds it."""
    view = _Open()
    for event in record.events:
        view.see(event)
    assert (view.run, view.round, view.message, view.calls) == (None, None, None, {})


def messages_precede_their_calls(record: Record) -> None:
    """A call is proposed only behind the message that asks for it, in the message's order."""
    for events in runs(record).values():
        asked: list[str] = []
        for event in events:
            if isinstance(event, MessageCompleted):
                assert not asked
                asked = [call.id for call in event.message.calls]
            elif isinstance(event, CallProposed):
                assert event.call.id == asked.pop(0)
        assert not asked


def deltas_are_contiguous_and_add_up(record: Record) -> None:
    """Each part's deltas have no hole and no repeat, and melt into the message that was completed."""
    merged: dict[str, dict[tuple[type, int], str]] = defaultdict(dict)
    for event in record.events:
        if isinstance(event, (TextDelta, ThinkingDelta, ToolInputDelta)):
            parts = merged[event.message_id]
            key = (type(event), event.part)
            assert event.offset == len(parts.get(key, ""))
            parts[key] = parts.get(key, "") + event.text
        elif isinstance(event, MessageCompleted):
            _same(merged[event.message.id], event.message)


def _same(parts: dict[tuple[type, int], str], message: Message) -> None:
    def of(kind: type) -> list[str]:
        return [text for (is_kind, _), text in sorted(parts.items(), key=lambda item: item[0][1]) if is_kind is kind]

    assert "".join(of(TextDelta)) == message.text
    assert "".join(of(ThinkingDelta)) == "".join(part.text for part in message.parts if isinstance(part, Thinking))
    inputs = [call.arguments_json for call in message.calls]
    if message.interrupted:  # a call whose arguments are no object may be a fragment: it is dropped
        streamed = iter(of(ToolInputDelta))
        assert all(text in streamed for text in inputs)
    else:
        assert of(ToolInputDelta) == inputs


def results_in_call_order(record: Record) -> None:
    """Results follow the order of proposals, and a call's memory follows its result before the next one."""
    for events in runs(record).values():
        proposed = [event.call.id for event in events if isinstance(event, CallProposed)]
        finished = [event.result.call_id for event in events if isinstance(event, CallFinished)]
        assert finished == proposed
        latest = None
        for event in events:
            if isinstance(event, CallFinished):
                latest = event.result
            elif isinstance(event, MemoryPatched):
                assert latest is not None
                assert event.call_id == latest.call_id
                assert latest.status in ("succeeded", "failed")
                assert latest.error is None or latest.error.category != "timeout"


def failures_are_counted_in_call_order(record: Record) -> None:
    """So many failures in a row end the run, and only so many."""
    for run, events in runs(record).items():
        most = record.scene.limits.max_consecutive_failures
        count = 0
        for event in events:
            if isinstance(event, CallFinished) and count < most:
                status = event.result.status
                count = 0 if status == "succeeded" else count + (status in ("failed", "denied"))
        failure = record.results[run].failure
        if failure is not None and "failed in a row" in failure.message:
            assert count >= most
        if record.results[run].status == "succeeded":
            assert count < most


def fold_is_state(record: Record) -> None:
    """The state of the session is what anybody gets who folds its events."""
    assert record.end is not None
    assert record.fold(len(record.structural)) == record.end


def requests_are_rendered_folds(record: Record) -> None:
    """Each request is ``render`` of the events before it and the round's inputs, without any memo."""
    agent = record.agent
    assert agent is not None
    for count, request in record.requests:
        inputs = RequestInputs((), tuple(tool.spec for tool in agent.tools), request.max_tokens)
        assert request == render(record.fold(count), inputs)


def seq_is_gapless(record: Record) -> None:
    """Structural events count by one; the others carry the number that they follow."""
    latest = record.start.session.seq
    for event in record.events:
        if event.structural:
            latest += 1
        assert event.seq == latest


def commits_precede_events(record: Record) -> None:
    """What was published was committed, in the same order."""
    committed = [event for batch in record.commits for event in batch]
    assert committed == record.structural


def usage_adds_up(record: Record) -> None:
    """The run's usage is its rounds', and together with what was discarded all that came over the wire."""
    for run, events in runs(record).items():
        ended = [event for event in events if isinstance(event, RoundEnded)]
        result = record.results[run]
        assert result.usage == sum((event.usage for event in ended), NO_USAGE)
        assert result.discarded == sum((event.discarded for event in ended), NO_USAGE)
        assert result.usage + result.discarded == record.delivered.get(run, Usage())
