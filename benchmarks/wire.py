"""The Messages stream that the benchmark's server sends, encoded once: each frame is one HTTP chunk, as servers do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
RESULT = b'"tool_result"'  # once in each result of a request

_MESSAGE: dict[str, object] = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "bench-1",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 25, "output_tokens": 1},
}
_TOOL_RESULT = re.compile(rb'"tool_use_id": ?"toolu_(\d+)')


def frame(kind: str, **fields: object) -> bytes:
    """One server-sent event in one HTTP chunk."""
    data = b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))
    return b"%x\r\n%b\r\n" % (len(data), data)


def opening() -> bytes:
    """The frames before a text."""
    block = {"type": "text", "text": ""}
    return frame("message_start", message=_MESSAGE) + frame("content_block_start", index=0, content_block=block)


def text_delta(text: str) -> bytes:
    """More of a text."""
    return frame("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def closing(text: str = "", reason: str = "end_turn", index: int = 0) -> bytes:
    """The frames after the last delta, and the end of the body."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return (
        frame("content_block_stop", index=index)
        + frame("message_delta", delta=delta, usage={"output_tokens": 20})
        + frame("message_stop")
        + END
    )


@cache
def text(deltas: int, size: int) -> bytes:
    """A whole response of so many deltas of so many characters."""
    return HEAD + opening() + text_delta("x" * size) * deltas + closing()


def say(words: str) -> bytes:
    """A whole response of one delta."""
    return HEAD + opening() + text_delta(words) + closing()


@cache
def calls(names: Sequence[str], first: int) -> bytes:
    """A whole response that calls tools; the ids count from ``first``."""
    frames = [HEAD, frame("message_start", message=_MESSAGE)]
    for index, name in enumerate(names):
        block = {"type": "tool_use", "id": f"toolu_{first + index:06d}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": '{"word":"x"}'}
        frames.append(frame("content_block_start", index=index, content_block=block))
        frames.append(frame("content_block_delta", index=index, delta=delta))
        if index < len(names) - 1:
            frames.append(frame("content_block_stop", index=index))
    return b"".join(frames) + closing(reason="tool_use", index=len(names) - 1)


def results(body: bytes) -> list[int]:
    """The numbers of the calls that a request answers, in its order."""
    return [int(number) for number in _TOOL_RESULT.findall(body)]


def fault(body: bytes) -> str:
    """What is wrong with a request's history; empty where nothing is."""
    turns = msgspec.json.decode(body)["messages"]
    if any(one["role"] == other["role"] for one, other in itertools.pairwise(turns)):
        return "two turns of one role"
    asked: list[str] = []
    for turn in turns:
        blocks = turn["content"] if isinstance(turn["content"], list) else []
        if not turn["content"]:
            return "an empty turn"
        if asked != _ids(blocks, "tool_result", "tool_use_id"):
            return "a call without its result"
        asked = _ids(blocks, "tool_use", "id")
    return "the last call has no result" if asked else ""


def _ids(blocks: Iterable[dict[str, str]], kind: str, key: str) -> list[str]:
    return [block[key] for block in blocks if block["type"] == kind]
