"""What the Responses API refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.validators.rules import PNG, Body, Rule, hold, openai_rules, rule, tells_of, without

USER = {"role": "user", "content": "a"}
SAID = {
    "type": "message",
    "role": "assistant",
    "id": "msg_1",
    "status": "completed",
    "content": [{"type": "output_text", "text": "b", "annotations": []}],
}
CALL = {"type": "function_call", "call_id": "call_1", "name": "now", "arguments": "{}", "id": "fc_1"}
OTHER = CALL | {"call_id": "call_2", "id": "fc_2"}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "noon"}
OTHER_RESULT = RESULT | {"call_id": "call_2"}
CUSTOM = {"type": "custom_tool_call", "call_id": "call_3", "name": "sql", "input": "select 1"}
CUSTOM_RESULT = {
    "type": "custom_tool_call_output",
    "call_id": "call_3",
    "output": [{"type": "input_text", "text": "1"}],
}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
TOOL = {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {"a": {}}}, "strict": False}
IMAGE = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
FILE = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"}
STRICT = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}


def ask(*items: Any, **keys: Any) -> Body:
    return {"model": "m", "input": list(items) or "a", "store": False} | keys


def says(part: Any) -> Body:
    return ask({"role": "user", "content": [part]})


PAIR = ask(USER, CALL, OTHER, RESULT, OTHER_RESULT, SAID, USER)
ALONE = ask(USER, CALL, RESULT)
RULES = [
    rule("a body is an object", ask(), "x", "", "object"),
    rule("a model is named", ask(), without(ask(), "model"), "model", "required"),
    rule("there is input", ask(USER), ask(input=[]), "input", "at least 1"),
    rule("no key is unknown", ask(user="x"), ask(max_tokens=1), "max_tokens", "not permitted"),
    rule("an item is of a known type", ask(SEARCH), ask({"type": "x"}), "input[0].type", "one of"),
    rule("an item is an object", ask(USER), ask("a"), "input[0]", "object"),
    rule("a role is known", ask(USER), ask({"role": "tool", "content": "a"}), "input[0].role", "Supported values"),
    rule("a message says something", ask(USER), ask(USER | {"content": ""}), "input[0].content", "at least 1"),
    rule(
        "or in parts",
        says({"type": "input_text", "text": "a"}),
        ask(USER | {"content": []}),
        "input[0].content",
        "at least 1",
    ),
    rule(
        "a part is not empty",
        says({"type": "input_text", "text": "a"}),
        says({"type": "input_text", "text": ""}),
        "input[0].content[0].text",
        "at least 1",
    ),
    rule(
        "users send input",
        ask(USER),
        says({"type": "output_text", "text": "a"}),
        "input[0].content[0].type",
        "input_text",
    ),
    rule(
        "answers are output",
        ask(SAID),
        ask(SAID | {"content": [{"type": "input_text", "text": "a"}]}),
        "input[0].content[0].type",
        "output_text",
    ),
    rule("an answer has a known status", ask(SAID), ask(SAID | {"status": "x"}), "input[0].status", "completed"),
    rule("calls are answered", PAIR, ask(USER, CALL), "input[1]", "No tool output found for function call call_1"),
    rule(
        "a result has a call",
        PAIR,
        ask(USER, RESULT),
        "input[1]",
        "No tool call found for function call output with call_id call_1",
    ),
    rule("a call stands before its result", ALONE, ask(RESULT, CALL), "input[0]", "before its output"),
    rule("results stand before the user", PAIR, ask(CALL, USER, RESULT), "input[1]", "Expected outputs of call_1"),
    rule("a call has one result", ALONE, ask(USER, CALL, RESULT, RESULT), "input[3]", "Duplicate tool output"),
    rule(
        "calls have ids of their own",
        PAIR,
        ask(CALL, OTHER | {"call_id": "call_1"}, RESULT),
        "input[1]",
        "Duplicate call_id",
    ),
    rule("results keep the order", PAIR, ask(USER, CALL, OTHER, OTHER_RESULT, RESULT), "input", "order of their calls"),
    rule(
        "a result is of its call's type",
        ask(CUSTOM, CUSTOM_RESULT),
        ask(CUSTOM, CUSTOM_RESULT | {"type": "function_call_output"}),
        "input[0]",
        "custom tool call",
    ),
    rule(
        "ids of calls are short",
        ask(CALL | {"call_id": "a" * 64}, RESULT | {"call_id": "a" * 64}),
        ask(CALL | {"call_id": "a" * 65}),
        "input[0].call_id",
        "at most 64",
    ),
    rule("ids of calls are not empty", ALONE, ask(CALL | {"call_id": ""}), "input[0].call_id", "at least 1"),
    rule("arguments are JSON", ALONE, ask(CALL | {"arguments": "{"}), "input[0].arguments", "JSON"),
    rule("arguments are text", ALONE, ask(CALL | {"arguments": {}}), "input[0].arguments", "string"),
    rule("items are sent once", ask(THOUGHT, SAID), ask(SAID, SAID), "input[1]", "Duplicate item found with id msg_1"),
    rule(
        "reasoning leads to something",
        ask(THOUGHT, CALL, RESULT),
        ask(USER, THOUGHT),
        "input[1]",
        "without its required following item",
    ),
    rule(
        "reasoning leads to what the model said",
        ask(THOUGHT, SAID),
        ask(THOUGHT, USER),
        "input[0]",
        "required following item",
    ),
    rule(
        "reasoning leads through reasoning",
        ask(THOUGHT, THOUGHT | {"id": "rs_2"}, SEARCH),
        ask(THOUGHT, THOUGHT | {"id": "rs_2"}),
        "input[1]",
        "following item",
    ),
    rule(
        "reasoning carries itself",
        ask(THOUGHT, SAID),
        ask(without(THOUGHT, "encrypted_content"), SAID),
        "input[0]",
        "not persisted",
    ),
    rule(
        "or is kept at the server",
        ask(without(THOUGHT, "encrypted_content"), SAID, store=True),
        ask(THOUGHT | {"encrypted_content": None}, SAID),
        "input[0]",
        "not found",
    ),
    rule(
        "or shows its text",
        ask(without(THOUGHT, "encrypted_content") | {"content": [{"type": "reasoning_text", "text": "a"}]}, SAID),
        ask(THOUGHT | {"encrypted_content": ""}, SAID),
        "input[0].encrypted_content",
        "at least 1",
    ),
    rule(
        "reasoning has a summary",
        ask(THOUGHT, SAID),
        ask(without(THOUGHT, "summary"), SAID),
        "input[0].summary",
        "required",
    ),
    rule(
        "ids of items tell their type",
        ask(THOUGHT, SAID),
        ask(SAID | {"id": "x"}),
        "input[0].id",
        "begins with 'msg'",
        item_ids=True,
    ),
    rule("an end is not the model's, some say", ask(SAID, USER), ask(SAID), "input[0]", "must not end", prefill=False),
    rule("an image is somewhere", says(IMAGE), says({"type": "input_image"}), "input[0].content[0]", "image_url"),
    rule(
        "an image is data",
        says(IMAGE),
        says(IMAGE | {"image_url": "ftp://x"}),
        "input[0].content[0].image_url",
        "Invalid URL",
    ),
    rule(
        "an image has a string",
        says(IMAGE),
        says(IMAGE | {"image_url": {"url": "x"}}),
        "input[0].content[0].image_url",
        "string",
    ),
    rule("some models see nothing", ask(USER), says(IMAGE), "input[0].content[0]", "image inputs", images=False),
    rule("some read no files", ask(USER), says(FILE), "input[0].content[0]", "input_file", files=False),
    rule("a file has a name", says(FILE), says(without(FILE, "filename")), "input[0].content[0].filename", "Missing"),
    rule(
        "a file is base64",
        says(FILE),
        says(FILE | {"file_data": "data:a;base64,%"}),
        "input[0].content[0].file_data",
        "base64",
    ),
    rule(
        "a file is somewhere",
        says({"type": "input_file", "file_id": "f"}),
        says({"type": "input_file"}),
        "input[0].content[0]",
        "Missing",
    ),
    rule("a file has known keys", says(FILE), says(FILE | {"x": 1}), "input[0].content[0].x", "not permitted"),
    rule(
        "tools are flat",
        ask(tools=[TOOL]),
        ask(tools=[{"type": "function", "function": TOOL}]),
        "tools[0].name",
        "required",
    ),
    rule(
        "tools have types",
        ask(tools=[TOOL, {"type": "web_search"}]),
        ask(tools=[without(TOOL, "type")]),
        "tools[0].type",
        "Missing",
    ),
    rule("names of tools are unique", ask(tools=[TOOL]), ask(tools=[TOOL, TOOL]), "tools[1]", "unique"),
    rule(
        "a tool takes an object",
        ask(tools=[TOOL]),
        ask(tools=[TOOL | {"parameters": {"type": "string"}}]),
        "tools[0].parameters",
        "object",
    ),
    rule(
        "strict tools need everything",
        ask(tools=[TOOL | {"strict": True, "parameters": STRICT}]),
        ask(tools=[TOOL | {"strict": True}]),
        "tools[0].parameters",
        "Missing 'a'",
    ),
    *openai_rules(ask, TOOL, ALONE, lambda name: {"type": "function", "name": name}),
    rule(
        "OpenAI's answers have 16 tokens",
        ask(max_output_tokens=16),
        ask(max_output_tokens=15),
        "max_output_tokens",
        "16",
        least_output=16,
    ),
    rule(
        "what can be included is known",
        ask(include=["reasoning.encrypted_content"]),
        ask(include=["x"]),
        "include[0]",
        "one of",
    ),
    rule(
        "a cache key is short",
        ask(prompt_cache_key="a" * 64),
        ask(prompt_cache_key="a" * 65),
        "prompt_cache_key",
        "at most 64",
    ),
    rule(
        "an effort is known",
        ask(reasoning={"effort": "low"}),
        ask(reasoning={"effort": "off"}),
        "reasoning.effort",
        "one of",
    ),
]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.name)
def test_a_rule_is_held(one: Rule) -> None:
    """One body that keeps it, one that breaks it."""
    hold("responses", one)


def test_a_conversation_at_the_server_has_calls_that_are_not_in_the_body() -> None:
    """Its results are then answered for by the server."""
    assert tells_of("responses", ask(RESULT, previous_response_id="resp_1")) == []
    assert tells_of("responses", ask(RESULT, conversation="conv_1")) == []


@pytest.mark.parametrize(
    "broken", [None, 3, [None], {"input": {}}, ask(3, {"role": 3}), ask({"type": 3}), ask(tools=[3])]
)
def test_what_is_no_object_is_a_problem_and_not_a_crash(broken: Any) -> None:
    """Broken bodies are what validators are for."""
    assert tells_of("responses", broken)
