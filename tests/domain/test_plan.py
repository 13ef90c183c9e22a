"""The next step follows from the state alone: one row for each state that a run can be in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs
import pytest

from agentrio.domain.limits import Limits
from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import CallError, CallStatus, Text, ToolCall, ToolResult
from agentrio.domain.plan import (
    CallModel,
    CloseRound,
    Finish,
    Inject,
    ProposeCalls,
    Reconcile,
    RunCalls,
    SkipCalls,
    Step,
    plan,
)
from agentrio.domain.session import Queued, Session
from agentrio.domain.state import CallState, RunState, SessionState
from agentrio.domain.status import Failure, RunResult, Suspension
from agentrio.domain.usage import Usage

STEER = Queued(user_message("q1", "wait"), "steering")
INTERRUPT = Queued(user_message("q2", "stop that"), "steering", "interrupt")
FOLLOW = Queued(user_message("q3", "and then?"), "follow_up")
PROMPT = user_message("p", "hi")
ANSWER = Message("a", "assistant", (Text("It rains."),))


def state(*, messages: tuple[Message, ...] = (PROMPT,), queue: tuple[Queued, ...] = (), **run: Any) -> SessionState:
    """A session with an open run."""
    run.setdefault("limits", Limits())
    return SessionState(Session("s", messages=messages, queue=queue), RunState("s-r1", **run))


def a_call(id: str, kind: Any = "read", status: CallStatus | None = None, **more: Any) -> CallState:
    """A call; with a status it is finished."""
    result = None if status is None else ToolResult(id, "t", status)
    return CallState(ToolCall(id, "", "t", "{}"), kind, result=result, **more)


def in_round(*calls: CallState, stop_reason: Any = "tool_calls", **more: Any) -> SessionState:
    """A run whose open round has its response."""
    return state(rounds=1, round_open=True, responded=True, calls=calls, stop_reason=stop_reason, **more)


def after_round(stop_reason: Any, *calls: CallState, text: str = "", **more: Any) -> SessionState:
    """A run whose latest round is closed."""
    return state(rounds=1, responded=True, calls=calls, stop_reason=stop_reason, text=text, **more)


READ, READ2 = a_call("1"), a_call("2")
WRITE = a_call("3", "write")
FAILED_WRITE = a_call("0", "write", "failed")
NEW = a_call("4", None)

WITHIN: list[tuple[str, SessionState, Step]] = [
    ("a round without a response", state(rounds=3, round_open=True), CallModel(3)),
    ("calls not yet checked", in_round(READ, NEW), ProposeCalls((NEW,))),
    ("no calls", in_round(stop_reason="end"), CloseRound()),
    ("all calls answered", in_round(a_call("1", status="succeeded")), CloseRound()),
    ("reads run together", in_round(READ, READ2), RunCalls((READ, READ2))),
    ("a write is a barrier", in_round(READ, WRITE, READ2), RunCalls((READ,))),
    ("a write runs alone", in_round(WRITE, READ), RunCalls((WRITE,))),
    ("what has a result is not run again", in_round(a_call("0", status="failed"), READ), RunCalls((READ,))),
    ("a started read runs again", in_round(a_call("1", started=True)), RunCalls((a_call("1", started=True),))),
    (
        "a started write never does",
        in_round(attrs.evolve(WRITE, started=True), READ),
        Reconcile((attrs.evolve(WRITE, started=True),)),
    ),
    (
        "a failed write, and others may go on",
        in_round(FAILED_WRITE, READ, limits=Limits(on_failed_write="continue")),
        RunCalls((READ,)),
    ),
    (
        "a segment under way is worked to its end, however many failed",
        in_round(a_call("0", status="failed", started=True), READ, WRITE, failures=3),
        RunCalls((READ,)),
    ),
    (
        "a started read beside failed ones",
        in_round(a_call("0", status="failed"), READ, a_call("5", started=True), failures=3),
        RunCalls((READ, a_call("5", started=True))),
    ),
    ("steering that may wait", in_round(READ, queue=(STEER,)), RunCalls((READ,))),
]

SKIPPED = [
    ("a response that was cut", in_round(READ, stop_reason="max_tokens"), "was not complete"),
    ("a refusal", in_round(READ, stop_reason="refusal"), "was not complete"),
    ("no stop reason", in_round(READ, stop_reason=None), "was not complete"),
    ("too many calls", in_round(READ, READ2, calls_total=17), "may make 16 tool calls"),
    ("too many failures", in_round(READ, failures=3), "too many calls failed in a row"),
    (
        "too many failures before a write",
        in_round(a_call("0", status="failed", started=True), WRITE, READ, failures=3),
        "too many calls failed in a row",
    ),
    ("an interruption", in_round(READ, queue=(STEER, INTERRUPT)), "Skipped due to queued user message."),
    ("a failed write", in_round(FAILED_WRITE, READ), "a write before it failed"),
    ("a skipped write", in_round(a_call("0", "write", "skipped"), READ), "a write before it failed"),
    ("a failed write that ends", in_round(FAILED_WRITE, READ, limits=Limits(on_failed_write="end")), "a write before"),
]

TOOLS = a_call("1", status="succeeded")

TAKEN_BACK = Finish("cancelled", reason="nothing was left to answer: what was queued has been taken back")

BETWEEN: list[tuple[str, SessionState, Step]] = [
    ("a new run", state(), CallModel(1)),
    ("a new run with steering waiting", state(queue=(FOLLOW, STEER)), Inject(STEER)),
    ("one message a round", state(queue=(STEER,), injected=True), CallModel(1)),
    ("a follow-up waits for the end", state(queue=(FOLLOW,)), CallModel(1)),
    ("going on after a finished answer", state(messages=(PROMPT, ANSWER), queue=(FOLLOW,)), Inject(FOLLOW)),
    (
        "going on after a cut answer",
        state(messages=(attrs.evolve(ANSWER, interrupted=True),), queue=(FOLLOW,)),
        CallModel(1),
    ),
    ("going on with an empty history", state(messages=(), queue=(FOLLOW,)), Inject(FOLLOW)),
    ("going on after a finished answer with nothing", state(messages=(PROMPT, ANSWER)), TAKEN_BACK),
    ("going on with nothing at all", state(messages=()), TAKEN_BACK),
    ("after tools", after_round("tool_calls", TOOLS), CallModel(2)),
    ("after tools with steering", after_round("tool_calls", TOOLS, queue=(STEER,)), Inject(STEER)),
    ("after tools a follow-up still waits", after_round("tool_calls", TOOLS, queue=(FOLLOW,)), CallModel(2)),
    ("a pause", after_round("pause", text="so"), CallModel(2)),
    ("an answer", after_round("end", text="It rains."), Finish("succeeded", None, "It rains.")),
    ("an answer at a stop sequence", after_round("stop_sequence", text="x"), Finish("succeeded", None, "x")),
    ("an answer with a follow-up", after_round("end", text="x", queue=(FOLLOW,)), Inject(FOLLOW)),
    ("an answer with steering", after_round("end", text="x", queue=(FOLLOW, STEER)), Inject(STEER)),
    ("what was injected is answered", after_round("end", text="x", injected=True, queue=(FOLLOW,)), CallModel(2)),
    ("a failed write, and others may go on", after_round("tool_calls", FAILED_WRITE), CallModel(2)),
]

FAILURE = Failure("not_provisioned", "ANTHROPIC_API_KEY is not set.", "not_provisioned")


def ends(name: str, at: SessionState, status: str, code: str | None, says: str) -> Any:
    """A row of ``ENDINGS``."""
    return pytest.param(at, status, code, says, id=name)


ENDINGS = [
    ends("cut", after_round("max_tokens", text="so"), "error", "truncated", "cut at the token limit"),
    ends("cut, with calls", after_round("max_tokens", a_call("1", status="skipped")), "error", "truncated", "cut"),
    ends("refused", after_round("refusal"), "refused", None, "declined"),
    ends("refused, with calls", after_round("refusal", a_call("1", status="skipped")), "refused", None, "declined"),
    ends("filtered", after_round("content_filter"), "blocked", "content_filter", "content filter"),
    ends("an empty answer", after_round("end"), "error", "invalid_response", "empty answer"),
    ends("calls promised", after_round("tool_calls"), "error", "invalid_response", "not known"),
    ends("unknown", after_round("unknown", raw_stop_reason="elvish"), "error", "invalid_response", "'elvish'"),
    ends("a failed model call", after_round(None, failure=FAILURE), "not_provisioned", "not_provisioned", "ANTHROPIC"),
    ends("a failure keeps the queue", after_round("refusal", queue=(STEER,)), "refused", None, "declined"),
    ends("too many calls", after_round("tool_calls", TOOLS, calls_total=17), "error", "limit", "16 tool calls"),
    ends("failures", after_round("tool_calls", TOOLS, failures=3), "error", "dependency_failed", "3 tool calls failed"),
    ends(
        "a failed write",
        after_round("tool_calls", FAILED_WRITE, limits=Limits(on_failed_write="end")),
        "error",
        "dependency_failed",
        "A write failed",
    ),
    ends("too many rounds", state(rounds=8, stop_reason="pause", text="so"), "error", "max_rounds", "8 rounds"),
    ends(
        "too many rounds for what joined",
        after_round("end", injected=True, limits=Limits(max_rounds=1)),
        "error",
        "max_rounds",
        "1 rounds",
    ),
    ends("no rounds at all", state(limits=Limits(max_rounds=0)), "error", "max_rounds", "0 rounds"),
    ends(
        "too many tokens",
        state(limits=Limits(max_total_tokens=10), usage=Usage(output=4), discarded=Usage(input=6), text="so"),
        "error",
        "limit",
        "10 tokens",
    ),
    ends(
        "too much money",
        state(limits=Limits(max_cost=Decimal(1)), usage=Usage(cost=Decimal("1.5")), text="so"),
        "error",
        "limit",
        "1 US dollars",
    ),
]


@pytest.mark.parametrize(("at", "step"), [row[1:] for row in WITHIN], ids=[row[0] for row in WITHIN])
def test_within_a_round_calls_are_checked_run_and_closed_in_order(at: SessionState, step: Step) -> None:
    """A resumed run asks the same question of the same state."""
    assert plan(at) == step


@pytest.mark.parametrize(("at", "says"), [row[1:] for row in SKIPPED], ids=[row[0] for row in SKIPPED])
def test_calls_that_must_not_run_are_answered_with_the_reason(at: SessionState, says: str) -> None:
    """Each call gets a result, also the one that never starts, and the model reads why."""
    step = plan(at)

    assert isinstance(step, SkipCalls)
    assert says in step.why
    assert all(call.result is None for call in step.calls)


@pytest.mark.parametrize(("at", "step"), [row[1:] for row in BETWEEN], ids=[row[0] for row in BETWEEN])
def test_between_rounds_the_queue_is_served_before_the_model_and_the_end(at: SessionState, step: Step) -> None:
    """Its own prompt, then steering, then follow-ups; one a round."""
    assert plan(at) == step


@pytest.mark.parametrize(("at", "status", "code", "says"), ENDINGS)
def test_a_run_ends_with_status_code_and_reason(at: SessionState, status: str, code: str | None, says: str) -> None:
    """Six statuses, and a code that programs can read."""
    step = plan(at)

    assert isinstance(step, Finish)
    assert step.failure is not None
    assert (step.status, step.failure.status, step.failure.code) == (status, status, code)
    assert says in step.failure.message
    assert step.text == (at.run.text if at.run is not None else None)


def test_a_cost_below_the_limit_ends_nothing() -> None:
    """And before the first response there is none."""
    limits = Limits(max_cost=1, max_total_tokens=100)
    usage = Usage(input=5, cost=Decimal("0.5"))

    assert plan(state(limits=limits)) == CallModel(1)
    assert plan(after_round("pause", limits=limits, usage=usage, round_usage=usage)) == CallModel(2)


@pytest.mark.parametrize("lost", ["usage", "discarded"])
@pytest.mark.parametrize("stop_reason", ["pause", "end"])
def test_a_limit_of_money_is_never_passed_over_where_the_price_is_not_known(stop_reason: str, lost: str) -> None:
    """Also where the run has its answer, which is kept: with a longer run the limit would not have held."""
    known, unknown = Usage(input=5, cost=Decimal("0.5")), Usage(input=5)
    used = {"usage": known, "discarded": known} | {lost: unknown}
    step = plan(after_round(stop_reason, limits=Limits(max_cost=1), model="m", text="Rain.", round_usage=known, **used))

    assert isinstance(step, Finish)
    assert step.failure is not None
    assert (step.status, step.failure.code, step.text) == ("error", "limit", "Rain.")
    assert "Limits.max_cost can't be held: what m costs is not known. Give the model prices=" in step.failure.message


def test_a_run_that_failed_is_told_its_own_reason_not_that_of_a_limit() -> None:
    """The first thing that went wrong."""
    failure = Failure("error", "It broke.", "dependency_failed")
    at = after_round(None, limits=Limits(max_cost=1), usage=Usage(1), failure=failure)
    assert plan(at) == Finish("error", failure, "")


@pytest.mark.parametrize("name", ["max_total_tokens", "max_cost"])
def test_a_run_whose_server_tells_no_usage_does_not_go_on_uncounted(name: str) -> None:
    """It ends by its limit; but an answer that is there is an answer."""
    most: dict[str, Any] = {name: 100}
    limits = Limits(**most)
    step = plan(after_round("pause", limits=limits))

    assert isinstance(step, Finish)
    assert step.failure is not None
    assert (step.status, step.failure.code) == ("error", "limit")
    assert f"Limits.{name} can't be held: the server of the model does not tell" in step.failure.message
    assert plan(after_round("end", limits=limits, text="Rain.")) == Finish("succeeded", None, "Rain.")
    told = Usage(cost=Decimal("0.1"))
    assert plan(after_round("pause", limits=limits, usage=told, round_usage=told)) == CallModel(2)


def test_money_that_attempts_in_vain_had_cost_counts_too() -> None:
    """They were paid for."""
    half = Usage(input=5, cost=Decimal("0.5"))
    step = plan(after_round("pause", limits=Limits(max_cost=1), usage=half, discarded=half, round_usage=half))
    assert isinstance(step, Finish)
    assert step.failure is not None
    assert "1 US dollars" in step.failure.message


def test_no_open_run_has_no_next_step() -> None:
    """None, an ended one, and one that rests until someone decides."""
    run = RunState("s-r1", Limits())

    assert plan(SessionState(Session("s"))) is None
    assert plan(SessionState(Session("s"), attrs.evolve(run, result=RunResult("s-r1", "succeeded")))) is None
    assert plan(SessionState(Session("s"), attrs.evolve(run, suspension=Suspension("s-r1", "detached")))) is None


def test_a_rejected_call_runs_through_its_segment_like_the_others() -> None:
    """A rejected call never blocks the others, and its result keeps its place."""
    rejected = a_call("1", problem=CallError("unknown_tool", "There is no tool called 't'."))

    assert plan(in_round(rejected, READ2)) == RunCalls((rejected, READ2))
