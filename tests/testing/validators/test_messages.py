"""What the Messages API refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.validators.rules import PNG, Body, Rule, hold, rule, tells_of, without

TEXT = {"type": "text", "text": "a"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}
OTHER = {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}
OTHER_RESULT = {"type": "tool_result", "tool_use_id": "toolu_2", "content": [TEXT]}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
TOOL = {"name": "now", "description": "The time.", "input_schema": {"type": "object", "properties": {}}}
ASKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}


def image(data: str = PNG, media_type: str = "image/png") -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def pdf(**keys: Any) -> Body:
    source = {"type": "base64", "media_type": "application/pdf", "data": PNG}
    return {"type": "document", "source": source, "title": "x"} | keys


def ask(*turns: Any, **keys: Any) -> Body:
    """A body of turns, the user's first; each is a content."""
    roles = ["user", "assistant"] * len(turns)
    messages = [{"role": role, "content": content} for role, content in zip(roles, turns, strict=False)]
    return {"model": "m", "max_tokens": 9, "messages": messages or [{"role": "user", "content": "a"}]} | keys


def called(*results: Any) -> Body:
    return ask("a", [USE, OTHER], list(results))


PAIR = called(RESULT, OTHER_RESULT)
RULES = [
    rule("a body is an object", ask(), [], "", "object"),
    rule("a model is named", ask(), without(ask(), "model"), "model", "Field required"),
    rule("the answer's length is given", ask(), without(ask(), "max_tokens"), "max_tokens", "Field required"),
    rule("it is at least one token", ask(), ask(max_tokens=0), "max_tokens", "greater than or equal to 1"),
    rule("there are messages", ask(), ask(messages=[]), "messages", "at least 1"),
    rule("no key is unknown", ask(top_k=3), ask(max_completion_tokens=3), "max_completion_tokens", "not permitted"),
    rule("temperature ends at 1", ask(temperature=1), ask(temperature=1.1), "temperature", "between 0 and 1"),
    rule("roles are two", ask("a", "b"), ask(messages=[{"role": "system", "content": "a"}]), "messages.0.role", "user"),
    rule("a message is an object", ask(), ask(messages=["Invalid content"]), "messages.0", "object"),
    rule(
        "a message has no other keys",
        ask(),
        ask(messages=[{"role": "user", "content": "a", "name": "b"}]),
        "messages.0.name",
        "not permitted",
    ),
    rule("a text says something", ask("a"), ask("  "), "messages.0.content", "non-empty"),
    rule("content is not empty", ask([TEXT]), ask([]), "messages.0.content", "non-empty content"),
    rule("content is text or blocks", ask("a"), ask(None), "messages.0.content", "string or list"),
    rule("a block of text is not empty", ask([TEXT]), ask([TEXT | {"text": ""}]), "messages.0.content.0.text", "non-"),
    rule(
        "a block of text is not blank",
        ask([TEXT]),
        ask([TEXT | {"text": "\n"}]),
        "messages.0.content.0.text",
        "non-whitespace",
    ),
    rule("a text is a string", ask([TEXT]), ask([TEXT | {"text": None}]), "messages.0.content.0.text", "null"),
    rule("a block has a type", ask([TEXT]), ask([{"text": "a"}]), "messages.0.content.0.type", "Field required"),
    rule("a block is of a known type", ask([TEXT]), ask([{"type": "x"}]), "messages.0.content.0.type", "one of 'text'"),
    rule("a block has no other keys", ask([TEXT]), ask([TEXT | {"raw": 1}]), "messages.0.content.0.raw", "permitted"),
    rule("users do not call", ask("a", [USE], [RESULT]), ask([USE]), "messages.0.content.0.type", "one of"),
    rule(
        "roles alternate",
        ask("a", "b"),
        ask(messages=[*ask("a")["messages"], *ask("a")["messages"]]),
        "messages.1",
        "must alternate",
    ),
    rule(
        "the user is first",
        ask("a", "b"),
        ask(messages=ask("a", "b", "c")["messages"][1:]),
        "messages.0",
        'must use the "user" role',
    ),
    rule(
        "a last answer is trimmed",
        ask("a", [TEXT]),
        ask("a", "b "),
        "messages.1",
        "cannot end with trailing whitespace",
    ),
    rule("some models take no prefill", ask("a"), ask("a", "b"), "messages.1", "prefill", prefill=False),
    rule("a call is answered", PAIR, called(RESULT), "messages.1", "without `tool_result` blocks immediately after: t"),
    rule("a call is not last", PAIR, ask("a", [USE]), "messages.1", "without `tool_result`"),
    rule(
        "a result has a call",
        PAIR,
        ask([RESULT]),
        "messages.0.content.0",
        "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    ),
    rule(
        "a result stands behind its call",
        PAIR,
        ask("a", [USE], [RESULT], "b", [OTHER_RESULT]),
        "messages.4.content.0",
        "previous message",
    ),
    rule(
        "a call has one result",
        PAIR,
        called(RESULT, OTHER_RESULT, RESULT),
        "messages.2.content.2",
        "must have a single result",
    ),
    rule("results keep the order", PAIR, called(OTHER_RESULT, RESULT), "messages.2", "order of their calls"),
    rule(
        "results come first",
        called(RESULT, OTHER_RESULT, TEXT),
        called(TEXT, RESULT, OTHER_RESULT),
        "messages.2",
        "must come first",
    ),
    rule(
        "ids of calls are unique",
        PAIR,
        ask("a", [USE], [RESULT], [USE], [RESULT]),
        "messages.3.content.0",
        "must be unique",
    ),
    rule(
        "ids have few characters",
        PAIR,
        ask("a", [USE | {"id": "a.b"}], [RESULT | {"tool_use_id": "a.b"}]),
        "messages.1.content.0.id",
        "pattern",
    ),
    rule(
        "ids are short",
        ask("a", [USE | {"id": "a" * 64}], [RESULT | {"tool_use_id": "a" * 64}]),
        ask("a", [USE | {"id": "a" * 65}], [RESULT | {"tool_use_id": "a" * 65}]),
        "messages.1.content.0.id",
        "pattern",
    ),
    rule("arguments are an object", PAIR, ask("a", [USE | {"input": "{}"}]), "messages.1.content.0.input", "object"),
    rule(
        "a failure is told in words",
        called(RESULT | {"is_error": True, "content": [TEXT]}, OTHER_RESULT),
        called(RESULT | {"is_error": True, "content": [image()]}, OTHER_RESULT),
        "messages.2.content.0",
        "must be type",
    ),
    rule(
        "a result of the server has its call",
        ask("a", [SEARCH, FOUND]),
        ask("a", [FOUND, SEARCH]),
        "messages.1.content.0",
        "unexpected `tool_use_id` found in `web_search_tool_result`",
    ),
    rule(
        "a call of the server's tool has its result",
        ask("a", [SEARCH, FOUND], "b"),
        ask("a", [SEARCH], "b"),
        "messages.1.content.0",
        "`web_search` tool use with id `srvtoolu_1` was found without",
    ),
    rule(
        "it may wait for ours, or for more",
        ask("a", [SEARCH, USE], [RESULT], [FOUND, SEARCH | {"id": "srvtoolu_2"}]),
        ask("a", [SEARCH, TEXT], "b", [TEXT, FOUND | {"tool_use_id": "srvtoolu_2"}]),
        "messages.3.content.1",
        "unexpected `tool_use_id` found in `web_search_tool_result`",
    ),
    rule(
        "the server's calls have ids of its own",
        ask("a", [SEARCH, FOUND]),
        ask("a", [SEARCH | {"id": "toolu_1"}]),
        "messages.1.content.0.id",
        "srvtoolu_",
    ),
    rule(
        "thinking is signed",
        ask("a", [THOUGHT, TEXT]),
        ask("a", [without(THOUGHT, "signature"), TEXT]),
        "messages.1.content.0.signature",
        "Field required",
    ),
    rule(
        "a signature is not empty",
        ask("a", [THOUGHT, TEXT]),
        ask("a", [THOUGHT | {"signature": ""}, TEXT]),
        "messages.1.content.0.signature",
        "at least 1",
    ),
    rule(
        "hidden thinking has its data",
        ask("a", [{"type": "redacted_thinking", "data": "x"}, TEXT]),
        ask("a", [{"type": "redacted_thinking", "data": ""}, TEXT]),
        "messages.1.content.0.data",
        "at least 1",
    ),
    rule(
        "thinking is not last",
        ask("a", [THOUGHT, TEXT]),
        ask("a", [TEXT, THOUGHT]),
        "messages.1.content.1",
        "cannot be `thinking`",
    ),
    rule(
        "thinking leads to calls, some say",
        ask("a", [THOUGHT, USE], [RESULT], **ASKS),
        ask("a", [USE], [RESULT], **ASKS),
        "messages.1.content.0",
        "Expected `thinking`",
        thinking_first=True,
    ),
    rule(
        "a budget is large",
        ask(**ASKS),
        ask(thinking={"type": "enabled", "budget_tokens": 1}),
        "thinking.budget_tokens",
        "1024",
    ),
    rule("a budget fits", ask(**ASKS), ask(**ASKS | {"max_tokens": 1024}), "max_tokens", "greater than"),
    rule("thinking has hardly a top_p", ask(**ASKS, top_p=0.95), ask(**ASKS, top_p=0.9), "top_p", "0.95 or unset"),
    rule("thinking has no top_k", ask(**ASKS), ask(**ASKS, top_k=40), "top_k", "must be unset"),
    rule(
        "thinking begins what is gone on with",
        ask("a", [THOUGHT, TEXT], **ASKS),
        ask("a", [TEXT], **ASKS),
        "messages.1.content.0",
        "Expected `thinking`",
    ),
    rule("thinking has no temperature", ask(**ASKS), ask(**ASKS, temperature=0.5), "temperature", "only be set to 1"),
    rule(
        "thinking can't be made to call",
        ask(**ASKS, tools=[TOOL], tool_choice={"type": "auto"}),
        ask(**ASKS, tools=[TOOL], tool_choice={"type": "any"}),
        "tool_choice",
        "may not be enabled",
    ),
    rule(
        "marks are four", ask([TEXT | MARK] * 4), ask([TEXT | MARK] * 5), "", "A maximum of 4 blocks with cache_control"
    ),
    rule(
        "marks count wherever they are",
        ask([TEXT | MARK], "b", system=[TEXT | MARK], tools=[TOOL | MARK], **MARK),
        ask("a", [USE | MARK], [RESULT | MARK | {"content": [TEXT | MARK]}], system=[TEXT | MARK], tools=[TOOL | MARK]),
        "",
        "Found 5",
    ),
    rule(
        "thinking has no mark",
        ask("a", [THOUGHT, TEXT | MARK]),
        ask("a", [THOUGHT | MARK, TEXT]),
        "messages.1.content.0.cache_control",
        "not permitted",
    ),
    rule(
        "marks are of one type",
        ask([TEXT | MARK]),
        ask([TEXT | {"cache_control": {"type": "x"}}]),
        "messages.0.content.0.cache_control.type",
        "ephemeral",
    ),
    rule(
        "the long come first",
        ask([TEXT | LONG, TEXT | MARK]),
        ask([TEXT | MARK, TEXT | LONG]),
        "messages.0.content.1.cache_control",
        "must not come after",
    ),
    rule(
        "a prompt's layer is not empty",
        ask(system="a"),
        ask(system=[TEXT | {"text": ""}]),
        "system.0.text",
        "non-empty",
    ),
    rule(
        "an image has its type",
        ask([image()]),
        ask([image(media_type="image/bmp")]),
        "messages.0.content.0.source.media_type",
        "png",
    ),
    rule("an image is base64", ask([image()]), ask([image("%")]), "messages.0.content.0.source.data", "base64"),
    rule("an image is not empty", ask([image()]), ask([image("====")]), "messages.0.content.0.source.data", "base64"),
    rule(
        "an image has a size",
        ask([image()]),
        ask([image("aGkh" * 1_700_000)]),
        "messages.0.content.0.source.data",
        "Too large",
    ),
    rule("some models see nothing", ask([TEXT]), ask([image()]), "messages.0.content.0", "images", images=False),
    rule("some models read no files", ask([TEXT]), ask([pdf()]), "messages.0.content.0", "documents", files=False),
    rule(
        "a document is a PDF",
        ask([pdf()]),
        ask([pdf(source={"type": "base64", "media_type": "a/b", "data": PNG})]),
        "messages.0.content.0.source.media_type",
        "pdf",
    ),
    rule(
        "a document's title is short",
        ask([pdf()]),
        ask([pdf(title="x" * 501)]),
        "messages.0.content.0.title",
        "too long",
    ),
    rule("names of tools are unique", ask(tools=[TOOL]), ask(tools=[TOOL, TOOL]), "tools.1", "must be unique"),
    rule(
        "names of tools have few characters",
        ask(tools=[TOOL]),
        ask(tools=[TOOL | {"name": "a b"}]),
        "tools.0.name",
        "pattern",
    ),
    rule(
        "a tool takes an object",
        ask(tools=[TOOL]),
        ask(tools=[TOOL | {"input_schema": {"type": "array"}}]),
        "tools.0.input_schema",
        "object",
    ),
    rule(
        "properties are an object",
        ask(tools=[TOOL]),
        ask(tools=[TOOL | {"input_schema": {"type": "object", "properties": []}}]),
        "tools.0.input_schema.properties",
        "object",
    ),
    rule(
        "a schema is an object",
        ask(tools=[TOOL]),
        ask(tools=[TOOL | {"input_schema": None}]),
        "tools.0.input_schema",
        "object",
    ),
    rule(
        "names of arguments have few characters",
        ask(tools=[TOOL]),
        ask(tools=[TOOL | {"input_schema": {"type": "object", "properties": {"a b": {}}}}]),
        "tools.0.input_schema.properties.a b",
        "pattern",
    ),
    rule(
        "the server's tools are its own",
        ask(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        ask(tools=[{"name": "a"}]),
        "tools.0.input_schema",
        "required",
    ),
    rule(
        "a choice needs tools",
        ask(tools=[TOOL], tool_choice={"type": "auto"}),
        ask(tool_choice={"type": "auto"}),
        "tool_choice",
        "only allowed when 'tools'",
    ),
    rule(
        "a choice is among the tools",
        ask(tools=[TOOL], tool_choice={"type": "tool", "name": "now"}),
        ask(tools=[TOOL], tool_choice={"type": "tool", "name": "then"}),
        "tool_choice",
        "not found",
    ),
    rule(
        "calls need tools, some say",
        ask("a", [USE], [RESULT], tools=[TOOL]),
        ask("a", [USE], [RESULT]),
        "tools",
        "must define tools",
        tools_for_calls=True,
    ),
]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.name)
def test_a_rule_is_held(one: Rule) -> None:
    """One body that keeps it, one that breaks it."""
    hold("messages", one)


def test_neighbours_of_one_role_are_one_turn_where_the_server_joins_them() -> None:
    """So a result may stand in the second of two messages of the user."""
    messages = [*ask("a", [USE, OTHER], [RESULT])["messages"], {"role": "user", "content": [OTHER_RESULT]}]
    hold(
        "messages",
        rule(
            "joined",
            ask(messages=messages),
            ask(messages=messages[:-1]),
            "messages.1",
            "without `tool_result`",
            alternation=False,
        ),
    )


ODD_IDS = ask("a", [SEARCH | {"id": []}, FOUND | {"tool_use_id": {}}, USE | {"id": []}], [RESULT | {"tool_use_id": {}}])


@pytest.mark.parametrize(
    "broken", [None, 3, "x", [None], {"messages": {}}, ask(messages=[3, {"role": 3}]), ask([3]), ODD_IDS]
)
def test_what_is_no_object_is_a_problem_and_not_a_crash(broken: Any) -> None:
    """Broken bodies are what validators are for."""
    assert tells_of("messages", broken)
