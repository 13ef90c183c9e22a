"""What a stopped run still has to say: its partial text, a result for every call, its end."""

from __future__ import annotations

from typing import assert_never

import trio

from agentrio.domain.events import (
    CallFinished,
    MessageCompleted,
    MessageDiscarded,
    RoundEnded,
    StructuralEvent,
)
from agentrio.domain.messages import Message
from agentrio.domain.parts import File, Image, Part, RawBlock, Text, Thinking, ToolCall, ToolResult
from agentrio.domain.state import CallState
from agentrio.domain.usage import NO_USAGE, Usage

from .bench import Bench
from .call_results import failed, not_begun, stopped
from .model_calls import ModelCalls
from .tool_calls import Item, ToolCalls


async def settle(bench: Bench, models: ModelCalls, calls: ToolCalls, *, why: str) -> None:
    """Close everything that the run has open, innermost first. The caller shields it.

    A running write is waited for, up to the stop grace less a tenth that is kept for the journal; reads get the unwind
    grace.
    """
    await _let_unwind(bench, calls)
    await _close_message(bench, models, why)
    if bench.state.round_open:
        await _close_calls(bench, calls)
        await bench.emitter.emit(round_ended(bench, models.discarded))


async def _let_unwind(bench: Bench, calls: ToolCalls) -> None:
    limits = bench.limits
    running = [item for item in calls.items if item.work is not None and item.result is None]
    if not running:
        return
    for item in running:
        assert item.work is not None
        calls.cancel(item, "stop")
        if item.work.ended is not None:  # it has ended, and took the pool with it: nobody will report it
            calls.abandon(item)
    writing = any(item.call.kind == "write" and item.result is None for item in running)
    most = limits.stop_grace * 0.9  # the rest is kept for the journal, however the two graces are chosen
    grace = most if writing else min(limits.unwind_grace, most)
    with trio.move_on_after(grace):  # noqa: ASYNC912  # where nothing is left to wait for, nothing is to be cancelled
        while any(item.result is None for item in running):
            await calls.changed.park()
    for item in running:
        if item.result is None:
            calls.abandon(item)


async def _close_message(bench: Bench, models: ModelCalls, why: str) -> None:
    opened = models.take_open()
    if opened is None:
        return
    response = opened.stream.response()
    cut = response.stop_reason is None  # a stop may also fall between the last frame and the message's completion
    parts = tuple(part for part in models.numbered(response.parts) if _worth_keeping(part, cut))
    if not any(isinstance(part, (Text, ToolCall, Thinking)) for part in parts):
        bench.hub.tell([MessageDiscarded(bench.origin, bench.seq, opened.id, why)])
        models.discarded += response.usage
        return
    message = Message(opened.id, "assistant", parts, opened.tag, interrupted=cut)
    await bench.emitter.emit(
        MessageCompleted(
            bench.origin, message, response.usage, response.stop_reason, response.raw_stop_reason, models.discarded
        )
    )


def _worth_keeping(part: Part, cut: bool) -> bool:
    match part:
        case Text(text=text):
            return bool(text)
        case Thinking(text=text, signature=signature):
            return bool(text or signature)
        case ToolCall(arguments=arguments):
            return arguments is not None or not cut  # of a complete response it is no fragment, it is wrong
        case RawBlock():
            return True
        case ToolResult() | Image() | File():  # no model writes one
            return False
        case _:
            assert_never(part)


async def _close_calls(bench: Bench, calls: ToolCalls) -> None:
    fresh = tuple(call for call in bench.state.calls if call.kind is None)
    await calls.propose(fresh)
    live = {item.call.call.id: item for item in calls.items}
    for call in bench.state.calls:
        if call.result is None:
            await bench.emitter.emit(*_events(bench, calls, call, live.get(call.call.id)))
    calls.items = []


def _events(bench: Bench, calls: ToolCalls, call: CallState, item: Item | None) -> list[StructuralEvent]:
    if item is not None and item.result is not None:
        return calls.events(item)
    if call.started and (item is None or item.call.started):  # by a process that is gone: ours have their result
        return [CallFinished(bench.origin, stopped(call, "stop"))]
    result = not_begun(call.call) if call.problem is None else failed(call.call, call.problem)
    return [CallFinished(bench.origin, result)]


def round_ended(bench: Bench, lost: Usage = NO_USAGE) -> RoundEnded:
    """The end of the open round. ``lost`` is what attempts had cost where no response was kept."""
    run = bench.state
    return RoundEnded(
        bench.origin,
        run.rounds,
        run.round_usage if run.responded else NO_USAGE,
        run.stop_reason,
        run.raw_stop_reason,
        run.round_discarded if run.responded else lost,
        stop_detail=run.stop_detail,
    )
