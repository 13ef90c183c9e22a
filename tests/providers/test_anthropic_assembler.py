"""A Messages response from its bytes: what the corpus does not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrio.domain.parts import RawBlock, Text, Thinking, ToolCall
from agentrio.domain.usage import Usage
from agentrio.providers.base import ModelResponse, PartDelta, ProviderError
from agentrio.providers.wire.anthropic_assembler import Assembler, BodyAssembler

Frame = dict[str, Any] | bytes | str

START: Frame = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": []}}
TEXT: Frame = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
CALL: Frame = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
}
CLOSE: Frame = {"type": "content_block_stop", "index": 0}
END: Frame = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
STOP: Frame = {"type": "message_stop"}


def delta(kind: object, index: int = 0, **fields: Any) -> Frame:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def text(words: str) -> Frame:
    return delta("text_delta", text=words)


def given(text: str) -> Frame:
    return delta("input_json_delta", partial_json=text)


def block(index: int = 0, /, **fields: Any) -> Frame:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def frame(found: Frame) -> bytes:
    if isinstance(found, dict):
        found = f"event: {found['type']}\ndata: {json.dumps(found)}\n\n"
    return found.encode() if isinstance(found, str) else found


def assemble(*frames: Frame, close: bool = True) -> tuple[ModelResponse, list[PartDelta]]:
    assembler = Assembler()
    deltas = [delta for found in frames for delta in assembler.feed(frame(found))]
    if close:
        deltas += assembler.close()
    return assembler.response(), deltas


def only(*frames: Frame) -> Any:
    (part,) = assemble(*frames)[0].parts
    return part


def test_deltas_carry_their_part_and_offset() -> None:
    """Merging is concatenation; empty deltas say nothing."""
    response, deltas = assemble(
        START, TEXT, text("Hé"), text(""), text("llo"), CLOSE, block(1, type="thinking", thinking=""),
        delta("thinking_delta", 1, thinking="hm"), block(2, type="tool_use", id="t", name="f"),
        delta("input_json_delta", 2, partial_json="{}"), delta("input_json_delta", 2, partial_json='{"a":1}'),
        END, STOP,
    )  # fmt: skip
    assert deltas == [
        PartDelta("text", 0, 0, "Hé"),
        PartDelta("text", 0, 2, "llo"),
        PartDelta("thinking", 1, 0, "hm"),
        PartDelta("input", 2, 0, '{"a":1}', "f"),
    ]
    assert response == ModelResponse(
        (Text("Héllo"), Thinking("hm"), ToolCall("", "t", "f", '{"a":1}', {"a": 1})),
        "end",
        "end_turn",
        Usage(output=3),
        "m",
        "msg_1",
    )


def test_text_that_a_block_begins_with_is_a_delta_too() -> None:
    """Some servers send the first words with the block's start, or a whole message with the head."""
    head = {"type": "message_start", "message": {"content": [{"type": "text", "text": "Hi"}, "junk"]}}
    response, deltas = assemble(head, text(" you"), END)
    assert deltas == [PartDelta("text", 0, 0, "Hi"), PartDelta("text", 0, 2, " you")]
    assert response.parts == (Text("Hi you"),)


@pytest.mark.parametrize(
    ("start", "pieces", "json_text", "arguments"),
    [
        ({}, [], "", {}),
        ({}, [""], "", {}),
        ({}, ["{}"], "{}", {}),
        ({}, ["{}", "\n"], "{}", {}),
        ({}, ["{}", '{"a":', "1}"], '{"a":1}', {"a": 1}),
        ({"a": 1}, [], '{"a":1}', {"a": 1}),
        ({"a": 1}, ["  "], '{"a":1}', {"a": 1}),
        ({"a": 1}, ['{"b":2}'], '{"b":2}', {"b": 2}),
        ({}, ['{"a":"x\ny"}'], '{"a":"x\ny"}', {"a": "x\ny"}),
        ({}, ['{"a":"\\ud83d"}'], '{"a":"\\ud83d"}', {"a": "\ufffd"}),
        ({}, ["1", "2"], "12", None),
        ({}, ['{"a":1}}'], '{"a":1}}', None),
        ([1], [], "[1]", None),
        (None, [], "", {}),
    ],
)
def test_arguments_are_what_was_streamed_else_what_the_block_began_with(
    start: object, pieces: list[str], json_text: str, arguments: object
) -> None:
    """A first ``{}`` is a placeholder: real arguments replace it, and are never glued to it."""
    call = only(block(type="tool_use", id="t", name="f", input=start), *map(given, pieces), CLOSE, END)
    assert (call.arguments_json, call.arguments) == (json_text, arguments)
    assert call.raw is None


def test_arguments_given_whole_are_streamed_once_at_the_end() -> None:
    """So that views see them too."""
    _, deltas = assemble(block(type="tool_use", id="t", name="f", input={"a": 1}), CLOSE, END)
    assert deltas == [PartDelta("input", 0, 0, '{"a":1}', "f")]


def test_a_call_that_says_more_is_kept_raw() -> None:
    """``caller`` must go back as it came."""
    call = only(block(type="tool_use", id="t", name="f", input={}, caller={"type": "direct"}), given('{"a":1}'), END)
    assert json.loads(call.raw) == {
        "type": "tool_use",
        "id": "t",
        "name": "f",
        "input": {"a": 1},
        "caller": {"type": "direct"},
    }


def test_citations_and_signatures_are_kept() -> None:
    """A text with citations is kept raw; a signature comes whole, the last one counts."""
    cited = only(
        TEXT, text("x"), delta("citations_delta", citation={"n": 1}), delta("citations_delta", citation=2), END
    )
    assert cited == Text("x", '{"type":"text","text":"x","citations":[{"n":1},2]}')
    signed = only(
        block(type="thinking", thinking="", signature=""), delta("signature_delta", signature="a"),
        delta("signature_delta", signature="b"), END,
    )  # fmt: skip
    assert signed == Thinking("", "b")
    assert only(block(type="thinking", thinking="x", more=1), END).raw == '{"type":"thinking","thinking":"x","more":1}'
    assert only(block(type="redacted_thinking", data="xyz"), END) == Thinking("", "xyz", redacted=True)


def test_blocks_of_other_types_are_verbatim_and_in_order() -> None:
    """Byte for byte where no delta touched them; else with what the deltas brought."""
    odd = b'data: {"type":"content_block_start","index":0,"content_block":{ "type":"new",  "n":1.50 }}\n\n'
    assert only(odd, CLOSE, END) == RawBlock("new", '{ "type":"new",  "n":1.50 }')
    server = block(type="server_tool_use", id="s", name="web", input={})
    assert only(server, given('{"q": '), given("1.0}"), CLOSE, END) == RawBlock(
        "server_tool_use", '{"type":"server_tool_use","id":"s","name":"web","input":{"q": 1.0}}'
    )
    assert json.loads(only(server, given('{"q": "a\nb"}'), END).json)["input"] == {"q": "a\nb"}
    assert json.loads(only(server, given('{"q": '), END).json)["input"] == {}


def test_unknown_deltas_grow_a_block_that_is_kept_verbatim() -> None:
    """As ``compaction_delta`` does; on known blocks they are left aside."""
    grown = only(
        block(type="new", content=None, n=1), delta("new_delta", content="a"),
        delta("new_delta", content="b", n=2, m=None), text("t"),
        delta("thinking_delta", thinking="h"), delta("input_json_delta", partial_json=None),
        delta("odd", partial_json='{"x":1}'), END,
    )  # fmt: skip
    assert json.loads(grown.json) == {
        "type": "new", "content": "ab", "n": 2, "text": "t", "thinking": "h", "input": {"x": 1},
    }  # fmt: skip
    odd = [delta("new_delta", content="a"), delta("text_delta", text=None), delta(7)]
    assert only(TEXT, *odd, text("x"), END) == Text("x")
    assert only(TEXT, given("{}"), text("x"), END) == Text("x")


def test_half_a_character_waits_for_its_other_half() -> None:
    """A server that cuts between UTF-16 units escapes each half by itself."""
    high, low = text("a\ud83d"), text("\ude00b")
    response, deltas = assemble(TEXT, high, low, text("c"), END)
    assert response.parts == (Text("a😀bc"),)
    assert deltas == [PartDelta("text", 0, 0, "a"), PartDelta("text", 0, 1, "😀b"), PartDelta("text", 0, 3, "c")]
    assert only(TEXT, high, text("c"), END) == Text("a\ufffdc")
    assert only(TEXT, high, CLOSE, END) == Text("a\ufffd")
    assert only(TEXT, high, END) == Text("a\ufffd")
    assert only(TEXT, text("\ude00"), END) == Text("\ufffd")
    assert only(block(type="new", content="\ud83d"), END).json == '{"type":"new","content":"\ufffd"}'


@pytest.mark.parametrize(
    "extra",
    [
        {"type": "ping"},
        {"type": "brand_new_event", "index": 0},
        "event: ping\ndata: [DONE]\n\n",
        "data: 3\n\n",
        "data: {}\n\n",
        ": comment\n\n",
        'data: {"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"x"}}\n\n',
        'data: {"type":"content_block_delta","index":9,"delta":{"type":"odd"}}\n\n',
        'data: {"type":"content_block_delta","index":0,"delta":null}\n\n',
        'data: {"type":"content_block_stop","index":9}\n\n',
        'data: {"type":"content_block_start","index":9,"content_block":null}\n\n',
        'data: {"type":"message_start"}\n\n',
        'data: {"type":"message_start","message":null}\n\n',
        'data: {"type":"message_start","message":{"id":null,"model":7,"content":null,"usage":[]}}\n\n',
        'data: {"type":"message_delta"}\n\n',
        'data: {"type":"message_delta","delta":{"stop_reason":null},"usage":null}\n\n',
        'data: {"type":"message_delta","delta":{"stop_reason":""},"usage":{"output_tokens":null}}\n\n',
    ],
)
def test_what_servers_sprinkle_into_a_stream_changes_nothing(extra: Frame) -> None:
    """First, between deltas, before and behind the stop reason."""
    frames = [START, TEXT, text("Hi"), text(" you"), CLOSE, END, STOP]
    whole = assemble(*frames)
    for at in range(len(frames) + 1):
        assert assemble(*frames[:at], extra, *frames[at:]) == whole


def test_the_type_decides_and_the_events_name_fills_in() -> None:
    """Names that differ, and data without a type."""
    assert only(
        frame(TEXT),
        'event: ping\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}\n\n',
        END,
    ) == Text("x")
    loose = [
        'event: message_start\ndata: {"message":{"id":"i"}}\n\n',
        'event: content_block_start\ndata: {"content_block":{"type":"text"}}\n\n',
        'event: content_block_delta\ndata: {"delta":{"type":"text_delta","text":"x"}}\n\n',
        "event: content_block_stop\ndata: {}\n\n",
        'event: message_delta\ndata: {"delta":{"stop_reason":"refusal"}}\n\n',
        "event: message_stop\ndata: {}\n\n",
    ]
    response, _ = assemble(*loose)
    assert (response.parts, response.stop_reason, response.response_id) == ((Text("x"),), "refusal", "i")


def test_a_second_head_starts_the_response_over() -> None:
    """What came before it is replaced as soon as a block comes again, and goes on if none does."""
    old = [START, TEXT, text("old"), CLOSE, block(1, type="tool_use", id="t", name="f"), START]
    assert assemble(*old, TEXT, text("new"), END)[0].parts == (Text("new"),)
    kept = assemble(*old, text("er"), block(2, type="text", text="!"), END)[0]
    assert [type(part) for part in kept.parts] == [Text, ToolCall, Text]
    assert kept.parts[0] == Text("older")
    again = assemble(START, TEXT, text("one"), TEXT, text("two"), END)[0]
    assert again.parts == (Text("two"),)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "end"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("stop_sequence", "stop_sequence"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        ("sensitive", "unknown"),
        ("something new", "unknown"),
    ],
)
def test_stop_reasons_are_normalised_and_kept(raw: str, reason: str) -> None:
    """``compaction`` waits to be continued, as a pause does; what is not known says so."""
    response, _ = assemble(START, {"type": "message_delta", "delta": {"stop_reason": raw}})
    assert (response.stop_reason, response.raw_stop_reason) == (reason, raw)


def test_usage_is_merged_and_odd_counts_are_none() -> None:
    """The last number counts; what is no number is 0; reasoning lies within the output."""
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 7}}}
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 9.0, "cache_creation_input_tokens": 2, "input_tokens": None,
                  "output_tokens_details": {"thinking_tokens": 4}},
    }  # fmt: skip
    assert assemble(start, end)[0].usage == Usage(5, 9, 7, 2, 4)
    beside = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 10}}
    assert assemble({**end, "usage": beside})[0].usage == Usage(0, 9, reasoning=9)  # it is part of the output
    odd = {"input_tokens": "7", "output_tokens": -1, "cache_read_input_tokens": True, "output_tokens_details": 3}
    assert assemble({**end, "usage": odd})[0].usage == Usage()
    inf = b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":1e400}}\n\n'
    response, _ = assemble(inf)
    assert (response.stop_reason, response.usage) == ("end", Usage())


def test_a_stream_without_its_last_blank_line_is_whole() -> None:
    """WHATWG would drop the last event; servers that close early mean it."""
    assert assemble(START, TEXT, text("x"), frame(END).rstrip(b"\n"))[0].stop_reason == "end"
    last = frame(text("x")).rstrip(b"\n")
    assembler = Assembler()
    for found in (START, TEXT, last):
        assembler.feed(frame(found))
    assert assembler.close() == [PartDelta("text", 0, 0, "x")]
    assert assembler.failure is not None
    with pytest.raises(ProviderError, match="before its stop reason"):
        assembler.close()


def test_a_response_that_broke_off_keeps_what_is_usable() -> None:
    """Text and reasoning as far as they came; of calls and other blocks only those that were complete."""
    open_call = [
        START,
        TEXT,
        text("Hi"),
        block(1, type="tool_use", id="t", name="f"),
        delta("input_json_delta", 1, partial_json="{}"),
    ]
    response, _ = assemble(*open_call, close=False)
    assert response.parts == (Text("Hi"),)
    assert (response.stop_reason, response.model) == (None, "m")
    closed, _ = assemble(*open_call, {"type": "content_block_stop", "index": 1}, close=False)
    assert closed.parts[1] == ToolCall("", "t", "f", "{}", {})
    assert assemble(START, block(type="new"), close=False)[0].parts == ()
    assert assemble(START, block(type="new"), CLOSE, close=False)[0].parts == (RawBlock("new", '{"type": "new"}'),)
    assert assemble(START, block(type="thinking", thinking="so"), close=False)[0].parts == (Thinking("so"),)


def test_an_error_comes_after_the_deltas_before_it_and_stays() -> None:
    """Both may lie in one read. What comes behind the stop reason is no error any more."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    body = b"".join(map(frame, (START, TEXT, text("Hi"), error, text("never"))))
    assembler = Assembler()
    assert assembler.feed(body) == [PartDelta("text", 0, 0, "Hi")]
    for _ in range(2):
        with pytest.raises(ProviderError, match="Overloaded") as caught:
            assembler.feed(b"")
        assert (caught.value.code, caught.value.retry) == ("overloaded", "stream")
    with pytest.raises(ProviderError, match="Overloaded"):
        assembler.close()
    last = Assembler()
    last.feed(frame(error).rstrip(b"\n"))
    for _ in range(2):
        with pytest.raises(ProviderError, match="Overloaded"):
            last.close()
    with pytest.raises(ProviderError) as first:
        Assembler().feed(frame(error))
    assert first.value.retry == "request"
    with pytest.raises(ProviderError):
        Assembler().feed(frame('data: {"error":{"message":"slow","code":429}}\n\n'))
    assert assemble(START, TEXT, text("x"), END, error, STOP)[0].stop_reason == "end"


def test_done_is_set_by_the_last_frame_alone() -> None:
    """``finished`` says that the outcome is known, ``done`` that nothing more comes."""
    assembler = Assembler()
    for found, finished, done in ((STOP, False, False), (END, True, False), (STOP, True, True)):
        assembler.feed(frame(found))
        assert (assembler.finished, assembler.done) == (finished, done)


def test_json_that_exhausts_the_stack_fails_the_response() -> None:
    """Typed, also where it lies within a block."""
    for body in (b"[" * 99_999 + b"]" * 99_999, b'{"type":"x","y":' + b"[" * 99_999 + b"]" * 99_999 + b"}"):
        with pytest.raises(ProviderError) as caught:
            Assembler().feed(b"data: " + body + b"\n\n")
        assert caught.value.code == "invalid_response"


def test_arguments_that_exhaust_the_stack_are_no_arguments() -> None:
    """The call is answered as invalid; the response is not lost."""
    call = only(CALL, given("[" * 99_999 + "]" * 99_999), CLOSE, END)
    assert call.arguments is None


MESSAGE = {
    "type": "message", "id": "msg_1", "model": "m", "stop_reason": "tool_use", "usage": {"input_tokens": 1},
    "content": [{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}],
}  # fmt: skip


def _body(body: bytes) -> tuple[ModelResponse, list[PartDelta]]:
    assembler = BodyAssembler()
    assert assembler.feed(body[:10]) == assembler.feed(body[10:]) == []
    deltas = assembler.close()
    return assembler.response(), deltas


def test_a_body_that_is_no_stream_gives_the_same_outcome() -> None:
    """For servers that ignore ``stream``."""
    response, deltas = _body(json.dumps(MESSAGE).encode())
    assert response.parts == (Text("Hi"), ToolCall("", "t", "f", '{"a":1}', {"a": 1}))
    assert (response.stop_reason, response.usage, response.model) == ("tool_calls", Usage(1), "m")
    assert deltas == [PartDelta("text", 0, 0, "Hi"), PartDelta("input", 1, 0, '{"a":1}', "f")]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (b"<html>", "invalid_response", "no JSON"),
        (b"[]", "invalid_response", "no JSON object"),
        (b"{}", "invalid_response", "no stop reason"),
        (b'{"error": "text"}', "dependency_failed", "text"),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "overloaded", "Overloaded"),
        (b"[" * 99_999 + b"]" * 99_999, "invalid_response", "deeply"),
    ],
)
def test_a_body_that_is_no_message_is_a_typed_error(body: bytes, code: str, words: str) -> None:
    """HTTP 200 with an error's body, or with junk."""
    with pytest.raises(ProviderError, match=words) as caught:
        _body(body)
    assert caught.value.code == code


def test_a_body_is_bounded() -> None:
    """A hostile server must not fill the memory."""
    assembler = BodyAssembler(max_body=100)
    assembler.feed(b" " * 100)
    with pytest.raises(ProviderError, match="more than 100 bytes"):
        assembler.feed(b" ")


@pytest.mark.parametrize(
    ("details", "said"),
    [({"type": "refusal", "category": "cyber"}, "cyber"), ({"category": ""}, None), (None, None), ("odd", None)],
)
def test_the_category_of_a_refusal_is_kept(details: object, said: str | None) -> None:
    """An app shows its user which policy a refusal falls under, where the server says so."""
    end: Frame = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    assert assemble(START, end, STOP)[0].stop_detail == said
