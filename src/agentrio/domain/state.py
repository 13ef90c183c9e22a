"""A conversation's state, and how events fold into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeVar, cast

import attrs

from . import ids
from .events import (
    CallFinished,
    CallKind,
    CallProposed,
    CallStarted,
    Event,
    MemoryPatched,
    MessageAdded,
    MessageCompleted,
    MessageQueued,
    MessageUnqueued,
    Queue,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
    RunSuspended,
    SteerMode,
)
from .limits import Limits
from .messages import Message
from .parts import CallError, ToolCall, ToolResult
from .status import Failure, RunResult, StopReason, Suspension
from .usage import NO_USAGE, Usage

T = TypeVar("T")


@attrs.frozen
class Queued:
    """A message that waits."""

    message: Message
    queue: Queue
    mode: SteerMode = "after_calls"


@attrs.frozen
class Session:
    """One conversation: immutable and JSON-safe. ``runs`` and ``queued_total`` number what comes next."""

    id: str
    agent: str = ""
    messages: tuple[Message, ...] = ()
    memory: Mapping[str, Any] = attrs.field(factory=dict)
    queue: tuple[Queued, ...] = ()
    runs: int = 0
    queued_total: int = 0
    seq: int = 0

    def to_json(self) -> str:
        """The session as JSON text; ``from_json`` reads it back to an equal value."""
        from .codec import dumps

        return dumps(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Session:
        """The session that ``to_json`` wrote.

        Raises:
            CodecError: the text is no session, or was written by a version that knows more than this one.
        """
        from .codec import loads

        return loads(text, cls)


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
    once it has reached the limit.
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
        ValueError: the event can't follow this state: its run is not open, or another one is, or its call is unknown.
    """
    if not event.structural:
        return state
    folded = _fold(state, event)
    return SessionState(_evolve_session(folded.session, seq=event.seq), folded.run)


def _fold(state: SessionState, event: Event) -> SessionState:
    match event:
        case MessageQueued(message=message, queue=queue, mode=mode):
            session = state.session
            queued = (*session.queue, Queued(message, queue, mode))
            return _session(state, queue=queued, queued_total=session.queued_total + 1)
        case MessageUnqueued(message_id=message_id):
            return _session(state, queue=_without(state.session.queue, message_id))
        case MemoryPatched(patch=patch):
            return _session(state, memory=patched(state.session.memory, patch))
        case RunStarted(origin=origin, limits=limits, model=model, provider=provider) if state.open_run is None:
            run = RunState(origin.run, limits, model, provider)
            return SessionState(_evolve_session(state.session, runs=state.session.runs + 1), run)
        case _:  # an event of the open run, or one out of place
            pass
    run_state = state.open_run
    if run_state is None or run_state.id != event.origin.run:
        is_open = "no run is open" if run_state is None else f"the open run is {run_state.id!r}"
        raise ValueError(f"{type(event).__name__} {event.seq} is of run {event.origin.run!r}, but {is_open}")
    return _fold_run(state, run_state, event)


def _fold_run(state: SessionState, run: RunState, event: Event) -> SessionState:
    match event:
        case MessageAdded(message=message, source=source):
            state = _session(
                state,
                messages=(*state.session.messages, message),
                queue=_without(state.session.queue, message.id),
            )
            return _run(state, run, injected=run.injected or source != "prompt")
        case RoundStarted(round=number):
            return _run(
                state,
                run,
                rounds=number,
                round_open=True,
                responded=False,
                injected=False,
                calls=(),
                stop_reason=None,
                raw_stop_reason=None,
                stop_detail=None,
            )
        case MessageCompleted():
            return _complete(state, run, event)
        case CallProposed(call=call, kind=kind, problem=problem):
            calls = _change_call(run, call.id, call=call, kind=kind, problem=problem)
            return _run(state, run, calls=calls, calls_total=run.calls_total + 1)
        case CallStarted(call_id=call_id):
            return _run(state, run, calls=_change_call(run, call_id, started=True))
        case CallFinished(result=result):
            return _finish_call(state, run, result)
        case RoundEnded():
            return _end_round(state, run, event)
        case RunSuspended(reason=reason, pending=pending):
            return _run(state, run, suspension=Suspension(run.id, reason, pending))
        case RunEnded(result=ending):
            return _run(state, run, result=ending, suspension=None)
        case _:
            raise ValueError(f"{type(event).__name__} {event.seq} can't come while run {run.id!r} is open")


def _complete(state: SessionState, run: RunState, event: MessageCompleted) -> SessionState:
    message = event.message
    state = _session(state, messages=(*state.session.messages, message))
    tag = message.model
    return _run(
        state,
        run,
        model=run.model if tag is None else tag.model,
        provider=run.provider if tag is None else tag.provider,
        responded=True,
        calls=tuple(CallState(call) for call in message.calls),
        stop_reason=event.stop_reason,
        raw_stop_reason=event.raw_stop_reason,
        stop_detail=event.stop_detail,
        text=message.text or run.text,
        usage=run.usage + event.usage,
        discarded=run.discarded + event.discarded,
        round_usage=event.usage,
        round_discarded=event.discarded,
    )


def _end_round(state: SessionState, run: RunState, event: RoundEnded) -> SessionState:
    """A response that was stored has been counted already; of one that was not, this is the only word."""
    return _run(
        state,
        run,
        round_open=False,
        responded=True,
        stop_reason=event.stop_reason,
        raw_stop_reason=event.raw_stop_reason,
        stop_detail=event.stop_detail,
        failure=event.failure,
        usage=run.usage if run.responded else run.usage + event.usage,
        discarded=run.discarded if run.responded else run.discarded + event.discarded,
    )


def _finish_call(state: SessionState, run: RunState, result: ToolResult) -> SessionState:
    calls = _change_call(run, result.call_id, result=result)
    state = _session(state, messages=_with_result(state.session.messages, run, result))
    return _run(state, run, calls=calls, failures=_failures(run, result))


def _failures(run: RunState, result: ToolResult) -> int:
    if run.failures >= run.limits.max_consecutive_failures:
        return run.failures
    if result.status == "succeeded":
        return 0
    return run.failures + (result.status in ("failed", "denied"))


def _with_result(messages: tuple[Message, ...], run: RunState, result: ToolResult) -> tuple[Message, ...]:
    id = ids.results_id(run.id, run.rounds)
    last = messages[-1]
    if last.id == id:
        return (*messages[:-1], Message(id, "tool", (*last.parts, result)))
    return (*messages, Message(id, "tool", (result,)))


def _change_call(run: RunState, call_id: str, **changes: Any) -> tuple[CallState, ...]:
    calls = run.calls
    for place, item in enumerate(calls):
        if item.call.id == call_id:
            return (*calls[:place], _evolve_call(item, **changes), *calls[place + 1 :])
    raise ValueError(f"the latest response of run {run.id!r} made no call {call_id!r}")


def _without(queue: tuple[Queued, ...], message_id: str) -> tuple[Queued, ...]:
    return tuple(item for item in queue if item.message.id != message_id) if queue else queue


def _session(state: SessionState, **changes: Any) -> SessionState:
    return SessionState(_evolve_session(state.session, **changes), state.run)


def _run(state: SessionState, run: RunState, **changes: Any) -> SessionState:
    return SessionState(state.session, _evolve_run(run, **changes))


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
_evolve_call = _evolver(CallState)


def patched(memory: Mapping[str, Any], patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Memory with a patch laid over it, key by key; a key set to None is deleted."""
    merged = {**memory, **patch}
    return {key: value for key, value in merged.items() if value is not None}
