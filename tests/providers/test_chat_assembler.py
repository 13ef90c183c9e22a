"""What servers of the Chat Completions wire do, and what is made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.domain.parts import RawBlock, Text, Thinking, ToolCall
from agentrio.domain.usage import Usage
from agentrio.providers.base import ModelResponse, PartDelta, ProviderError
from agentrio.providers.wire.chat_assembler import ChatAssembler, ChatBodyAssembler, Reading, usage_of
from agentrio.providers.wire.chat_parts import REFUSAL

STRICT = Reading()
DONE = b"data: [DONE]\n\n"


def event(value: Any, name: str = "") -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + data + b"\n\n"


def delta(finish: Any = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def call(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> bytes:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece: dict[str, Any] = {"function": function}
    piece |= {} if index is None else {"index": index}
    piece |= {} if id is None else {"id": id}
    return delta(tool_calls=[piece])


def run(*events: bytes, reading: Reading = STRICT) -> tuple[ModelResponse, list[PartDelta]]:
    assembler = ChatAssembler(reading)
    deltas = [each for data in events for each in assembler.feed(data)]
    deltas += assembler.close()
    return assembler.response(), deltas


def calls(*events: bytes, finish: str = "tool_calls") -> list[tuple[str, str, Any]]:
    """Id, name and arguments of the calls that these events make."""
    response, _ = run(*events, delta(finish=finish))
    found = [part for part in response.parts if isinstance(part, ToolCall)]
    return [(it.provider_id, it.name, it.arguments) for it in found]


def fails(*events: bytes, reading: Reading = STRICT) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        run(*events, reading=reading)
    return caught.value


# ------------------------------------------------------------------------------------------------ text, reasoning


def test_text_comes_as_deltas_of_one_part() -> None:
    """Offsets count characters; the role's own empty delta says nothing."""
    response, deltas = run(
        delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop")
    )
    assert deltas == [PartDelta("text", 0, 0, "Hel"), PartDelta("text", 0, 3, "lo")]
    assert response.parts == (Text("Hello"),)
    assert (response.stop_reason, response.raw_stop_reason) == ("end", "stop")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_keeps_the_field_it_came_in(field: str) -> None:
    """The same model is given it back in that field."""
    response, deltas = run(delta(**{field: "hm"}), delta(**{field: "m"}), delta(content="Yes"), delta("stop"))
    assert response.parts == (Thinking("hmm", raw=f'{{"field":"{field}"}}'), Text("Yes"))
    assert [each.kind for each in deltas] == ["thinking", "thinking", "text"]


def test_h10_empty_reasoning_makes_no_thinking() -> None:
    """Some servers send it empty in each chunk."""
    events = [delta(content="a", reasoning_content="", reasoning=None, reasoning_details=[]), delta("stop")]
    assert run(*events)[0].parts == (Text("a"),)
    details = [{"type": "reasoning.text", "text": "", "signature": ""}, "no object", {"type": ["odd"], "text": ""}]
    assert run(delta(content="a", reasoning_details=details), delta("stop"))[0].parts == (Text("a"),)


def test_reasoning_told_in_two_fields_is_told_once() -> None:
    """vLLM sends both names for a while; OpenRouter sends details beside the text."""
    detail = {"type": "reasoning.text", "text": "hm", "index": 0}
    response, deltas = run(delta(reasoning_content="hm", reasoning="hm", reasoning_details=[detail]), delta("stop"))
    assert [each.text for each in deltas] == ["hm"]
    assert response.parts[0] == Thinking(
        "hm", raw=json.dumps({"field": "reasoning_content", "details": [detail]}, separators=(",", ":"))
    )


def test_signed_details_are_kept_verbatim_and_their_pieces_joined() -> None:
    """The signature comes behind the text, even behind the answer's first words."""
    first = {"type": "reasoning.text", "text": "I ", "format": "anthropic-claude-v1", "index": 0}
    second = {"type": "reasoning.text", "text": "see", "format": None, "index": 0}
    signature = {"type": "reasoning.text", "text": "", "signature": "c2ln", "index": 0}
    events = [delta(reasoning_details=[first]), delta(reasoning_details=[second]), delta(content="Yes")]
    response, deltas = run(*events, delta(reasoning_details=[signature]), delta("stop"))
    thinking = response.parts[0]
    assert isinstance(thinking, Thinking)
    assert (thinking.text, thinking.signature) == ("I see", "c2ln")
    whole = first | {"text": "I see", "signature": "c2ln"}
    assert json.loads(thinking.raw or "") == {"field": "reasoning_details", "details": [whole]}
    assert [each.text for each in deltas] == ["I ", "see", "Yes"]


def test_encrypted_details_are_hidden_reasoning() -> None:
    """They have no text, and each stays as it is."""
    details = [{"type": "reasoning.encrypted", "data": data, "index": 0} for data in ("QQ==", "Qg==")]
    response, deltas = run(delta(reasoning_details=details), delta(content="Yes"), delta("stop"))
    thinking = response.parts[0]
    assert isinstance(thinking, Thinking)
    assert (thinking.text, thinking.signature, thinking.redacted) == ("", "QQ==", True)
    assert json.loads(thinking.raw or "")["details"] == details
    assert [each.kind for each in deltas] == ["text"]


def test_summaries_are_reasoning_too() -> None:
    """OpenAI's models behind OpenRouter tell a summary and hide the rest."""
    details = [{"type": "reasoning.summary", "summary": "Adding."}, {"type": "reasoning.encrypted", "data": "QQ=="}]
    response, _ = run(delta(reasoning_details=details), delta("stop"))
    thinking = response.parts[0]
    assert isinstance(thinking, Thinking)
    assert (thinking.text, thinking.redacted, thinking.signature) == ("Adding.", False, None)


def test_content_may_be_a_list_of_texts_and_reasoning() -> None:
    """Mistral's; texts and reasoning alternate, what is unknown is left out."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "x"}, 3]}
    events = [
        delta(content=[thinking]),
        delta(
            content=[{"type": "thinking", "thinking": "m"}, {"type": "reference"}, "odd", {"type": "text", "text": ""}]
        ),
        delta(content=[{"type": "text", "text": "14"}]),
        delta(content="4"),
        delta(content=[{"type": "text", "text": "."}]),
        delta(content=[thinking, {"type": "thinking", "thinking": None}]),
        delta(content="!"),
        delta("stop"),
    ]
    response, deltas = run(*events)
    raw = '{"field":"content"}'
    assert response.parts == (Thinking("hm", raw=raw), Text("144."), Thinking("h", raw=raw), Text("!"))
    assert [each.part for each in deltas] == [0, 0, 1, 1, 1, 2, 3]


def test_a_refusal_is_told_in_its_own_words() -> None:
    """The finish reason says stop; the stop reason is refusal all the same."""
    response, deltas = run(delta(refusal="I "), delta(refusal="won't."), delta("stop"))
    assert response.parts == (Text("I won't.", REFUSAL),)
    assert (response.stop_reason, response.raw_stop_reason) == ("refusal", "stop")
    assert "".join(each.text for each in deltas) == "I won't."


def test_surrogate_halves_that_are_cut_between_deltas_become_one_character() -> None:
    """In text, reasoning, arguments; a half that stays alone becomes U+FFFD."""
    events = [
        event(b'{"choices":[{"delta":{"content":"\\ud83d"}}]}'),
        event(b'{"choices":[{"delta":{"content":"\\ude00a\\ud83d"}}]}'),
        event(b'{"choices":[{"delta":{"content":"\\ude00b"}}]}'),
        event(b'{"choices":[{"delta":{"reasoning":"\\ud83d"}}]}'),
        event(
            b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":7,"function":{"name":"f","arguments":"{\\"a\\":\\"\\ud83d"}}]}}]}'
        ),
        event(b'{"choices":[{"delta":{"tool_calls":[{"index":"0","function":{"arguments":"\\ude00\\"}"}}]}}]}'),
    ]
    response, deltas = run(*events, delta("tool_calls"))
    assert response.parts[0] == Text("\U0001f600a\U0001f600b")
    assert isinstance(response.parts[1], Thinking)
    assert response.parts[1].text == "\ufffd"
    assert isinstance(response.parts[2], ToolCall)
    assert (response.parts[2].provider_id, response.parts[2].arguments) == ("7", {"a": "\U0001f600"})
    assert "".join(each.text for each in deltas if each.kind == "thinking") == "\ufffd"


# ----------------------------------------------------------------------------------------------------- tool calls


def test_calls_come_in_pieces_by_index() -> None:
    """Deltas carry the tool's name."""
    events = [call(0, "a", "f", ""), call(0, arguments='{"x":'), call(0, arguments="1}"), call(1, "b", "g", "{}")]
    assert calls(*events) == [("a", "f", {"x": 1}), ("b", "g", {})]
    _, deltas = run(*events, delta("tool_calls"))
    assert deltas == [PartDelta("input", 0, 0, '{"x":', "f"), PartDelta("input", 0, 5, "1}", "f")]


def test_h02_calls_that_all_have_index_0_are_told_apart_by_id() -> None:
    """Pieces of the first may come behind the second's beginning."""
    events = [call(0, "a", "f", '{"x":'), call(0, "b", "g", "{}"), call(0, "a", arguments="1}")]
    assert calls(*events) == [("a", "f", {"x": 1}), ("b", "g", {})]


def test_h02_calls_that_all_have_index_0_and_no_id_are_told_apart_by_name() -> None:
    """Also where both call the same tool: what is complete is not continued."""
    assert calls(call(0, None, "f", '{"x":1}'), call(0, None, "g", '{"y":2}')) == [
        ("", "f", {"x": 1}),
        ("", "g", {"y": 2}),
    ]
    assert calls(call(0, None, "f", '{"x":1}'), call(0, None, "f", '{"x":2}')) == [
        ("", "f", {"x": 1}),
        ("", "f", {"x": 2}),
    ]
    assert calls(call(0, None, "f", "{}"), call(0, None, "g", "{}")) == [("", "f", {}), ("", "g", {})]


def test_h04_interleaved_pieces_reach_their_calls() -> None:
    """The id stands in the first piece alone."""
    events = [call(0, "a", "f", ""), call(1, "b", "g", ""), call(0, arguments='{"x"'), call(1, arguments='{"y":2}')]
    assert calls(*events, call(0, arguments=":1}")) == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]


def test_ids_and_names_that_are_repeated_in_each_piece_are_one_call() -> None:
    """Kimi behind OpenRouter: the SDK's helper doubles the name."""
    events = [call(0, "0", "f", ""), call(0, "0", "f", '{"x":'), call(0, "0", "f", "1}")]
    assert calls(*events) == [("0", "f", {"x": 1})]
    assert calls(call(0, None, "f", '{"x":'), call(0, None, "f", "1}")) == [("", "f", {"x": 1})]


def test_an_id_that_changes_with_each_piece_is_one_call() -> None:
    """Some vLLM versions make a new one up for each; the name stands in the first."""
    assert calls(call(0, "a", "f", '{"x":'), call(0, "b", arguments="1}")) == [("a", "f", {"x": 1})]


def test_an_id_or_a_name_may_come_late_or_in_pieces() -> None:
    """What is still missing is filled in."""
    assert calls(call(0, name="f"), call(0, "a", arguments="{}")) == [("a", "f", {})]
    assert calls(call(0, "a"), call(0, name="get_"), call(0, name="it", arguments='{"x":1}')) == [
        ("a", "get_it", {"x": 1})
    ]
    assert calls(call(0, None, "f"), call(0, "b", "g", "{}")) == [("", "f", {}), ("b", "g", {})]


def test_calls_without_index_are_told_apart_by_id_or_name() -> None:
    """Mistral sends each whole; others send pieces to the latest."""
    assert calls(call(None, "a", "f", '{"x":1}'), call(None, "b", "f", "{}")) == [("a", "f", {"x": 1}), ("b", "f", {})]
    assert calls(call(None, "a", "f", '{"x":'), call(None, "a", None, "1}")) == [("a", "f", {"x": 1})]
    assert calls(call(None, None, "f"), call(None, None, None, "{}"), call(None, None, "g")) == [
        ("", "f", {}),
        ("", "g", {}),
    ]


def test_e03_a_missing_or_empty_id_stays_empty() -> None:
    """The runtime makes one up."""
    assert calls(call(0, "", "f", "{}"), call(1, None, "g", "{}")) == [("", "f", {}), ("", "g", {})]


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a":"x\ny"}', {"a": "x\ny"}),
        ('{"a":1}}', None),
        ("[]", None),
        ("3", None),
        ("null", None),
    ],
)
def test_e07_e09_e11_arguments_are_an_object_or_nothing(arguments: str, parsed: Any) -> None:
    """Raw control characters are taken; nothing else is repaired, and the text is kept."""
    response, _ = run(call(0, "a", "f", arguments), delta("tool_calls"))
    assert response.parts == (ToolCall("", "a", "f", arguments, parsed),)


def test_e07_a_placeholder_is_replaced_by_real_arguments() -> None:
    """And stands where none come."""
    assert calls(call(0, "a", "f", "{}"), call(0, arguments='{"x":1}')) == [("a", "f", {"x": 1})]
    response, _ = run(call(0, "a", "f", "{}"), delta("tool_calls"))
    assert response.parts == (ToolCall("", "a", "f", "{}", {}),)


def test_arguments_may_be_an_object_instead_of_text() -> None:
    """It is whole, and given again it is the same."""
    assert calls(call(0, "a", "f", {"x": 1}), call(0, arguments={"x": 1})) == [("a", "f", {"x": 1})]
    assert calls(call(0, "a", "f", [1])) == [("a", "f", None)]


def test_a_legacy_function_call_is_a_call() -> None:
    """One that is empty in all its fields, as Snowflake sends, is none."""
    events = [delta(function_call={"name": "f", "arguments": ""}), delta(function_call={"arguments": '{"x":1}'})]
    assert calls(*events, finish="function_call") == [("", "f", {"x": 1})]
    assert calls(delta(function_call={"name": "", "arguments": ""}, content="a"), finish="stop") == []
    assert calls(delta(tool_calls=[{}, {"index": 0}]), finish="stop") == []


def test_what_else_a_call_says_is_kept_with_it() -> None:
    """Gemini's thought signature must go back."""
    extra = {"extra_content": {"google": {"thought_signature": "QQ=="}}}
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}} | extra
    response, _ = run(delta(tool_calls=[piece], extra_content={"google": {}}), delta("tool_calls"))
    assert response.parts == (
        ToolCall("", "a", "f", "{}", {}, json.dumps(extra, separators=(",", ":"))),
        RawBlock("chat.message", '{"extra_content":{"google":{}}}'),
    )


@pytest.mark.parametrize(("finish", "stop"), [("stop", "tool_calls"), ("eos", "tool_calls"), ("length", "max_tokens")])
def test_a_call_with_finish_reason_stop_counts_as_a_call(finish: str, stop: str) -> None:
    """Several servers say stop; a cut call is still cut."""
    response, _ = run(call(0, "a", "f", "{}"), delta(finish))
    assert response.stop_reason == stop


# ------------------------------------------------------------------------------------------------------ how it ends


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "end"),
        ("length", "max_tokens"),
        ("content_filter", "content_filter"),
        ("eos", "end"),
        ("model_length", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("sensitive", "content_filter"),
        ("something_new", "unknown"),
    ],
)
def test_finish_reasons_are_normalised_and_kept(finish: str, stop: str) -> None:
    """What is not known is said to be so."""
    response, _ = run(delta(content="a"), delta(finish), delta(None), delta(""), DONE)
    assert (response.stop_reason, response.raw_stop_reason) == (stop, finish)


def test_the_last_finish_reason_counts() -> None:
    """OpenRouter and Avian send it twice."""
    response, _ = run(delta(content="a"), delta("stop"), delta("length"))
    assert response.stop_reason == "max_tokens"


@pytest.mark.parametrize("end", [b"", DONE, delta(""), delta(None)])
def test_g03_a_stream_without_finish_reason_is_a_drop(end: bytes) -> None:
    """By default; what came is kept, calls are not."""
    assembler = ChatAssembler()
    assembler.feed(delta(content="a", reasoning="b") + call(0, "a", "f", "{}") + end)
    with pytest.raises(ProviderError, match="before its stop reason") as caught:
        assembler.close()
    assert (caught.value.code, caught.value.retry) == ("stream_dropped", "stream")
    response = assembler.response()
    assert response.stop_reason is None
    assert response.parts == (Text("a"), Thinking("b", raw='{"field":"reasoning"}'))
    with pytest.raises(ProviderError):
        assembler.feed(b"")


def test_g03_a_preset_may_take_the_mark_at_the_end_for_one() -> None:
    """For servers that never send a reason; a stream that breaks off has no mark, and one without content no answer."""
    reading = Reading(finish_optional=True)
    response, _ = run(delta(content="a"), DONE, reading=reading)
    assert (response.stop_reason, response.raw_stop_reason) == ("end", None)
    response, _ = run(call(0, "a", "f", "{}"), DONE, reading=reading)
    assert response.stop_reason == "tool_calls"
    assert fails(delta(content="a"), reading=reading).code == "stream_dropped"
    assert fails(DONE, reading=reading).code == "stream_dropped"


def test_done_is_told_by_the_mark_or_the_bodys_end() -> None:
    """``finished`` is told before: only usage may follow."""
    assembler = ChatAssembler()
    assembler.feed(delta(content="a") + delta("stop"))
    assert (assembler.finished, assembler.done) == (True, False)
    assembler.feed(DONE)
    assert assembler.done


def test_an_event_that_the_bodys_end_leaves_open_is_read() -> None:
    """Some servers end without the last blank line."""
    assembler = ChatAssembler()
    assembler.feed(delta(content="a") + delta(content="b", finish="stop").rstrip())
    assert [each.text for each in assembler.close()] == ["b"]
    assert assembler.response().parts == (Text("ab"),)


def test_a_drop_behind_an_event_left_open_gives_its_delta_first() -> None:
    """The failure is raised by the next call."""
    assembler = ChatAssembler()
    assembler.feed(delta(content="a").rstrip())
    assert len(assembler.close()) == 1
    with pytest.raises(ProviderError):
        assembler.close()


def test_hidden_or_unsigned_reasoning_of_a_drop_proves_nothing() -> None:
    """Its text is kept, its details are not."""
    assembler = ChatAssembler()
    assembler.feed(delta(reasoning="hm", reasoning_details=[{"type": "reasoning.text", "text": "hm"}]))
    assert assembler.response().parts == (Thinking("hm"),)
    assembler = ChatAssembler()
    assembler.feed(delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "QQ=="}]))
    assert assembler.response().parts == ()


# ----------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("error", "code", "retry"),
    [
        ({"error": {"message": "Slow down", "code": 429}}, "rate_limited", "stream"),
        ({"error": {"message": "No more", "type": "insufficient_quota"}}, "rate_limited", None),
        ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, "overloaded", "stream"),
        ({"error": "broken"}, "dependency_failed", "stream"),
        ({"object": "error", "message": "bad", "type": "invalid_request_error"}, "invalid_request", None),
        ({"detail": "broken"}, "dependency_failed", "stream"),
        ({"choices": [], "error": {"message": "filtered", "code": "content_filter"}}, "content_filter", None),
        ({"choices": [{"index": 0, "error": {"message": "bad", "code": 502}}]}, "dependency_failed", "stream"),
    ],
)
def test_f08_an_error_in_a_stream_is_typed(error: dict[str, Any], code: str, retry: str | None) -> None:
    """Whatever its shape; the status was 200."""
    failure = fails(delta(content="a"), event(error))
    assert (failure.code, failure.retry) == (code, retry)


def test_an_error_before_any_content_is_one_of_the_request() -> None:
    """Nothing is lost by asking again."""
    failure = fails(event({"error": {"message": "Slow down", "code": 429}}))
    assert failure.retry == "request"


def test_a_named_error_event_is_an_error_whatever_it_holds() -> None:
    """Groq names it; other names say nothing."""
    failure = fails(delta(content="a"), event({"message": "tool_use_failed", "type": "invalid_request_error"}, "error"))
    assert (failure.code, failure.type) == ("invalid_request", "invalid_request_error")
    response, _ = run(event({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}, "message"))
    assert response.parts == (Text("a"),)


def test_an_error_behind_the_finish_reason_takes_it_back() -> None:
    """OpenRouter tells ``length`` and then that the limit was the provider's; usage of the error's chunk counts."""
    assembler = ChatAssembler()
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    last = event({"error": {"code": 400, "message": "Token limit reached"}, "choices": [], "usage": usage})
    assert len(assembler.feed(delta(content="a") + delta("length") + last)) == 1
    with pytest.raises(ProviderError) as caught:
        assembler.feed(DONE)
    assert caught.value.code == "invalid_request"
    assert assembler.response() == ModelResponse((Text("a"),), usage=Usage(3, 2))


@pytest.mark.parametrize(
    ("finish", "code"), [("error", "dependency_failed"), ("insufficient_system_resource", "overloaded")]
)
def test_finish_reasons_that_are_failures_fail(finish: str, code: str) -> None:
    """Asking again may help."""
    failure = fails(delta(content="a"), delta(finish))
    assert (failure.code, failure.retry) == (code, "stream")


def test_an_error_in_an_event_left_open_is_told() -> None:
    """The body's end completes it."""
    assembler = ChatAssembler()
    assembler.feed(event({"error": "broken"}).rstrip())
    with pytest.raises(ProviderError, match="broken"):
        assembler.close()


# --------------------------------------------------------------------------------------------------- odd chunks, usage


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": []},
        {},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        {"choices": "none"},
        {"choices": [3, {"index": None, "delta": 3}, {"index": 0, "delta": {"content": 3, "tool_calls": 3}}]},
        {
            "choices": [
                {"index": 0, "delta": {"tool_calls": [3, {"index": 1.5, "function": 3}], "reasoning_details": 3}}
            ]
        },
        {"choices": [{"index": -1, "delta": {"content": 4}}], "usage": 3, "x_groq": 3},
        {"choices": [{"index": 0, "delta": {"extra_content": 3}}], "usage": [1], "x_groq": {"usage": None}},
        [1],
        3,
        b"no json",
    ],
)
def test_h06_chunks_that_say_nothing_are_passed_over(odd: Any) -> None:
    """Wherever they come."""
    response, _ = run(event(odd), delta(content="a"), event(odd), delta("stop"), event(odd))
    assert response == ModelResponse((Text("a"),), "end", "stop")


def test_the_message_may_stand_in_the_deltas_place() -> None:
    """A server that does not stream sends one chunk; Perplexity repeats the whole at the end."""
    whole = event({"choices": [{"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}]})
    assert run(whole)[0].parts == (Text("ab"),)
    assert run(delta(content="ab"), whole)[0].parts == (Text("ab"),)


def test_id_and_model_are_the_servers() -> None:
    """The first id, the last model's name."""
    events = [
        event({"id": "", "model": "", "choices": []}),
        event({"id": "x", "model": "m"}),
        event({"id": "y", "model": "n"}),
    ]
    response, _ = run(*events, delta(content="a"), delta("stop"))
    assert (response.response_id, response.model) == ("x", "n")


def test_h06_usage_is_read_wherever_it_comes() -> None:
    """In a last chunk without choices, in one with, twice (the last counts), in ``x_groq``, or never."""
    usage, more = ({"prompt_tokens": count, "completion_tokens": 2} for count in (5, 7))
    text, end = delta(content="a"), delta("stop")
    assert run(text, end, event({"choices": [], "usage": usage}))[0].usage == Usage(5, 2)
    assert run(event({"choices": [{"delta": {"content": "a"}}], "usage": usage}), end)[0].usage == Usage(5, 2)
    assert run(text, event({"usage": usage}), end, event({"usage": more}))[0].usage == Usage(7, 2)
    assert run(text, end, event({"x_groq": {"usage": usage}}), event({"usage": {}}))[0].usage == Usage(5, 2)
    assert run(text, event({"usage": more}), end, event({"x_groq": {"usage": usage}}))[0].usage == Usage(7, 2)
    assert run(text, end)[0].usage == Usage()


@pytest.mark.parametrize(
    ("found", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}}, Usage(4, 4, 6)),
        ({"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 6}, Usage(4, 4, 6)),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 3}},
            Usage(1, 0, 6, 3),
        ),
        ({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 3}}, Usage(0, 0, 3)),
        ({"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}}, Usage(0, 5, reasoning=5)),
        ({"prompt_tokens": "many", "completion_tokens": -1, "prompt_tokens_details": 3}, Usage()),
        ({}, Usage()),
    ],
)
def test_h14_usage_is_clamped(found: dict[str, Any], usage: Usage) -> None:
    """Input is the uncached part; reasoning is part of the output; nothing is below 0."""
    assert usage_of(found) == usage


def test_reasoning_counted_beside_the_completion_is_added_where_the_preset_says_so() -> None:
    """xAI and Gemini; the total tells."""
    found = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 20}
    assert usage_of(found, Reading(output_from_total=True)) == Usage(10, 10, reasoning=6)
    assert usage_of(found | {"total_tokens": 14}, Reading(output_from_total=True)) == Usage(10, 4)
    assert usage_of(found) == Usage(10, 4)


def test_json_nested_too_deeply_is_an_invalid_response() -> None:
    """The stack is not exhausted."""
    assert fails(event(b"[" * 200_000)).code == "invalid_response"


# ----------------------------------------------------------------------------------------------------- whole bodies


def body(value: Any, reading: Reading = STRICT) -> tuple[ModelResponse, list[PartDelta]]:
    assembler = ChatBodyAssembler(reading)
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    assert assembler.feed(data[:3]) == assembler.feed(data[3:]) == []
    deltas = assembler.close()
    return assembler.response(), deltas


def test_an_answer_that_is_one_body_is_the_same_response() -> None:
    """Choices that share index 0 are one message: Copilot splits text and calls."""
    message = {"role": "assistant", "content": "a", "reasoning_content": "b"}
    piece = {"id": "x", "function": {"name": "f", "arguments": "{}"}}
    choices = [{"message": message, "finish_reason": "stop"}, {"index": 0, "message": {"tool_calls": [piece]}}]
    response, deltas = body({"id": "i", "model": "m", "choices": choices[:1], "usage": {"prompt_tokens": 1}})
    assert response == ModelResponse(
        (Text("a"), Thinking("b", raw='{"field":"reasoning_content"}')), "end", "stop", Usage(1), "m", "i"
    )
    assert len(deltas) == 2
    response, _ = body({"choices": choices})
    assert (len(response.parts), response.stop_reason) == (3, "tool_calls")


def test_a_body_has_a_limit() -> None:
    """Above it the connection is closed."""
    assembler = ChatBodyAssembler(max_body=10)
    with pytest.raises(ProviderError, match="10 bytes"):
        assembler.feed(b"x" * 11)


@pytest.mark.parametrize("finish", [None, ""])
def test_a_whole_body_is_whole_without_a_finish_reason(finish: Any) -> None:
    """JSON that is complete was not cut."""
    response, _ = body({"choices": [{"message": {"content": "a"}, "finish_reason": finish}]})
    assert (response.stop_reason, response.raw_stop_reason) == ("end", None)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"", "invalid_response"),
        (b"<html>", "invalid_response"),
        (b"[]", "invalid_response"),
        ({"weather": "fine"}, "invalid_response"),
        ({"choices": []}, "invalid_response"),
        ({"error": {"message": "filtered", "code": "content_filter", "status": 400}}, "content_filter"),
        ([{"error": {"message": "quota", "code": 429}}], "rate_limited"),
        ({"detail": "broken"}, "dependency_failed"),
        ({"choices": [{"error": {"code": 502, "message": "x"}}]}, "dependency_failed"),
    ],
)
def test_a_body_that_is_no_completion_is_an_error(value: Any, code: str) -> None:
    """With status 200, in any shape."""
    with pytest.raises(ProviderError) as caught:
        body(value)
    assert caught.value.code == code


# ----------------------------------------------------------------------------------------------------- properties

TEXT = st.text(max_size=12)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda it: (
        st.lists(it, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "index",
                    "id",
                    "function",
                    "name",
                    "arguments",
                    "content",
                    "text",
                    "type",
                    "thinking",
                    "reasoning",
                    "details",
                ]
            ),
            it,
            max_size=4,
        )
    ),
    max_leaves=8,
)
FIELDS = [
    "content",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "tool_calls",
    "function_call",
    "extra_content",
]
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "index": ANY,
                    "delta": st.dictionaries(st.sampled_from(FIELDS), ANY),
                    "finish_reason": ANY,
                    "error": st.none(),
                },
            ),
            max_size=2,
        )
        | ANY,
        "id": ANY,
        "model": ANY,
        "usage": ANY,
        "x_groq": ANY,
    },
)


@given(st.lists(CHUNKS, max_size=5))
def test_no_chunk_of_any_form_raises_anything_but_our_error(chunks: list[Any]) -> None:
    """Fields of every type in every place: passed over, never a fault."""
    assembler = ChatAssembler()
    texts: dict[int, str] = {}
    try:
        for chunk in (*chunks, {"choices": [{"delta": {}, "finish_reason": "stop"}]}):
            for each in assembler.feed(event(chunk)):
                assert each.offset == len(texts.setdefault(each.part, ""))
                texts[each.part] += each.text
        assembler.close()
    except ProviderError:
        return
    response = assembler.response()
    assert response.stop_reason is not None
    json.dumps([str(part) for part in response.parts]).encode()


@given(st.lists(st.tuples(st.integers(0, 3), TEXT.filter(lambda it: it != "{}")), min_size=1, max_size=12))
def test_calls_by_index_are_whole_however_their_pieces_are_mixed(pieces: list[tuple[int, str]]) -> None:
    """Each call's arguments are its own pieces in order."""
    wanted: dict[int, str] = {}
    events = [call(index, f"id{index}", f"f{index}", "") for index in range(4)]
    for index, text in pieces:
        wanted[index] = wanted.get(index, "") + text
        events.append(call(index, arguments=text))
    response, _ = run(*events, delta("tool_calls"))
    for index, text in wanted.items():
        part = response.parts[index]
        assert isinstance(part, ToolCall)
        assert part.arguments_json == text
