"""A Responses answer from its bytes: what the corpus does not have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.parts import RawBlock, Text, Thinking, ToolCall
from agentrio.domain.usage import Usage
from agentrio.providers.base import ModelResponse, PartDelta, ProviderError
from agentrio.providers.wire.json import is_cut
from agentrio.providers.wire.responses_assembler import Assembler, BodyAssembler

Frame = dict[str, Any] | bytes


def event(kind: str, **fields: Any) -> Frame:
    return {"type": f"response.{kind}", **fields}


def added(item: dict[str, Any], index: int | None = 0) -> Frame:
    return event("output_item.added", item=item, **placed(index))


def done(item: dict[str, Any], index: int | None = 0) -> Frame:
    return event("output_item.done", item=item, **placed(index))


def placed(index: int | None) -> dict[str, Any]:
    return {} if index is None else {"output_index": index}


def text(words: str, index: int | None = 0, content: int = 0, **fields: Any) -> Frame:
    return event("output_text.delta", delta=words, content_index=content, **placed(index), **fields)


def summary(words: str, part: int = 0) -> Frame:
    return event("reasoning_summary_text.delta", delta=words, output_index=0, summary_index=part)


def arguments(words: str, index: int | None = 0, **fields: Any) -> Frame:
    return event("function_call_arguments.delta", delta=words, **placed(index), **fields)


def message(*texts: str, id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words, "annotations": []} for words in texts]
    return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": content, **fields}


def call(arguments: Any = "", id: str = "fc_1", call_id: str = "call_1", name: str = "f") -> dict[str, Any]:
    return {"id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def reasoning(*summaries: str, **fields: Any) -> dict[str, Any]:
    told = [{"type": "summary_text", "text": words} for words in summaries]
    return {"id": "rs_1", "type": "reasoning", "summary": told, **fields}


def end(status: str = "completed", kind: str = "", **fields: Any) -> Frame:
    return event(kind or status, response={"id": "resp_1", "model": "m", "status": status, "output": [], **fields})


END = end()


def frame(found: Frame) -> bytes:
    return found if isinstance(found, bytes) else f"event: {found['type']}\ndata: {json.dumps(found)}\n\n".encode()


def assemble(*frames: Frame, close: bool = True) -> tuple[ModelResponse, list[PartDelta]]:
    assembler = Assembler()
    deltas = [delta for found in frames for delta in assembler.feed(frame(found))]
    if close:
        deltas += assembler.close()
    return assembler.response(), deltas


def parts(*frames: Frame) -> tuple[Any, ...]:
    return assemble(*frames)[0].parts


def failure(*frames: Frame) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        assemble(*frames)
    return caught.value


# Items and their deltas


def test_items_are_told_apart_by_their_index() -> None:
    """Interleaved deltas end up in their own items, whatever the ids say."""
    found = parts(
        added(call(call_id="a")),
        added(call(call_id="b"), 1),
        arguments('{"x":', 0, item_id="new-1"),
        arguments('{"y":', 1, item_id="new-2"),
        arguments("1}", 0, item_id="new-3"),
        arguments("2}", 1, item_id="new-4"),
        END,
    )
    assert [(part.provider_id, part.arguments) for part in found] == [("a", {"x": 1}), ("b", {"y": 2})]


def test_items_without_an_index_are_told_apart_by_their_id() -> None:
    """llama.cpp sends no indexes."""
    found = parts(
        added(call(id="fc_a", call_id="a"), None),
        added(call(id="fc_b", call_id="b"), None),
        arguments('{"x":1}', None, item_id="fc_a"),
        arguments('{"y":2}', None, item_id="fc_b"),
        done(call('{"x":1}', id="fc_a", call_id="a"), None),
        END,
    )
    assert [(part.provider_id, part.arguments) for part in found] == [("a", {"x": 1}), ("b", {"y": 2})]


def test_with_neither_index_nor_known_id_it_is_the_open_item_of_that_type() -> None:
    """The last one."""
    found = parts(
        added(message(id="msg_a"), None),
        text("Hel", None),
        added(call(), None),
        text("lo", None, item_id="unknown"),
        arguments("{}", None),
        END,
    )
    assert [getattr(part, "text", None) or part.arguments_json for part in found] == ["Hello", "{}"]


def test_one_index_for_all_items_keeps_them_apart() -> None:
    """An item that begins at the place of another is another."""
    found = parts(
        added(call(id="a", call_id="a")),
        arguments('{"x":1}'),
        done(call('{"x":1}', id="a", call_id="a")),
        added(call(id="b", call_id="b")),
        arguments('{"y":2}'),
        done(call('{"y":2}', id="b", call_id="b")),
        END,
    )
    assert [(part.provider_id, part.arguments) for part in found] == [("a", {"x": 1}), ("b", {"y": 2})]


def test_an_item_that_is_added_twice_is_one() -> None:
    """A gateway that repeats itself."""
    (part,) = parts(added(message()), text("Hi"), added(message()), text("!"), END)
    assert part.text == "Hi!"


def test_an_item_may_begin_with_its_delta_or_be_done_at_once() -> None:
    """Never added: the delta's type says what it is."""
    found = parts(text("Hi", item_id="msg_9"), text("!", item_id="msg_9"), done(call("{}"), 1), END)
    assert [type(part) for part in found] == [Text, ToolCall]
    assert found[0].text == "Hi!"


def test_the_done_item_counts() -> None:
    """Where it goes on, the rest is given out; where it differs, it replaces without a word."""
    response, deltas = assemble(
        added(message()), text("Hel"), done(message("Hello")),
        added(message(id="m2"), 1), text("Bye", 1), done(message("Hello", id="m2"), 1),
        END,
    )  # fmt: skip
    assert [part.text for part in response.parts if isinstance(part, Text)] == ["Hello", "Hello"]
    assert [(delta.part, delta.offset, delta.text) for delta in deltas] == [(0, 0, "Hel"), (0, 3, "lo"), (1, 0, "Bye")]


def test_each_content_part_of_a_message_is_a_text_with_its_item() -> None:
    """What of the item is not text goes along, so that the item can be put together again."""
    whole = message("One.", "Two.", phase="final_answer")
    found = parts(added(message()), text("One."), text("Two.", content=1), done(whole), END)
    rest = {"type": "output_text", "annotations": []}
    assert [part.text for part in found] == ["One.", "Two."]
    for part in found:
        assert json.loads(part.raw) == {**message(phase="final_answer"), "content": [rest]}


def test_content_of_an_unknown_type_is_kept_in_its_message() -> None:
    """Verbatim, beside what is known."""
    whole = message("One.")
    whole["content"] += [{"type": "output_audio", "data": "abc"}, "odd"]
    found = parts(done(whole), END)
    assert found[1] == RawBlock("output_audio", found[1].json)
    assert json.loads(found[1].json) == {**whole, "content": [{"type": "output_audio", "data": "abc"}]}
    assert len(found) == 2


def test_a_message_that_is_done_with_less_than_was_streamed_keeps_what_was() -> None:
    """A done item without content says nothing of it."""
    (part,) = parts(added(message()), text("Hi"), done({**message(), "content": None}), END)
    assert part == Text("Hi")


@pytest.mark.parametrize("place", [-1, -(2**70), 2**70])
def test_a_text_at_a_place_that_no_content_has_is_a_text(place: int) -> None:
    """Counted from the end, it was none of what is there, or an ``IndexError`` that ended the session."""
    for content in ([], ["One."]):
        (part, *_) = parts(added(message()), text("Hi", content=place), done(message(*content)), END)
        assert part == Text("Hi")


def test_a_text_for_an_item_that_is_kept_as_it_came_is_none_of_any_part() -> None:
    """It was told as the input of a tool."""
    search = {"type": "web_search_call", "id": "ws_1"}
    response, deltas = assemble(added(search), text("Hi"), arguments("{}"), done(search), END)
    assert [type(part) for part in response.parts] == [RawBlock]
    assert deltas == []


def test_unknown_items_stay_as_the_bytes_that_came() -> None:
    """Key order and spaces included; the done one counts."""
    item = b'{"type": "future_call",  "b": 1.50, "a": "\\u00e9"}'
    raw = b'data: {"type":"response.output_item.done","output_index":0,"item":' + item + b"}\n\n"
    (part,) = parts(added({"type": "future_call", "status": "in_progress"}), raw, END)
    assert part == RawBlock("future_call", item.decode())


def test_what_is_no_item_is_left_out() -> None:
    """And an event of a type that no one knows."""
    odd = (
        event("output_item.added", item=None),
        event("output_item.done", item=[1]),
        event("future.delta", delta={"x": 1}),
    )
    assert parts(*odd, event("output_text.delta", delta=None), text("Hi"), END) == (Text("Hi"),)


# Reasoning


def test_reasoning_is_its_summary_with_its_item_verbatim() -> None:
    """Parts of a summary stand apart, in what is streamed as in the whole."""
    item = reasoning("First.", "Then.", encrypted_content="gAAA")
    response, deltas = assemble(added(reasoning()), summary("First."), summary("Then.", 1), done(item), END)
    assert response.parts == (Thinking("First.\n\nThen.", raw=json.dumps(item)),)
    assert "".join(delta.text for delta in deltas) == "First.\n\nThen."
    assert {delta.kind for delta in deltas} == {"thinking"}


def test_reasoning_may_be_told_itself() -> None:
    """By open models' servers; what of an item is odd is left out."""
    item = reasoning(content=[{"type": "reasoning_text", "text": "Hm."}, None, {"text": 3}])
    grown = event("reasoning_text.delta", delta="Hm.", output_index=0, content_index=0)
    assert parts(added(reasoning()), grown, done(item), END) == (Thinking("Hm.", raw=json.dumps(item)),)


def test_of_two_encryptions_the_done_items_is_kept() -> None:
    """It is there also when the stream breaks off behind it, and a complete part does not change."""
    first, second = (reasoning(encrypted_content=text) for text in ("first", "second"))
    whole, _ = assemble(done(first), done(message("Hi"), 1), end(output=[second, message("Hi")]))
    cut, _ = assemble(done(first), close=False)
    assert whole.parts[0] == cut.parts[0] == Thinking("", raw=json.dumps(first))


def test_reasoning_that_was_cut_is_kept_as_text_alone() -> None:
    """Half of an item proves nothing to the server."""
    response, _ = assemble(added(reasoning()), summary("Hm"), close=False)
    assert response.parts == (Thinking("Hm"),)


# Calls


def test_a_calls_arguments_may_come_with_the_done_item_alone() -> None:
    """LM Studio streams none; they are given out then."""
    response, deltas = assemble(added(call()), done(call('{"x":1}')), END)
    assert [delta.text for delta in deltas] == ['{"x":1}']
    assert (deltas[0].kind, deltas[0].name) == ("input", "f")
    assert response.stop_reason == "tool_calls"


@pytest.mark.parametrize(("given", "text", "parsed"), [("", "", {}), ("{}", "{}", {}), ({"x": 1}, '{"x":1}', {"x": 1})])
def test_arguments_may_be_missing_or_the_object_itself(given: object, text: str, parsed: object) -> None:
    """None at all are an empty object."""
    (part,) = parts(added(call()), done(call(given)), END)
    assert (part.arguments_json, part.arguments) == (text, parsed)


def test_a_placeholder_is_replaced_by_real_arguments() -> None:
    """A first ``{}`` that real arguments follow."""
    (part,) = parts(added(call()), arguments("{}"), arguments('{"x":1}'), END)
    (bare,) = parts(added(call()), arguments("{}"), END)
    assert (part.arguments, bare.arguments_json) == ({"x": 1}, "{}")


def test_a_call_keeps_what_its_item_says_beside() -> None:
    """Its id, which must go back with the reasoning before it."""
    (part,) = parts(done(call('{"x":1}')), END)
    assert part.provider_id == "call_1"
    assert json.loads(part.raw) == {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f"}


def test_a_custom_calls_text_becomes_one_argument() -> None:
    """Its deltas are JSON on the way already, so that merging stays concatenation."""
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "sh", "input": ""}
    pieces = ["", 'echo "hi', '"\n']
    deltas = [event("custom_tool_call_input.delta", delta=piece, output_index=0) for piece in pieces]
    response, given = assemble(added(item), *deltas, done({**item, "input": 'echo "hi"\n'}), END)
    assert response.parts == (
        ToolCall(
            "", "c", "sh", '{"input":"echo \\"hi\\"\\n"}', {"input": 'echo "hi"\n'},
            '{"id":"ctc_1","type":"custom_tool_call","call_id":"c","name":"sh"}',
        ),
    )  # fmt: skip
    assert "".join(delta.text for delta in given) == '{"input":"echo \\"hi\\"\\n"}'


def test_open_calls_and_items_are_left_out_of_what_a_stop_leaves() -> None:
    """Text stays, and items that were done."""
    response, _ = assemble(
        done({"type": "web_search_call", "id": "ws"}),
        added({"type": "web_search_call", "id": "ws2"}, 1),
        added(message(), 2), text("Hi", 2),
        done(call("{}"), 3),
        added(call(id="x"), 4), arguments('{"x":1}', 4),
        close=False,
    )  # fmt: skip
    assert [type(part) for part in response.parts] == [RawBlock, Text, ToolCall]
    assert response.stop_reason is None


# How it ends


def test_a_refusal_is_a_text_and_a_stop_reason() -> None:
    """The text says what it is, for its way back."""
    item = {**message(), "content": [{"type": "refusal", "refusal": "No."}]}
    delta = event("refusal.delta", delta="No.", output_index=0, content_index=0)
    response, deltas = assemble(added(message()), delta, done(item), END)
    assert response.parts[0] == Text(
        "No.", json.dumps({**item, "content": [{"type": "refusal"}]}, separators=(",", ":"))
    )
    assert (response.stop_reason, response.raw_stop_reason) == ("refusal", "completed")
    assert [delta.kind for delta in deltas] == ["text"]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "content_filter"),
        ("new_reason", "unknown"),
        (None, "unknown"),
    ],
)
def test_an_incomplete_response_says_why(reason: str | None, stop: str) -> None:
    """And is whole: it is no drop."""
    response, _ = assemble(done(message("Hi")), end("incomplete", incomplete_details=reason and {"reason": reason}))
    assert (response.stop_reason, response.raw_stop_reason) == (stop, reason or "incomplete")


def test_the_status_may_be_complete() -> None:
    """As a gateway has it."""
    response, _ = assemble(done(message("Hi")), end("complete", "completed"))
    assert (response.stop_reason, response.raw_stop_reason) == ("end", "complete")


def test_arguments_that_a_limit_cut_are_no_calls_to_run() -> None:
    """llama.cpp says completed; what is wrong otherwise is the model's own fault."""
    cut, _ = assemble(done(call('{"x": "un')), END)
    wrong, _ = assemble(done(call("{x: 1}")), END)
    assert (cut.stop_reason, wrong.stop_reason) == ("max_tokens", "tool_calls")


@pytest.mark.parametrize(
    "text", ["", "{", '{"a', '{"a":', '{"a": tr', '{"a": -', '{"a": "b\\', '{"a":1,', "[1, ", '{"a":[{}']
)
def test_what_is_cut_is_known(text: str) -> None:
    """The beginning of an object is no object."""
    assert is_cut(text)


@pytest.mark.parametrize("text", ["{}", "{a}", '{"a":1}}', "none", "[" * 100_000, '{"a": truth}'])
def test_what_is_whole_or_wrong_is_not_cut(text: str) -> None:
    """More of it would not help."""
    assert not is_cut(text)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.none()), st.integers(0))
@settings(deadline=None)
def test_the_beginning_of_an_object_is_cut_or_nothing(value: dict[str, Any], at: int) -> None:
    """At any place but within a number or an escape, where it can't be told from a fault."""
    text = json.dumps(value, ensure_ascii=False)
    head = text[: at % len(text)]
    assert is_cut(head) or "\\" in head


def test_items_that_are_only_in_the_last_event_are_taken_from_there() -> None:
    """All, if nothing was streamed; else what was not done by then."""
    whole, deltas = assemble(end(output=[reasoning("Hm."), message("Hi"), call("{}"), 5]))
    assert [type(part) for part in whole.parts] == [Thinking, Text, ToolCall]
    assert [delta.text for delta in deltas] == ["Hm.", "Hi"]
    grown, _ = assemble(
        added(message()),
        text("Hel"),
        done(call("{}"), 1),
        end(output=[message("Hello"), call("[]"), message("More"), 5]),
    )
    assert [getattr(part, "text", None) for part in grown.parts] == [
        None if isinstance(part, ToolCall) else "Hello" for part in grown.parts
    ]
    assert len(grown.parts) == 2


def test_done_comes_with_the_last_event_and_nothing_after_it_counts() -> None:
    """Servers leave bodies open; gateways add a ``[DONE]``, or an error of their own."""
    assembler = Assembler()
    assembler.feed(frame(done(message("Hi"))))
    assert (assembler.finished, assembler.done) == (False, False)
    assembler.feed(frame(END))
    assert (assembler.finished, assembler.done) == (True, True)
    assembler.feed(b"data: [DONE]\n\n" + frame(text("more")) + frame({"type": "error", "message": "late"}))
    assert assembler.close() == []
    assert [part.text for part in assembler.response().parts if isinstance(part, Text)] == ["Hi"]


def test_usage_counts_the_uncached_part_and_reasoning_within_the_output() -> None:
    """Odd numbers are nothing."""
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 30},
    }
    assert assemble(end(usage=usage))[0].usage == Usage(30, 20, 60, 10, 20)
    assert assemble(end(usage=usage | {"input_tokens": 65}))[0].usage == Usage(0, 20, 60, 5, 20)
    assert assemble(end(usage=usage | {"input_tokens": 50}))[0].usage == Usage(0, 20, 50, 0, 20)
    assert assemble(end(usage={"input_tokens": "7", "input_tokens_details": 3}))[0].usage == Usage()
    assert assemble(end(usage=[1]))[0].usage == Usage()


def test_who_answered_is_told_at_the_head() -> None:
    """And by the end, which may know better."""
    head = [event(kind, response={"id": "resp_0", "model": "m0"}) for kind in ("created", "queued", "in_progress")]
    response, _ = assemble(*head, close=False)
    assert (response.response_id, response.model) == ("resp_0", "m0")
    response, _ = assemble(*head, END)
    assert (response.response_id, response.model) == ("resp_1", "m")


# Errors


def test_a_stream_that_ends_before_its_last_event_is_a_drop() -> None:
    """Whatever came before."""
    error = failure(done(message("Hi")))
    assert (error.code, error.retry) == ("stream_dropped", "stream")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": None},
        {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "Slow down."}},
        end("failed", error={"code": "rate_limit_exceeded", "message": "Slow down."}),
        b'data: {"error":{"code":"rate_limit_exceeded","message":"Slow down."}}\n\n',
        b'event: error\ndata: {"code":"rate_limit_exceeded","message":"Slow down."}\n\n',
    ],
)
def test_an_error_in_a_stream_is_typed_by_its_code(error: Frame) -> None:
    """In every shape it comes in; what to try again depends on whether anything came before it."""
    first, later = failure(error), failure(added(message()), error)
    assert (first.code, first.retry) == ("rate_limited", "request")
    assert (later.code, later.retry) == ("rate_limited", "stream")
    assert first.message == "The model server broke off: Slow down."


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        ("insufficient_quota", "rate_limited"),
        ("server_error", "dependency_failed"),
        ("context_length_exceeded", "context_overflow"),
        ("invalid_prompt", "invalid_request"),
        ("image_content_policy_violation", "content_filter"),
        ("something_new", "dependency_failed"),
    ],
)
def test_the_codes_of_a_failed_response(code: str, ours: str) -> None:
    """By code alone: the status was 200."""
    assert failure(end("failed", error={"code": code, "message": "Oh."})).code == ours


def test_a_failed_response_counts_what_it_cost() -> None:
    """And may say nothing more; one that was cancelled is no answer either."""
    assembler = Assembler()
    with pytest.raises(ProviderError, match="the response is failed"):
        assembler.feed(frame(end("failed", usage={"input_tokens": 7})))
    assert assembler.response().usage.input == 7
    assert failure(end("cancelled")).retry == "request"
    with pytest.raises(ProviderError):
        assembler.feed(b"")


# Odd bytes


def test_names_of_events_and_types_stand_in_for_each_other() -> None:
    """The type counts; where there is none, the name. A sequence number is not needed."""
    named = b'event: response.output_text.delta\ndata: {"delta":"Hi"}\n\n'
    assert parts(b": comment\n\n" + frame({"type": "keepalive"}) + named, END) == (Text("Hi"),)
    assert parts(named, b"data: 3\n\ndata: {}\n\ndata: oh\n\n", END) == (Text("Hi"),)


def test_half_a_surrogate_pair_waits_for_the_other() -> None:
    """JSON that msgspec refuses."""
    halves = [
        rb'{"type":"response.output_text.delta","output_index":0,"delta":"%b"}' % half
        for half in (rb"\ud83d", rb"\ude00!")
    ]
    response, deltas = assemble(*(b"data: " + half + b"\n\n" for half in halves), END)
    assert response.parts == (Text("\U0001f600!"),)
    assert [delta.text for delta in deltas] == ["\U0001f600!"]
    alone, _ = assemble(b"data: " + halves[0] + b"\n\n", END)
    assert alone.parts == (Text("\ufffd"),)


def test_a_custom_call_survives_half_a_pair() -> None:
    """Its done item says it all again."""
    item = {"id": "c", "type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "a\U0001f600"}
    half = rb'data: {"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"a\ud83d"}' + b"\n\n"
    (part,) = parts(added({**item, "input": ""}), half, done(item), END)
    assert part.arguments == {"input": "a\U0001f600"}


def test_fields_of_odd_types_are_read_one_by_one() -> None:
    """A place that is no number, a response that is none."""
    odd = {"type": "response.output_text.delta", "delta": "Hi", "output_index": "0", "content_index": True}
    (part,) = parts(odd, event("created", response="soon"), event("created", response={"id": 7, "output": 3}), END)
    assert part == Text("Hi")
    ended = event("completed", response={"id": 7, "status": None, "output": [message("Hi")], "usage": 3})
    assert [part.text for part in parts(ended)] == ["Hi"]
    assert assemble(event("completed", response={"id": 7, "output": "none"}))[0].parts == ()


# Bodies


def body(found: Any) -> tuple[ModelResponse, list[PartDelta]]:
    assembler = BodyAssembler()
    data = found if isinstance(found, bytes) else json.dumps(found).encode()
    assert assembler.feed(data) == []
    deltas = assembler.close()
    return assembler.response(), deltas


def test_a_whole_body_gives_the_same_response() -> None:
    """For servers that do not stream."""
    whole = {"id": "resp_1", "model": "m", "status": "completed", "output": [message("Hi"), call("{}")]}
    streamed, _ = assemble(done(message("Hi")), done(call("{}"), 1), END)
    response, deltas = body(whole)
    assert response == streamed
    assert [delta.text for delta in deltas] == ["Hi"]
    del whole["status"]
    assert body(whole)[0].raw_stop_reason == "completed"


@pytest.mark.parametrize("found", [b"", b"no", [], {}, {"status": "queued", "output": []}, {"status": "completed"}])
def test_a_body_that_is_no_response_is_invalid(found: Any) -> None:
    """Or one that is not done yet."""
    with pytest.raises(ProviderError) as caught:
        body(found)
    assert caught.value.code == "invalid_response"


@pytest.mark.parametrize(
    "found",
    [{"error": {"code": "server_error"}}, {"status": "failed", "output": [], "error": {"code": "server_error"}}],
)
def test_a_body_may_be_an_error(found: Any) -> None:
    """With status 200."""
    with pytest.raises(ProviderError) as caught:
        body(found)
    assert (caught.value.code, caught.value.retry) == ("dependency_failed", "request")
