"""What a call came to: the result that the model is told of a work that returned, raised, or was cut off."""

from __future__ import annotations

from typing import Any

import attrs

from agentrio.agent.results import (
    GENERIC_FAILURE,
    ResultError,
    advice,
    check_images,
    failure,
    shorten,
    to_parts,
    truncate,
)
from agentrio.domain.limits import Limits
from agentrio.domain.parts import CallCategory, CallError, ToolCall, ToolResult
from agentrio.domain.state import CallState

from .supervise import EXITS, log, their_traceback
from .tool_pool import Why, Work

INTERRUPTED = "Skipped due to queued user message."
MAYBE = " It may have taken effect."


def result_of(call: CallState, work: Work, limits: Limits) -> ToolResult:
    """The result of a call whose work has ended, or is no longer waited for. It raises nothing but exits.

    What a tool returned or raised may have code of its own (a list, a string, an attribute of its making), which runs
    where it is read: whatever that raises fails this call, and not the pool in whose task it is read.
    """
    if work.ended not in ("returned", "raised"):
        return stopped(call, work.why) if work.begun else not_begun(call.call, work.why)
    try:
        result = _returned(call.call, work.value, limits) if work.ended == "returned" else _failed(call, work, limits)
    except EXITS:
        raise
    except BaseException as error:  # noqa: ASYNC103  # nothing is awaited in it: a cancel too is of the tool's making
        log.warning("what tool %r of call %s gave can't be read", call.call.name, call.call.id, exc_info=error)
        result = failed(call.call, failure(ResultError("it can't be read")))
    return _torn(result, work.why) if work.ended == "raised" and work.why and call.kind == "write" else result


def _returned(call: ToolCall, value: Any, limits: Limits) -> ToolResult:
    try:
        parts = to_parts(value)
        check_images(parts, max_bytes=limits.max_image_bytes, max_images=limits.max_images)
    except ResultError as error:
        log.warning("tool %r of call %s returned what can't be sent: %s%s", call.name, call.id, error, advice(value))
        return failed(call, shorten(failure(error), limits.max_output_chars))
    return ToolResult(call.id, call.name, "succeeded", truncate(parts, limits.max_output_chars))


def _failed(call: CallState, work: Work, limits: Limits) -> ToolResult:
    return failed(call.call, shorten(_raised(call.call, work.error), limits.max_output_chars))


def _raised(call: ToolCall, error: Exception | None) -> CallError:
    assert error is not None
    told = failure(error)
    if told.message == GENERIC_FAILURE:
        log.warning("tool %r of call %s failed", call.name, call.id, exc_info=their_traceback(error))
    return told


def failed(call: ToolCall, error: CallError) -> ToolResult:
    """The result of a call that did not do what was asked."""
    statuses: dict[CallCategory, Any] = {"denied": "denied", "skipped": "skipped", "cancelled": "cancelled"}
    return ToolResult(call.id, call.name, statuses.get(error.category, "failed"), error=error)


def _torn(result: ToolResult, why: Why) -> ToolResult:
    """The result of a write that raised once it had been cancelled: both are told.

    What it raised may come of the cancel alone, as the ``OSError`` of a connection that was torn down behind a request
    that has arrived.
    """
    assert result.error is not None
    also = f"{result.error.message} ({_cut_off(why)}{MAYBE})"
    return attrs.evolve(result, error=CallError(result.error.category, also), uncertain=True)


def not_begun(call: ToolCall, why: Why | None = "stop") -> ToolResult:
    """The result of a call whose tool was not entered: it has had no effect, whatever it is."""
    if why == "timeout":
        return failed(call, CallError("timeout", "Not started: no thread was free for it in time."))
    if why == "interrupt":
        return failed(call, CallError("skipped", INTERRUPTED))
    return failed(call, CallError("cancelled", "Not started: the run was stopped."))


def stopped(call: CallState, why: Why | None) -> ToolResult:
    """The result of a call that had begun and was cancelled, or is no longer waited for: of a write, uncertain."""
    uncertain = call.kind == "write"
    tail = MAYBE if uncertain else ""
    if why == "timeout":
        error = CallError("timeout", _cut_off(why) + tail)
    elif why == "interrupt":
        error = CallError("skipped", INTERRUPTED)
    else:
        error = CallError("cancelled", _cut_off(why) + tail)
    return attrs.evolve(failed(call.call, error), uncertain=uncertain)


def _cut_off(why: Why | None) -> str:
    return "The tool took too long and was stopped." if why == "timeout" else "The call was stopped while running."
