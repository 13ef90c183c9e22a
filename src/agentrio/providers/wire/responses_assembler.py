"""A Responses answer from its bytes: deltas on the way, the whole response at the end. No I/O.

What real servers do, and is stood here: items told apart by ``output_index``, by id where there is none (llama.cpp),
or by their order; ids that change from event to event (Copilot); ``[DONE]``, keepalives, events without a name or a
``sequence_number``; a done item that differs from its deltas, and counts; items that are only in the last event; status
``complete``; an ``error`` event before ``response.failed``.

Of encrypted reasoning there are two versions: OpenAI and Azure encrypt it anew for ``response.completed``. Taken is the
one of ``response.output_item.done``, always: it is there as well when the response breaks off behind it, and a part
does not change once it was complete. From the last event come only items that were not done by then.

The response has ended with ``response.completed``, ``.incomplete`` or ``.failed``: what is cut before them is a drop,
what is cut after them is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from agentrio.domain.parts import ToolCall
from agentrio.domain.status import StopReason
from agentrio.domain.usage import NO_USAGE, Usage
from agentrio.providers.base import ModelResponse, PartDelta

from .assembling import MAX_PARTS, EventAssembler, WholeBody, endless
from .billing import Bill, CostStyle, tier_context, told_cost
from .common import count, put, string
from .failures import from_frame
from .json import decode, decode_kept, is_cut
from .responses_frames import Frame, Reply, read_frame, read_reply
from .responses_items import Item, MessageItem, ReasoningItem, Slot, new_item
from .sse import MAX_EVENT, Event

PREFIX = "response."
TEXT, REFUSAL = "response.output_text.delta", "response.refusal.delta"
SUMMARY, REASONING = "response.reasoning_summary_text.delta", "response.reasoning_text.delta"
ARGUMENTS, INPUT = "response.function_call_arguments.delta", "response.custom_tool_call_input.delta"
DELTAS = {
    TEXT: "message",
    REFUSAL: "message",
    SUMMARY: "reasoning",
    REASONING: "reasoning",
    ARGUMENTS: "function_call",
    INPUT: "custom_tool_call",
}
"""The deltas that are text of a part, and the type of item that they belong to."""

HEADS = ("response.created", "response.queued", "response.in_progress")
ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

CUT_SHORT: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
"""Reasons of an incomplete response."""


class Assembler(EventAssembler):
    """Of a stream: ``finished`` and ``done`` come together, with its last event. ``cost`` is how costs are told."""

    def __init__(self, max_event: int = MAX_EVENT, cost: CostStyle = "none") -> None:
        super().__init__(max_event)
        self._cost: CostStyle = cost
        self._items: dict[object, Item] = {}  # by index and by id, each as the server told it
        self._order: list[Item] = []
        self._open: dict[str, list[Item]] = {}  # by type, those that are not done last
        self._slots: list[Slot] = []  # in the order of the parts
        self._usage = NO_USAGE
        self._bill = Bill()
        self._stop: StopReason | None = None
        self._raw_stop: str | None = None
        self._model = ""
        self._id = ""

    def response(self) -> ModelResponse:
        """What has arrived so far; complete once ``finished``."""
        if self.finished:
            parts = tuple(slot.finished() for slot in self._slots)
        else:
            parts = tuple(part for slot in self._slots if (part := slot.partial()) is not None)
        return ModelResponse(parts, self._stop, self._raw_stop, self._usage, self._model, self._id)

    def bill(self) -> Bill:
        """What was told of the cost: nothing before the last event."""
        return self._bill

    def _read(self, events: list[Event], out: list[PartDelta]) -> None:
        items = self._items
        append = out.append
        for name, data in events:
            frame = read_frame(name, data)
            if frame is None:
                self._pass_over(data)
                continue
            if self.finished:
                continue
            delta = frame.delta
            if type(delta) is str and frame.type in DELTAS:  # nearly every event: no call more than needed
                item = items.get(frame.output_index) or self._find(frame)
                if type(item) is MessageItem:
                    index = frame.content_index or 0
                    slot = item.slots.get(index) or self._slot_of(item, index)
                else:
                    slot = item.slots[0]
                    if slot.kind == "raw":  # an item that is kept as it comes: a text is none of its
                        continue
                    if type(item) is ReasoningItem:
                        delta = item.seam((frame.type, frame.summary_index, frame.content_index)) + delta
                more = slot.add(delta) if type(frame) is Frame else slot.add_unmended(delta)
                if more is not None:
                    append(more)
            else:
                self._other(frame, data, out)

    def _find(self, frame: Frame) -> Item:
        """The item that a delta belongs to; one that was never added begins with it."""
        kind = DELTAS[frame.type]
        item = self._match(frame.output_index, frame.item_id or "", kind)
        return item or self._add(frame.output_index, b"", {"type": kind, "id": frame.item_id or ""})

    def _match(self, index: int | None, id: str, kind: str) -> Item | None:
        """By index, by id, and where both say nothing, the last one of its type that is still open."""
        item = self._items.get(index) or self._items.get(id)
        if item is not None:
            return item
        open = self._open.get(kind, [])
        while open and open[-1].done:
            open.pop()
        return open[-1] if open else None

    def _add(self, index: int | None, json: bytes, fields: dict[str, Any]) -> Item:
        if len(self._order) >= MAX_PARTS:
            raise endless()
        item = new_item(json, fields)
        self._order.append(item)
        self._open.setdefault(item.type, []).append(item)
        for name in (index, item.id):
            if name is not None and name != "":
                self._items[name] = item
        if type(item) is not MessageItem:  # its texts become parts when they begin
            self._slot_of(item, 0)
        return item

    def _slot_of(self, item: Item, index: int) -> Slot:
        slot = item.slots.get(index)
        if slot is None:
            if len(self._slots) >= MAX_PARTS:
                raise endless()
            slot = item.open(index, len(self._slots))
            self._slots.append(slot)
        return slot

    def _other(self, frame: Frame, data: bytes, out: list[PartDelta]) -> None:
        kind = frame.type
        if kind.startswith(PREFIX) and kind not in HEADS:
            self.idle = False
        if kind == "response.output_item.added":
            self._added(frame)
        elif kind == "response.output_item.done":
            self._done(frame, out)
        elif kind in HEADS:
            self._head(read_reply(frame.response))
        elif kind in ENDS:
            reply = read_reply(frame.response)
            self.end(reply, reply.status or kind.removeprefix(PREFIX), out)
        elif kind == "error":
            raise from_frame(decode(data), begun=bool(self._order))

    def _added(self, frame: Frame) -> None:
        """An item begins. One that comes again at its place and under its id, before it was done, is no new one."""
        fields, json = decode_kept(bytes(frame.item))
        if not isinstance(fields, dict):
            return
        index, known = frame.output_index, self._items.get(string(fields.get("id")))
        if known is None or known.done or (index is not None and self._items.get(index) is not known):
            self._add(index, json, fields)

    def _done(self, frame: Frame, out: list[PartDelta]) -> None:
        """An item is complete; it may never have been added. One that is told again says nothing new."""
        fields, json = decode_kept(bytes(frame.item))
        if not isinstance(fields, dict):
            return
        id = string(fields.get("id"))
        item = self._match(frame.output_index, id, string(fields.get("type")))
        if item is None or (item.done and id and id != item.id):
            item = self._add(frame.output_index, json, fields)
        if not item.done:
            self._finish(item, json, fields, out)

    def _finish(self, item: Item, json: bytes, fields: dict[str, Any], out: list[PartDelta]) -> None:
        item.finish(json, fields)
        for index, text in item.texts().items():
            put(self._slot_of(item, index).settle(text), out)

    def _head(self, reply: Reply) -> None:
        self._id = reply.id or self._id
        self._model = reply.model or self._model

    def end(self, reply: Reply, status: str, out: list[PartDelta]) -> None:
        """The whole response, as its last event or as a body.

        Raises:
            ProviderError: it failed, or was cancelled.
        """
        self._head(reply)
        self._usage = usage_of(reply.usage)
        told = reply.usage if isinstance(reply.usage, Mapping) else {}
        self._bill = Bill(told_cost(told, self._cost), context=tier_context(reply.service_tier))
        if status in ("failed", "cancelled"):
            raise from_frame({"error": reply.error or f"the response is {status}"}, begun=bool(self._order))
        self._complete(reply.output or [], out)
        details = reply.incomplete_details
        reason = string(details.get("reason")) if isinstance(details, Mapping) else ""
        self._raw_stop = reason or status
        self._stop = CUT_SHORT.get(reason, "unknown") if status == "incomplete" else self._how_it_ended()
        self.finished = self.done = True

    def _complete(self, output: list[Raw], out: list[PartDelta]) -> None:
        """Items that are only in the last event, or that were not done by then."""
        streamed = bool(self._order)
        for index, raw in enumerate(output):
            fields, json = decode_kept(bytes(raw))
            if not isinstance(fields, dict):
                continue
            if not streamed:
                self._finish(self._add(index, json, fields), json, fields, out)
                continue
            kind, id = string(fields.get("type")), string(fields.get("id"))
            item = self._match(index, id, kind)
            if item is not None and not item.done and item.type == kind:
                self._finish(item, json, fields, out)

    def _how_it_ended(self) -> StopReason:
        calls = [part for part in (slot.finished() for slot in self._slots) if isinstance(part, ToolCall)]
        if calls:  # llama.cpp says completed although its limit has cut the arguments
            cut = calls[-1].arguments is None and is_cut(calls[-1].arguments_json)
            return "max_tokens" if cut else "tool_calls"
        return "refusal" if any(item.refuses() for item in self._order) else "end"


class BodyAssembler(WholeBody, Assembler):
    """Of an answer that is one body."""

    def _read_body(self, found: dict[str, Any], out: list[PartDelta]) -> None:
        if "output" not in found and found.get("error"):
            raise from_frame(found, begun=False)
        reply = read_reply(Raw(bytes(self._body)))  # from the bytes: items are kept as they came
        if reply.status in ("queued", "in_progress"):
            raise self._unfit(f"it is {reply.status}")
        if reply.output is None and not reply.error:
            raise self._unfit("it has no output")
        self.end(reply, reply.status or "completed", out)


def usage_of(found: Any) -> Usage:
    """Tokens: here ``input_tokens`` has the cached ones in it, and ``output_tokens`` the reasoning."""
    if not isinstance(found, Mapping):
        return NO_USAGE
    inputs, outputs = found.get("input_tokens_details"), found.get("output_tokens_details")
    prompt, output = count(found.get("input_tokens")), count(found.get("output_tokens"))
    read = min(prompt, _detail(inputs, "cached_tokens"))
    written = min(prompt - read, _detail(inputs, "cache_write_tokens"))
    return Usage(prompt - read - written, output, read, written, min(output, _detail(outputs, "reasoning_tokens")))


def _detail(details: Any, key: str) -> int:
    return count(details.get(key)) if isinstance(details, Mapping) else 0
