"""The Chat Completions stream that the benchmark's server sends, encoded once, as ``wire`` has the Messages stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from .wire import END, HEAD

RESULT = b'"tool_call_id"'
_USAGE = {"prompt_tokens": 25, "completion_tokens": 20, "total_tokens": 45}


def chunk(delta: Mapping[str, object], reason: str | None = None) -> bytes:
    """One chunk of the answer in one HTTP chunk."""
    return _event(choices=[{"index": 0, "delta": delta, "finish_reason": reason}], usage=None)


def _event(**fields: object) -> bytes:
    head = {"id": "chatcmpl-01", "object": "chat.completion.chunk", "created": 1767225600, "model": "bench-1"}
    return _framed(msgspec.json.encode(head | fields))


def _framed(data: bytes) -> bytes:
    return b"%x\r\ndata: %b\n\n\r\n" % (len(data) + 8, data)


def opening() -> bytes:
    """The frames before a text."""
    return chunk({"role": "assistant", "content": "", "refusal": None})


def text_delta(text: str) -> bytes:
    """More of a text."""
    return chunk({"content": text})


def closing(text: str = "", reason: str = "stop") -> bytes:
    """The frames after the last delta, and the end of the body."""
    return chunk({}, reason) + _event(choices=[], usage=_USAGE) + _framed(b"[DONE]") + END


@cache
def text(deltas: int, size: int) -> bytes:
    """A whole response of so many deltas of so many characters."""
    return HEAD + opening() + text_delta("x" * size) * deltas + closing()


@cache
def calls(names: Sequence[str], first: int) -> bytes:
    """A whole response that calls tools; the ids count from ``first``."""
    frames = [HEAD, chunk({"role": "assistant", "content": None})]
    for index, name in enumerate(names):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": f"call_{first + index:06d}", "type": "function", "function": function}
        frames.append(chunk({"tool_calls": [call]}))
        frames.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": '{"word":"x"}'}}]}))
    return b"".join(frames) + closing(reason="tool_calls")
