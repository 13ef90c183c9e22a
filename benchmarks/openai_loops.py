"""What the bare loops on the two OpenAI wires share: how a tool is offered, and how calls are run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import trio

from .contender import ToolFunction, schema


def function(tool: ToolFunction) -> dict[str, object]:
    """What the model is told of a tool on the Responses wire; on the other one it is under ``function``."""
    said = schema(tool)
    return {"name": said["name"], "description": said["description"], "parameters": said["input_schema"]}


def chat_tool(tool: ToolFunction) -> dict[str, object]:
    """A tool of a Chat Completions request."""
    return {"type": "function", "function": function(tool)}


def responses_tool(tool: ToolFunction) -> dict[str, object]:
    """A tool of a Responses request."""
    return {"type": "function", "strict": False, **function(tool)}


async def call_all(tools: Mapping[str, ToolFunction], calls: Sequence[tuple[str, str]]) -> list[str]:
    """The results of calls, given as names and encoded arguments, in their order."""
    results = [""] * len(calls)

    async def call(number: int) -> None:
        name, arguments = calls[number]
        given: dict[str, Any] = msgspec.json.decode(arguments)
        results[number] = await tools[name](**given)

    if len(calls) == 1:
        await call(0)
    else:
        async with trio.open_nursery() as nursery:
            for number in range(len(calls)):
                nursery.start_soon(call, number)
    return results


def chat_results(calls: Sequence[dict[str, Any]], results: Sequence[str]) -> list[dict[str, Any]]:
    """Messages that answer calls on the Chat Completions wire."""
    pairs = zip(calls, results, strict=True)
    return [{"role": "tool", "tool_call_id": call["id"], "content": result} for call, result in pairs]


def responses_results(calls: Sequence[dict[str, Any]], results: Sequence[str]) -> list[dict[str, Any]]:
    """Items that answer calls on the Responses wire."""
    pairs = zip(calls, results, strict=True)
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": result} for call, result in pairs]
