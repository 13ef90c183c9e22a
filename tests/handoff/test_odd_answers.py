"""A server may write anything anywhere: what comes of it is a typed failure, or an answer that every model takes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.history import normalise_history
from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import Part, ToolCall
from agentrio.domain.session import Session
from agentrio.providers._http import StreamAssembler
from agentrio.providers.base import ModelResponse, PartDelta, ProviderError
from agentrio.providers.wire.anthropic_assembler import Assembler as MessagesAssembler
from agentrio.providers.wire.anthropic_assembler import BodyAssembler as MessagesBodyAssembler
from agentrio.providers.wire.chat_assembler import ChatAssembler, ChatBodyAssembler
from agentrio.providers.wire.responses_assembler import Assembler as ResponsesAssembler
from agentrio.providers.wire.responses_assembler import BodyAssembler as ResponsesBodyAssembler
from tests.handoff.targets import MAIN, MODELS

ODD = (
    b"null",
    b"true",
    b"-1",
    b"0.5",
    b"1e999",
    b"-1e999",
    b"NaN",
    b"1" + b"0" * 400,
    b"9" * 5_000,
    b"9223372036854775808",
    b'""',
    b'" "',
    b'"{}"',
    b'"\\u0000"',
    b'"\\ud83d"',
    b'"\\ude00\\ud83d"',
    b'"a\nb\x01"',
    b'"\xff\xfe"',
    b'"\xc3"',
    b'{"a": "\xff", "b": 1e999}',
    b'{"type": []}',
    b'{"type": "text", "type": "thinking"}',
    b"{}",
    b"[]",
    b"[[]]",
    b"[null, 1e999, {}]",
    b'[{"type": {}, "text": 3}]',
    b"[" * 90 + b"]" * 90,
    b"{",
    b"",
)
MARK = '"\\u00a7\\u00a7"'  # as json writes what stands where the odd value goes

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]}
USE = {"type": "tool_use", "id": "t1", "name": "tool", "input": {"a": [1, "b"]}}
SAID = {"type": "text", "text": "Said.", "citations": [{"type": "char_location", "cited_text": "c"}]}
TOKENS = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 1}
MESSAGE = {"id": "m", "model": "x", "type": "message", "content": [], "usage": TOKENS}


def _block(index: int, block: Any, *deltas: Any) -> Iterator[Any]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


MESSAGES = [
    {"type": "message_start", "message": MESSAGE},
    *_block(0, THOUGHT, {"type": "thinking_delta", "thinking": "x"}, {"type": "signature_delta", "signature": "s"}),
    *_block(1, {"type": "redacted_thinking", "data": "hidden"}),
    *_block(2, SEARCH, {"type": "input_json_delta", "partial_json": '{"query":"r"}'}),
    *_block(3, FOUND),
    *_block(4, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "short"}),
    *_block(5, SAID, {"type": "text_delta", "text": " More."}, {"type": "citations_delta", "citation": {"a": 1}}),
    *_block(6, USE),
    *_block(7, {**USE, "id": "t2", "input": {}}, {"type": "input_json_delta", "partial_json": '{"a":1}'}),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_details": None}, "usage": TOKENS},
    {"type": "message_stop"},
]
MESSAGES_BODY = [{**MESSAGE, "content": [THOUGHT, SEARCH, FOUND, SAID, USE], "stop_reason": "tool_use"}]

FUNCTION = {"name": "tool", "arguments": '{"a":1}'}
CALL = {"index": 0, "id": "c1", "type": "function", "function": FUNCTION, "extra_content": {"google": {"s": "x"}}}
DETAIL = {"type": "reasoning.text", "index": 0, "text": "Hm.", "signature": "sig", "format": "f"}
COUNTS = {"prompt_tokens": 3, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1}}
CHAT = [
    {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"reasoning": "Hm.", "reasoning_details": [DETAIL]}}]},
    {"choices": [{"index": 0, "delta": {"content": "Said.", "reasoning_content": "Hm."}, "logprobs": {"a": [0.5]}}]},
    {"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "x"}], "refusal": "No."}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [CALL], "extra_content": {"google": {"s": "y"}}}}]},
    {"choices": [{"index": 0, "delta": {"function_call": FUNCTION}}]},
    {
        "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
        "usage": COUNTS,
        "x_groq": {"usage": COUNTS},
    },
]
CHAT_BODY = [
    {
        "id": "x",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"content": "Said.", "reasoning": "Hm.", "tool_calls": [CALL]},
                "finish_reason": "stop",
            }
        ],
        "usage": COUNTS,
    }
]

REASONING = {
    "type": "reasoning",
    "id": "rs",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "e",
}
OUTPUT = {"type": "output_text", "text": "Said.", "annotations": [{"type": "url_citation", "url": "u"}]}
SPOKEN = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [OUTPUT, OUTPUT]}
ASKED = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "tool", "arguments": '{"a":1}'}
FREE = {"type": "custom_tool_call", "id": "ct", "call_id": "c2", "name": "free", "input": "as it is"}
LOOKED = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}}
SPENT = {"input_tokens": 3, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 1}}
ITEMS = [REASONING, SPOKEN, LOOKED, ASKED, FREE]
REPLY = {"id": "r", "model": "m", "status": "completed", "output": ITEMS, "usage": SPENT, "incomplete_details": None}


def _item(index: int, item: dict[str, Any], kind: str) -> Iterator[Any]:
    yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": "", "input": ""}}
    fields = {"output_index": index, "content_index": 0, "summary_index": 0, "item_id": item["id"], "delta": "more"}
    yield {"type": f"response.{kind}.delta", **fields}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


RESPONSES = [
    {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress"}},
    *_item(0, REASONING, "reasoning_summary_text"),
    *_item(1, SPOKEN, "output_text"),
    *_item(2, LOOKED, "web_search_call"),
    *_item(3, ASKED, "function_call_arguments"),
    *_item(4, FREE, "custom_tool_call_input"),
    {"type": "response.completed", "response": REPLY},
]


@attrs.frozen
class Wire:
    """A good answer of a wire, and what reads it."""

    make: Callable[[], StreamAssembler]
    frames: list[Any] = attrs.field(repr=False)
    own: str  # the model that gave it
    is_body: bool = False

    def data(self, place: int, path: list[Any], odd: bytes) -> bytes:
        """The answer with an odd value at one place."""
        frames = json.loads(json.dumps(self.frames))
        target = frames
        for key in [place, *path[:-1]]:
            target = target[key]
        target[path[-1]] = "\u00a7\u00a7"
        texts = [json.dumps(frame).encode().replace(MARK.encode(), odd) for frame in frames]
        return texts[0] if self.is_body else b"".join(b"data: " + text + b"\n\n" for text in texts)


WIRES = [
    Wire(MessagesAssembler, MESSAGES, "anthropic"),
    Wire(MessagesBodyAssembler, MESSAGES_BODY, "anthropic", True),
    Wire(ChatAssembler, CHAT, "chat-openai"),
    Wire(ChatBodyAssembler, CHAT_BODY, "chat-openai", True),
    Wire(ResponsesAssembler, RESPONSES, "responses-openai"),
    Wire(ResponsesBodyAssembler, [REPLY], "responses-openai", True),
]


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each place within a frame."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*before, key)
        yield from paths(item, (*before, key))


PLACES = [(wire, number, path) for wire in WIRES for number, frame in enumerate(wire.frames) for path in paths(frame)]


def read(wire: Wire, data: bytes) -> ModelResponse | None:
    """What came of it; None for a typed failure. What had arrived can be asked for at any time."""
    assembler = wire.make()
    try:
        for line in data.splitlines(keepends=True):
            assembler.feed(line)
            assembler.response()
        assembler.close()
    except ProviderError:
        assembler.response()
        return None
    return assembler.response()


def history(wire: Wire, response: ModelResponse) -> list[Message]:
    """The answer between two of the user's messages, its calls with our ids."""
    parts: list[Part] = []
    for number, part in enumerate(response.parts):
        parts.append(attrs.evolve(part, id=f"c{number}") if isinstance(part, ToolCall) else part)
    answer = Message("a", "assistant", tuple(parts), MODELS[wire.own].tag)
    return [user_message("u", "Go."), answer, user_message("v", "On.")]


def check(wire: Wire, data: bytes) -> None:
    """The law of this module."""
    response = read(wire, data)
    if response is None:
        return
    messages = history(wire, response)
    value = Session("s", messages=tuple(messages))
    assert Session.from_json(value.to_json()) == value
    assert normalise_history(messages)
    for name in MAIN:
        msgspec.json.decode(MODELS[name].data(messages))


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.make.__qualname__ + wire.own)
def test_the_answers_that_odd_values_go_into_are_good(wire: Wire) -> None:
    """Or nothing would be tried here."""
    frames = [json.dumps(frame).encode() for frame in wire.frames]
    data = frames[0] if wire.is_body else b"".join(b"data: " + frame + b"\n\n" for frame in frames)
    response = read(wire, data)
    assert response is not None
    assert any(isinstance(part, ToolCall) for part in response.parts)
    check(wire, data)


STREAMS = [wire for wire in WIRES if not wire.is_body]
BEHIND = {
    "nothing": b"",
    "another answer": b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in MESSAGES + CHAT),
    "what is nested too deeply": b"data: " + b"[" * 500 + b"\n\n",
    "an event without its end": b"data: " + json.dumps(MESSAGES[1]).encode(),
}


@pytest.mark.parametrize("wire", STREAMS, ids=lambda wire: wire.own)
@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
def test_nothing_behind_an_answers_end_changes_it(wire: Wire, behind: bytes) -> None:
    """However it comes: what one read brought was read on, and what the next brought was not."""
    data = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in wire.frames)
    data += b"data: [DONE]\n\n" if wire.make is ChatAssembler else b""
    whole = wire.make()
    whole.feed(data + behind)
    assert whole.done
    assert whole.close() == []
    assert whole.response() == read(wire, data + behind) == read(wire, data)


@pytest.mark.parametrize("wire", STREAMS, ids=lambda wire: wire.own)
def test_what_can_t_be_read_behind_the_stop_reason_takes_nothing_away(wire: Wire) -> None:
    """The answer is whole by then, also where the server's last word has not come yet."""
    frames = wire.frames[:-1] if wire.make is MessagesAssembler else wire.frames
    data = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)
    assert read(wire, data + BEHIND["what is nested too deeply"]) == read(wire, data)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(ODD))
def test_an_odd_value_anywhere_breaks_nothing(place: tuple[Wire, int, Any], odd: bytes) -> None:
    """A ``ValueError`` in the reading ended the session as crashed; one in the writing, each later run."""
    wire, number, path = place
    check(wire, wire.data(number, list(path), odd))


Outcome: TypeAlias = tuple[ModelResponse, tuple[str, str] | None, dict[int, str]]


def outcome(wire: Wire, pieces: list[bytes]) -> Outcome:
    """What came of it: the response, its failure, and the texts that the deltas told of each part."""
    assembler = wire.make()
    failure = None
    deltas: list[PartDelta] = []
    try:
        for piece in pieces:
            deltas += assembler.feed(piece)
        deltas += assembler.close()
        if assembler.failure is not None:
            raise assembler.failure
    except ProviderError as error:
        failure = error.code, error.message
    texts: dict[int, str] = {}
    for delta in deltas:
        assert delta.kind in ("text", "thinking", "input")
        assert delta.text
        assert delta.offset == len(texts.get(delta.part, "")) or (wire.own == "anthropic" and not delta.offset)
        texts[delta.part] = texts.get(delta.part, "")[: delta.offset] + delta.text  # a block may begin again
    return assembler.response(), failure, texts


@st.composite
def spoilt(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[Wire, bytes]:
    """Frames of an answer lost, doubled, out of order, of another answer, with odd values, and cut at last."""
    wire: Wire = draw(st.sampled_from(STREAMS))
    frames = [b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in wire.frames]
    places = [place for place in PLACES if place[0] is wire]
    for change in draw(st.lists(st.sampled_from(["lose", "double", "move", "odd", "odd", "foreign"]), max_size=4)):
        at = draw(st.integers(0, len(frames)))
        if change == "odd":
            _, number, path = draw(st.sampled_from(places))
            odd = wire.data(number, list(path), draw(st.sampled_from(ODD))).split(b"\n\n")
            frames[at:at] = [odd[number] + b"\n\n"] if number < len(odd) else []
        elif change == "foreign":
            other = draw(st.sampled_from(STREAMS))
            frames[at:at] = [b"data: " + json.dumps(draw(st.sampled_from(other.frames))).encode() + b"\n\n"]
        elif frames:
            frame = frames[at % len(frames)] if change == "double" else frames.pop(at % len(frames))
            if change != "lose":
                frames.insert(draw(st.integers(0, len(frames))), frame)
    data = b"".join(frames)
    return wire, data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@settings(max_examples=5_000 if os.environ.get("AGENTRIO_FULL") == "1" else 300, deadline=None, derandomize=True)
@given(spoilt(), st.lists(st.integers(0, 10_000), max_size=8))
def test_a_spoilt_answer_is_the_same_however_it_comes_and_breaks_nothing(
    spoilt: tuple[Wire, bytes], places: list[int]
) -> None:
    """The deltas of a part follow each other, and the answer can be asked for, stored and sent whatever it is."""
    wire, data = spoilt
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    assert outcome(wire, [data]) == outcome(wire, [data[start:end] for start, end in pairwise(edges)])
    check(wire, data)


@pytest.mark.full
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_each_odd_value_in_each_place_breaks_nothing(odd: bytes) -> None:
    """All of them."""
    for wire, number, path in PLACES:
        check(wire, wire.data(number, list(path), odd))
