"""A neutral request as the body of a Responses call."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import CallError, File, Image, RawBlock, Text, Thinking, ToolCall, ToolResult
from agentrio.domain.render import ModelRequest, SystemBlock, ThinkingLevel, ToolSpec
from agentrio.providers.wire.common import GO_ON
from agentrio.providers.wire.openai_cache import Cache
from agentrio.providers.wire.responses_assembler import Assembler
from agentrio.providers.wire.responses_history import Target
from agentrio.providers.wire.responses_request import ResponsesOptions, effort_of, encode_request

TAG = ModelTag("openai", "responses", "gpt-5.2")
OTHER = ModelTag("anthropic", "messages", "claude-sonnet-5")
PLAIN = ResponsesOptions(Target(TAG), cache="none")
HI = user_message("u1", "hi")
TOOL = ToolSpec("f", "Does f.", {"type": "object", "properties": {}})
REASONING = '{"id":"rs_1",  "type":"reasoning","summary":[],"encrypted_content":"gAAA"}'
MESSAGE = (
    '{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"final_answer",'
    '"content":[{"type":"output_text","annotations":[]}]}'
)
CALL = '{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f"}'


def body(*messages: Message, options: ResponsesOptions = PLAIN, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_request(ModelRequest("s", messages, **fields), options))
    return found


def items(*messages: Message, options: ResponsesOptions = PLAIN) -> list[Any]:
    found: list[Any] = body(*messages, options=options)["input"]
    return found


def said(*parts: Any, id: str = "a1", model: ModelTag = TAG) -> Message:
    return Message(id, "assistant", parts, model)


def results(*parts: ToolResult, id: str = "t1") -> Message:
    return Message(id, "tool", parts)


def called(id: str, provider_id: str = "", raw: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(id, provider_id, "f", json.dumps(arguments), arguments, raw)


def returned(id: str, *parts: Any) -> ToolResult:
    return ToolResult(id, "f", "succeeded", parts or (Text("ok"),))


# The body


def test_the_minimal_body_is_pinned_to_the_byte() -> None:
    """No optional key without a value; a change here costs every user's prompt cache."""
    request = ModelRequest("s", (HI,))
    old = ResponsesOptions(Target(ModelTag("openai", "responses", "gpt-4o")), cache="none")
    assert encode_request(request, old) == (
        b'{"model":"gpt-4o","input":[{"role":"user","content":"hi"}],"store":false,"stream":true}'
    )
    assert encode_request(request, ResponsesOptions(Target(TAG))) == (
        b'{"model":"gpt-5.2","input":[{"role":"user","content":"hi"}],"include":["reasoning.encrypted_content"],'
        b'"prompt_cache_key":"s","store":false,"stream":true}'
    )


def test_the_full_body_is_pinned_to_the_byte() -> None:
    """Order of keys: what stays the same for longest comes first."""
    request = ModelRequest(
        "s", (HI,), (SystemBlock("You are.", cache=True), SystemBlock(" "), SystemBlock("Now.")),
        (TOOL, ToolSpec("g", "", {})), max_tokens=99, thinking="low", temperature=0.5,
    )  # fmt: skip
    options = ResponsesOptions(
        Target(TAG),
        5,
        "long",
        "mine",
        long_ttl=True,
        parallel_tool_calls=False,
        extra={"top_p": 1, "tool_choice": "auto"},
    )
    assert encode_request(request, options) == (
        b'{"model":"gpt-5.2","instructions":"You are.\\n\\nNow.","input":[{"role":"user","content":"hi"}],'
        b'"tools":[{"type":"function","name":"f","description":"Does f.",'
        b'"parameters":{"type":"object","properties":{}},"strict":false},{"type":"function","name":"g","parameters":{},"strict":false}],"parallel_tool_calls":false,'
        b'"max_output_tokens":99,"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"],'
        b'"prompt_cache_key":"mine","prompt_cache_retention":"24h","top_p":1,"tool_choice":"auto",'
        b'"store":false,"stream":true}'
    )


def test_a_conversation_is_pinned_to_the_byte() -> None:
    """Reasoning to the byte, texts and calls in their items, results beside them."""
    answer = said(Thinking("", raw=REASONING), Text("So.", MESSAGE), called("c1", "call_1", CALL, x=1))
    request = ModelRequest("s", (HI, answer, results(returned("c1"))))
    start = encode_request(request, PLAIN).partition(b'"include"')[0]
    assert start == (
        b'{"model":"gpt-5.2","input":[{"role":"user","content":"hi"},'
        b'{"id":"rs_1",  "type":"reasoning","summary":[],"encrypted_content":"gAAA"},'
        b'{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"final_answer",'
        b'"content":[{"type":"output_text","annotations":[],"text":"So."}]},'
        b'{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f",'
        b'"arguments":"{\\"x\\": 1}"},{"type":"function_call_output","call_id":"call_1","output":"ok"}],'
    )


@pytest.mark.parametrize("told", [{"interrupted": True}, {"model": OTHER}], ids=["stopped", "another's"])
def test_the_rest_of_an_answer_at_the_end_is_asked_for(told: dict[str, Any]) -> None:
    """The wire has no beginning of an answer, and servers of thinking models refuse one. No history holds it."""
    assert items(HI, attrs.evolve(said(Text("a \n")), **told))[2:] == [{"role": "user", "content": GO_ON}]
    assert len(items(HI, said(Text("a \n")))) == 2
    assert len(items(HI, attrs.evolve(said(called("c1")), **told), results(returned("c1")))) == 3


def test_limits_come_from_the_request_first() -> None:
    """Then from the model; else the server's count."""
    options = attrs.evolve(PLAIN, max_tokens=7)
    assert body(HI, options=options)["max_output_tokens"] == 7
    assert body(HI, options=options, max_tokens=9)["max_output_tokens"] == 9


def test_what_is_of_tools_goes_only_with_tools() -> None:
    """Servers refuse it else."""
    options = attrs.evolve(PLAIN, parallel_tool_calls=True, extra={"tool_choice": "auto", "top_p": 1})
    assert body(HI, options=options).keys() & {"tools", "tool_choice", "parallel_tool_calls", "top_p"} == {"top_p"}
    assert body(HI, options=options, tools=(TOOL,)).keys() >= {"tools", "tool_choice", "parallel_tool_calls"}


def test_strict_schemas_are_said_to_be_so() -> None:
    """It must be said in any case: the API would make a schema strict."""
    assert [
        body(HI, options=attrs.evolve(PLAIN, strict=strict), tools=(TOOL,))["tools"][0]["strict"]
        for strict in (True, False)
    ] == [True, False]


@pytest.mark.parametrize(
    ("cache", "key", "long_ttl", "expected"),
    [
        ("none", "mine", True, {}),
        ("short", None, True, {"prompt_cache_key": "s"}),
        ("short", "mine", True, {"prompt_cache_key": "mine"}),
        ("long", None, False, {"prompt_cache_key": "s"}),
        ("long", None, True, {"prompt_cache_key": "s", "prompt_cache_retention": "24h"}),
    ],
)
def test_the_prompt_is_cached_under_the_sessions_id(
    cache: Cache, key: str | None, long_ttl: bool, expected: dict[str, str]
) -> None:
    """For a day only where the host keeps it so long."""
    found = body(HI, options=attrs.evolve(PLAIN, cache=cache, cache_key=key, long_ttl=long_ttl))
    assert {name: value for name, value in found.items() if name.startswith("prompt_cache")} == expected


def test_a_long_key_is_hashed_and_an_empty_one_left_out() -> None:
    """The API takes 64 characters."""
    options = attrs.evolve(PLAIN, cache="short")
    keys = [
        json.loads(encode_request(ModelRequest(id, (HI,)), options)).get("prompt_cache_key")
        for id in ("x" * 65, "x" * 66, "")
    ]
    assert re.fullmatch(r"[0-9a-f]{64}", keys[0])
    assert keys[0] != keys[1]
    assert keys[2] is None


# Thinking

LEVELS: list[ThinkingLevel] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"]


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("gpt-5.6-sol", "none low low medium high xhigh max"),
        ("openai.gpt-5.6-luna", "none low low medium high xhigh max"),
        ("gpt-5.2", "none low low medium high xhigh xhigh"),
        ("gpt-5.1-codex", "none low low medium high high high"),
        ("openai/gpt-5-nano", "minimal minimal low medium high high high"),
        ("o4-mini", "low low low medium high high high"),
        ("grok-4.3", "none low low medium high high high"),
        ("x-ai/grok-4.5", "low low low medium high high high"),
        ("grok-4", None),
        ("gpt-4.1", None),
        ("gpt-5-chat-latest", None),
    ],
)
def test_each_model_is_asked_in_efforts_that_it_knows(model: str, efforts: str | None) -> None:
    """One that does not reason is not asked; one that can't stop reasons as little as it can."""
    found = [effort_of(model, level) for level in LEVELS]
    assert found == ([None] * 7 if efforts is None else efforts.split())


def test_encrypted_reasoning_is_asked_for_where_a_model_reasons() -> None:
    """By its own choice too. Where none is asked for, no summary is either, and a temperature may be."""

    def asked(model: str, level: ThinkingLevel | None, **options: Any) -> dict[str, Any]:
        target = Target(attrs.evolve(TAG, model=model))
        found = body(HI, options=attrs.evolve(PLAIN, target=target, **options), thinking=level, temperature=0.5)
        return {key: found[key] for key in ("reasoning", "include", "temperature") if key in found}

    encrypted = {"include": ["reasoning.encrypted_content"]}
    assert asked("gpt-5.2", None) == encrypted
    assert asked("gpt-5.2", "high") == {"reasoning": {"effort": "high", "summary": "auto"}, **encrypted}
    assert asked("gpt-5.2", "high", summary=None) == {"reasoning": {"effort": "high"}, **encrypted}
    assert asked("gpt-5.2", "off") == {"reasoning": {"effort": "none"}, "temperature": 0.5}
    assert asked("gpt-4.1", "high") == {"temperature": 0.5}
    assert asked("glm-4.7", None) == {"temperature": 0.5}
    assert asked("glm-4.7", "max") == {"reasoning": {"effort": "high", "summary": "auto"}, **encrypted}


# Reasoning goes back


def test_reasoning_goes_only_before_what_came_of_it() -> None:
    """J08: the server refuses it alone, and before what it did not make."""
    thought, other = Thinking("Hm", raw=REASONING), Thinking("So", raw=REASONING.replace("rs_", "rs_other_"))
    assert items(said(thought)) == []
    assert items(said(thought, Text("cut off"))) == [{"type": "message", "role": "assistant", "content": "cut off"}]
    assert items(said(thought, Text(" ")), HI) == [{"role": "user", "content": "hi"}]
    assert items(said(Text("Hi", MESSAGE), thought))[-1]["type"] == "message"
    assert [item["type"] for item in items(said(thought, other, called("c1", "call_1", CALL)))] == [
        "reasoning", "reasoning", "function_call",
    ]  # fmt: skip
    searched = RawBlock("web_search_call", '{"type":"web_search_call"}')
    assert [item["type"] for item in items(said(thought, searched))] == ["reasoning", "web_search_call"]
    assert [item["type"] for item in items(said(thought, called("c1")))] == ["function_call"]


def test_reasoning_that_is_kept_at_no_server_is_left_out() -> None:
    """``store`` is false, so an item that is a mere id can't be found. One that carries its text can go."""
    bare = '{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}]}'
    told = '{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]}'
    assert [item["type"] for item in items(said(Thinking("Hm", raw=bare), Text("Hi", MESSAGE)))] == ["message"]
    assert items(said(Thinking("Hm", raw=told), Text("Hi", MESSAGE)))[0] == json.loads(told)
    assert [item["type"] for item in items(said(Thinking("Hm"), Text("Hi", MESSAGE)))] == ["message"]


def test_another_models_answer_is_told_in_plain_terms() -> None:
    """Its readable reasoning is labelled; what is its own, ids included, stays away."""
    for other in (OTHER, attrs.evolve(TAG, model="gpt-5.6")):
        answer = said(
            Thinking("Hm", raw=REASONING), Text("So.", MESSAGE), RawBlock("x", '{"type":"x"}'),
            Text("And."), called("c1", "call_1", CALL, x=1), model=other,
        )  # fmt: skip
        told, call, output = items(answer, results(returned("c1")))
        assert told == {
            "type": "message",
            "role": "assistant",
            "content": "[Reasoning of another model]\nHm\n[End of that reasoning]\n\nSo.And.",
        }
        assert call.keys() == {"type", "call_id", "name", "arguments"}
        assert call["call_id"] == output["call_id"] == ("c1" if other is OTHER else "call_1")


def test_texts_of_one_message_are_put_together_again() -> None:
    """And those of two are not; nor is a text that was rewritten."""
    refusal = MESSAGE.replace("output_text", "refusal")
    second = MESSAGE.replace("msg_1", "msg_2")
    rest: dict[str, Any] = {"annotations": []}
    found = items(said(Text("a", MESSAGE), Text("b", refusal), Text("c", second), Text("d"), Text("e")))
    assert [item["content"] if "id" not in item else (item["id"], item["content"]) for item in found] == [
        ("msg_1", [{"type": "output_text", **rest, "text": "a"}, {"type": "refusal", **rest, "refusal": "b"}]),
        ("msg_2", [{"type": "output_text", **rest, "text": "c"}]),
        "de",
    ]  # fmt: skip


# Calls and results


def test_an_id_that_comes_again_is_replaced_for_call_and_result() -> None:
    """E01: providers use ids again; nor may one be too long."""
    long = "c" * 65
    history = [
        said(called("c1", "call_1", CALL)), results(returned("c1")),
        said(called("c2", "call_1", CALL), id="a2"), results(returned("c2"), id="t2"),
        said(called("c3", long), id="a3"), results(returned("c3"), id="t3"),
    ]  # fmt: skip
    found = items(*history)
    ids = [item["call_id"] for item in found]
    assert ids == ["call_1", "call_1", "c2", "c2", "c3", "c3"]


def test_arguments_go_back_as_they_were_written() -> None:
    """Where they are JSON: servers parse them."""
    texts: list[tuple[str, Any]] = [
        ('{"x":  1}', {"x": 1}),
        ('{"x": "a\nb"}', {"x": "a\nb"}),
        ('{"x": ', None),
        ("", {}),
    ]
    calls = [ToolCall(f"c{n}", f"p{n}", "f", text, parsed) for n, (text, parsed) in enumerate(texts)]
    found = [item["arguments"] for item in items(said(*calls))]
    assert found == ['{"x":  1}', '{"x":"a\\nb"}', "{}", "{}"]


def test_a_custom_call_goes_back_as_one() -> None:
    """With its text as it was, and its result in the type that belongs to it."""
    raw = '{"id":"ctc_1","type":"custom_tool_call","call_id":"call_1","name":"f"}'
    history = said(called("c1", "call_1", raw, input='echo "hi"')), results(returned("c1"))
    call, output = items(*history)
    assert call == {**json.loads(raw), "input": 'echo "hi"'}
    assert output["type"] == "custom_tool_call_output"
    foreign = items(attrs.evolve(history[0], model=OTHER), history[1])
    assert [item["type"] for item in foreign] == ["function_call", "function_call_output"]


def test_a_failed_call_says_so_in_its_output() -> None:
    """The wire has no mark for it."""
    denied = ToolResult("c1", "f", "denied", (Text("hidden"),), CallError("denied", "Not today."))
    bare = ToolResult("c2", "f", "failed")
    found = items(said(called("c1"), called("c2")), results(denied, bare))
    assert [item["output"] for item in found[2:]] == [
        '[tool error] {"error":"denied","message":"Not today."}',
        '[tool error] {"error":"tool_failed","message":""}',
    ]


def test_results_carry_images_and_files() -> None:
    """A text alone is a text; texts of nothing but space are none."""
    mixed = returned(
        "c1", Text("See:"), Text(" "), Image("aW1n", "image/png"), File("cGRm", "application/pdf", "a.pdf")
    )
    found = items(said(called("c1"), called("c2")), results(mixed, returned("c2", Text("a"), Text(" "), Text("b"))))
    assert found[2]["output"] == [
        {"type": "input_text", "text": "See:"},
        {"type": "input_image", "image_url": "data:image/png;base64,aW1n", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"},
    ]
    assert found[3]["output"] == "a\n\nb"


def test_users_send_files_of_every_kind() -> None:
    """Text as text, others under a name that the server asks for."""
    files = (File("aGk=", "text/plain", "a.txt"), File("aGk=", "text/csv"), File("cGRm", "application/pdf"))
    (turn,) = items(user_message("u", files))
    assert turn["content"] == [
        {"type": "input_text", "text": "[File: a.txt]\nhi"},
        {"type": "input_text", "text": "[File: unnamed]\nhi"},
        {"type": "input_file", "filename": "file.pdf", "file_data": "data:application/pdf;base64,cGRm"},
    ]
    assert items(user_message("u", " \0 ")) == []


def test_a_model_that_sees_nothing_is_told_of_images() -> None:
    """A note in their place."""
    options = attrs.evolve(PLAIN, target=Target(TAG, images=False, files=False))
    (turn,) = items(user_message("u", (Text("See:"), Image("aW1n", "image/png"), File("x", "a/b"))), options=options)
    assert turn["content"].startswith("See:\n\n[An image was left out")


# Each round


def test_what_the_assembler_read_goes_back_item_by_item() -> None:
    """The same items as the server sent, reasoning and its own blocks to the byte."""
    cited = {"type": "output_text", "text": "One.", "annotations": [{"type": "url_citation", "url": "u"}]}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "phase": "commentary"}
    call = {"id": "fc_1", "type": "function_call", "arguments": '{"x": 1}', "call_id": "c", "name": "f"}
    output: list[dict[str, Any]] = [
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}},
        message | {"content": [cited, {"type": "refusal", "refusal": "Two."}]},
        call,
    ]
    assembler = Assembler()
    for index, item in enumerate(output):
        told = {"type": "response.output_item.done", "output_index": index, "item": item}
        assembler.feed(b"data: " + json.dumps(told).encode() + b"\n\n")
    assembler.feed(b'data: {"type":"response.completed","response":{"id":"r","status":"completed"}}\n\n')
    parts = tuple(
        attrs.evolve(part, id="c1") if isinstance(part, ToolCall) else part for part in assembler.response().parts
    )
    assert items(said(*parts)) == output


def test_a_longer_history_keeps_its_beginning_to_the_byte() -> None:
    """The server's cache looks at it; our memo must not change it either."""
    memo: dict[str, Any] = {}
    history: tuple[Message, ...] = (HI,)
    last = b""
    for number in range(4):
        found = encode_request(ModelRequest("s", history, memo=memo), PLAIN)
        assert found == encode_request(ModelRequest("s", history), PLAIN)
        inputs = found.partition(b'"input":[')[2].partition(b'],"include"')[0]
        assert inputs.startswith(last)
        last = inputs
        call = called(f"c{number}", "call_1", CALL)
        history += said(call, id=f"a{number}"), results(returned(f"c{number}"), id=f"t{number}")
    other = encode_request(ModelRequest("s", (user_message("new", "hello"),), memo=memo), PLAIN)
    assert b"call_1" not in other


def test_the_tools_are_encoded_once() -> None:
    """And again where they change."""
    memo: dict[str, Any] = {}
    first = encode_request(ModelRequest("s", (HI,), tools=(TOOL,), memo=memo), PLAIN)
    assert first == encode_request(ModelRequest("s", (HI,), tools=(TOOL,), memo=memo), PLAIN)
    assert encode_request(ModelRequest("s", (HI,), tools=(TOOL, TOOL), memo=memo), PLAIN) != first


def test_a_round_on_a_long_history_encodes_what_is_new() -> None:
    """2,000 old messages cost less than a tenth of what they cost at first."""
    memo: dict[str, Any] = {}
    pairs = [
        (user_message(f"u{n}", "hello " * 20), said(Text("answer " * 40, MESSAGE), id=f"a{n}")) for n in range(1000)
    ]
    history = tuple(message for pair in pairs for message in pair)
    times = []
    for number in range(6):
        history += (user_message(f"x{number}", "more"),)
        start = time.perf_counter()
        encode_request(ModelRequest("s", history, memo=memo), PLAIN)
        times.append(time.perf_counter() - start)
    assert min(times[1:]) < times[0] / 10


words = st.text(st.characters(codec="utf-8") | st.sampled_from("\0\ud83d"))
user_parts = st.builds(Text, words) | st.builds(Image, st.just("aW1n"), st.just("image/png"))
own_parts = (
    st.builds(Text, words, st.sampled_from([None, MESSAGE]))
    | st.builds(Thinking, words, raw=st.sampled_from([None, REASONING]))
    | st.just(RawBlock("x", '{"type":"x"}'))
)
messages = st.lists(
    st.builds(lambda parts: Message("m", "user", tuple(parts)), st.lists(user_parts, min_size=1))
    | st.builds(
        lambda parts, tag: Message("m", "assistant", tuple(parts), tag),
        st.lists(own_parts),
        st.sampled_from([TAG, OTHER]),
    ),
    max_size=6,
)


@given(messages)
def test_any_history_is_json_and_keeps_reasoning_before_its_item(history: list[Message]) -> None:
    """No reasoning stands alone, no text is empty, NUL and half characters are gone."""
    data = encode_request(ModelRequest("s", tuple(history)), PLAIN)
    found = json.loads(data)["input"]
    assert b"\\u0000" not in data
    for item, after in zip(found, (*found, None)[1:], strict=True):
        if item.get("type") == "reasoning":
            assert after is not None
            assert after.get("type") in ("reasoning", "message", "x")
        assert item.get("content") != ""


@pytest.mark.parametrize("kind", ["apply_patch_call", "computer_call", "local_shell_call", "shell_call"])
def test_a_call_of_a_client_s_own_tool_goes_with_its_output_or_not_at_all(kind: str) -> None:
    """The server refuses one that has none, and an output of a call that is not there."""
    patch = RawBlock(kind, f'{{"type":"{kind}","call_id":"p1"}}')
    output = RawBlock(f"{kind}_output", f'{{"type":"{kind}_output","call_id":"p1"}}')
    other = RawBlock(f"{kind}_output", f'{{"type":"{kind}_output","call_id":"p2"}}')
    assert [item["type"] for item in items(HI, said(patch, output))[1:]] == [patch.kind, output.kind]
    assert [item["type"] for item in items(HI, said(patch, other, output))[1:]] == [patch.kind, output.kind]
    assert items(HI, said(patch, other))[1:] == []


def test_an_item_that_a_server_said_twice_has_its_id_once() -> None:
    """In one answer or in a later one; the server refuses it twice. What is nothing without its id goes once."""
    search = RawBlock("web_search_call", '{"type":"web_search_call","id":"ws_1"}')
    thought = Thinking("", raw='{"type":"reasoning","id":"rs_1","encrypted_content":"e"}')
    spoken = '{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text"}]}'
    call = ToolCall("c1", "call_1", "f", "{}", {}, '{"type":"function_call","id":"fc_1"}')
    again = attrs.evolve(call, id="c2")
    answer = said(thought, search, search, Text("a", spoken), call, Text("b", spoken), again)
    result = results(ToolResult("c1", "f", "succeeded"), ToolResult("c2", "f", "succeeded"))
    whole = items(HI, answer, result, HI, said(thought, Text("c", spoken), id="a2"))
    told = [(item.get("type"), item["id"]) for item in whole if "id" in item]
    assert told == [("reasoning", "rs_1"), ("web_search_call", "ws_1"), ("message", "msg_1"), ("function_call", "fc_1")]
    texts = [item["content"][0]["text"] for item in whole if item.get("role") == "assistant"]
    assert (texts, len([item for item in whole if item.get("type") == "function_call"])) == (["a", "b", "c"], 2)
