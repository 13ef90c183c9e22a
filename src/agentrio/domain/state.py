"""A conversation's state, and how events fold into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, assert_never, cast

import attrs

from . import ids
from .events import (
    CallFinished,
    CallKind,
    CallProposed,
    CallStarted,
    Compacted,
    Event,
    MemoryPatched,
    MessageAdded,
    MessageCompleted,
    MessageQueued,
    MessageUnqueued,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
    RunSuspended,
)
from .limits import Limits
from .messages import Message
from .parts import CallError, ToolCall, ToolResult
from .session import Queued, Session
from .status import Failure, RunResult, StopReason, Suspension
from .usage import NO_USAGE, Usage

T = TypeVar("T")

CallEvent: TypeAlias = CallProposed | CallStarted | CallFinished


@attrs.frozen
class CallState:
    """A call of the open round: proposed once it has a ``kind``, finished once it has a ``result``."""

    call: ToolCall
    kind: CallKind | None = None
    problem: CallError | None = None
    started: bool = False
    result: ToolResult | None = None


@attrs.frozen
class RunState:
    """Where a run stands; ``plan`` asks nothing else.

    ``responded`` is true once the open round's message is complete; ``injected`` once a queued message was added since
    the last round. ``calls`` are those of the latest round. ``failures`` counts results that failed in a row, and stays
    once it has reached the limit. ``text`` is the latest answer to what was asked last; ``paused`` what a response that
    the next round continues has said so far.
    """

    id: str
    limits: Limits
    model: str = ""
    provider: str = ""
    rounds: int = 0
    round_open: bool = False
    responded: bool = False
    injected: bool = False
    calls: tuple[CallState, ...] = ()
    calls_total: int = 0
    failures: int = 0
    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    stop_detail: str | None = None
    failure: Failure | None = None
    text: str = ""
    paused: str = ""
    usage: Usage = NO_USAGE
    discarded: Usage = NO_USAGE
    round_usage: Usage = NO_USAGE
    round_discarded: Usage = NO_USAGE
    suspension: Suspension | None = None
    result: RunResult[Any] | None = None


@attrs.frozen
class SessionState:
    """A conversation and its current or latest run."""

    session: Session
    run: RunState | None = None

    @property
    def open_run(self) -> RunState | None:
        """The run, unless there is none or it has ended."""
        return self.run if self.run is not None and self.run.result is None else None


def reduce(state: SessionState, event: Event) -> SessionState:
    """The state after an event. Events that are not structural change nothing.

    Raises:
        ValueError: the event can't follow this state: it is of another session or not the next one, its run is not
            open or another one is, its round is open already or not at all, or its call is unknown.
    """
    return fold(state, (event,))


def fold(state: SessionState, events: Sequence[Event]) -> SessionState:
    """The state after a batch: the same as event by event, and cheaper where many calls are told of at once.

    Raises:
        ValueError: as ``reduce``.
    """
    told: list[CallEvent] = []  # neighbours that change nothing but calls
    session, seq = state.session.id, state.session.seq
    for event in events:
        if event.structural:
            seq += 1
            if event.seq != seq or event.origin.session != session:
                raise _out_of_place(event, session, seq)
        if isinstance(event, CallProposed | CallStarted | CallFinished):
            told.append(event)
        elif event.structural:
            state = _fold(_fold_calls(state, told), event)
            told = []
    return _fold_calls(state, told)


def _out_of_place(event: Event, session: str, seq: int) -> ValueError:
    """A hole or a step back would make another conversation of a journal without a word."""
    came = f"{type(event).__name__} {event.seq} of session {event.origin.session!r}"
    return ValueError(f"{came} can't come where event {seq} of session {session!r} is the next")


def _fold(state: SessionState, event: Event) -> SessionState:
    session = state.session
    match event:
        case MessageQueued(message=message, queue=queue, mode=mode):
            queued = (*session.queue, Queued(message, queue, mode))
            return _session(state, event, queue=queued, queued_total=session.queued_total + 1)
        case MessageUnqueued(message_id=message_id):
            return _session(state, event, queue=_without(session.queue, message_id))
        case MemoryPatched(patch=patch):
            return _session(state, event, memory=patched(session.memory, patch))
        case RunStarted(origin=origin, limits=limits, model=model, provider=provider) if state.open_run is None:
            run = RunState(origin.run, limits, model, provider)
            return SessionState(_evolve_session(session, seq=event.seq, runs=session.runs + 1), run)
        case _:  # an event of the open run, or one out of place
            return _fold_run(state, _run_of(state, event), event)


def _run_of(state: SessionState, event: Event) -> RunState:
    """The open run, whose event it must be."""
    run = state.open_run
    if run is None or run.id != event.origin.run:
        is_open = "no run is open" if run is None else f"the open run is {run.id!r}"
        raise ValueError(f"{type(event).__name__} {event.seq} is of run {event.origin.run!r}, but {is_open}")
    return run


def _fold_run(state: SessionState, run: RunState, event: Event) -> SessionState:
    match event:
        case MessageAdded():
            return _add_message(state, run, event)
        case RoundStarted(round=number) if not run.round_open and number == run.rounds + 1:
            return _run(
                _past_interrupts(state),
                run,
                event,
                rounds=number,
                round_open=True,
                responded=False,
                injected=False,
                calls=(),
                stop_reason=None,
                raw_stop_reason=None,
                stop_detail=None,
            )
        case MessageCompleted() if run.round_open:
            return _complete(state, run, event)
        case RoundEnded() if run.round_open:
            return _end_round(state, run, event)
        case Compacted(messages=count, shortened=shortened):
            return _session(state, event, compacted=count, shortened=(*state.session.shortened, *shortened))
        case RunSuspended(reason=reason, pending=pending):
            return _run(state, run, event, suspension=Suspension(run.id, reason, pending))
        case RunEnded(result=ending) if not run.round_open:
            return _run(state, run, event, result=ending, suspension=None)
        case _:
            place = f"in open round {run.rounds}" if run.round_open else f"behind round {run.rounds}"
            raise ValueError(f"{type(event).__name__} {event.seq} can't come {place} of the open run {run.id!r}")


def _add_message(state: SessionState, run: RunState, event: MessageAdded) -> SessionState:
    session, message = state.session, event.message
    folded = _session(state, event, messages=(*session.messages, message), queue=_without(session.queue, message.id))
    if event.source == "prompt":
        return folded
    joined = _evolve_run(run, injected=True, text="", paused="")  # what was said before is no answer to this
    return SessionState(folded.session, joined)


def _past_interrupts(state: SessionState) -> SessionState:
    """Interrupts that wait when a round starts have nothing left to interrupt: they are steering like any other."""
    queue = state.session.queue
    if not queue or all(item.mode != "interrupt" for item in queue):
        return state
    passed = tuple(attrs.evolve(item, mode="after_calls") for item in queue)
    return SessionState(_evolve_session(state.session, queue=passed), state.run)


def _complete(state: SessionState, run: RunState, event: MessageCompleted) -> SessionState:
    message = event.message
    tag = message.model
    text = run.paused + message.text
    changed = _evolve_run(
        run,
        model=run.model if tag is None else tag.model,
        provider=run.provider if tag is None else tag.provider,
        responded=True,
        calls=tuple(CallState(call) for call in message.calls),
        stop_reason=event.stop_reason,
        raw_stop_reason=event.raw_stop_reason,
        stop_detail=event.stop_detail,
        text=text or run.text,
        paused=text if event.stop_reason == "pause" and not message.calls else "",
        usage=run.usage + event.usage,
        discarded=run.discarded + event.discarded,
        round_usage=event.usage,
        round_discarded=event.discarded,
    )
    session = _evolve_session(state.session, seq=event.seq, messages=(*state.session.messages, message))
    return SessionState(session, changed)


def _end_round(state: SessionState, run: RunState, event: RoundEnded) -> SessionState:
    """A response that was stored has been counted already; of one that was not, this is the only word."""
    return _run(
        state,
        run,
        event,
        round_open=False,
        responded=True,
        stop_reason=event.stop_reason,
        raw_stop_reason=event.raw_stop_reason,
        stop_detail=event.stop_detail,
        failure=event.failure,
        usage=run.usage if run.responded else run.usage + event.usage,
        discarded=run.discarded if run.responded else run.discarded + event.discarded,
        round_usage=run.round_usage if run.responded else event.usage,
    )


def _fold_calls(state: SessionState, events: Sequence[CallEvent]) -> SessionState:
    """Many calls are proposed, started and finished at a time: the state around them is made once."""
    if not events:
        return state
    folding = _CallFold(_run_of(state, events[0]))
    for event in events:
        _run_of(state, event)
        folding.take(event)
    session, results = state.session, folding.results
    messages = _with_results(session.messages, folding.run, results) if results else session.messages
    return SessionState(_evolve_session(session, seq=events[-1].seq, messages=messages), folding.changed())


class _CallFold:
    """The calls of a round while events of theirs fold in."""

    def __init__(self, run: RunState) -> None:
        self.run = run
        self.results: list[ToolResult] = []
        self._calls = [*run.calls]
        self._places = {item.call.id: place for place, item in enumerate(run.calls)}
        self._total = run.calls_total
        self._failures = run.failures

    def take(self, event: CallEvent) -> None:
        match event:
            case CallProposed(call=call, kind=kind, problem=problem):
                place, old = self._find(call.id)
                self._calls[place] = CallState(call, kind, problem, old.started, old.result)
                self._total += 1
            case CallStarted(call_id=call_id):
                place, old = self._find(call_id)
                self._calls[place] = CallState(old.call, old.kind, old.problem, True, old.result)
            case CallFinished(result=result):
                place, old = self._find(result.call_id)
                self._calls[place] = CallState(old.call, old.kind, old.problem, old.started, result)
                self.results.append(result)
                self._count(result)
            case _:
                assert_never(event)

    def _find(self, call_id: str) -> tuple[int, CallState]:
        place = self._places.get(call_id)
        if place is None:
            raise ValueError(f"the latest response of run {self.run.id!r} made no call {call_id!r}")
        return place, self._calls[place]

    def _count(self, result: ToolResult) -> None:
        if self._failures >= self.run.limits.max_consecutive_failures:
            return
        if result.status == "succeeded":
            self._failures = 0
        elif result.status in ("failed", "denied"):
            self._failures += 1

    def changed(self) -> RunState:
        return _evolve_run(self.run, calls=tuple(self._calls), calls_total=self._total, failures=self._failures)


def _with_results(messages: tuple[Message, ...], run: RunState, results: list[ToolResult]) -> tuple[Message, ...]:
    id = ids.results_id(run.id, run.rounds)
    last = messages[-1]
    if last.id == id:
        return (*messages[:-1], Message(id, "tool", (*last.parts, *results)))
    return (*messages, Message(id, "tool", tuple(results)))


def _without(queue: tuple[Queued, ...], message_id: str) -> tuple[Queued, ...]:
    return tuple(item for item in queue if item.message.id != message_id) if queue else queue


def _session(state: SessionState, event: Event, **changes: Any) -> SessionState:
    return SessionState(_evolve_session(state.session, seq=event.seq, **changes), state.run)


def _run(state: SessionState, run: RunState, event: Event, **changes: Any) -> SessionState:
    return SessionState(_evolve_session(state.session, seq=event.seq), _evolve_run(run, **changes))


def _evolver(kind: type[T]) -> Callable[..., T]:
    """``attrs.evolve`` for one class, at a third of its cost: each event makes two or three such values."""
    names = [field.name for field in attrs.fields(cast("type[attrs.AttrsInstance]", kind))]
    read = attrgetter(*names)
    place = {name: index for index, name in enumerate(names)}

    def evolve(value: T, **changes: Any) -> T:
        values = [*read(value)]
        for name, change in changes.items():
            values[place[name]] = change
        return kind(*values)

    return evolve


_evolve_session = _evolver(Session)
_evolve_run = _evolver(RunState)


def patched(memory: Mapping[str, Any], patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Memory with a patch laid over it, key by key; a key set to None is deleted."""
    merged = {**memory, **patch}
    return {key: value for key, value in merged.items() if value is not None or key not in patch}
