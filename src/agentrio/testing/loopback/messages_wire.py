"""The Anthropic Messages wire: replies into server-sent events or into one JSON answer. Pure.

Written from the published rules ("Streaming messages", "Errors" in the API reference): ``message_start``, per content
block ``content_block_start``, deltas and ``content_block_stop``, then ``message_delta`` with the stop reason and the
cumulative usage, ``message_stop``; ``ping`` may come anywhere. A tool call's arguments arrive as fragments of JSON
text, the first of them empty; a thinking block ends with its signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import cycle

import msgspec

from agentrio.testing.loopback.script import FRAGMENT, Call, CallsReply, ModelReply, Received, WireUsage

__all__ = ["body", "endless", "error_body", "error_frame", "frames"]

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}

_encode = msgspec.json.encode


def frames(reply: ModelReply, request: Received) -> Sequence[bytes]:
    """Return all frames of the stream, each with its blank line."""
    return (_opening(reply, request), *_after_opening(reply, _id_seed(reply, request)))


def endless(reply: ModelReply, request: Received) -> Iterator[bytes]:
    """Yield the frames of a text whose deltas are repeated for ever."""
    yield _opening(reply, request)
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield from cycle(_deltas(0, "text_delta", "text", reply.text or ("more ",)))


def body(reply: ModelReply, request: Received) -> bytes:
    """Return the answer to a request without ``"stream": true``.

    Raw arguments that are no JSON stand in it as a string, for want of another way to say them.
    """
    whole = _message(reply, request)
    seed = _id_seed(reply, request)
    content: list[dict[str, object]] = []
    if reply.thinking is not None:
        content.append({"type": "thinking", "thinking": "".join(reply.thinking), "signature": reply.signature})
    if reply.text:
        content.append({"type": "text", "text": "".join(reply.text)})
    for index, call in enumerate(_calls(reply)):
        content.append(_tool_use(call, seed, index) | {"input": _as_object(call.arguments)})
    usage = _usage(reply.usage)
    return _encode(whole | {"content": content, "stop_reason": reply.stop_reason, "usage": usage})


def error_body(status: int, error_type: str | None, message: str) -> bytes:
    """Return the body of an error status; without a type, the one that the API has for the status."""
    return _encode(_error(error_type or ERROR_TYPES.get(status, "api_error"), message))


def error_frame(error_type: str, message: str) -> bytes:
    """Return an error within a stream whose status was 200."""
    return b"event: error\ndata: %b\n\n" % _encode(_error(error_type, message))


def _opening(reply: ModelReply, request: Received) -> bytes:
    return _event("message_start", message=_message(reply, request))


@lru_cache(maxsize=32)  # replies are equal only to themselves; a long one is encoded once for all requests
def _after_opening(reply: ModelReply, seed: int) -> tuple[bytes, ...]:
    out: list[bytes] = []
    index = 0
    if reply.thinking is not None:
        out += _thinking(index, reply.thinking, reply.signature)
        index += 1
    if reply.text:
        start = _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        out += (start, *_deltas(index, "text_delta", "text", reply.text), _event("content_block_stop", index=index))
        index += 1
    for number, call in enumerate(_calls(reply)):
        out += _call(index + number, call, _tool_use(call, seed, number))
    out.insert(1, PING)  # where the API puts its first one: after the first block's start
    delta = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    out += (_event("message_delta", delta=delta, usage=_usage(reply.usage)), STOP)
    return tuple(out)


def _thinking(index: int, deltas: Sequence[str], signature: str) -> Iterator[bytes]:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    yield _event("content_block_start", index=index, content_block=block)
    yield from _deltas(index, "thinking_delta", "thinking", deltas)
    yield from _deltas(index, "signature_delta", "signature", (signature,))
    yield _event("content_block_stop", index=index)


def _call(index: int, call: Call, block: Mapping[str, object]) -> Iterator[bytes]:
    raw = call.arguments if isinstance(call.arguments, str) else _encode(call.arguments).decode()
    raw = "" if call.arguments == {} else raw  # the API sends no JSON at all for a call without arguments
    fragments = ("", *(raw[i : i + FRAGMENT] for i in range(0, len(raw), FRAGMENT)))
    yield _event("content_block_start", index=index, content_block=block)
    yield from _deltas(index, "input_json_delta", "partial_json", fragments)
    yield _event("content_block_stop", index=index)


def _deltas(index: int, kind: str, key: str, deltas: Sequence[str]) -> list[bytes]:
    head = (
        f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":{index},'
        f'"delta":{{"type":"{kind}","{key}":'
    ).encode()
    return [b"%b%b}}\n\n" % (head, _encode(delta)) for delta in deltas]


def _event(kind: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode({"type": kind, **fields}))


def _message(reply: ModelReply, request: Received) -> dict[str, object]:
    return {
        "id": f"msg_{request.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(reply.usage) | {"output_tokens": min(1, reply.usage.output)},
    }


def _usage(usage: WireUsage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _calls(reply: ModelReply) -> tuple[Call, ...]:
    return reply.calls if isinstance(reply, CallsReply) else ()


def _id_seed(reply: ModelReply, request: Received) -> int:
    return request.number if any(call.id is None for call in _calls(reply)) else 0


def _tool_use(call: Call, seed: int, index: int) -> dict[str, object]:
    call_id = f"toolu_{seed:06d}_{index}" if call.id is None else call.id
    return {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}


def _as_object(arguments: Mapping[str, object] | str) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments


def _error(error_type: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": error_type, "message": message}}
