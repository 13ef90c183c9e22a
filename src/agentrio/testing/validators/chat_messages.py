"""Messages of the Chat Completions wire, each by itself:
https://platform.openai.com/docs/api-reference/chat/create#chat-create-messages.
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
    flag,
    object_of,
    one_of,
    open_object,
    text,
)
from agentrio.testing.validators.shared import NAME, check_arguments, check_base64, check_data_url, nullable

__all__ = ["check_message"]

LONGEST = 10_485_760  # characters in a text
MAX_FILE = 50_000_000  # bytes: https://platform.openai.com/docs/guides/pdf-files
ID_RULES = {"openai": text(1, 40), "any": text(pattern=r"[!-~]{1,64}"), "nine": text(pattern=r"[a-zA-Z0-9]{9}")}
KIND: dict[str, Check] = {"type": anything}
MARK: dict[str, Check] = {"cache_control": open_object}

_TEXT = object_of(KIND | {"text": text(1, LONGEST)}, None, MARK)


def _url(value: Any, place: Place) -> None:
    if place.passes(text(1), value):
        check_data_url(value, place)


_IMAGE = object_of(
    KIND | {"image_url": object_of({"url": _url}, {"detail": one_of("auto", "low", "high", "original")})}, None, MARK
)


def _image(value: Any, place: Place) -> None:
    if not place.demands.images:
        place.bad("Invalid content type. image_url is only supported by certain models.")
    _IMAGE(value, place)


_FILE = object_of(KIND | {"file": object_of({}, {"filename": text(1), "file_data": text(1), "file_id": text(1)})})


def _file(value: Any, place: Place) -> None:
    if not place.demands.files:
        place.bad("Invalid content type: file.")
    if not place.passes(_FILE, value):
        return
    file, place = value["file"], place.at("file")
    if "file_data" in file:
        if "filename" not in file:
            place.at("filename").bad("Missing required parameter.")
        head, _, data = file["file_data"].partition(";base64,")
        if not head.startswith("data:application/pdf"):
            place.at("file_data").bad("Expected a base64-encoded data URL of a PDF.")
        check_base64(data, place.at("file_data"), MAX_FILE)
    elif "file_id" not in file:
        place.bad("Missing required parameter: 'file_id' or 'file_data'.")


def _reasoned(value: Any, place: Place) -> None:
    """Mistral's list content: https://docs.mistral.ai/capabilities/reasoning."""
    if not place.demands.extensions:
        place.at("type").bad("Invalid value: 'thinking'.")
    object_of(KIND | {"thinking": each(by_type({"text": _TEXT}))}, {"signature": anything, "closed": flag})(
        value, place
    )


_TEXTS = either((str, text(1, LONGEST)), (list, each(by_type({"text": _TEXT}), 1)))
_USER_PARTS = by_type({"text": _TEXT, "image_url": _image, "file": _file, "input_audio": open_object})
_USER = either((str, text(1, LONGEST)), (list, each(_USER_PARTS, 1)))
_REFUSAL = object_of(KIND | {"refusal": text(1)})
_ANSWER_PARTS = by_type({"text": _TEXT, "refusal": _REFUSAL, "thinking": _reasoned})
_ANSWER = nullable(either((str, text(0, LONGEST)), (list, each(_ANSWER_PARTS, 1))))


def _call_id(value: Any, place: Place) -> None:
    ID_RULES[place.demands.ids](value, place)


_CALL = by_type(
    {
        "function": object_of(
            KIND | {"id": _call_id, "function": object_of({"name": text(pattern=NAME), "arguments": check_arguments})},
            None,
            {"extra_content": open_object, "index": anything},
        ),
        "custom": object_of(
            KIND | {"id": _call_id, "custom": object_of({"name": text(pattern=NAME), "input": text()})}
        ),
    }
)


def _details(value: Any, place: Place) -> None:
    each(open_object)(value, place)
    for index, detail in enumerate(value if isinstance(value, list) else ()):
        if isinstance(detail, dict) and not str(detail.get("type", "")).startswith("reasoning."):
            place.at(index).at("type").bad("Expected a type of reasoning.")


ROLE: dict[str, Check] = {"role": anything}
NAMED: dict[str, Check] = {"name": text(1)}
_PROMPT = object_of(ROLE | {"content": _TEXTS}, NAMED, MARK)
_ASSISTANT = object_of(
    ROLE,
    NAMED
    | {
        "content": _ANSWER,
        "refusal": nullable(text()),
        "tool_calls": each(_CALL, 1, 128),
        "audio": nullable(open_object),
        "annotations": each(anything),
    },
    {
        "reasoning_content": nullable(text()),
        "reasoning": nullable(text()),
        "reasoning_details": _details,
        "prefix": flag,
        "cache_control": open_object,
        "extra_content": open_object,
        "provider_specific_fields": open_object,
    },
)
_BY_ROLE: dict[str, Check] = {
    "system": _PROMPT,
    "developer": _PROMPT,
    "user": object_of(ROLE | {"content": _USER}, NAMED, MARK),
    "assistant": _ASSISTANT,
    "tool": object_of(ROLE | {"content": _TEXTS, "tool_call_id": _call_id}, None, NAMED | MARK),
}


def check_message(value: Any, place: Place) -> None:
    """Note what is wrong with one message."""
    if not place.passes(open_object, value):
        return
    role = value.get("role")
    rule = _BY_ROLE.get(role) if isinstance(role, str) else None
    if rule is None:
        place.at("role").bad(f"Invalid value: {role!r}. Supported values are: {', '.join(map(repr, _BY_ROLE))}.")
        return
    rule(value, place)
    if role == "assistant":
        _check_answer(value, place)


def _check_answer(message: dict[str, Any], place: Place) -> None:
    demands, calls = place.demands, message.get("tool_calls")
    content = message.get("content")
    if not calls:
        if not content and not message.get("refusal") and not message.get("audio"):
            place.at("content").bad("Invalid value for 'content': expected a string, got null or nothing.")
        return
    state = "omit" if "content" not in message else "null" if content is None else "empty" if content == "" else ""
    if state and demands.call_content not in ("any", state):
        place.at("content").bad(f"Content beside tool calls must be {demands.call_content}, not {state}.")
    if demands.thought_signatures and not any(map(_is_signed, (message, *calls[:1]))):
        place.at("tool_calls").bad(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly."
        )
    if demands.reasoning_field and demands.reasoning_field not in message:
        place.at(demands.reasoning_field).bad("Missing in an assistant message with tool calls.")


def _is_signed(value: Any) -> bool:
    """Whether an answer is, or a call: of those that are made at once the first alone."""
    found = value.get("extra_content") if isinstance(value, dict) else None
    google = found.get("google") if isinstance(found, dict) else None
    return isinstance(google, dict) and bool(google.get("thought_signature"))
