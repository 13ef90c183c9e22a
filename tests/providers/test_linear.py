"""What a frame costs does not grow with what came before it, whatever a server sends, on all three wires.

No clock is looked at: steps of the interpreter are counted, and the memory that a step takes for a moment, which a copy
of all that came before would show.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeAlias

import attrs
import pytest

from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import RawBlock, Text, Thinking, ToolCall
from agentrio.providers.base import ProviderError
from agentrio.providers.wire.anthropic_assembler import Assembler as MessagesAssembler
from agentrio.providers.wire.assembling import MAX_BODY, EventAssembler
from agentrio.providers.wire.chat_assembler import ChatAssembler
from agentrio.providers.wire.growing import MAX_NAME
from agentrio.providers.wire.responses_assembler import Assembler as ResponsesAssembler
from tests.handoff.targets import MODELS

EARLY, LATE = 300, 2_000  # frames
SAMPLE = 12  # of which the cheapest counts: lists and tables grow now and then

Frames: TypeAlias = Callable[[int], Any]


@attrs.frozen
class Cost:
    steps: int
    memory: int


def cost_of(work: Callable[[], object]) -> Cost:
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(previous)
    return Cost(steps, tracemalloc.get_traced_memory()[1] - before)


@pytest.fixture
def traced_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def event(frame: Any) -> bytes:
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


def delta(**fields: Any) -> Any:
    return {"choices": [{"index": 0, "delta": fields}]}


def piece(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    return delta(tool_calls=[{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}])


def detail(number: int, **fields: Any) -> Any:
    return delta(reasoning_details=[{"type": "reasoning.text", "index": number, **fields}])


CHAT: dict[str, Frames] = {
    "text": lambda number: delta(content="word "),
    "reasoning": lambda number: delta(reasoning="word "),
    "refusal": lambda number: delta(refusal="word "),
    "a list": lambda number: delta(content=[{"type": "text", "text": "word "}]),
    "a list that alternates": lambda number: delta(
        content=[{"type": "thinking", "thinking": "hm "}, {"type": "text", "text": "word "}]
    ),
    "details of one text": lambda number: detail(0, text="word " * 10, signature="s"),
    "details of many texts": lambda number: detail(number, text="word "),
    "details that are encrypted": lambda number: delta(
        reasoning_details=[{"type": "reasoning.encrypted", "data": "word" * 10}]
    ),
    "arguments": lambda number: piece(0, arguments='{"a":1'),
    "arguments, the name in each": lambda number: piece(0, name="tool", arguments='{"a":"b'),
    "arguments that were whole": lambda number: piece(0, name="tool", arguments='{"a":"b"}' if not number else " "),
    "arguments, another id in each": lambda number: piece(0, id=f"id{number}", arguments='{"a":1'),
    "arguments of ten calls in turn": lambda number: piece(0, id=f"id{number % 10}", name="tool", arguments='{"a'),
    "many calls": lambda number: piece(number, id=f"id{number}", name="tool", arguments="{}"),
    "many calls of index 0, then the first": lambda number: piece(
        0, id=f"id{number if number % 2 else 0}", name="tool", arguments='{"a'
    ),
    "many calls without an index": lambda number: piece(None, id=f"id{number}", name="tool", arguments="{}"),
    "a placeholder": lambda number: piece(0, arguments="{}"),
    "what else is said of a call": lambda number: delta(tool_calls=[{"index": 0, "id": "a", "extra_content": {}}]),
    "fields of the message": lambda number: delta(extra_content={"a": number}),
    "usage": lambda number: {"choices": [], "usage": {"prompt_tokens": number}},
    "finish reasons": lambda number: {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    "many calls, a finish reason behind each": lambda number: {
        "choices": [piece(number, id=f"id{number}", name="tool")["choices"][0] | {"finish_reason": "tool_calls"}]
    },
    "nothing": lambda number: {"choices": []},
}


def block(number: int, kind: str, **fields: Any) -> Any:
    return {"type": "content_block_start", "index": number, "content_block": {"type": kind, **fields}}


def more(kind: str, **fields: Any) -> Any:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}}


def within(first: Any, then: Any) -> Frames:
    return lambda number: then if number else first


MESSAGES: dict[str, Frames] = {
    "text": within(block(0, "text"), more("text_delta", text="word ")),
    "reasoning": within(block(0, "thinking"), more("thinking_delta", thinking="word ")),
    "signatures": within(block(0, "thinking"), more("signature_delta", signature="word ")),
    "arguments": within(block(0, "tool_use"), more("input_json_delta", partial_json="word ")),
    "citations": within(block(0, "text"), more("citations_delta", citation={"a": "word "})),
    "a compaction": within(block(0, "compaction"), more("compaction_delta", content="word ")),
    "a server's tool": within(block(0, "server_tool_use"), more("input_json_delta", partial_json="word ")),
    "text in a block that is not known": within(block(0, "odd"), more("text_delta", text="word ")),
    "many blocks": lambda number: block(number, "text", text="word "),
    "one block again and again": lambda number: block(0, "text", text="word "),
    "the end of a block again and again": within(
        block(0, "tool_use", input={"a": 1}), {"type": "content_block_stop", "index": 0}
    ),
    "heads": lambda number: {"type": "message_start", "message": {"content": [{"type": "text", "text": "word "}]}},
    "heads and blocks": lambda number: block(0, "text") if number % 2 else {"type": "message_start"},
    "ends": lambda number: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"a": number}},
    "pings": lambda number: {"type": "ping"},
}


def told(kind: str, **fields: Any) -> Any:
    return {"type": f"response.{kind}", **fields}


def item(kind: str, then: Any, **fields: Any) -> Frames:
    return within(told("output_item.added", output_index=0, item={"type": kind, "id": "i"}), then)


def once_open(then: Any) -> Frames:
    """A message that is open while many other items come and are done; then deltas that name no item."""

    def frames(number: int) -> Any:
        if not number:
            return told("output_item.added", item={"type": "message", "id": "first"})
        if number % 2:
            return told("output_item.done", output_index=number, item={"type": "web_search_call", "id": f"i{number}"})
        return then

    return frames


def twice_done(number: int) -> Any:
    """A text that grows, and its item done in between, again and again."""
    if not number % 2:
        return told("output_text.delta", output_index=0, content_index=0, delta="word " * 10)
    content = [{"type": "output_text", "text": ""}]
    return told("output_item.done", output_index=0, item={"type": "message", "id": "", "content": content})


RESPONSES: dict[str, Frames] = {
    "text": item("message", told("output_text.delta", output_index=0, content_index=0, delta="word ")),
    "text by id": item("message", told("output_text.delta", item_id="i", delta="word ")),
    "text of nobody": lambda number: told("output_text.delta", delta="word "),
    "text of nobody, behind many items": once_open(told("output_text.delta", delta="word ")),
    "many texts": lambda number: told("output_text.delta", output_index=0, content_index=number, delta="word "),
    "a summary of many parts": lambda number: told(
        "reasoning_summary_text.delta", output_index=0, summary_index=number, delta="word "
    ),
    "arguments": item("function_call", told("function_call_arguments.delta", output_index=0, delta="word ")),
    "free text": item("custom_tool_call", told("custom_tool_call_input.delta", output_index=0, delta='wo"rd ')),
    "many items": lambda number: told(
        "output_item.added", output_index=number, item={"type": "message", "id": f"i{number}"}
    ),
    "one item again and again": lambda number: told("output_item.added", output_index=0, item={"type": "message"}),
    "one item done again and again": twice_done,
    "many items done": lambda number: told(
        "output_item.done", output_index=number, item={"type": "function_call", "name": "t", "arguments": "{}"}
    ),
    "heads": lambda number: told("in_progress", response={"id": "r", "model": "m"}),
    "keepalives": lambda number: {"type": "keepalive"},
}

ALL = [
    pytest.param(assembler, frames, id=f"{wire}-{name}")
    for wire, assembler, kinds in (
        ("chat", ChatAssembler, CHAT),
        ("messages", MessagesAssembler, MESSAGES),
        ("responses", ResponsesAssembler, RESPONSES),
    )
    for name, frames in kinds.items()
]


@pytest.mark.parametrize(("make", "frames"), ALL)
def test_a_frame_costs_the_same_however_many_came_before(
    make: Callable[[], EventAssembler], frames: Frames, traced_memory: None
) -> None:
    """A server that chats for long, or means ill, must not make each further frame slower: others run beside it."""
    assembler = make()

    def costs(upto: int, since: int) -> Cost:
        for number in range(since, upto):
            assembler.feed(event(frames(number)))
        some = [event(frames(number)) for number in range(upto, upto + SAMPLE)]
        each = [cost_of(lambda data=data: assembler.feed(data)) for data in some]  # type: ignore[misc]  # bound now
        halves = [sorted((each[at], each[at + 1]), key=lambda cost: cost.memory) for at in range(0, SAMPLE, 2)]
        return Cost(
            min(one.steps + other.steps for one, other in halves), min(other.memory for _, other in halves)
        )  # of two in a row, for some kinds of frames come in turn

    early = costs(EARLY, 0)
    late = costs(LATE, EARLY + SAMPLE)
    assert late.steps <= early.steps * 1.1 + 50
    assert late.memory <= early.memory * 1.1 + 1_000


@pytest.mark.parametrize(
    ("make", "frames"),
    [
        (ChatAssembler, lambda number: piece(0, name="ab"[number % 2])),
        (ChatAssembler, lambda number: piece(0, name="n" * 2_000)),
        (MessagesAssembler, lambda number: block(number, "tool_use", name="n" * 2_000)),
        (
            ResponsesAssembler,
            lambda number: told("output_item.added", item={"type": "function_call", "name": "n" * 2_000}),
        ),
    ],
)
def test_a_tools_name_has_an_end(make: Callable[[], EventAssembler], frames: Frames) -> None:
    """It stands in each delta of the call: one of a megabyte would be told a thousand times."""
    assembler = make()
    with pytest.raises(ProviderError, match="name of more than 1,000 characters") as caught:
        for number in range(MAX_NAME + 1):
            assembler.feed(event(frames(number)))
    assert caught.value.code == "invalid_response"


def test_details_of_reasoning_are_as_many_as_parts_may_be() -> None:
    """Each costs several times what it takes on the wire."""
    assembler = ChatAssembler()
    with pytest.raises(ProviderError, match="that is the limit"):
        for number in range(20_000):
            assembler.feed(event(detail(number, text="x")))


@pytest.mark.parametrize("contents", [1, 3_000])
def test_what_stands_beside_many_texts_is_not_multiplied(contents: int) -> None:
    """Each text of a message is kept with the message around it: a large one around thousands would fill the memory."""
    content = [{"type": "output_text", "text": "x"}] * contents
    wide = {"type": "message", "id": "i", "content": content, "beside": "y" * 100_000}
    assembler = ResponsesAssembler()
    frames = event(told("output_item.done", output_index=0, item=wide)) + event(told("completed", response={}))
    if contents * 100_000 > MAX_BODY:
        with pytest.raises(ProviderError, match="that is the limit"):
            assembler.feed(frames)
        return
    assembler.feed(frames)
    assert sum(len(part.raw or "") for part in assembler.response().parts if isinstance(part, Text)) < 200_000


def verbatim(kind: str, number: int) -> RawBlock:
    return RawBlock(kind, json.dumps({"type": kind, "id": f"i{number}", "call_id": f"i{number}"}))


@pytest.mark.parametrize(
    ("name", "kind"), [("anthropic", "server_tool_use"), ("responses-openai", "shell_call"), ("chat-openai", "odd")]
)
def test_an_answer_of_twice_as_many_blocks_goes_back_for_twice_the_work(
    name: str, kind: str, traced_memory: None
) -> None:
    """Each of many open calls was held against all others, while nobody else ran."""
    model = MODELS[name]

    def send(count: int) -> Cost:
        blocks = tuple(verbatim(kind, number) for number in range(count))
        history = [user_message("u", "Hi."), Message("a", "assistant", blocks, model.tag), user_message("v", "On.")]
        return cost_of(lambda: model.data(history))

    assert send(800).steps < 2.5 * send(400).steps


def test_what_was_joined_is_what_came() -> None:
    """Nothing is lost by reading each piece once: asked in the middle, too."""
    assembler = ChatAssembler()
    for number in range(5):
        assembler.feed(event(detail(number // 3, text=f"{number} ", signature="" if number % 3 else f"s{number}")))
        assert assembler.response().parts
    assembler.feed(event({"choices": [{"delta": {}, "finish_reason": "stop"}]}))
    [part] = assembler.response().parts
    assert isinstance(part, Thinking)
    assert (part.text, part.signature) == ("0 1 2 3 4 ", "s3")
    assert [one["text"] for one in json.loads(part.raw or "")["details"]] == ["0 1 2 ", "3 4 "]


def test_an_item_that_is_done_twice_is_as_it_was_done_first() -> None:
    """Unless it has another id: then it is another item, whatever its index."""
    call = {"type": "function_call", "id": "a", "call_id": "c", "name": "t", "arguments": '{"a":1}'}
    frames = [
        told("output_item.done", output_index=0, item=call),
        told("output_item.done", output_index=0, item=call | {"arguments": "{}"}),
        told("output_item.done", output_index=0, item={"type": "odd", "id": "b"}),
        told("completed", response={}),
    ]
    assembler = ResponsesAssembler()
    assembler.feed(b"".join(map(event, frames)))
    first, second = assembler.response().parts
    assert isinstance(first, ToolCall)
    assert first.arguments == {"a": 1}
    assert isinstance(second, RawBlock)
