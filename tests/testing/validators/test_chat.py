"""What the Chat Completions API refuses, and what compatible servers do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.validators.rules import PNG, Body, Rule, hold, openai_rules, rule, tells_of

USER = {"role": "user", "content": "a"}
ANSWER = {"role": "assistant", "content": "b"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
OTHER = CALL | {"id": "call_2"}
SIGNED = CALL | {"extra_content": {"google": {"thought_signature": "c2ln"}}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL, OTHER]}
ONE_CALL = CALLS | {"tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "noon"}
OTHER_RESULT = RESULT | {"tool_call_id": "call_2"}
FUNCTION = {"name": "now", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
STRICT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["a"],
    "properties": {
        "a": {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": False}}
    },
}
URL = f"data:image/png;base64,{PNG}"
FILE = f"data:application/pdf;base64,{PNG}"


def ask(*messages: Any, **keys: Any) -> Body:
    return {"model": "m", "messages": list(messages) or [USER]} | keys


def says(part: Any, role: str = "user") -> Body:
    return ask(USER, {"role": role, "content": [part]})


def called(call: Body) -> Body:
    """A call with its result."""
    return ask(USER, ONE_CALL | {"tool_calls": [call]}, RESULT | {"tool_call_id": call.get("id")})


def tool(**keys: Any) -> Body:
    return ask(tools=[{"type": "function", "function": FUNCTION | keys}])


def picture(url: str = URL) -> Body:
    return {"type": "image_url", "image_url": {"url": url}}


def paper(**keys: Any) -> Body:
    return {"type": "file", "file": keys}


PAIR = ask(USER, CALLS, RESULT, OTHER_RESULT, ANSWER, USER)
ALONE = ask(USER, ONE_CALL, RESULT)
TEXT = {"type": "text", "text": "a"}
RULES = [
    rule("a body is an object", ask(), "x", "", "object"),
    rule("a model is named", ask(), {"messages": [USER]}, "model", "required"),
    rule("there are messages", ask(), ask() | {"messages": []}, "messages", "at least 1"),
    rule("no key is unknown", ask(n=1), ask(max_token=1), "max_token", "not permitted"),
    rule("compatible servers know more", ask(), ask(top_k=3), "top_k", "not permitted", extensions=False),
    rule("a role is known", ask(), ask({"role": "model", "content": "a"}), "messages[0].role", "Supported values"),
    rule("a message is an object", ask(), ask("a"), "messages[0]", "object"),
    rule("a user says something", ask(), ask(USER | {"content": ""}), "messages[0].content", "at least 1"),
    rule("or in parts", says(TEXT), ask(USER | {"content": []}), "messages[0].content", "at least 1"),
    rule("a part is not empty", says(TEXT), says(TEXT | {"text": ""}), "messages[1].content[0].text", "at least 1"),
    rule("a part has a type", says(TEXT), says({"text": "a"}), "messages[1].content[0].type", "Field required"),
    rule(
        "an answer has content", ask(USER, ANSWER), ask(USER, ANSWER | {"content": None}), "messages[1].content", "null"
    ),
    rule(
        "a refusal will do",
        ask(USER, ANSWER | {"content": None, "refusal": "no"}),
        ask(USER, ANSWER | {"content": ""}),
        "messages[1].content",
        "nothing",
    ),
    rule("calls are answered", PAIR, ask(USER, CALLS, RESULT), "messages[1]", "did not have response messages: call_2"),
    rule("before the user speaks", PAIR, ask(USER, ONE_CALL, USER, RESULT), "messages[1]", "must be followed by tool"),
    rule("a result has a call", PAIR, ask(RESULT, USER), "messages[0]", "must be a response to a preceeding message"),
    rule(
        "a result has its own call",
        ALONE,
        ask(USER, ONE_CALL, RESULT, OTHER_RESULT),
        "messages[3]",
        "must be a response",
    ),
    rule("a call has one result", ALONE, ask(USER, ONE_CALL, RESULT, RESULT), "messages[3]", "Duplicate value"),
    rule("results keep the order", PAIR, ask(USER, CALLS, OTHER_RESULT, RESULT), "messages[1]", "order of their calls"),
    rule(
        "ids of calls are unique",
        ALONE,
        ask(USER, ONE_CALL, RESULT, ONE_CALL, RESULT),
        "messages[3].tool_calls[0].id",
        "Duplicate",
    ),
    rule(
        "ids are short",
        called(CALL | {"id": "a" * 40}),
        called(CALL | {"id": "a" * 41}),
        "messages[1].tool_calls[0].id",
        "at most 40",
    ),
    rule(
        "ids can be written",
        called(CALL | {"id": "f.now:0"}),
        called(CALL | {"id": "a b"}),
        "messages[1].tool_calls[0].id",
        "pattern",
        ids="any",
    ),
    rule(
        "Mistral's ids have nine",
        called(CALL | {"id": "abcdefgh9"}),
        called(CALL),
        "messages[1].tool_calls[0].id",
        "{9}",
        ids="nine",
    ),
    rule(
        "a call is of a function",
        ALONE,
        called({"id": "call_1", "function": {}}),
        "messages[1].tool_calls[0].type",
        "required",
    ),
    rule(
        "arguments are text",
        ALONE,
        called(CALL | {"function": {"name": "now", "arguments": {}}}),
        "messages[1].tool_calls[0].function.arguments",
        "string",
    ),
    rule(
        "arguments are JSON",
        ALONE,
        called(CALL | {"function": {"name": "now", "arguments": ""}}),
        "messages[1].tool_calls[0].function.arguments",
        "should be JSON",
    ),
    rule(
        "arguments are an object",
        ALONE,
        called(CALL | {"function": {"name": "now", "arguments": "[]"}}),
        "messages[1].tool_calls[0].function.arguments",
        "JSON object",
    ),
    rule("calls are some", ALONE, ask(USER, ANSWER | {"tool_calls": []}), "messages[1].tool_calls", "at least 1"),
    rule(
        "a result is not empty",
        ALONE,
        ask(USER, ONE_CALL, RESULT | {"content": ""}),
        "messages[2].content",
        "at least 1",
    ),
    rule(
        "a result has no images",
        ALONE,
        ask(USER, ONE_CALL, RESULT | {"content": [picture()]}),
        "messages[2].content[0].type",
        "one of 'text'",
    ),
    rule(
        "some want null beside calls",
        ALONE,
        ask(USER, ONE_CALL | {"content": ""}, RESULT),
        "messages[1].content",
        "must be null",
        call_content="null",
    ),
    rule(
        "some want nothing there",
        ask(USER, {"role": "assistant", "tool_calls": [CALL]}, RESULT),
        ALONE,
        "messages[1].content",
        "must be omit",
        call_content="omit",
    ),
    rule(
        "some want it empty",
        ask(USER, ONE_CALL | {"content": ""}, RESULT),
        ALONE,
        "messages[1].content",
        "must be empty",
        call_content="empty",
    ),
    rule(
        "some want reasoning beside calls",
        ask(USER, ONE_CALL | {"reasoning_content": ""}, RESULT),
        ALONE,
        "messages[1].reasoning_content",
        "Missing",
        reasoning_field="reasoning_content",
    ),
    rule(
        "reasoning is an extension",
        ask(USER, ANSWER),
        ask(USER, ANSWER | {"reasoning": "a"}),
        "messages[1].reasoning",
        "not permitted",
        extensions=False,
    ),
    rule(
        "so is thinking in parts",
        says(TEXT, "assistant"),
        says({"type": "thinking", "thinking": [TEXT]}, "assistant"),
        "messages[1].content[0].type",
        "thinking",
        extensions=False,
    ),
    rule(
        "details have types",
        ask(USER, ANSWER | {"reasoning_details": [{"type": "reasoning.text"}]}),
        ask(USER, ANSWER | {"reasoning_details": [{"type": "text"}]}),
        "messages[1].reasoning_details[0].type",
        "reasoning.",
    ),
    rule(
        "some want an answer before the user",
        ask(*ALONE["messages"], ANSWER, USER),
        ask(*ALONE["messages"], USER),
        "messages[3]",
        "Unexpected role",
        answer_before_user=True,
    ),
    rule(
        "the system is first",
        ask({"role": "system", "content": "a"}, USER),
        ask(USER, {"role": "system", "content": "a"}),
        "messages[1]",
        "at the beginning",
    ),
    rule(
        "a last answer is trimmed",
        ask(USER, ANSWER),
        ask(USER, ANSWER | {"content": "b\n"}),
        "messages[1]",
        "whitespace",
    ),
    rule(
        "some want it marked",
        ask(USER, ANSWER | {"prefix": True}),
        ask(USER, ANSWER),
        "messages[1]",
        "prefix True",
        prefix_last=True,
    ),
    rule(
        "some want calls signed",
        ask(USER, CALLS | {"tool_calls": [SIGNED, OTHER]}, RESULT, OTHER_RESULT),
        ask(USER, CALLS | {"tool_calls": [CALL, SIGNED | {"id": "call_2"}]}, RESULT, OTHER_RESULT),
        "messages[1].tool_calls",
        "missing a thought_signature",
        thought_signatures=True,
    ),
    rule(
        "or the answer that makes them",
        ask(USER, CALLS | {"extra_content": SIGNED["extra_content"]}, RESULT, OTHER_RESULT),
        ask(USER, CALLS | {"extra_content": {"google": {}}}, RESULT, OTHER_RESULT),
        "messages[1].tool_calls",
        "missing a thought_signature",
        thought_signatures=True,
    ),
    rule("some want none", ask(USER, ANSWER, USER), ask(USER, ANSWER), "messages[1]", "must not end", prefill=False),
    rule(
        "an image has a URL",
        says(picture()),
        says(picture("file:///x")),
        "messages[1].content[0].image_url.url",
        "Invalid URL",
    ),
    rule(
        "or data of its kind",
        says(picture("https://x.org/a.png")),
        says(picture("data:a/b;base64,aGk=")),
        "messages[1].content[0].image_url.url",
        "png",
    ),
    rule(
        "in base64",
        says(picture()),
        says(picture("data:image/png;base64,a")),
        "messages[1].content[0].image_url.url",
        "base64",
    ),
    rule(
        "that is not empty",
        says(picture()),
        says(picture("data:image/png;base64,")),
        "messages[1].content[0].image_url.url",
        "empty",
    ),
    rule(
        "a URL is a string",
        says(picture()),
        says({"type": "image_url", "image_url": {"url": 3}}),
        "messages[1].content[0].image_url.url",
        "string",
    ),
    rule(
        "some models see nothing",
        says(TEXT),
        says(picture()),
        "messages[1].content[0]",
        "image_url is only",
        images=False,
    ),
    rule("some read no files", says(TEXT), says(paper(file_id="f")), "messages[1].content[0]", "file", files=False),
    rule(
        "a file has a name",
        says(paper(filename="a", file_data=FILE)),
        says(paper(file_data=FILE)),
        "messages[1].content[0].file.filename",
        "Missing",
    ),
    rule(
        "a file is a PDF",
        says(paper(filename="a", file_data=FILE)),
        says(paper(filename="a", file_data=URL)),
        "messages[1].content[0].file.file_data",
        "PDF",
    ),
    rule(
        "a file is somewhere",
        says(paper(file_id="f")),
        says(paper(filename="a")),
        "messages[1].content[0].file",
        "file_id",
    ),
    rule(
        "a file is an object",
        says(paper(file_id="f")),
        says({"type": "file", "file": 3}),
        "messages[1].content[0].file",
        "object",
    ),
    rule("names of tools are unique", tool(), ask(tools=[TOOL, TOOL]), "tools[1]", "must be unique"),
    rule("tools are some", tool(), ask(tools=[]), "tools", "at least 1"),
    rule("tools are at most 128", tool(), ask(tools=[TOOL] * 129), "tools", "at most 128"),
    rule("names of tools have few characters", tool(), tool(name="a b"), "tools[0].function.name", "pattern"),
    rule(
        "a tool takes an object", tool(), tool(parameters={"type": "string"}), "tools[0].function.parameters", "object"
    ),
    rule(
        "strict tools take nothing more",
        tool(strict=True, parameters=STRICT),
        tool(strict=True, parameters=STRICT | {"additionalProperties": True}),
        "tools[0].function.parameters",
        "additionalProperties",
    ),
    rule(
        "strict tools need everything",
        tool(strict=True, parameters=STRICT),
        tool(strict=True, parameters=STRICT | {"required": []}),
        "tools[0].function.parameters",
        "Missing 'a'",
    ),
    rule(
        "strict to the bottom",
        tool(strict=True, parameters=STRICT),
        tool(strict=True, parameters=STRICT | {"properties": {"a": {"items": {"properties": {}}}}}),
        "tools[0].function.parameters.properties.a.items",
        "additionalProperties",
    ),
    *openai_rules(ask, TOOL, ALONE, lambda name: {"type": "function", "function": {"name": name}}),
    rule("one limit", ask(max_tokens=1), ask(max_tokens=1, max_completion_tokens=1), "max_tokens", "same time"),
    rule("temperature ends at 2", ask(temperature=2), ask(temperature=2.1), "temperature", "between"),
    rule("temperature is a number", ask(temperature=2), ask(temperature=True), "temperature", "number"),
    rule("a seed may be null", ask(seed=None), ask(stream="yes"), "stream", "boolean"),
    rule("limits are whole", ask(max_tokens=1), ask(max_tokens=1.5), "max_tokens", "integer"),
]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.name)
def test_a_rule_is_held(one: Rule) -> None:
    """One body that keeps it, one that breaks it."""
    hold("chat", one)


def test_what_compatible_servers_know_is_taken() -> None:
    """Reasoning in all the fields that it goes back in, and what servers add to calls and texts."""
    thinking = {"type": "thinking", "thinking": [TEXT]}
    answer = {
        "role": "assistant",
        "content": [thinking, TEXT],
        "reasoning_content": "a",
        "reasoning": None,
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
        "tool_calls": [CALL | {"extra_content": {"google": {}}, "index": 0}],
    }
    marked = {"role": "system", "content": [TEXT | {"cache_control": {"type": "ephemeral"}}]}
    assert tells_of("chat", ask(marked, USER, answer, RESULT | {"name": "now"}, ANSWER | {"prefix": True})) == []


@pytest.mark.parametrize(
    "broken", [None, 3, [None], {"messages": {}}, ask(3, {"role": 3}), ask(ONE_CALL | {"tool_calls": [3]})]
)
def test_what_is_no_object_is_a_problem_and_not_a_crash(broken: Any) -> None:
    """Broken bodies are what validators are for."""
    assert tells_of("chat", broken)
