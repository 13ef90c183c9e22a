"""Items of the Responses wire, each by itself:
https://platform.openai.com/docs/api-reference/responses/create#responses-create-input.
"""

from __future__ import annotations

from typing import Any

from agentrio.testing.validators.checking import (
    Check,
    Place,
    anything,
    by_type,
    each,
    either,
    object_of,
    one_of,
    open_object,
    text,
)
from agentrio.testing.validators.shared import check_arguments, check_base64, check_data_url, nullable

__all__ = ["CALLS", "SERVER_ITEMS", "check_item", "kind_of"]

LONGEST = 10_485_760  # characters in a text
MAX_FILE = 50_000_000  # bytes
CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Calls that a client answers, and the type of the answer."""
SERVER_ITEMS = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "tool_search_call",
    "tool_search_output",
    "compaction",
)
"""Items of the server's own; it alone knows what belongs in them."""
STATUS: dict[str, Check] = {"status": nullable(one_of("in_progress", "completed", "incomplete"))}
KIND: dict[str, Check] = {"type": anything}
CALL_ID = text(1, 64, r"[!-~]+")

_TEXT = object_of(KIND | {"text": text(1, LONGEST)})


def _url(value: Any, place: Place) -> None:
    if place.passes(text(1), value):
        check_data_url(value, place)


_IMAGE = object_of(
    KIND,
    {"image_url": nullable(_url), "file_id": nullable(text(1)), "detail": one_of("auto", "low", "high", "original")},
)


def _image(value: Any, place: Place) -> None:
    if not place.demands.images:
        place.bad("Invalid content type. This model does not support image inputs.")
    _IMAGE(value, place)
    if not value.get("image_url") and not value.get("file_id"):
        place.bad("Missing required parameter: 'image_url' or 'file_id'.")


_FILE = object_of(
    KIND,
    {
        "filename": text(1),
        "file_data": text(1),
        "file_id": nullable(text(1)),
        "file_url": text(1),
        "detail": one_of("low", "high"),
    },
)


def _file(value: Any, place: Place) -> None:
    if not place.demands.files:
        place.bad("Invalid content type: input_file.")
    if not place.passes(_FILE, value):
        return
    if not any(value.get(key) for key in ("file_data", "file_id", "file_url")):
        place.bad("Missing required parameter: 'file_data', 'file_id' or 'file_url'.")
    if "file_data" in value:
        if "filename" not in value:
            place.at("filename").bad("Missing required parameter.")
        check_base64(value["file_data"].partition(";base64,")[2], place.at("file_data"), MAX_FILE)


INPUT = by_type({"input_text": _TEXT, "input_image": _image, "input_file": _file, "input_audio": open_object})
_INPUTS = either((str, text(1, LONGEST)), (list, each(INPUT, 1)))
_OUTPUT_TEXT = object_of(
    KIND | {"text": text(0, LONGEST)}, {"annotations": each(open_object), "logprobs": nullable(each(anything))}
)
_REFUSAL = object_of(KIND | {"refusal": text()})
_OUTPUTS = either((str, text(1, LONGEST)), (list, each(by_type({"output_text": _OUTPUT_TEXT, "refusal": _REFUSAL}), 1)))


def _id_of(prefix: str) -> Check:
    def check(value: Any, place: Place) -> None:
        if place.passes(text(1), value) and place.demands.item_ids and not value.startswith(prefix):
            place.bad(f"Invalid '{place.path}': '{value}'. Expected an ID that begins with '{prefix}'.")

    return check


_USER = object_of({"role": anything, "content": _INPUTS}, KIND | STATUS | {"id": _id_of("msg")})
_ASSISTANT = object_of(
    {"role": anything, "content": _OUTPUTS}, KIND | STATUS | {"id": _id_of("msg"), "phase": nullable(text(1))}
)
_BY_ROLE = {"user": _USER, "system": _USER, "developer": _USER, "assistant": _ASSISTANT}


def _message(value: Any, place: Place) -> None:
    role = value.get("role")
    rule = _BY_ROLE.get(role) if isinstance(role, str) else None
    if rule is None:
        place.at("role").bad(f"Invalid value: {role!r}. Supported values are: {', '.join(map(repr, _BY_ROLE))}.")
        return
    rule(value, place)


_OUTPUT = either((str, text(0, LONGEST)), (list, each(INPUT)))
_ANSWER = object_of(
    KIND | {"call_id": CALL_ID, "output": _OUTPUT}, STATUS | {"id": nullable(text(1)), "caller": nullable(open_object)}
)
_SUMMARY = each(by_type({"summary_text": object_of(KIND | {"text": text()})}))
_REASONED = each(by_type({"reasoning_text": object_of(KIND | {"text": text()}), "text": open_object}))
_CALL_KEYS = {"namespace": nullable(text(1)), "caller": nullable(open_object)}

_ITEMS: dict[str, Check] = {
    "message": _message,
    "reasoning": object_of(
        KIND | {"summary": _SUMMARY},
        {
            "id": _id_of("rs"),
            "encrypted_content": nullable(text(1)),
            "content": nullable(_REASONED),
            "status": nullable(text(1)),
            "format": nullable(text(1)),
            "signature": nullable(text(1)),
        },
    ),
    "function_call": object_of(
        KIND | {"call_id": CALL_ID, "name": text(1, 128), "arguments": check_arguments},
        STATUS | _CALL_KEYS | {"id": nullable(_id_of("fc"))},
    ),
    "custom_tool_call": object_of(
        KIND | {"call_id": CALL_ID, "name": text(1, 128), "input": text()},
        STATUS | _CALL_KEYS | {"id": nullable(_id_of("ctc"))},
    ),
    "function_call_output": _ANSWER,
    "custom_tool_call_output": _ANSWER,
    "item_reference": object_of({"id": text(1)}, {"type": anything}),
    **{kind: open_object for pair in list(CALLS.items())[2:] for kind in pair},
    **dict.fromkeys(SERVER_ITEMS, open_object),
}
_BY_TYPE = by_type(_ITEMS, "message")


def kind_of(item: dict[str, Any]) -> str:
    """An item's type; a message need not say that it is one."""
    return str(item.get("type", "message"))


def check_item(value: Any, place: Place) -> None:
    """Note what is wrong with one item."""
    _BY_TYPE(value, place)
