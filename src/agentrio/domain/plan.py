"""What a run does next: asked of its state alone, so that a resumed run asks the same question."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from .history import answerable
from .session import Queued
from .state import CallState, RunState, SessionState
from .status import Code, Failure, Status

RUNS_CALLS = frozenset({"tool_calls", "end", "stop_sequence", "pause"})
"""Stop reasons after which a complete message's calls may run."""


@attrs.frozen
class CallModel:
    """Ask the model. ``round`` counts from 1; a round that a cut left open is asked again."""

    round: int


@attrs.frozen
class Inject:
    """Add a queued message to the conversation."""

    queued: Queued


@attrs.frozen
class ProposeCalls:
    """Check these calls of the response, in order."""

    calls: tuple[CallState, ...]


@attrs.frozen
class RunCalls:
    """Run one segment: consecutive reads, or a single write."""

    segment: tuple[CallState, ...]


@attrs.frozen
class SkipCalls:
    """Give every unfinished call the same answer, without running it."""

    calls: tuple[CallState, ...]
    why: str


@attrs.frozen
class Reconcile:
    """A write was started by someone who is gone: only its outcome, never a second run, can settle it."""

    calls: tuple[CallState, ...]


@attrs.frozen
class CloseRound:
    """Every call has its result."""


@attrs.frozen
class Finish:
    """End the run. ``reason`` says why one is cancelled that nobody stopped."""

    status: Status
    failure: Failure | None = None
    text: str = ""
    reason: str | None = None


Step: TypeAlias = CallModel | Inject | ProposeCalls | RunCalls | SkipCalls | Reconcile | CloseRound | Finish


def plan(state: SessionState) -> Step | None:
    """The next step of the open run; None where there is none, or it has ended or rests."""
    run = state.open_run
    if run is None or run.suspension is not None:
        return None
    if not run.round_open:
        return _between_rounds(state, run)
    if not run.responded:
        return CallModel(run.rounds)
    return _within_round(state, run)


def _within_round(state: SessionState, run: RunState) -> Step:
    fresh = tuple(call for call in run.calls if call.kind is None)
    if fresh:
        return ProposeCalls(fresh)
    todo = tuple(call for call in run.calls if call.result is None)
    if not todo:
        return CloseRound()
    lost = tuple(call for call in todo if call.started and call.kind == "write")
    if lost:
        return Reconcile(lost)
    why = _why_skip(state, run)
    return RunCalls(segment(todo)) if why is None else SkipCalls(todo, why)


def segment(calls: tuple[CallState, ...]) -> tuple[CallState, ...]:
    """The calls at the front that run together: reads side by side, a write alone."""
    if calls[0].kind == "write":
        return calls[:1]
    for index, call in enumerate(calls):
        if call.kind == "write":
            return calls[:index]
    return calls


def _why_skip(state: SessionState, run: RunState) -> str | None:
    limits = run.limits
    if run.stop_reason not in RUNS_CALLS:
        return "Not started: the response that asked for it was not complete."
    if run.calls_total > limits.max_calls:
        return f"Not started: the run may make {limits.max_calls} tool calls."
    if run.failures >= limits.max_consecutive_failures and not _under_way(run):
        return "Not started: too many calls failed in a row."
    if any(item.queue == "steering" and item.mode == "interrupt" for item in state.session.queue):
        return "Skipped due to queued user message."
    failed = any(
        call.kind == "write" and call.result is not None and call.result.status != "succeeded" for call in run.calls
    )
    if failed and limits.on_failed_write != "continue":
        return "Not started: a write before it failed."
    return None


def _under_way(run: RunState) -> bool:
    """Whether a call of the segment that is next was started: what ran side by side before a crash does so again."""
    next_one = next(index for index, call in enumerate(run.calls) if call.result is None)
    first = next_one
    while first > 0 and run.calls[first - 1].kind == run.calls[next_one].kind == "read":
        first -= 1
    return any(call.started for call in segment(run.calls[first:]))


def _between_rounds(state: SessionState, run: RunState) -> Step:
    natural = None if run.injected else ending(run)
    if natural is not None and natural.status != "succeeded":
        return natural
    unpriced = _unpriced(run)
    if unpriced is not None:
        return unpriced
    over = _over_limit(run) or _untold(run)
    if over is not None:
        return natural or over  # what waits is kept: no round is left that could answer it
    if run.injected:
        return CallModel(run.rounds + 1)
    queued = _next_queued(state, at_end=natural is not None or (run.rounds == 0 and _answered(state)))
    if queued is not None:
        return Inject(queued)
    if run.rounds == 0 and not answerable(state.session.messages):
        return Finish("cancelled", reason="nothing was left to answer: what was queued has been taken back")
    return natural or CallModel(run.rounds + 1)


def _answered(state: SessionState) -> bool:
    messages = state.session.messages
    return not messages or (messages[-1].role == "assistant" and not messages[-1].interrupted)


def _over_limit(run: RunState) -> Finish | None:
    limits = run.limits
    if run.rounds >= limits.max_rounds:
        return _fail("max_rounds", f"The run reached its {limits.max_rounds} rounds.", run.text, recoverable=True)
    if limits.max_total_tokens is None and limits.max_cost is None:
        return None
    used = run.usage + run.discarded
    if limits.max_total_tokens is not None and used.total >= limits.max_total_tokens:
        return _fail("limit", f"The run used its {limits.max_total_tokens} tokens.", run.text)
    if limits.max_cost is not None and used.cost is not None and used.cost >= limits.max_cost:
        return _fail("limit", f"The run used its {limits.max_cost} US dollars.", run.text)
    return None


def _unpriced(run: RunState) -> Finish | None:
    """The end of a run that has a ``max_cost`` and a model of unknown price: also where it has its answer, or one
    message more would show that the limit never held.
    """
    if run.limits.max_cost is None:
        return None
    used = run.usage + run.discarded
    if used.cost is not None or not used.total:
        return None
    return _fail(
        "limit",
        f"Limits.max_cost can't be held: what {run.model or 'the model'} costs is not known. Give the model "
        "prices=Prices(...), or leave max_cost out.",
        run.text,
    )


def _untold(run: RunState) -> Finish | None:
    """The end of a run that would go on uncounted: it has a limit of tokens or money, and the server tells neither."""
    limits = run.limits
    if run.rounds == 0 or (limits.max_total_tokens is None and limits.max_cost is None):
        return None
    if run.round_usage.total or run.round_usage.cost is not None:
        return None
    name = "max_cost" if limits.max_total_tokens is None else "max_total_tokens"
    return _fail(
        "limit",
        f"Limits.{name} can't be held: the server of {run.model or 'the model'} does not tell what was used. Leave "
        f"{name} out, and bound the run by max_rounds.",
        run.text,
    )


def _next_queued(state: SessionState, *, at_end: bool) -> Queued | None:
    """Steering goes first, one message a round; a follow-up when the run would end."""
    queue = state.session.queue
    steering = next((item for item in queue if item.queue == "steering"), None)
    if steering is not None or not at_end:
        return steering
    return queue[0] if queue else None


def ending(run: RunState) -> Finish | None:
    """How the run ends after its latest round; None where that leads on to another, or there was none."""
    if run.rounds == 0:
        return None
    if run.failure is not None:
        return Finish(run.failure.status, run.failure, run.text)
    if run.calls:
        return _after_calls(run)
    match run.stop_reason:
        case "end" | "stop_sequence":
            return _answer(run)
        case "pause":
            return None
        case "max_tokens":
            return _fail("truncated", "The response was cut at the token limit.", run.text)
        case "refusal":
            why = "" if run.stop_detail is None else f" ({run.stop_detail})"
            return Finish("refused", Failure("refused", f"The model declined to answer{why}."), run.text)
        case "content_filter":
            failure = Failure("blocked", "A content filter stopped the response.", "content_filter")
            return Finish("blocked", failure, run.text)
        case _:
            raw = run.raw_stop_reason
            return _fail("invalid_response", f"The model stopped for a reason that is not known: {raw!r}.", run.text)


def _answer(run: RunState) -> Finish:
    if run.text:
        return Finish("succeeded", None, run.text)
    return _fail("invalid_response", "The model gave an empty answer.")


def _after_calls(run: RunState) -> Finish | None:
    limits = run.limits
    if run.stop_reason == "max_tokens":
        return _fail("truncated", "The response was cut at the token limit.", run.text)
    if run.stop_reason not in RUNS_CALLS:
        return ending(attrs.evolve(run, calls=()))
    if run.calls_total > limits.max_calls:
        return _fail("limit", f"The run asked for more than its {limits.max_calls} tool calls.", run.text)
    if run.failures >= limits.max_consecutive_failures:
        return _fail("dependency_failed", f"{run.failures} tool calls failed in a row.", run.text)
    if limits.on_failed_write == "end" and any(_failed_write(call) for call in run.calls):
        return _fail("dependency_failed", "A write failed.", run.text)
    return None


def _failed_write(call: CallState) -> bool:
    return call.kind == "write" and call.result is not None and call.result.status == "failed"


def _fail(code: Code, message: str, text: str = "", *, recoverable: bool = False) -> Finish:
    return Finish("error", Failure("error", message, code, recoverable), text)
