"""The Responses stream that the benchmark's server sends, encoded once, as ``wire`` has the Messages stream.

``sequence_number`` does not count within the deltas of a text, all of which are the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from .wire import END, HEAD, frame

RESULT = b'"function_call_output"'

_RESPONSE: dict[str, object] = {
    "id": "resp_01",
    "object": "response",
    "created_at": 1767225600,
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "model": "bench-1",
    "output": [],
    "parallel_tool_calls": True,
    "store": False,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "usage": None,
    "metadata": {},
}
_USAGE: dict[str, object] = {
    "input_tokens": 25,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 45,
}
_PLACE: dict[str, object] = {"item_id": "msg_01", "output_index": 0, "content_index": 0}


def _opened() -> bytes:
    return frame("response.created", response=_RESPONSE, sequence_number=0) + frame(
        "response.in_progress", response=_RESPONSE, sequence_number=1
    )


def _completed(output: Sequence[object]) -> bytes:
    response = {**_RESPONSE, "status": "completed", "output": output, "usage": _USAGE}
    return frame("response.completed", response=response, sequence_number=9) + END


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _message(status: str, *content: dict[str, object]) -> dict[str, object]:
    return {"id": "msg_01", "type": "message", "status": status, "content": content, "role": "assistant"}


def opening() -> bytes:
    """The frames before a text."""
    return (
        _opened()
        + frame("response.output_item.added", item=_message("in_progress"), output_index=0, sequence_number=2)
        + frame("response.content_part.added", **_PLACE, part=_part(""), sequence_number=3)
    )


def text_delta(text: str) -> bytes:
    """More of a text."""
    return frame("response.output_text.delta", **_PLACE, delta=text, logprobs=[], sequence_number=4)


def closing(text: str = "") -> bytes:
    """The frames after the last delta, which have the whole text again, and the end of the body."""
    item = _message("completed", _part(text))
    return (
        frame("response.output_text.done", **_PLACE, text=text, logprobs=[], sequence_number=6)
        + frame("response.content_part.done", **_PLACE, part=_part(text), sequence_number=7)
        + frame("response.output_item.done", item=item, output_index=0, sequence_number=8)
        + _completed([item])
    )


@cache
def text(deltas: int, size: int) -> bytes:
    """A whole response of so many deltas of so many characters."""
    return HEAD + opening() + text_delta("x" * size) * deltas + closing("x" * size * deltas)


@cache
def calls(names: Sequence[str], first: int) -> bytes:
    """A whole response that calls tools; the ids count from ``first``."""
    frames = [HEAD, _opened()]
    items: list[dict[str, object]] = []
    for index, name in enumerate(names):
        ids = {"id": f"fc_{first + index:06d}", "type": "function_call", "call_id": f"call_{first + index:06d}"}
        place: dict[str, object] = {"item_id": ids["id"], "output_index": index}
        begun = {**ids, "status": "in_progress", "name": name, "arguments": ""}
        items.append({**begun, "status": "completed", "arguments": '{"word":"x"}'})
        words = '{"word":"x"}'
        kind = "response.function_call_arguments"
        frames += [
            frame("response.output_item.added", item=begun, output_index=index, sequence_number=2),
            frame(f"{kind}.delta", **place, delta=words, sequence_number=3),
            frame(f"{kind}.done", **place, name=name, arguments=words, sequence_number=4),
            frame("response.output_item.done", item=items[-1], output_index=index, sequence_number=5),
        ]
    return b"".join(frames) + _completed(items)
