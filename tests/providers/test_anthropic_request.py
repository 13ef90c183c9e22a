"""A neutral request as the body of a Messages call."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.domain.handoff import CLOSING, OPENING
from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import CallError, File, Image, RawBlock, Text, Thinking, ToolCall, ToolResult
from agentrio.domain.render import ModelRequest, SystemBlock, ThinkingLevel, ToolSpec, shorten
from agentrio.providers.wire.anthropic_request import Cache, MessagesOptions, encode_request
from agentrio.providers.wire.anthropic_thinking import claude_version
from agentrio.providers.wire.common import GO_ON
from agentrio.testing.validators import Demands, validate

TAG = ModelTag("anthropic", "messages", "claude-sonnet-5")
OTHER = ModelTag("openai", "responses", "gpt-5")
PLAIN = MessagesOptions(TAG, cache="none")
HI = user_message("u1", "hi")


def body(*messages: Message, options: MessagesOptions = PLAIN, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_request(ModelRequest("s", messages, **fields), options))
    return found


def turns(*messages: Message) -> list[tuple[str, list[Any]]]:
    return [(turn["role"], turn["content"]) for turn in body(*messages)["messages"]]


def said(*parts: Any, id: str = "a1", model: ModelTag = TAG) -> Message:
    return Message(id, "assistant", parts, model)


def results(*parts: ToolResult, id: str = "t1") -> Message:
    return Message(id, "tool", parts)


def called(id: str, provider_id: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(id, provider_id, "f", json.dumps(arguments), arguments)


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_the_minimal_body_is_pinned_to_the_byte() -> None:
    """No optional key without a value; a change here costs every user's prompt cache."""
    request = ModelRequest("s", (HI,))
    assert encode_request(request, PLAIN) == (
        b'{"model":"claude-sonnet-5","max_tokens":32000,"messages":'
        b'[{"role":"user","content":[{"type":"text","text":"hi"}]}],"stream":true}'
    )
    assert encode_request(request, MessagesOptions(TAG)) == (
        b'{"model":"claude-sonnet-5","max_tokens":32000,"messages":[{"role":"user","content":'
        b'[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"stream":true}'
    )


def test_the_full_body_is_pinned_to_the_byte() -> None:
    """Order of keys: what stays the same for longest comes first."""
    tool = ToolSpec("f", "Does f.", {"type": "object", "properties": {}})
    request = ModelRequest(
        "s", (HI,), (SystemBlock("You are.", cache=True), SystemBlock("Now.")), (tool, ToolSpec("g", "", {})),
        max_tokens=99, thinking="low", temperature=0.5,
    )  # fmt: skip
    assert encode_request(request, MessagesOptions(TAG, "long", 5, long_ttl=True)) == (
        b'{"model":"claude-sonnet-5","max_tokens":99,"system":[{"type":"text","text":"You are.",'
        b'"cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"Now."}],"messages":'
        b'[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}],'
        b'"tools":[{"name":"f","description":"Does f.","input_schema":{"type":"object","properties":{}}},'
        b'{"name":"g","input_schema":{}}],"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},'
        b'"stream":true}'
    )


@pytest.mark.parametrize(
    ("cache", "long_ttl", "mark"),
    [
        ("short", True, {"type": "ephemeral"}),
        ("long", False, {"type": "ephemeral"}),
        ("long", True, {"type": "ephemeral", "ttl": "1h"}),
        ("none", True, None),
    ],
)
def test_the_last_block_of_a_last_user_message_is_marked(cache: Cache, long_ttl: bool, mark: Any) -> None:
    """An hour only where the host knows it; never more than four marks."""
    messages = (HI, said(called("c1")), results(ToolResult("c1", "f", "succeeded", (Text("ok"),))))
    options = MessagesOptions(TAG, cache, long_ttl=long_ttl)
    sent = body(*messages, options=options, system=(SystemBlock("a", True), SystemBlock("b", True)))
    assert sent["messages"][-1]["content"][-1].get("cache_control") == mark
    assert "cache_control" not in sent["system"][0]
    assert sent["system"][1]["cache_control"]["type"] == "ephemeral"
    assert json.dumps(sent).count("cache_control") <= 2


def test_layers_of_the_prompt_are_blocks_or_one_text() -> None:
    """Empty ones go; all empty ones leave an empty list, as none at all leave no key."""
    assert body(HI, system=(SystemBlock("only"), SystemBlock(" ")))["system"] == "only"
    assert body(HI, system=(SystemBlock("a"), SystemBlock(""), SystemBlock("b")))["system"] == [text("a"), text("b")]
    assert body(HI, options=MessagesOptions(TAG), system=(SystemBlock("a"),))["system"] == [text("a")]


def test_neighbours_of_one_role_are_one_turn_and_empty_messages_are_none() -> None:
    """Results and the user's next words; an answer that was continued after a pause."""
    history = [
        HI, user_message("u2", "there"), said(Text("so "), called("c1", "toolu_1", a=1)),
        results(ToolResult("c1", "f", "succeeded", (Text("ok"), Text("")))), user_message("u3", " "),
        user_message("u4", "go on"), said(Text("one"), id="a2"), said(Text("two  "), id="a3"),
    ]  # fmt: skip
    assert turns(*history) == [
        ("user", [text("hi"), text("there")]),
        ("assistant", [text("so "), {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("ok")]}, text("go on")]),
        ("assistant", [text("one"), text("two")]),
    ]
    assert turns() == []
    assert turns(user_message("u", "")) == []
    assert turns(HI, said(Text("one"), Text("  ")))[-1] == ("assistant", [text("one")])
    assert turns(HI, said(Text("one"), Text("  ", '{"type":"text","text":"  "}')))[-1] == ("assistant", [text("one")])
    assert turns(HI, said(Text("x"), id="a1"), said(Text("y"), RawBlock("n", '{"type":"n"}'), id="a2"))[-1][1][-1] == {
        "type": "n"
    }


def test_a_failed_result_is_told_as_json() -> None:
    """Category and message, as the model reads it everywhere."""
    failed = ToolResult("c1", "f", "failed", (Text("ignored"),), CallError("timeout", "Too slow."))
    unsaid = ToolResult("c2", "f", "failed")
    _, content = turns(HI, said(called("c1"), called("c2")), results(failed, unsaid))[-1]
    assert content[0] == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [text('{"error":"timeout","message":"Too slow."}')],
        "is_error": True,
    }
    assert content[1]["content"] == [text('{"error":"tool_failed","message":""}')]


def test_images_and_files_go_where_they_are() -> None:
    """Inside results too; of documents that the API does not take the model is told the name."""
    image = Image("aGk=", "image/png")
    files = (
        File("cGRm", "application/pdf", "a.pdf"),
        File("aMOk", "text/csv"),
        File("eA==", "application/zip", "a.zip"),
        File("eA==", "application/zip"),
        File("a", "text/plain", "bad.txt"),
    )
    _, content = turns(
        HI, said(called("c1")), results(ToolResult("c1", "f", "succeeded", (image,))), user_message("u", files)
    )[-1]
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    assert content == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [shown]},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "cGRm"},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hä"}},
        text("[file omitted: a.zip (application/zip)]"),
        text("[file omitted: unnamed (application/zip)]"),
        text("[file omitted: bad.txt (text/plain)]"),
    ]


def test_what_the_same_model_wrote_goes_back_as_it_was() -> None:
    """Signatures, redacted and raw blocks, byte for byte and in their places."""
    raw = '{ "type":"server_tool_use", "input":{"q":1.50} }'
    parts = (
        Thinking("why", "sig"), Thinking("", "opaque", redacted=True), Thinking("unsigned"),
        Thinking("x", "s", raw='{"type":"thinking","k":1}'), RawBlock("server_tool_use", raw),
        Text("cited", '{"type":"text","text":"cited","citations":[1]}'),
        ToolCall("c1", "toolu_1", "f", "{", None, '{"type":"tool_use","id":"toolu_1","caller":{"type":"direct"}}'),
    )  # fmt: skip
    data = encode_request(ModelRequest("s", (HI, said(*parts), user_message("u2", "x"))), PLAIN)
    assert raw.encode() in data
    own = json.loads(data)["messages"][1]["content"]
    assert own == [
        {"type": "thinking", "thinking": "why", "signature": "sig"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "thinking", "k": 1},
        json.loads(raw),
        {"type": "text", "text": "cited", "citations": [1]},
        {"type": "tool_use", "id": "toolu_1", "caller": {"type": "direct"}, "name": "f", "input": {}},
    ]


def test_of_another_models_answer_goes_what_can_be_read() -> None:
    """Its reasoning as labelled text; what is hidden, and blocks of its server's own, can't be proved and goes not."""
    parts = (
        Thinking("why", "sig"), Thinking("", "opaque", redacted=True), RawBlock("server_tool_use", '{"id":"s"}'),
        Text("cited", '{"type":"text","text":"cited","citations":[1]}'),
        ToolCall("c1", "toolu_1", "f", "{", None, '{"type":"tool_use","id":"toolu_1","caller":{"type":"direct"}}'),
    )  # fmt: skip
    foreign = turns(HI, said(*parts, model=OTHER), user_message("u2", "x"))[1][1]
    assert foreign == [
        text(f"{OPENING}why{CLOSING}\n\n"),
        text("cited"),
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
    ]


@pytest.mark.parametrize("answers", [1, 2])
def test_a_budget_is_asked_for_where_the_last_answer_with_calls_begins_with_thinking(answers: int) -> None:
    """The API refuses it else: behind calls of another model, and behind an answer that is sent short."""
    old, demands = ModelTag("anthropic", "messages", "claude-opus-4-20250514"), Demands(thinking_first=True)
    result = ToolResult("c1", "f", "succeeded", (Text("x"),))
    own = said(Thinking("why", "sig"), Text("w" * 900), called("c1"), model=old)
    before = [HI, said(Text("a"), model=old)] * (answers - 1)
    for answer, asked in (
        (own, True),
        (shorten(own), False),
        (said(Thinking("cut off"), called("c1"), model=old), False),
        (said(Thinking("why", "sig"), called("c1"), model=OTHER), False),
        (said(Text("a"), called("c1"), Thinking("why", "sig"), model=old), False),
    ):
        for behind in (
            (),
            (HI,),
            (said(called("c2"), id="a2", model=old), results(attrs.evolve(result, call_id="c2"))),
        ):
            history = (*before, HI, answer, results(result), *behind)
            data = encode_request(ModelRequest("s", history, thinking="high"), MessagesOptions(old))
            assert ("thinking" in json.loads(data)) is (asked and len(behind) < 2)
            assert validate("messages", data, demands) == []
            adaptive = encode_request(ModelRequest("s", history, thinking="high"), PLAIN)
            assert "thinking" in json.loads(adaptive)
    assert "thinking" in body(HI, said(Text("a")), HI, options=MessagesOptions(old), thinking="high")


def test_an_answer_never_ends_in_reasoning() -> None:
    """The API refuses it; a stop may leave it so."""
    stopped = said(Text("a"), Thinking("b", "s"), Text(" "))
    assert turns(HI, stopped, user_message("u2", "x"))[1] == ("assistant", [text("a")])
    assert turns(HI, said(Thinking("b", "s"), Text(" ")), user_message("u2", "x")) == [
        ("user", [text("hi"), text("x")])
    ]


def test_a_call_of_the_servers_tool_without_a_result_goes_once_the_answer_is_over() -> None:
    """It stays while the answer can be continued, and where it waits for a result of ours."""
    use = RawBlock("server_tool_use", '{"type":"server_tool_use","id":"srvtoolu_1"}')
    found = RawBlock("web_search_tool_result", '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1"}')
    block, result = json.loads(use.json), json.loads(found.json)
    stopped, more = said(Text("a"), use), said(found, Text("b"))
    assert turns(HI, stopped)[1] == ("assistant", [text("a"), block])
    assert turns(HI, stopped, user_message("u2", "x"))[1] == ("assistant", [text("a")])
    assert turns(HI, stopped, more, user_message("u2", "x"))[1] == ("assistant", [text("a"), block, result, text("b")])
    waiting = said(use, called("c1", "toolu_1"))
    assert turns(HI, waiting, user_message("u2", "x"))[1][1][0] == block
    assert turns(HI, said(use), user_message("u2", "x"))[1] == (
        "assistant",
        [text("[A tool of the server was called, and gave no result.]")],
    )


def test_a_result_of_the_servers_tool_goes_only_behind_its_call() -> None:
    """The half of a paused answer that made the call may have been shortened; the API refuses the result alone."""
    use = RawBlock("server_tool_use", '{"type":"server_tool_use","id":"srvtoolu_1"}')
    found = RawBlock("web_search_tool_result", '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1"}')
    block, result = json.loads(use.json), json.loads(found.json)
    half, more, next = said(Text("a"), use), said(found, Text("b ")), user_message("u2", "x")
    assert turns(HI, half, more)[1] == ("assistant", [text("a"), block, result, text("b")])
    assert turns(HI, shorten(half), more)[1] == ("assistant", [text("a"), text("b")])
    assert turns(HI, shorten(half), more, next)[1] == ("assistant", [text("a"), text("b ")])
    assert turns(HI, half, next, more, next)[3] == ("assistant", [text("b ")])
    waiting, answer = said(use, called("c1", "toolu_1")), results(ToolResult("c1", "f", "succeeded"))
    assert turns(HI, waiting, answer, more)[3] == ("assistant", [result, text("b")])
    for end in ((), (next,)):
        assert turns(HI, said(found), *end)[1] == (
            "assistant",
            [text("[A tool of the server was called, and gave no result.]")],
        )


@pytest.mark.parametrize("id", [[], {}, None, 1, ""])
def test_an_odd_id_of_a_servers_call_is_no_obstacle(id: object) -> None:
    """It ended the session as crashed, in this run and in each later one."""
    use = RawBlock("server_tool_use", json.dumps({"type": "server_tool_use", "id": id}))
    found = RawBlock("web_search_tool_result", json.dumps({"type": "web_search_tool_result", "tool_use_id": id}))
    assert turns(HI, said(use, found, Text("b")), user_message("u2", "x"))[1][1][-1] == text("b")


@pytest.mark.parametrize(
    ("model", "thinking", "begins"),
    [
        ("claude-sonnet-4-5-20250929", None, True),
        ("claude-sonnet-4-5-20250929", "off", True),
        ("claude-sonnet-4-5-20250929", "low", False),
        ("claude-opus-4-6", None, False),
        ("claude-sonnet-5", "off", False),
        ("qwen3", None, False),
    ],
)
def test_the_rest_of_a_stopped_answer_is_asked_for_where_no_model_goes_on_with_it(
    model: str, thinking: ThinkingLevel | None, begins: bool
) -> None:
    """Claude from 4.6 on takes no beginning of an answer, and none does while it thinks. No history holds the question.

    An answer that only paused is continued as it is.
    """
    tag = attrs.evolve(TAG, model=model)
    options = MessagesOptions(tag, "short")
    whole = said(Text("a \n"), RawBlock("server_tool_use", '{"type":"server_tool_use","id":"srvtoolu_1"}'), model=tag)
    paused = body(HI, whole, options=options, thinking=thinking)["messages"]
    assert [turn["role"] for turn in paused] == ["user", "assistant"]
    assert len(paused[-1]["content"]) == 2
    stopped = body(HI, attrs.evolve(whole, interrupted=True), options=options, thinking=thinking)["messages"]
    foreign = body(HI, attrs.evolve(whole, model=OTHER), options=options, thinking=thinking)["messages"]
    if begins:
        assert stopped == paused
        assert foreign[1:] == [{"role": "assistant", "content": [text("a")]}]
        return
    for told in (stopped, foreign):
        assert told[1:] == [
            {"role": "assistant", "content": [text("a \n")]},
            {"role": "user", "content": [text(GO_ON)]},
        ]


def test_the_first_turn_is_always_the_users() -> None:
    """A history that was cut at its front may begin with an answer; the API refuses that."""
    assert turns(said(Text("a")), user_message("u2", "x")) == [
        ("user", [text("[What was said before is not shown.]")]),
        ("assistant", [text("a")]),
        ("user", [text("x")]),
    ]


def test_ids_are_the_providers_own_where_they_can_be() -> None:
    """From this provider, of the wire's form, and not taken by an earlier call."""
    long = "c_" + "x" * 70
    calls = [
        (called("c1", "toolu_1"), TAG), (called("c2", "toolu_1"), TAG), (called("c3", ""), TAG),
        (called("c4", "not:valid"), TAG), (called("c5", "call_5"), OTHER), (called(long + "1"), TAG),
        (called(long + "2"), TAG), (called("c:9"), TAG), (called("c1", "toolu_1"), TAG),
    ]  # fmt: skip
    history: list[Message] = [HI]
    for number, (call, tag) in enumerate(calls):
        history += (
            said(call, id=f"a{number}", model=tag),
            results(ToolResult(call.id, "f", "succeeded"), id=f"t{number}"),
        )
    content = [block for _, blocks in turns(*history) for block in blocks]
    used = [block["id"] for block in content if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    assert used == answered
    assert used[:5] == ["toolu_1", "c2", "c3", "c4", "c5"]
    assert used[8] == "toolu_1"  # the same call again
    assert len(set(used)) == 8
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", id) for id in used)


def test_an_id_of_ours_that_is_taken_is_hashed() -> None:
    """A provider could have used the very id that we would make."""
    history = (
        HI,
        said(called("x", "c2")),
        results(ToolResult("x", "f", "succeeded")),
        said(called("c2", "c2"), id="a2"),
    )
    used = [block["id"] for _, blocks in turns(*history) for block in blocks if block["type"] == "tool_use"]
    assert used[0] == "c2"
    assert used[1].startswith("c2_")
    assert turns(HI, results(ToolResult("lost", "f", "succeeded")))[0][1][-1]["tool_use_id"] == "lost"


@given(st.lists(st.tuples(st.text(max_size=80), st.sampled_from(["", "a", "b", "a" * 64, "a" * 65, "ü", "c_0"]))))
def test_no_two_calls_share_an_id(ids: list[tuple[str, str]]) -> None:
    """Injective per request, and the results follow."""
    history: list[Message] = [HI]
    for number, (ours, theirs) in enumerate(dict(ids).items()):
        history += (
            said(called(ours, theirs), id=f"a{number}"),
            results(ToolResult(ours, "f", "succeeded"), id=f"t{number}"),
        )
    content = [block for _, blocks in turns(*history) for block in blocks]
    used = [block["id"] for block in content if block["type"] == "tool_use"]
    assert len(set(used)) == len(used) == len(dict(ids))
    assert used == [block["tool_use_id"] for block in content if block["type"] == "tool_result"]


LEVELS: list[ThinkingLevel] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"]


@pytest.mark.parametrize(
    ("model", "version", "efforts"),
    [
        ("claude-sonnet-5", ("sonnet", 5, 0), ["low", "low", "medium", "high", "max", "max"]),
        ("claude-fable-5", ("fable", 5, 0), ["low", "low", "medium", "high", "high", "high"]),
        ("claude-opus-4-6-20260101", ("opus", 4, 6), ["low", "low", "medium", "high", "max", "max"]),
        ("claude-sonnet-4-6", ("sonnet", 4, 6), ["low", "low", "medium", "high", "high", "high"]),
        ("anthropic/claude-opus-4.8", ("opus", 4, 8), ["low", "low", "medium", "high", "max", "max"]),
        ("claude-sonnet-4-20250514", ("sonnet", 4, 0), None),
        ("claude-haiku-4-6", ("haiku", 4, 6), None),
        ("claude-opus-4-5-20251101", ("opus", 4, 5), None),
        ("claude-3-7-sonnet-20250219", ("sonnet", 3, 7), None),
        ("claude-3-opus-20240229", ("opus", 3, 0), None),
        ("smollm2", ("", 0, 0), None),
    ],
)
def test_thinking_is_an_effort_or_a_budget(
    model: str, version: tuple[str, int, int], efforts: list[str] | None
) -> None:
    """By generation; a date in the name is no version."""
    assert claude_version(model) == version
    options = MessagesOptions(attrs.evolve(TAG, model=model), "none")
    sent = [body(HI, options=options, thinking=level, temperature=0.5) for level in LEVELS]
    assert sent[0]["thinking"] == {"type": "disabled"}
    assert sent[0]["temperature"] == 0.5
    assert not any("temperature" in found for found in sent[1:])
    if efforts is None:
        budgets = [found["thinking"]["budget_tokens"] for found in sent[1:]]
        assert budgets == [1024, 2048, 8192, 16384, 16384, 16384]
        assert "output_config" not in sent[1]
    else:
        assert [found["output_config"]["effort"] for found in sent[1:]] == efforts
        assert sent[1]["thinking"] == {"type": "adaptive"}


def test_max_tokens_lies_above_the_budget() -> None:
    """What is asked for comes on top of what is thought; else the API refuses."""
    options = MessagesOptions(attrs.evolve(TAG, model="claude-sonnet-4-20250514"), "none", 1000)
    assert body(HI, options=options)["max_tokens"] == 1000
    assert body(HI, options=options, max_tokens=7)["max_tokens"] == 7
    assert body(HI, options=options, thinking="high")["max_tokens"] == 17384


@pytest.mark.parametrize(
    ("level", "asked", "max_tokens", "budget"),
    [
        ("high", 32_000, 32_000, 16_384),
        ("high", 16_384, 32_768, 16_384),
        ("high", 16_385, 16_385, 12_289),
        ("high", 20_000, 20_000, 15_000),
        ("high", 100_000, 100_000, 16_384),
        ("low", 6000, 6000, 1904),
        ("minimal", 1025, 2049, 1024),
        ("minimal", 5119, 6143, 1024),
        ("minimal", 5120, 5120, 1024),
    ],
)
def test_an_answer_has_room_beside_what_is_thought(
    level: ThinkingLevel, asked: int, max_tokens: int, budget: int
) -> None:
    """A quarter, and 4,096 tokens at least: a budget just below the limit left a single token for the text."""
    options = MessagesOptions(attrs.evolve(TAG, model="claude-sonnet-4-20250514"), "none")
    found = body(HI, options=options, thinking=level, max_tokens=asked)
    assert (found["max_tokens"], found["thinking"]["budget_tokens"]) == (max_tokens, budget)


def _long(count: int) -> list[Message]:
    history: list[Message] = []
    for number in range(count // 4):
        call = called(f"c{number}", f"toolu_{number % 7}", n=number)
        history += (
            user_message(f"u{number}", f"question {number} " * 10), said(Text("let me see"), call, id=f"a{number}"),
            results(ToolResult(call.id, "f", "succeeded", (Text("x" * 50),)), id=f"t{number}"),
            said(Text("so it is"), id=f"b{number}"),
        )  # fmt: skip
    return history


def test_a_memo_changes_nothing_but_the_time() -> None:
    """Growing, shrinking, changed and foreign histories encode as if they were new."""
    history = [*_long(40), HI]
    memo: dict[str, Any] = {}

    def check(messages: list[Message], tag: ModelTag = TAG) -> None:
        options = MessagesOptions(tag)
        kept = encode_request(ModelRequest("s", tuple(messages), memo=memo), options)
        fresh = [Message(m.id, m.role, m.parts, m.model) for m in messages]
        assert kept == encode_request(ModelRequest("s", tuple(fresh)), options)

    for size in range(1, len(history) + 1):
        check(history[:size])
    check(history[:7])
    check([user_message("new", "start over"), *history[2:]])
    check(history, attrs.evolve(TAG, model="claude-opus-5"))
    check(history)
    tools = (ToolSpec("f", "", {}),)
    for given_tools in (tools, tools, (*tools, ToolSpec("g", "", {}))):
        sent = json.loads(encode_request(ModelRequest("s", (HI,), tools=given_tools, memo=memo), PLAIN))
        assert len(sent["tools"]) == len(given_tools)


def test_a_round_encodes_only_what_is_new() -> None:
    """With 2,000 old messages a round is a join: counted in fragments, not in time."""
    history = _long(2_000)
    memo: dict[str, Any] = {}
    encode_request(ModelRequest("s", tuple(history), memo=memo), PLAIN)
    took = []
    for number in range(9):
        history += [user_message(f"n{number}", "next"), said(Text("more"), id=f"m{number}")]
        began = time.perf_counter()
        encode_request(ModelRequest("s", tuple(history), memo=memo), PLAIN)
        took.append(time.perf_counter() - began)
    assert all(message._memo for message in history)
    print(f"a round on 2,000 old messages: {min(took) * 1e3:.2f} ms")
