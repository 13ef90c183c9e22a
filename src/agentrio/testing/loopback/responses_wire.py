"""The Responses wire: replies into events of a stream or into one JSON answer. Pure.

Written from the published rules (https://platform.openai.com/docs/api-reference/responses-streaming): the response is
created, then each item of its output is added, grows by deltas and is done, then the response is completed, or
incomplete where a limit cut it. Each event has its number and, within an item, the item's id and index. Reasoning is
told as a summary, and encrypted where the request asks for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count, cycle

import msgspec

from agentrio.testing.loopback.openai_wire import CREATED, arguments_of, calls_of, error_body, error_of, prompt_tokens
from agentrio.testing.loopback.script import FRAGMENT, Call, ModelReply, Received, WireUsage

__all__ = ["body", "endless", "error_body", "error_frame", "frames"]

ENCRYPTED = "reasoning.encrypted_content"
INCOMPLETE = {
    "max_tokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "content_filter": "content_filter",
}
"""The replies' stop reasons that leave a response incomplete, in this wire's words."""

NUMBER = "\x7f"  # stands for the request's number in ids: events are encoded once for all requests
MARK = NUMBER.encode()

Fields = dict[str, object]
_encode = msgspec.json.encode


def frames(reply: ModelReply, request: Received) -> Sequence[bytes]:
    """Return all events of the stream, each with its blank line."""
    number = f"{request.number:06d}".encode()
    inner = [frame.replace(MARK, number, ids) for frame, ids in _inner(reply, _wants_encrypted(request))]
    start = _response(request) | {"status": "in_progress", "output": [], "usage": None}
    whole = _whole(reply, request)
    last = "incomplete" if whole["status"] == "incomplete" else "completed"
    return (
        _event("response.created", 0, response=start),
        _event("response.in_progress", 1, response=start),
        *inner,
        _event(f"response.{last}", len(inner) + 2, response=whole),
    )


def endless(reply: ModelReply, request: Received) -> Iterator[bytes]:
    """Yield the events of a text whose deltas are repeated for ever; from there on the numbers stand still."""
    start = _response(request) | {"status": "in_progress", "output": [], "usage": None}
    yield _event("response.created", 0, response=start)
    item = {"id": "msg_endless", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    yield _event("response.output_item.added", 1, output_index=0, item=item)
    place: Fields = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    texts = reply.text or ("more ",)
    yield from cycle([_event("response.output_text.delta", 2, **place, delta=text) for text in texts])


def body(reply: ModelReply, request: Received) -> bytes:
    """Return the answer to a request without ``"stream": true``."""
    return _encode(_whole(reply, request))


def error_frame(error_type: str, message: str) -> bytes:
    """Return an error within a stream whose status was 200."""
    return b"event: error\ndata: %b\n\n" % _encode(
        {"type": "error", "error": error_of(error_type, error_type, message)}
    )


def _wants_encrypted(request: Received) -> bool:
    include = request.body.get("include") if isinstance(request.body, dict) else None
    return isinstance(include, list) and ENCRYPTED in include


def _response(request: Received) -> Fields:
    asked = request.body if isinstance(request.body, dict) else {}
    return {
        "id": f"resp_{request.number:06d}",
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "model": request.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": asked.get("store", True),
        "temperature": asked.get("temperature", 1.0),
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        "metadata": {},
    }


def _whole(reply: ModelReply, request: Received) -> Fields:
    items = [_filled(item, f"{request.number:06d}") for item in _items(reply, _wants_encrypted(request))]
    told = _response(request) | {"output": items, "usage": _usage(reply.usage)}
    reason = INCOMPLETE.get(reply.stop_reason)
    return told if reason is None else told | {"status": "incomplete", "incomplete_details": {"reason": reason}}


def _filled(item: Fields, number: str) -> Fields:
    ids = {key: str(item[key]).replace(NUMBER, number) for key in ("id", "call_id") if key in item}
    return item | ids


def _items(reply: ModelReply, encrypted: bool) -> list[Fields]:
    items: list[Fields] = []
    if reply.thinking is not None:
        summary = [{"type": "summary_text", "text": "".join(reply.thinking)}]
        item: Fields = {"id": f"rs_{NUMBER}", "type": "reasoning", "summary": summary}
        items.append(item | ({"encrypted_content": reply.signature} if encrypted else {}))
    if reply.text:
        content = _content(reply, "".join(reply.text))
        items.append(_message(len(items), "completed", [content]))
    for index, call in enumerate(calls_of(reply)):
        items.append(_call(call, index, len(items), "completed", arguments_of(call)))
    return items


def _content(reply: ModelReply, text: str) -> Fields:
    if reply.stop_reason == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(index: int, status: str, content: list[Fields]) -> Fields:
    item: Fields = {"id": f"msg_{NUMBER}_{index}", "type": "message", "role": "assistant"}
    return item | {"status": status, "content": content}


def _call(call: Call, number: int, index: int, status: str, arguments: str) -> Fields:
    id = f"call_{NUMBER}_{number}" if call.id is None else call.id
    item: Fields = {"id": f"fc_{NUMBER}_{index}", "type": "function_call", "call_id": id, "name": call.name}
    return item | {"status": status, "arguments": arguments}


@lru_cache(maxsize=32)  # replies are equal only to themselves; a long one is encoded once for all requests
def _inner(reply: ModelReply, encrypted: bool) -> tuple[tuple[bytes, int], ...]:
    """The events between the response's head and its end, each with how many ids lack the request's number.

    In each event the ids stand before all that the model says.
    """
    numbers = count(2)
    out: list[tuple[bytes, int]] = []
    for index, item in enumerate(_items(reply, encrypted)):
        start = item | {key: [] for key in ("summary", "content") if key in item}
        if "status" in item:
            start["status"] = "in_progress"
        if "arguments" in item:
            start["arguments"] = ""
        ids = 1 + (NUMBER in str(item.get("call_id")))
        out.append((_event("response.output_item.added", next(numbers), output_index=index, item=start), ids))
        out += [(event, 1) for event in _growth(reply, item, index, numbers)]
        out.append((_event("response.output_item.done", next(numbers), output_index=index, item=item), ids))
    return tuple(out)


def _growth(reply: ModelReply, item: Fields, index: int, numbers: Iterator[int]) -> list[bytes]:
    place: Fields = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            part: Fields = {"type": "summary_text", "text": ""}
            return _part("reasoning_summary", part, place | {"summary_index": 0}, reply.thinking or (), numbers)
        case "message":
            part = _content(reply, "")
            return _part(str(part["type"]), part, place | {"content_index": 0}, reply.text, numbers)
        case _:
            return _call_growth(item, place, numbers)


def _call_growth(item: Fields, place: Fields, numbers: Iterator[int]) -> list[bytes]:
    text = str(item["arguments"])
    pieces = [text[start : start + FRAGMENT] for start in range(0, len(text), FRAGMENT)]
    out = [_event("response.function_call_arguments.delta", next(numbers), **place, delta=piece) for piece in pieces]
    return [*out, _event("response.function_call_arguments.done", next(numbers), **place, arguments=text)]


def _part(kind: str, part: Fields, place: Fields, deltas: Sequence[str], numbers: Iterator[int]) -> list[bytes]:
    """A part of a message, or of a summary."""
    around = "reasoning_summary_part" if kind == "reasoning_summary" else "content_part"
    grows = "reasoning_summary_text" if kind == "reasoning_summary" else kind
    key = "refusal" if kind == "refusal" else "text"
    whole = "".join(deltas)
    out = [_event(f"response.{around}.added", next(numbers), **place, part=part)]
    out += [_event(f"response.{grows}.delta", next(numbers), **place, delta=delta) for delta in deltas]
    out.append(_event(f"response.{grows}.done", next(numbers), **place, **{key: whole}))
    return [*out, _event(f"response.{around}.done", next(numbers), **place, part=part | {key: whole})]


def _event(kind: str, number: int, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode({"type": kind, "sequence_number": number, **fields}))


def _usage(usage: WireUsage) -> Fields:
    prompt = prompt_tokens(usage)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + usage.output,
    }
