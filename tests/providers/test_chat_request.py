"""Request bodies of the Chat Completions wire, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from agentrio.domain.handoff import NO_FILE, NO_IMAGE
from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import CallError, File, Image, Part, RawBlock, Text, Thinking, ToolCall, ToolResult
from agentrio.domain.render import ModelRequest, SystemBlock, ThinkingLevel, ToolSpec
from agentrio.providers.base import ProviderError
from agentrio.providers.presets import preset
from agentrio.providers.wire import chat_history
from agentrio.providers.wire.chat_assembler import ChatAssembler
from agentrio.providers.wire.chat_dialect import Dialect
from agentrio.providers.wire.chat_history import ATTACHED, NO_OUTPUT, SEE_BELOW, UNSIGNED
from agentrio.providers.wire.chat_request import ChatOptions, encode_request
from agentrio.providers.wire.chat_thinking import is_reasoning, thinking_fields
from agentrio.providers.wire.common import GO_ON
from agentrio.providers.wire.json import encode
from agentrio.providers.wire.openai_cache import Cache

TAG = ModelTag("server", "chat", "m")
FOREIGN = ModelTag("anthropic", "messages", "claude")
TOOL = ToolSpec("f", "Does it.", {"type": "object", "properties": {}})
PNG = Image("QQ==", "image/png")
PDF = File("QQ==", "application/pdf", "a.pdf")
PLAIN = File("aGk=", "text/markdown", "a.md")


def said(*parts: Part, tag: ModelTag = TAG, id: str = "a") -> Message:
    return Message(id, "assistant", parts, tag)


def results(*parts: ToolResult) -> Message:
    return Message("t", "tool", parts)


def call(id: str = "c1", provider_id: str = "call_1", arguments: str = '{"x": 1}', **more: Any) -> ToolCall:
    return ToolCall(id, provider_id, "f", arguments, more.pop("parsed", {"x": 1}), **more)


def raw(*messages: Message, dialect: Dialect | None = None, **more: Any) -> bytes:
    options = ChatOptions(TAG, dialect or Dialect(), more.pop("max_tokens", None), more.pop("extra", {}))
    return encode_request(ModelRequest("s", messages, **more), options)


def sent(*messages: Message, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(raw(*messages, **more))["messages"]
    return found


def test_the_least_request_has_nothing_optional() -> None:
    """No key without a value."""
    assert raw(user_message("u", "hi")) == (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}'
    )
    assert raw(user_message("u", "hi"), dialect=Dialect(usage_option=False)).endswith(b'],"stream":true}')


def test_a_full_request_byte_for_byte() -> None:
    """Prompt, call, result, tools, limits."""
    history = (
        user_message("u", "hi"),
        said(Text("Ok"), call()),
        results(ToolResult("c1", "f", "succeeded", (Text("1"),))),
    )
    system = (SystemBlock("Be."), SystemBlock(" "), SystemBlock("Brief.", cache=True))
    body = raw(
        *history, system=system, tools=(TOOL,), max_tokens=9, temperature=0.5, thinking="low", extra={"top_p": 1}
    )
    assert body == (
        b'{"model":"m","messages":[{"role":"system","content":"Be.\\n\\nBrief."},{"role":"user","content":"hi"},'
        b'{"role":"assistant","content":"Ok","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f",'
        b'"arguments":"{\\"x\\": 1}"}}]},{"role":"tool","tool_call_id":"call_1","content":"1"}],"tools":[{"type":'
        b'"function","function":{"name":"f","description":"Does it.","parameters":{"type":"object","properties":{}}}}],'
        b'"max_tokens":9,"temperature":0.5,"reasoning_effort":"low","top_p":1,"stream":true,'
        b'"stream_options":{"include_usage":true}}'
    )


def test_a_prompt_alone_is_a_request() -> None:
    """And an empty one is not refused here."""
    assert sent(system=(SystemBlock("Be."),)) == [{"role": "system", "content": "Be."}]
    assert sent() == []


def test_h12_fields_about_tools_are_left_out_where_there_are_none() -> None:
    """Servers answer 400 to them."""
    extra = {"tool_choice": "auto", "parallel_tool_calls": False, "seed": 1}
    assert b"tool" not in raw(user_message("u", "hi"), extra=extra)
    assert b'"parallel_tool_calls":false' in raw(user_message("u", "hi"), extra=extra, tools=(TOOL,))


def test_tools_for_a_server_that_takes_none_are_refused_before_it_is_asked() -> None:
    """A model that can't call is not pretended to have been offered anything."""
    with pytest.raises(ProviderError, match="takes no tools") as caught:
        raw(user_message("u", "hi"), dialect=Dialect(tools=False), tools=(TOOL,))
    assert caught.value.code == "unsupported"


def test_the_request_decides_over_the_declaration() -> None:
    """And the preset over the field's name."""
    options = ChatOptions(TAG, Dialect(max_tokens="max_completion_tokens"), 5)
    assert b'"max_completion_tokens":7' in encode_request(ModelRequest("s", (), max_tokens=7), options)
    assert b'"max_completion_tokens":5' in encode_request(ModelRequest("s", ()), options)


# ------------------------------------------------------------------------------------------------------------ prompt


def test_openais_reasoning_models_are_given_the_prompt_as_developer() -> None:
    """Others are not: they do not know the role."""
    dialect = preset("openai").dialect
    for model, role in (
        ("gpt-5.2", "developer"),
        ("o3", "developer"),
        ("gpt-4o", "system"),
        ("gpt-5-chat-latest", "system"),
    ):
        options = ChatOptions(attrs.evolve(TAG, model=model), dialect)
        body = json.loads(encode_request(ModelRequest("s", (), (SystemBlock("Be."),), temperature=1), options))
        assert body["messages"] == [{"role": role, "content": "Be."}]
        assert ("temperature" in body) == (role == "system")


@pytest.mark.parametrize(
    ("model", "thinking", "takes"),
    [
        ("gpt-5.2", "off", True),
        ("gpt-5.2", "low", False),
        ("gpt-5.2", None, False),
        ("gpt-5", "off", False),
        ("o3", "off", False),
        ("gpt-4o", "off", True),
        ("gpt-4o", None, True),
    ],
)
def test_a_temperature_goes_where_nothing_is_reasoned(model: str, thinking: ThinkingLevel | None, takes: bool) -> None:
    """Beside reasoning OpenAI refuses it, and GPT-5 and its forerunners always reason. Other servers take it."""
    for name, goes in (("openai", takes), ("groq", True)):
        options = ChatOptions(attrs.evolve(TAG, model=model), preset(name).dialect)
        request = ModelRequest("s", (user_message("u", "a"),), thinking=thinking, temperature=0.5)
        assert ("temperature" in json.loads(encode_request(request, options))) == goes


def test_a_marked_layer_is_marked_where_the_model_needs_it() -> None:
    """Claude behind OpenRouter; other models cache by themselves."""
    layers = (SystemBlock("a", cache=True), SystemBlock("b"))
    for model in ("anthropic/claude-sonnet-5", "openai/gpt-5"):
        options = ChatOptions(attrs.evolve(TAG, model=model), preset("openrouter").dialect)
        content = json.loads(encode_request(ModelRequest("s", (), layers), options))["messages"][0]["content"]
        marked = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]
        assert content == (marked if model.startswith("anthropic/") else "a\n\nb")


@pytest.mark.parametrize("cache", ["none", "short", "long"])
@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-5", "openai/gpt-5"])
def test_the_users_last_text_is_marked_where_the_model_needs_it(model: str, cache: Cache) -> None:
    """Claude behind OpenRouter: else each round of a long conversation is paid for in full."""
    options = ChatOptions(attrs.evolve(TAG, model=model), preset("openrouter").dialect, cache=cache)
    memo: dict[str, Any] = {}

    def content(*messages: Message) -> list[Any]:
        body = json.loads(encode_request(ModelRequest("s", messages, memo=memo), options))
        return [message["content"] for message in body["messages"]]

    def marked(text: str) -> Any:
        mark = {"cache_control": {"type": "ephemeral"}}
        return [{"type": "text", "text": text} | mark] if model.startswith("anthropic/") and cache != "none" else text

    one, two = user_message("u", "a"), user_message("v", (Text("b"), PNG))
    done = results(ToolResult("c1", "f", "succeeded", (Text("x"),)))
    assert content(one) == [marked("a")]
    assert content(one, said(call()), done) == [marked("a"), None, "x"]
    told = content(one, said(call()), done, said(Text("so")), two)
    assert told[:4] == ["a", None, "x", "so"]
    assert told[4][:1] == (marked("b") if marked("b") != "b" else [{"type": "text", "text": "b"}])
    assert "cache_control" not in told[4][1]
    assert content(said(Text("so"))) == ["so", GO_ON]  # another history has another last text
    assert content(user_message("w", (PNG,))) == [[told[4][1]]]


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
def test_openai_keeps_the_prompt_under_the_sessions_id(
    cache: Cache, key: str | None, long_ttl: bool, expected: dict[str, str]
) -> None:
    """As on the Responses wire; other servers are told a key only where one is given."""

    def fields(name: str) -> dict[str, str]:
        options = ChatOptions(TAG, preset(name).dialect, cache=cache, cache_key=key, long_ttl=long_ttl)
        body = json.loads(encode_request(ModelRequest("s", (user_message("u", "a"),)), options))
        return {name: value for name, value in body.items() if name.startswith("prompt_cache")}

    assert fields("openai") == expected
    assert fields("groq") == ({} if key is None else expected)


# --------------------------------------------------------------------------------------------------- users and results


def test_text_alone_is_a_text_and_images_make_a_list() -> None:
    """DeepSeek and others take no list."""
    assert sent(user_message("u", (Text("a"), Text("b")))) == [{"role": "user", "content": "a\n\nb"}]
    assert sent(user_message("u", (Text("a"), Text(" "), PNG)))[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
    ]
    assert sent(user_message("u", (PNG,)), dialect=Dialect(images=False)) == [{"role": "user", "content": NO_IMAGE}]
    assert sent(Message("u", "user", ()), said(tag=FOREIGN)) == []


def test_files_are_sent_where_they_are_taken_and_texts_everywhere() -> None:
    """A PDF elsewhere is told to be missing."""
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="}
    assert sent(user_message("u", (PDF,)), dialect=Dialect(files=True))[0]["content"] == [
        {"type": "file", "file": file}
    ]
    nameless = File("QQ==", "application/pdf")
    assert (
        sent(user_message("u", (nameless,)), dialect=Dialect(files=True))[0]["content"][0]["file"]["filename"] == "file"
    )
    assert sent(user_message("u", (PDF,))) == [{"role": "user", "content": NO_FILE}]
    assert sent(user_message("u", (PLAIN,))) == [{"role": "user", "content": "[File: a.md]\nhi"}]


def test_each_result_is_a_message_and_a_failed_one_says_so() -> None:
    """The wire has no mark for it."""
    error = CallError("tool_failed", "It broke.")
    history = (
        said(call("c1", "x"), call("c2", "y"), call("c3", "z")),
        results(
            ToolResult("c1", "f", "succeeded", (Text("1"), Text(" "), Text("2"))),
            ToolResult("c2", "f", "failed", error=error),
            ToolResult("c3", "f", "cancelled"),
        ),
    )
    assert sent(*history)[1:] == [
        {"role": "tool", "tool_call_id": "x", "content": "1\n\n2"},
        {"role": "tool", "tool_call_id": "y", "content": '[tool error] {"error":"tool_failed","message":"It broke."}'},
        {"role": "tool", "tool_call_id": "z", "content": '[tool error] {"error":"tool_failed","message":""}'},
    ]


def test_what_a_result_shows_follows_all_results_in_a_user_message() -> None:
    """The wire's results are texts. An empty one is told to be empty."""
    history = (
        said(call("c1", "x"), call("c2", "y")),
        results(ToolResult("c1", "f", "succeeded", (PNG,)), ToolResult("c2", "f", "succeeded")),
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}
    told = [
        {"role": "tool", "tool_call_id": "x", "content": SEE_BELOW},
        {"role": "tool", "tool_call_id": "y", "content": NO_OUTPUT},
        {"role": "user", "content": [{"type": "text", "text": ATTACHED}, image]},
    ]
    assert sent(*history)[1:] == told
    blind = sent(*history, dialect=Dialect(images=False))[1:]
    assert blind == [{"role": "tool", "tool_call_id": "x", "content": NO_IMAGE}, told[1]]
    bridged = sent(*history, dialect=Dialect(answer_before_user=True))
    assert [message["role"] for message in bridged] == ["assistant", "tool", "tool", "assistant", "user"]


def test_mistral_is_given_what_it_asks_for() -> None:
    """Nine letters in ids, names on results, an answer between results and user, the last answer as a prefix."""
    dialect = preset("mistral").dialect
    ask = said(call("c_s-r1_1_0", "call_0123456789"), call("c2", "abcDEF123"))
    done = results(ToolResult("c_s-r1_1_0", "f", "succeeded"), ToolResult("c2", "f", "succeeded"))
    found = sent(ask, done, user_message("u", "Go on"), said(Text("So ")), dialect=dialect)
    assert [message["role"] for message in found] == ["assistant", "tool", "tool", "assistant", "user", "assistant"]
    ids = [each["id"] for each in found[0]["tool_calls"]]
    assert ids[1] == "abcDEF123"
    assert len(ids[0]) == 9
    assert ids[0].isalnum()
    assert found[0]["content"] == ""
    assert found[1] == {"role": "tool", "tool_call_id": ids[0], "name": "f", "content": NO_OUTPUT}
    assert found[-1] == {"role": "assistant", "content": "So", "prefix": True}


# ------------------------------------------------------------------------------------------------------------ answers


@pytest.mark.parametrize(("form", "has"), [("null", {"content": None}), ("omit", {}), ("empty", {"content": ""})])
def test_h08_the_content_beside_calls_alone_is_in_the_servers_form(form: Any, has: dict[str, Any]) -> None:
    """Null, left out or empty: strict servers refuse one or the other."""
    found = sent(said(call()), results(ToolResult("c1", "f", "succeeded")), dialect=Dialect(empty_content=form))[0]
    assert {key: found[key] for key in found if key == "content"} == has


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_in_the_field_it_came_in(field: str) -> None:
    """To the model that wrote it."""
    thinking = Thinking("hm", raw=f'{{"field":"{field}"}}')
    assert sent(said(thinking, Text("a")), user_message("u", "b"))[0] == {
        "role": "assistant",
        "content": "a",
        field: "hm",
    }


def test_signed_details_go_back_verbatim() -> None:
    """In place of the text that they hold."""
    detail = {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "index": 0}
    one = Thinking("hm", "c2ln", raw=json.dumps({"field": "reasoning", "details": [detail]}))
    two = Thinking("", "QQ==", True, json.dumps({"field": "reasoning_details", "details": [{"data": "QQ=="}]}))
    found = sent(said(one, Text("a"), two), user_message("u", "b"))[0]
    assert found == {"role": "assistant", "content": "a", "reasoning_details": [detail, {"data": "QQ=="}]}


def test_reasoning_in_a_list_goes_back_as_a_list() -> None:
    """Mistral's; unsigned reasoning of a drop, and an unknown field, are left out."""
    raw_list = '{"field":"content"}'
    parts = (Thinking("h", raw=raw_list), Text("a"), Text(""), Thinking("m", raw=raw_list), Text("b"), Thinking("x"))
    assert sent(said(*parts, Thinking("y", raw='{"field":"z"}')), user_message("u", "b"))[0]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}]},
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "m"}]},
        {"type": "text", "text": "b"},
    ]


def test_what_the_assembler_kept_goes_back_as_it_came() -> None:
    """Round trip: Gemini's signatures, of a call and of the message."""
    extra = {"extra_content": {"google": {"thought_signature": "QQ=="}}}
    piece = {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"x": 1}'}} | extra
    delta = {"content": None, "tool_calls": [piece]} | extra
    assembler = ChatAssembler()
    chunk = {"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}
    assembler.feed(b"data: %b\n\n" % json.dumps(chunk).encode())
    found = sent(said(*assembler.response().parts), results(ToolResult("", "f", "succeeded")))[0]
    function = {"name": "f", "arguments": '{"x": 1}'}
    sent_call = {"id": "x", "type": "function", "function": function} | extra
    assert found == {"role": "assistant", "content": None} | extra | {"tool_calls": [sent_call]}


@pytest.mark.parametrize(
    ("model", "asks"), [("gemini-3.5-flash", True), ("models/gemini-4-pro", True), ("gemini-2.5-pro", False)]
)
def test_calls_that_gemini_did_not_sign_say_so(model: str, asks: bool) -> None:
    """It refuses others from 3 on: of another model, and of its own where nothing was signed. Its signatures stay."""
    tag = ModelTag("gemini", "chat", model)
    options = ChatOptions(tag, preset("gemini").dialect)

    def marks(raw: str | None, of: ModelTag) -> list[Any]:
        asked = said(call(raw=raw), call("c2", "call_2"), tag=of)
        history = (asked, results(ToolResult("c1", "f", "succeeded"), ToolResult("c2", "f", "succeeded")))
        found = json.loads(encode_request(ModelRequest("s", history), options))["messages"][0]["tool_calls"]
        return [one.get("extra_content") for one in found]

    signed: Any = {"google": {"thought_signature": "c2ln"}}
    unsigned = {"google": {"thought_signature": UNSIGNED}} if asks else None
    assert marks(json.dumps({"extra_content": signed}), FOREIGN) == [unsigned, None]
    assert marks(json.dumps({"extra_content": signed}), tag) == [signed, None]
    assert marks(None, tag) == [unsigned, None]
    message = RawBlock("chat.message", json.dumps({"extra_content": signed}))
    history = (said(message, call(), tag=tag), results(ToolResult("c1", "f", "succeeded")))
    whole = json.loads(encode_request(ModelRequest("s", history), options))["messages"][0]
    assert (whole["extra_content"], whole["tool_calls"][0].keys()) == (signed, {"id", "type", "function"})
    odd: Any
    for odd in ({}, [], {"google": None}):
        assert marks(json.dumps({"extra_content": odd}), tag) == [unsigned if asks else odd, None]


def test_a_refusal_goes_back_as_one() -> None:
    """To the model that refused; another reads its words."""
    refusal = Text("I won't.", '{"type":"refusal"}')
    assert sent(said(refusal), user_message("u", "b"))[0] == {
        "role": "assistant",
        "content": None,
        "refusal": "I won't.",
    }
    foreign = sent(said(refusal, tag=ModelTag("other", "chat", "m")), user_message("u", "b"))[0]
    assert foreign == {"role": "assistant", "content": "I won't."}


def test_of_another_model_reasoning_is_labelled_text_and_its_own_blocks_go() -> None:
    """Signatures, extra fields and blocks prove nothing here."""
    parts = (Thinking("hm", "sig", raw="{}"), Text("a", raw="{}"), RawBlock("x", "{}"), call(raw='{"extra_content":1}'))
    found = sent(said(*parts, tag=FOREIGN), results(ToolResult("c1", "f", "succeeded")))[0]
    assert found["content"] == "[Reasoning of another model]\nhm\n[End of that reasoning]\n\na"
    assert found["tool_calls"][0].keys() == {"id", "type", "function"}
    assert found["tool_calls"][0]["id"] == "c1"


def test_reasoning_that_a_server_requires_is_there_if_only_empty() -> None:
    """DeepSeek answers 400 where a call lacks it."""
    dialect = preset("deepseek").dialect
    own = said(Thinking("hm", raw='{"field":"reasoning_content"}'), call())
    done = results(ToolResult("c1", "f", "succeeded"))
    assert sent(own, done, dialect=dialect)[0]["reasoning_content"] == "hm"
    assert sent(said(call(), tag=FOREIGN), done, dialect=dialect)[0]["reasoning_content"] == ""
    assert "reasoning_content" not in sent(said(Text("a")), user_message("u", "b"), dialect=dialect)[0]


@pytest.mark.parametrize(
    ("text", "parsed", "wire"),
    [
        ('{"x": 1}', {"x": 1}, '{"x": 1}'),
        ('{"x":"a\nb"}', {"x": "a\nb"}, '{"x":"a\\nb"}'),
        ("", {}, "{}"),
        ('{"x":1}}', None, "{}"),
    ],
)
def test_arguments_are_sent_as_written_where_a_server_can_parse_them(text: str, parsed: Any, wire: str) -> None:
    """Servers parse them and fail on what is no JSON."""
    found = sent(said(call(arguments=text, parsed=parsed)), results(ToolResult("c1", "f", "succeeded")))[0]
    assert found["tool_calls"][0]["function"]["arguments"] == wire


@pytest.mark.parametrize("told", [{"interrupted": True}, {"model": FOREIGN}], ids=["stopped", "another's"])
def test_the_rest_of_an_answer_at_the_end_is_asked_for(told: dict[str, Any]) -> None:
    """Most servers refuse a request that ends in an answer where their models think. No history holds the question."""
    begun = attrs.evolve(said(Text("a \n")), **told)
    assert sent(user_message("u", "b"), begun) == [
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "a \n"},
        {"role": "user", "content": GO_ON},
    ]
    assert sent(user_message("u", "b"), begun, dialect=Dialect(prefix_last=True))[1:] == [
        {"role": "assistant", "content": "a", "prefix": True}
    ]
    calls = attrs.evolve(said(call()), **told)
    assert len(sent(calls, results(ToolResult("c1", "f", "succeeded")))) == 2


def test_j02_an_answer_at_the_end_loses_trailing_space() -> None:
    """There alone: in the middle it stays."""
    assert sent(said(Text("a \n"))) == [{"role": "assistant", "content": "a"}]
    assert sent(said(Text("a \n")), user_message("u", "b"))[0]["content"] == "a \n"
    assert sent(said(Text("a"), Thinking("hm", raw='{"field":"reasoning"}')))[0] == {
        "role": "assistant",
        "content": "a",
        "reasoning": "hm",
    }
    thought = Thinking("hm", raw='{"field":"content"}')
    assert sent(said(thought, Text("a \n")))[0]["content"][-1] == {"type": "text", "text": "a"}
    assert sent(said(Text("a \n"), thought))[0]["content"][0] == {"type": "text", "text": "a \n"}


def test_surrogates_and_nul_never_reach_the_wire() -> None:
    """In any role."""
    found = raw(user_message("u", "a\0\ud83d"), said(Text("b\0")), user_message("v", "c"), system=(SystemBlock("s\0"),))
    assert b"\\u0000" not in found
    found.decode()


# ---------------------------------------------------------------------------------------------------------------- ids


def ids_of(dialect: Dialect, *pairs: tuple[str, str], tag: ModelTag = TAG) -> list[str]:
    """The wire's ids of calls with these ids of ours and the provider's; results must agree."""
    history: list[Message] = []
    for number, (ours, theirs) in enumerate(pairs):
        history += [said(call(ours, theirs), tag=tag, id=f"a{number}"), results(ToolResult(ours, "f", "succeeded"))]
    found = sent(*history, dialect=dialect)
    ids = [message["tool_calls"][0]["id"] for message in found[::2]]
    assert ids == [message["tool_call_id"] for message in found[1::2]]
    return ids


def test_e01_an_id_that_comes_again_is_replaced() -> None:
    """Gemini and Ollama number from 0 in each response."""
    assert ids_of(Dialect(), ("c1", "call_0"), ("c2", "call_0"), ("c3", "")) == ["call_0", "c2", "c3"]


@pytest.mark.parametrize(("rule", "longest"), [("openai", 40), ("any", 64), ("nine", 9)])
def test_long_ids_are_cut_and_stay_distinct(rule: Any, longest: int) -> None:
    """Two that share a beginning never become one."""
    found = ids_of(Dialect(ids=rule), ("x" * 90 + "1", ""), ("x" * 90 + "2", "y" * 90), ("x" * 90 + "3", "y" * 90))
    assert len(set(found)) == 3
    assert max(map(len, found)) <= longest


def test_ids_of_a_servers_own_form_are_given_back() -> None:
    """Kimi's template reads them; OpenAI takes letters, digits, - and _ alone."""
    assert ids_of(Dialect(), ("c1", "functions.f:0")) == ["functions.f:0"]
    assert ids_of(Dialect(ids="openai"), ("c1", "functions.f:0")) == ["c1"]


# ----------------------------------------------------------------------------------------------------------- thinking

LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


def efforts(style: Any, model: str) -> list[Any]:
    return [thinking_fields(style, model, level).get("reasoning_effort") for level in LEVELS]


@pytest.mark.parametrize(
    ("style", "model", "wanted"),
    [
        ("openai", "gpt-5", ["minimal", "minimal", "low", "medium", "high", "high", "high"]),
        ("openai", "gpt-5.2", ["none", "low", "low", "medium", "high", "xhigh", "xhigh"]),
        ("openai", "gpt-5.6", ["none", "low", "low", "medium", "high", "xhigh", "max"]),
        ("openai", "o3", ["low", "low", "low", "medium", "high", "high", "high"]),
        ("openai", "gpt-4o", [None] * 7),
        ("effort", "any", [None, "low", "low", "medium", "high", "high", "high"]),
        ("effort_or_none", "any", ["none", "low", "low", "medium", "high", "high", "high"]),
        ("deepseek", "deepseek-v4", [None, "low", "low", "high", "high", "high", "max"]),
        ("gemini", "gemini-2.5-flash", ["none", "minimal", "low", "medium", "high", "high", "high"]),
        ("gemini", "gemini-3-pro", ["low", "low", "low", "medium", "high", "high", "high"]),
        ("gemini", "gemini-3-flash", ["minimal", "minimal", "low", "medium", "high", "high", "high"]),
        ("groq", "qwen/qwen3-32b", ["none", *["default"] * 6]),
        ("groq", "openai/gpt-oss-120b", [None, "low", "low", "medium", "high", "high", "high"]),
        ("mistral", "mistral-small-latest", ["none", *["high"] * 6]),
        ("xai", "grok-4.3", ["none", "low", "low", "medium", "high", "high", "high"]),
        ("xai", "grok-4.5", ["low", "low", "low", "medium", "high", "high", "high"]),
        ("xai", "grok-latest", ["low", "low", "low", "medium", "high", "high", "high"]),
        ("xai", "grok-4", [None] * 7),
        ("xai", "grok-4.20-reasoning", [None] * 7),
        ("none", "any", [None] * 7),
    ],
)
def test_each_level_is_what_the_model_knows(style: Any, model: str, wanted: list[Any]) -> None:
    """A level that a model lacks is its nearest."""
    assert efforts(style, model) == wanted


def test_servers_that_ask_in_other_fields_are_asked_there() -> None:
    """And no level is no field."""
    found: Callable[..., dict[str, Any]] = thinking_fields
    assert found("deepseek", "m", "off") == {"thinking": {"type": "disabled"}}
    assert found("deepseek", "m", "max") == {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}
    assert found("type", "m", "off") == {"thinking": {"type": "disabled"}}
    assert found("type", "m", "low") == {"thinking": {"type": "enabled"}}
    assert found("openrouter", "m", "off") == {"reasoning": {"effort": "none"}}
    assert found("openrouter", "m", "max") == {"reasoning": {"effort": "xhigh"}}
    assert found("mistral", "magistral-medium", "off") == {}
    assert found("mistral", "magistral-medium", "low") == {"prompt_mode": "reasoning"}
    off = {"enable_thinking": False, "thinking": False}
    assert found("template", "m", "off") == {"chat_template_kwargs": off}
    kwargs = {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}
    assert found("template", "m", "max") == {"chat_template_kwargs": kwargs}
    assert found("openai", "o3", None) == {}
    assert is_reasoning("openai/o4-mini")


# ---------------------------------------------------------------------------------------------------- long histories


def long_history(rounds: int) -> list[Message]:
    history: list[Message] = []
    for number in range(rounds):
        result = ToolResult(f"c{number}", "f", "succeeded", (Text("r" * 80),))
        history += [said(Text("t" * 80), call(f"c{number}", f"call_{number}"), id=f"a{number}"), results(result)]
    return history


def test_a_round_encodes_what_is_new_and_a_longer_history_keeps_its_bytes() -> None:
    """With the memo, and without it, the same body; another history starts over."""
    history = long_history(20)
    memo: dict[str, Any] = {}
    options = ChatOptions(TAG)
    for end in range(1, len(history) + 1):
        request = ModelRequest("s", tuple(history[:end]), tools=(TOOL,), memo=memo)
        fresh = attrs.evolve(request, memo={})
        assert encode_request(request, options) == encode_request(fresh, options)
    other = ModelRequest("s", tuple(history[4:8]), tools=(attrs.evolve(TOOL, name="g", description=""),), memo=memo)
    assert encode_request(other, options) == encode_request(attrs.evolve(other, memo={}), options)


def test_2000_old_messages_are_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round encodes its own message alone; the others are joined."""
    history = tuple(long_history(1000))
    memo: dict[str, Any] = {}
    options = ChatOptions(TAG)
    encode_request(ModelRequest("s", history, memo=memo), options)
    encoded: list[Any] = []

    def counting(value: Any) -> bytes:
        encoded.append(value)
        return encode(value)

    monkeypatch.setattr(chat_history, "encode", counting)
    encode_request(ModelRequest("s", (*history, user_message("u", "hi")), memo=memo), options)
    assert encoded == [{"role": "user", "content": "hi"}]
