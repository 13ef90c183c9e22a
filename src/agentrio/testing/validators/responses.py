"""What ``POST /responses`` refuses: https://platform.openai.com/docs/api-reference/responses/create.

Where the API's own words are known, the reasons are in them. Reasoning: its item must stand before what came of it, and
where nothing is stored it must carry its content: https://platform.openai.com/docs/guides/reasoning.
"""

from __future__ import annotations

from typing import Any

from agentrio.testing.validators.checking import (
    Check,
    Place,
    anything,
    each,
    either,
    flag,
    number,
    object_of,
    one_of,
    open_object,
    text,
    whole,
)
from agentrio.testing.validators.responses_items import CALLS, SERVER_ITEMS, check_item, kind_of
from agentrio.testing.validators.shared import (
    NAME,
    Met,
    check_order,
    check_tool_choice,
    check_unique,
    dicts,
    nullable,
    strict_schema,
    tool_schema,
)

__all__ = ["check_responses"]

KIND: dict[str, Check] = {"type": anything}
_FUNCTION = object_of(
    KIND | {"name": text(pattern=NAME), "parameters": nullable(tool_schema)},
    {"description": nullable(text()), "strict": nullable(flag), "defer_loading": flag, "allowed_callers": anything},
)
INCLUDES = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)


def _tool(value: Any, place: Place) -> None:
    """A function; tools of the server have types of their own, and keys that go with them."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        place.at("type").bad("Missing required parameter: 'type'.")
    elif value["type"] == "function" and place.passes(_FUNCTION, value) and value.get("strict"):
        strict_schema(value.get("parameters"), place.at("parameters"))


def _most_output(value: Any, place: Place) -> None:
    whole(place.demands.least_output)(value, place)


_TOOL_CHOICE = either((str, one_of("none", "auto", "required")), (dict, open_object))
_REASONING = object_of(
    {},
    {
        "effort": nullable(one_of("none", "minimal", "low", "medium", "high", "xhigh", "max")),
        "summary": nullable(one_of("auto", "concise", "detailed")),
        "generate_summary": nullable(text(1)),
        "context": nullable(text(1)),
    },
)
_BODY = object_of(
    {"model": text(1), "input": either((str, text(1)), (list, each(check_item, 1)))},
    {
        "background": nullable(flag),
        "context_management": anything,
        "conversation": anything,
        "include": nullable(each(one_of(*INCLUDES))),
        "instructions": nullable(text()),
        "max_output_tokens": nullable(_most_output),
        "max_tool_calls": nullable(whole(1)),
        "metadata": nullable(open_object),
        "moderation": anything,
        "parallel_tool_calls": nullable(flag),
        "previous_response_id": nullable(text(1)),
        "prompt": nullable(open_object),
        "prompt_cache_key": text(0, 64),
        "prompt_cache_retention": nullable(one_of("in_memory", "24h")),
        "reasoning": nullable(_REASONING),
        "safety_identifier": text(0, 64),
        "service_tier": nullable(text(1)),
        "store": nullable(flag),
        "stream": nullable(flag),
        "stream_options": nullable(object_of({}, {"include_obfuscation": flag})),
        "temperature": nullable(number(0, 2)),
        "text": open_object,
        "tool_choice": _TOOL_CHOICE,
        "tools": each(_tool, 0, 128),
        "top_logprobs": nullable(whole(0)),
        "top_p": nullable(number(0, 1)),
        "truncation": nullable(one_of("auto", "disabled")),
        "user": text(),
    },
    {"logit_bias": anything, "provider": open_object, "models": each(text(1)), "plugins": each(open_object)},
)


def check_responses(body: Any, place: Place) -> None:
    """Note everything that is wrong with a body."""
    _BODY(body, place)
    if not isinstance(body, dict):
        return
    items = [(item, place.at("input").at(index)) for index, item in dicts(body.get("input"))]
    ids = [Met(item["id"], at) for item, at in items if isinstance(item.get("id"), str) and item["id"]]
    check_unique(ids, "Duplicate item found with id {id}. Remove duplicate items from your input and try again.")
    if body.get("previous_response_id") is None and body.get("conversation") is None:
        _check_pairs(items, place)
    _check_reasoning(items, stored=body.get("store") is not False)
    if items:
        _check_end(*items[-1])
    _check_tools(body, place)
    if body.get("stream_options") is not None and not body.get("stream"):
        place.at("stream_options").bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.")


Items = list[tuple[dict[str, Any], Place]]


def _check_pairs(items: Items, place: Place) -> None:
    calls = {kind: _met(items, kind) for kind in CALLS}
    results = {kind: _met(items, output) for kind, output in CALLS.items()}
    for kind, made in calls.items():
        check_unique(made, "Duplicate call_id {id}.")
        check_unique(results[kind], "Duplicate tool output found for call_id {id}.")
        known = [met.id for met in made]
        for met in results[kind]:
            if met.id not in known:
                met.place.bad(f"No tool call found for {_words(kind)} output with call_id {met.id}.")
        answered = {met.id for met in results[kind]}
        for met in made:
            if met.id not in answered:
                met.place.bad(f"No tool output found for {_words(kind)} {met.id}.")
        check_order(known, results[kind], place.at("input"))
    _check_before(items)


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _met(items: Items, kind: str) -> list[Met]:
    return [Met(str(item.get("call_id")), at) for item, at in items if kind_of(item) == kind]


def _check_before(items: Items) -> None:
    """Calls, their results, and only then what the user says next."""
    waiting: set[str] = set()
    met: set[str] = set()
    for item, place in items:
        kind, id = kind_of(item), str(item.get("call_id"))
        if kind in CALLS:
            waiting.add(id)
            met.add(id)
        elif kind in CALLS.values():
            waiting.discard(id)
            if id not in met:
                place.bad(f"The call {id} must stand before its output.")
        elif waiting and kind == "message" and item.get("role") != "assistant":
            place.bad(f"Expected outputs of {', '.join(sorted(waiting))} before this message.")


def _check_reasoning(items: Items, *, stored: bool) -> None:
    for index, (item, place) in enumerate(items):
        if kind_of(item) != "reasoning":
            continue
        id = item.get("id")
        after = next((it for it, _ in items[index + 1 :] if kind_of(it) != "reasoning"), None)
        if after is None or not _by_model(after):
            place.bad(f"Item '{id}' of type 'reasoning' was provided without its required following item.")
        if not stored and not item.get("encrypted_content") and not item.get("content"):
            place.bad(
                f"Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with "
                "`store` set to true, or remove this item from your input."
            )


def _by_model(item: dict[str, Any]) -> bool:
    kind = kind_of(item)
    return kind in CALLS or kind in SERVER_ITEMS or (kind == "message" and item.get("role") == "assistant")


def _check_end(last: dict[str, Any], place: Place) -> None:
    if kind_of(last) == "message" and last.get("role") == "assistant" and not place.demands.prefill:
        place.bad("The input must not end with an assistant message.")


def _check_tools(body: dict[str, Any], place: Place) -> None:
    tools = [(tool, place.at("tools").at(index)) for index, tool in dicts(body.get("tools"))]
    named = [Met(str(tool.get("name")), at) for tool, at in tools if tool.get("type") == "function"]
    check_unique(named, "Tool names must be unique, {id} is not.")
    choice = body.get("tool_choice")
    wanted = choice.get("name") if isinstance(choice, dict) and choice.get("type") == "function" else None
    check_tool_choice(body, wanted, [met.id for met in named], place)
    if body.get("parallel_tool_calls") is not None and not tools:
        place.at("parallel_tool_calls").bad("'parallel_tool_calls' is only allowed when 'tools' are specified.")
    has_calls = any(kind_of(item) in CALLS for _, item in dicts(body.get("input")))
    if has_calls and not tools and place.demands.tools_for_calls:
        place.at("tools").bad("Tools must be specified where the input has tool calls.")
