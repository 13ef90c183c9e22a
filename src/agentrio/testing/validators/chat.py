"""What ``POST /chat/completions`` refuses: https://platform.openai.com/docs/api-reference/chat/create.

Where the API's own words are known, the reasons are in them.
"""

from __future__ import annotations

from typing import Any

from agentrio.testing.validators.chat_messages import check_message
from agentrio.testing.validators.checking import (
    Check,
    Place,
    anything,
    by_type,
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

__all__ = ["check_chat"]

MAX_TOOLS = 128
KIND: dict[str, Check] = {"type": anything}
_FUNCTION = object_of(
    {"name": text(pattern=NAME)}, {"description": text(), "parameters": tool_schema, "strict": nullable(flag)}
)


def _tool_function(value: Any, place: Place) -> None:
    if place.passes(_FUNCTION, value) and value.get("strict"):
        strict_schema(value.get("parameters"), place.at("parameters"))


_TOOL = by_type(
    {
        "function": object_of(KIND | {"function": _tool_function}, None, {"cache_control": open_object}),
        "custom": object_of(KIND | {"custom": open_object}),
    }
)
_NAMED = object_of({"name": text(1)})
_TOOL_CHOICE = either(
    (str, one_of("none", "auto", "required")),
    (
        dict,
        by_type(
            {
                "function": object_of(KIND | {"function": _NAMED}),
                "custom": object_of(KIND | {"custom": _NAMED}),
                "allowed_tools": object_of(KIND | {"allowed_tools": open_object}),
            }
        ),
    ),
)
_EXTENSIONS: dict[str, Check] = {
    "chat_template_kwargs": open_object,
    "enable_thinking": flag,
    "extra_body": open_object,
    "include_reasoning": flag,
    "min_p": number(0, 1),
    "models": each(text(1)),
    "plugins": each(open_object),
    "prompt_mode": anything,
    "provider": open_object,
    "random_seed": whole(0),
    "reasoning": open_object,
    "reasoning_format": text(1),
    "repetition_penalty": number(0, 10),
    "route": text(1),
    "safe_prompt": flag,
    "thinking": open_object,
    "tool_stream": flag,
    "top_k": whole(0),
    "transforms": each(text(1)),
    "usage": open_object,
}
_BODY = object_of(
    {"model": text(1), "messages": each(check_message, 1)},
    {
        "audio": open_object,
        "frequency_penalty": nullable(number(-2, 2)),
        "logit_bias": nullable(either((dict, open_object), (list, each(anything)))),
        "logprobs": nullable(flag),
        "max_completion_tokens": nullable(whole(1)),
        "max_tokens": nullable(whole(1)),
        "metadata": nullable(open_object),
        "modalities": nullable(each(text(1))),
        "moderation": anything,
        "n": nullable(whole(1)),
        "parallel_tool_calls": flag,
        "prediction": nullable(open_object),
        "presence_penalty": nullable(number(-2, 2)),
        "prompt_cache_key": text(0, 64),
        "prompt_cache_retention": nullable(one_of("in_memory", "24h")),
        "reasoning_effort": nullable(one_of("none", "minimal", "low", "medium", "high", "xhigh", "max", "default")),
        "response_format": by_type(
            {
                "text": object_of(KIND),
                "json_object": object_of(KIND),
                "json_schema": object_of(KIND | {"json_schema": open_object}),
            }
        ),
        "safety_identifier": text(0, 64),
        "seed": nullable(anything),
        "service_tier": nullable(text(1)),
        "stop": nullable(either((str, text(1)), (list, each(text(1), 0, 4)))),
        "store": nullable(flag),
        "stream": nullable(flag),
        "stream_options": nullable(
            object_of({}, {"include_usage": flag, "include_obfuscation": flag, "continuous_usage_stats": flag})
        ),
        "temperature": nullable(number(0, 2)),
        "tool_choice": _TOOL_CHOICE,
        "tools": each(_TOOL, 1, MAX_TOOLS),
        "top_logprobs": nullable(whole(0)),
        "top_p": nullable(number(0, 1)),
        "user": text(),
        "verbosity": nullable(one_of("low", "medium", "high")),
        "web_search_options": open_object,
    },
    _EXTENSIONS,
)


def check_chat(body: Any, place: Place) -> None:
    """Note everything that is wrong with a body."""
    _BODY(body, place)
    if not isinstance(body, dict):
        return
    messages = [(message, place.at("messages").at(index)) for index, message in dicts(body.get("messages"))]
    has_calls = _check_pairs(messages)
    _check_order_of_roles(messages, place)
    if messages:
        _check_end(*messages[-1])
    _check_tools(body, place, has_calls)
    if body.get("stream_options") is not None and not body.get("stream"):
        place.at("stream_options").bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        place.at("max_tokens").bad(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        )


Messages = list[tuple[dict[str, Any], Place]]


def _check_pairs(messages: Messages) -> bool:
    """Each call answered once, by the messages that follow it. Returns whether there are any."""
    met = [
        Met(call["id"], at.at("tool_calls").at(index).at("id"))
        for message, at in messages
        if message.get("role") == "assistant"
        for index, call in dicts(message.get("tool_calls"))
        if isinstance(call.get("id"), str)
    ]
    check_unique(met, "Duplicate tool call id {id}.")
    index = 0
    while index < len(messages):
        message, at = messages[index]
        end = index + 1
        while end < len(messages) and messages[end][0].get("role") == "tool":
            end += 1
        calls = dicts(message.get("tool_calls")) if message.get("role") == "assistant" else []
        tail = messages[index if message.get("role") == "tool" else index + 1 : end]
        _check_pair([str(call.get("id")) for _, call in calls], tail, at)
        index = end
    return bool(met)


def _check_pair(calls: list[str], tail: Messages, place: Place) -> None:
    results = [Met(str(message.get("tool_call_id")), at) for message, at in tail]
    answered = {one.id for one in results}
    missing = [id for id in calls if id not in answered]
    if missing:
        place.bad(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}"
        )
    for one in results:
        if one.id not in calls:
            one.place.bad("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
    check_unique(results, "Duplicate value for 'tool_call_id' of '{id}'.")
    check_order(calls, results, place)


def _check_order_of_roles(messages: Messages, place: Place) -> None:
    told = False
    previous = ""
    for message, at in messages:
        role = str(message.get("role"))
        if role not in ("system", "developer"):
            told = True
        elif told and place.demands.system_first:
            at.bad("System message must be at the beginning.")
        if place.demands.answer_before_user and (previous, role) == ("tool", "user"):
            at.bad("Unexpected role 'user' after role 'tool'")
        previous = role


def _check_end(last: dict[str, Any], place: Place) -> None:
    if last.get("role") != "assistant":
        return
    if not place.demands.prefill:
        place.bad("The conversation must not end with an assistant message.")
    if place.demands.prefix_last and last.get("prefix") is not True:
        place.bad("Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant")
    content = last.get("content")
    said = content if isinstance(content, str) else ""
    if place.demands.trimmed_end and said != said.rstrip():
        place.bad("final assistant content cannot end with trailing whitespace")


def _check_tools(body: dict[str, Any], place: Place, has_calls: bool) -> None:
    tools = [(tool.get("function"), place.at("tools").at(index)) for index, tool in dicts(body.get("tools"))]
    named = [Met(str(it.get("name")), at) for it, at in tools if isinstance(it, dict)]
    check_unique(named, "Tool names must be unique, {id} is not.")
    choice = body.get("tool_choice")
    function = choice.get("function") if isinstance(choice, dict) else None
    wanted = function.get("name") if isinstance(function, dict) else None
    check_tool_choice(body, wanted, [met.id for met in named], place)
    if "parallel_tool_calls" in body and not body.get("tools"):
        place.at("parallel_tool_calls").bad("'parallel_tool_calls' is only allowed when 'tools' are specified.")
    if has_calls and not body.get("tools") and place.demands.tools_for_calls:
        place.at("tools").bad("Tools must be specified where messages have tool calls.")
