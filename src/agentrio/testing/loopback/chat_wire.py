"""The Chat Completions wire: replies into chunks of a stream or into one JSON answer. Pure.

Written from the published rules (https://platform.openai.com/docs/api-reference/chat-streaming): a first chunk with the
role, chunks with deltas, one with the ``finish_reason``, where the request asks for it one with the usage and no
choices, ``[DONE]``. A call's first delta has its id and name, the others pieces of its arguments. Thinking is given as
``reasoning_content``, as DeepSeek documents it; OpenAI itself gives none on this wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import cycle

import msgspec

from agentrio.testing.loopback.openai_wire import (
    CREATED,
    arguments_of,
    call_id,
    calls_of,
    error_body,
    error_of,
    prompt_tokens,
)
from agentrio.testing.loopback.script import FRAGMENT, ModelReply, Received, WireUsage

__all__ = ["body", "endless", "error_body", "error_frame", "frames"]

DONE = b"data: [DONE]\n\n"
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "refusal": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}
"""The replies' stop reasons in this wire's words; others are sent as they are."""

_encode = msgspec.json.encode


def frames(reply: ModelReply, request: Received) -> Sequence[bytes]:
    """Return all chunks of the stream, each with its blank line, and the ``[DONE]``."""
    opening = _head(request)
    out = [_chunk(opening, {"role": "assistant", "content": ""})]
    out += [opening + frame for frame in _deltas(reply)]
    for index, call in enumerate(calls_of(reply)):
        out += _call(opening, index, call_id(call, request, index), call.name, arguments_of(call))
    out.append(_chunk(opening, {}, FINISH_REASONS.get(reply.stop_reason, reply.stop_reason)))
    if _wants_usage(request):
        out.append(opening + b'"choices":[],"usage":%b}\n\n' % _encode(_usage(reply.usage)))
    return (*out, DONE)


def endless(reply: ModelReply, request: Received) -> Iterator[bytes]:
    """Yield the chunks of a text whose deltas are repeated for ever."""
    opening = _head(request)
    yield _chunk(opening, {"role": "assistant", "content": ""})
    yield from cycle(opening + _delta("content", text) for text in reply.text or ("more ",))


def body(reply: ModelReply, request: Received) -> bytes:
    """Return the answer to a request without ``"stream": true``."""
    key = "refusal" if reply.stop_reason == "refusal" else "content"
    message: dict[str, object] = {"role": "assistant", "content": None, "refusal": None}
    if reply.text:
        message[key] = "".join(reply.text)
    if reply.thinking is not None:
        message["reasoning_content"] = "".join(reply.thinking)
    calls = [
        _whole_call(call_id(call, request, index), call.name, arguments_of(call))
        for index, call in enumerate(calls_of(reply))
    ]
    if calls:
        message["tool_calls"] = calls
    finish = FINISH_REASONS.get(reply.stop_reason, reply.stop_reason)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    whole = {**_answer(request), "object": "chat.completion", "choices": [choice], "usage": _usage(reply.usage)}
    return _encode(whole)


def error_frame(error_type: str, message: str) -> bytes:
    """Return an error within a stream whose status was 200."""
    return b"data: %b\n\n" % _encode({"error": error_of(error_type, error_type, message)})


def _answer(request: Received) -> dict[str, object]:
    return {"id": f"chatcmpl-{request.number:06d}", "created": CREATED, "model": request.model}


def _head(request: Received) -> bytes:
    """All that is the same in each chunk of a stream."""
    told = _answer(request) | {"object": "chat.completion.chunk", "service_tier": "default"}
    return b"data: %b," % _encode(told)[:-1]


def _chunk(opening: bytes, delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return opening + b'"choices":[%b]}\n\n' % _encode(choice)


@lru_cache(maxsize=32)  # replies are equal only to themselves; a long one is encoded once for all requests
def _deltas(reply: ModelReply) -> tuple[bytes, ...]:
    text = "refusal" if reply.stop_reason == "refusal" else "content"
    thinking = [_delta("reasoning_content", delta) for delta in reply.thinking or ()]
    return (*thinking, *(_delta(text, delta) for delta in reply.text))


def _delta(key: str, text: str) -> bytes:
    choice = b'{"index":0,"delta":{"%b":%b},"logprobs":null,"finish_reason":null}' % (key.encode(), _encode(text))
    return b'"choices":[%b]}\n\n' % choice


def _call(opening: bytes, index: int, id: str, name: str, arguments: str) -> Iterator[bytes]:
    yield _chunk(opening, {"tool_calls": [{"index": index, **_whole_call(id, name, "")}]})
    for start in range(0, len(arguments), FRAGMENT):
        piece = {"index": index, "function": {"arguments": arguments[start : start + FRAGMENT]}}
        yield _chunk(opening, {"tool_calls": [piece]})


def _whole_call(id: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _wants_usage(request: Received) -> bool:
    options = request.body.get("stream_options") if isinstance(request.body, dict) else None
    return isinstance(options, dict) and options.get("include_usage") is True


def _usage(usage: WireUsage) -> dict[str, object]:
    prompt = prompt_tokens(usage)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
