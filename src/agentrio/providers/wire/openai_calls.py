"""Calls and failed results in the words of both OpenAI wires, which take arguments as text and know no failed call."""

from __future__ import annotations

import msgspec

from agentrio.domain.parts import ToolCall, ToolResult

from .json import encode_text

TOOL_ERROR = "[tool error] "


def arguments_text(call: ToolCall) -> str:
    """As they were written, where that is JSON: servers parse them. What was no object is none to the model either."""
    if call.arguments is None:
        return "{}"
    try:
        msgspec.json.decode(call.arguments_json)
    except msgspec.MsgspecError:
        return encode_text(call.arguments)
    return call.arguments_json


def error_text(result: ToolResult) -> str:
    """What the model is told of a call that failed."""
    error = result.error
    category, message = ("tool_failed", "") if error is None else (error.category, error.message)
    return TOOL_ERROR + encode_text({"error": category, "message": message})
