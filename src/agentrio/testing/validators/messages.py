"""What ``POST /v1/messages`` refuses: https://docs.anthropic.com/en/api/messages and the guides named beside the rules.

Where the API's own words are known, the reasons are in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

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
from agentrio.testing.validators.messages_blocks import (
    ASSISTANT_BLOCKS,
    CACHE_MARK,
    KIND,
    SYSTEM,
    TOOL_NAME,
    USER_BLOCKS,
)
from agentrio.testing.validators.shared import Met, check_order, check_tool_choice, check_unique, dicts, tool_schema

__all__ = ["check_messages"]

MAX_MARKS = 4  # https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
LEAST_TOP_P = 0.95  # beside thinking
LEAST_BUDGET = 1024  # https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
PROPERTY = text(pattern=r"[a-zA-Z0-9_.-]{1,64}")
THINKING = ("thinking", "redacted_thinking")


def _content(value: Any, place: Place, blocks: dict[str, Check]) -> None:
    if isinstance(value, str) and not value.strip():
        place.bad("text content blocks must be non-empty")
    elif isinstance(value, list) and not value:
        place.bad("all messages must have non-empty content except for the optional final assistant message")
    either((str, text()), (list, each(by_type(blocks))))(value, place)


def _message(value: Any, place: Place) -> None:
    blocks = ASSISTANT_BLOCKS if isinstance(value, dict) and value.get("role") == "assistant" else USER_BLOCKS
    rule = object_of(
        {"role": one_of("user", "assistant"), "content": lambda content, at: _content(content, at, blocks)}
    )
    rule(value, place)


def _schema(value: Any, place: Place) -> None:
    if place.passes(tool_schema, value):
        for key in value.get("properties", {}):
            PROPERTY(key, place.at("properties").at(key))


_CUSTOM = object_of(
    {"name": TOOL_NAME, "input_schema": _schema},
    {
        "type": anything,
        "description": text(),
        "cache_control": CACHE_MARK,
        "strict": flag,
        "defer_loading": flag,
        "allowed_callers": each(text(1)),
        "input_examples": each(open_object),
        "eager_input_streaming": flag,
    },
)


def _tool(value: Any, place: Place) -> None:
    """One of ours; those of the server have a type of their own, with its date, and keys that go with it."""
    own = isinstance(value, dict) and value.get("type") not in (None, "custom")
    (open_object if own else _CUSTOM)(value, place)


_TOOL_CHOICE = by_type(
    {
        "auto": object_of(KIND, {"disable_parallel_tool_use": flag}),
        "any": object_of(KIND, {"disable_parallel_tool_use": flag}),
        "tool": object_of(KIND | {"name": TOOL_NAME}, {"disable_parallel_tool_use": flag}),
        "none": object_of(KIND),
    }
)
_THINKING = by_type(
    {
        "enabled": object_of(KIND | {"budget_tokens": whole(LEAST_BUDGET)}, {"display": text(1)}),
        "adaptive": object_of(KIND, {"display": text(1)}),
        "disabled": object_of(KIND),
    }
)
_BODY = object_of(
    {"model": text(1), "max_tokens": whole(1), "messages": each(_message, 1, 100_000)},
    {
        "system": SYSTEM,
        "tools": each(_tool),
        "tool_choice": _TOOL_CHOICE,
        "thinking": _THINKING,
        "output_config": object_of({}, {"effort": text(1), "format": open_object, "task_budget": open_object}),
        "output_format": open_object,
        "temperature": number(0, 1),
        "top_p": number(0, 1),
        "top_k": whole(0),
        "stop_sequences": each(text(1)),
        "stream": flag,
        "metadata": object_of({}, {"user_id": text(0, 256)}),
        "service_tier": one_of("auto", "standard_only"),
        "speed": one_of("standard", "fast"),
        "inference_geo": text(1),
        "cache_control": CACHE_MARK,
        "container": either((str, text(1)), (dict, open_object)),
        "context_management": open_object,
        "mcp_servers": each(open_object),
        "fallbacks": each(open_object),
    },
)


@attrs.frozen
class Turn:
    """Neighbours of one role, as the API joins them. Each block with its place."""

    role: str
    blocks: list[tuple[dict[str, Any], Place]]
    place: Place

    def ids(self, kind: str, key: str) -> list[Met]:
        """The ids in its blocks of a kind."""
        return [Met(it[key], at) for it, at in self.blocks if it.get("type") == kind and isinstance(it.get(key), str)]


def check_messages(body: Any, place: Place) -> None:
    """Note everything that is wrong with a body."""
    _BODY(body, place)
    if not isinstance(body, dict):
        return
    turns = _turns(body.get("messages"), place.at("messages"))
    for index, turn in enumerate(turns):
        before = turns[index - 1] if index else None
        after = turns[index + 1] if index + 1 < len(turns) else None
        _check_results(turn, before)
        _check_calls(turn, after)
        _check_thinking_blocks(turn)
    calls = [met for turn in turns for met in turn.ids("tool_use", "id")]
    check_unique(calls, "`tool_use` ids must be unique, {id} is not")
    _check_server_calls(turns)
    if turns:
        _check_ends(body, turns)
    _check_tools(body, place, bool(calls))
    _check_thinking(body, turns, place)
    _check_marks(body, place)


def _turns(messages: object, place: Place) -> list[Turn]:
    turns: list[Turn] = []
    for index, message in dicts(messages):
        role, content, at = str(message.get("role")), message.get("content"), place.at(index)
        told = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [(block, at.at("content").at(position)) for position, block in dicts(told)]
        if turns and turns[-1].role == role:
            if place.demands.alternation:
                at.bad(f'roles must alternate between "user" and "assistant", but found multiple "{role}" in a row')
            turns[-1].blocks.extend(blocks)
        else:
            turns.append(Turn(role, blocks, at))
    return turns


def _check_results(turn: Turn, before: Turn | None) -> None:
    results = turn.ids("tool_result", "tool_use_id")
    calls = [] if before is None else [met.id for met in before.ids("tool_use", "id")]
    for met in results:
        if met.id not in calls:
            met.place.bad(
                f"unexpected `tool_use_id` found in `tool_result` blocks: {met.id}. Each `tool_result` block must "
                "have a corresponding `tool_use` block in the previous message."
            )
    once = "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
    check_unique(results, once)
    check_order(calls, results, turn.place)
    kinds = [block.get("type") == "tool_result" for block, _ in turn.blocks]
    if kinds != sorted(kinds, reverse=True):
        turn.place.bad("`tool_result` blocks must come first in the content")


def _check_calls(turn: Turn, after: Turn | None) -> None:
    answered = {met.id for met in after.ids("tool_result", "tool_use_id")} if after is not None else set()
    missing = [met.id for met in turn.ids("tool_use", "id") if met.id not in answered]
    if missing:
        turn.place.bad(
            f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. Each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message."
        )


def _check_server_calls(turns: list[Turn]) -> None:
    """A result behind its call, and a call with its result, unless the answer is to be continued or waits for ours."""
    uses: set[str] = set()
    answered = {str(it.get("tool_use_id")) for turn in turns for it, _ in turn.blocks if _is_server_result(it)}
    for turn in turns:
        waits = turn is turns[-1] or any(it.get("type") == "tool_use" for it, _ in turn.blocks)
        for block, place in turn.blocks:
            kind, id = str(block.get("type")), str(block.get("id"))
            if kind in ("server_tool_use", "mcp_tool_use"):
                uses.add(id)
                if id not in answered and not waits:
                    place.bad(
                        f"`{block.get('name')}` tool use with id `{id}` was found without a corresponding result block"
                    )
            elif _is_server_result(block) and str(block.get("tool_use_id")) not in uses:
                place.bad(
                    f"unexpected `tool_use_id` found in `{kind}` blocks: {block.get('tool_use_id')}. Each block must "
                    "have a corresponding block of its call before it."
                )


def _is_server_result(block: dict[str, Any]) -> bool:
    return str(block.get("type")).endswith("_tool_result")


def _check_thinking_blocks(turn: Turn) -> None:
    if turn.role == "assistant" and turn.blocks and turn.blocks[-1][0].get("type") in THINKING:
        turn.blocks[-1][1].bad("The final block in an assistant message cannot be `thinking`.")


def _check_ends(body: dict[str, Any], turns: list[Turn]) -> None:
    first, last, demands = turns[0], turns[-1], turns[0].place.demands
    if first.role != "user" and demands.user_first:
        first.place.bad('first message must use the "user" role')
    if last.role != "assistant":
        return
    if not demands.prefill:
        last.place.bad(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    block = last.blocks[-1][0] if last.blocks else {}
    said = block.get("text") if block.get("type") == "text" else None
    if demands.trimmed_end and isinstance(said, str) and said != said.rstrip():
        last.place.bad("final assistant content cannot end with trailing whitespace")


def _check_tools(body: dict[str, Any], place: Place, has_calls: bool) -> None:
    named = [Met(str(tool.get("name")), place.at("tools").at(i)) for i, tool in dicts(body.get("tools"))]
    check_unique(named, "Tool names must be unique, {id} is not.")
    choice = body.get("tool_choice")
    wanted = choice.get("name") if isinstance(choice, dict) else None
    check_tool_choice(body, wanted, [met.id for met in named], place)
    if has_calls and not named and place.demands.tools_for_calls:
        place.at("tools").bad("Requests which have `tool_use` blocks in messages must define tools")


def _check_thinking(body: dict[str, Any], turns: list[Turn], place: Place) -> None:
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") not in ("enabled", "adaptive"):
        return
    budget, most = thinking.get("budget_tokens"), body.get("max_tokens")
    if isinstance(budget, int) and isinstance(most, int) and budget >= most:
        place.at("max_tokens").bad("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if body.get("temperature", 1) != 1:
        place.at("temperature").bad("`temperature` may only be set to 1 when thinking is enabled.")
    top_p = body.get("top_p", 1)
    if isinstance(top_p, (int, float)) and top_p < LEAST_TOP_P:
        place.at("top_p").bad("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.")
    if "top_k" in body:
        place.at("top_k").bad("`top_k` must be unset when thinking is enabled.")
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        place.at("tool_choice").bad("Thinking may not be enabled when tool_choice forces tool use.")
    if thinking.get("type") == "enabled" and turns and turns[-1].role == "assistant":
        _check_begins_with_thinking(turns[-1])
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if place.demands.thinking_first and last is not None and last.ids("tool_use", "id"):
        _check_begins_with_thinking(last)


def _check_begins_with_thinking(turn: Turn) -> None:
    block, at = turn.blocks[0] if turn.blocks else ({}, turn.place)
    if block.get("type") not in THINKING:
        at.bad(f"Expected `thinking` or `redacted_thinking`, but found `{block.get('type')}`.")


def _check_marks(body: dict[str, Any], place: Place) -> None:
    marks = list(_marks(body, place))
    if len(marks) > MAX_MARKS:
        place.bad(f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {len(marks)}.")
    short = False
    for mark, at in marks:
        if mark.get("ttl") != "1h":
            short = True
        elif short:
            at.bad("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")


def _marks(body: dict[str, Any], place: Place) -> Iterator[tuple[dict[str, Any], Place]]:
    """In the order in which the prefix is made: tools, system, messages."""
    for key in ("tools", "system"):
        for index, item in dicts(body.get(key)):
            yield from _mark_of(item, place.at(key).at(index))
    for index, message in dicts(body.get("messages")):
        for position, block in dicts(message.get("content")):
            at = place.at("messages").at(index).at("content").at(position)
            if block.get("type") == "tool_result":
                for inner, item in dicts(block.get("content")):
                    yield from _mark_of(item, at.at("content").at(inner))
            yield from _mark_of(block, at)
    yield from _mark_of(body, place)


def _mark_of(item: dict[str, Any], place: Place) -> Iterator[tuple[dict[str, Any], Place]]:
    mark = item.get("cache_control")
    if isinstance(mark, dict):
        yield mark, place.at("cache_control")
