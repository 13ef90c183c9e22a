"""Blocks of the Messages wire, each by itself: https://docs.anthropic.com/en/api/messages."""

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
from agentrio.testing.validators.shared import IMAGES, check_base64, dicts, nullable

__all__ = ["ASSISTANT_BLOCKS", "CACHE_MARK", "SYSTEM", "USER_BLOCKS"]

MAX_IMAGE = 5_000_000  # bytes: https://docs.anthropic.com/en/docs/build-with-claude/vision
MAX_FILE = 32_000_000  # bytes, of a PDF: .../pdf-support
ID = text(pattern=r"[a-zA-Z0-9_-]{1,64}")
SERVER_ID = text(pattern=r"srvtoolu_[a-zA-Z0-9_]+")
TOOL_NAME = text(pattern=r"[a-zA-Z0-9_-]{1,128}")


def _said(value: Any, place: Place) -> None:
    """A text that says something."""
    if not place.passes(text(), value):
        return
    if not value:
        place.bad("text content blocks must be non-empty")
    elif not value.strip():
        place.bad("text content blocks must contain non-whitespace text")


CACHE_MARK = nullable(object_of({"type": one_of("ephemeral")}, {"ttl": one_of("5m", "1h")}))
MARK: dict[str, Check] = {"cache_control": CACHE_MARK}
KIND: dict[str, Check] = {"type": anything}

TEXT = object_of(KIND | {"text": _said}, MARK | {"citations": nullable(each(open_object))})
SYSTEM = either((str, text()), (list, each(by_type({"text": TEXT}))))


def _base64_of(kinds: tuple[str, ...], most: int) -> Check:
    shape = object_of(KIND | {"media_type": one_of(*kinds), "data": text(1)})

    def check(value: Any, place: Place) -> None:
        if place.passes(shape, value):
            check_base64(value["data"], place.at("data"), most)

    return check


URL = object_of(KIND | {"url": text(1)})
FILE_ID = object_of(KIND | {"file_id": text(1)})
_IMAGE = object_of(
    KIND | {"source": by_type({"base64": _base64_of(IMAGES, MAX_IMAGE), "url": URL, "file": FILE_ID})}, MARK
)


def image(value: Any, place: Place) -> None:
    """An image, where the server takes any."""
    if not place.demands.images:
        place.bad("this model does not take images")
    _IMAGE(value, place)


_PLAIN = object_of(KIND | {"media_type": one_of("text/plain"), "data": text(1)})
_CONTENT = object_of(KIND | {"content": either((str, text(1)), (list, each(by_type({"text": TEXT, "image": image}))))})
_SOURCES = {
    "base64": _base64_of(("application/pdf",), MAX_FILE),
    "text": _PLAIN,
    "content": _CONTENT,
    "url": URL,
    "file": FILE_ID,
}
_DOCUMENT = object_of(
    KIND | {"source": by_type(_SOURCES)},
    MARK | {"title": nullable(text(1, 500)), "context": nullable(text(1)), "citations": nullable(open_object)},
)


def document(value: Any, place: Place) -> None:
    """A document, where the server takes any."""
    if not place.demands.files:
        place.bad("this model does not take documents")
    _DOCUMENT(value, place)


SEARCH_RESULT = object_of(
    KIND | {"source": text(), "title": text(), "content": each(by_type({"text": TEXT}), 1)},
    MARK | {"citations": nullable(open_object)},
)
RESULT_BLOCKS: dict[str, Check] = {
    "text": TEXT,
    "image": image,
    "document": document,
    "search_result": SEARCH_RESULT,
    "tool_reference": object_of(KIND | {"tool_name": text(1)}, MARK),
}
_TOOL_RESULT = object_of(
    KIND | {"tool_use_id": ID},
    MARK | {"is_error": flag, "content": either((str, text()), (list, each(by_type(RESULT_BLOCKS))))},
)


def tool_result(value: Any, place: Place) -> None:
    """A result; that of a failed call is text alone."""
    _TOOL_RESULT(value, place)
    content = value.get("content")
    if value.get("is_error") is True and any(block.get("type") != "text" for _, block in dicts(content)):
        place.bad('all content must be type "text" if "is_error" is true')


USER_BLOCKS: dict[str, Check] = {
    "text": TEXT,
    "image": image,
    "document": document,
    "search_result": SEARCH_RESULT,
    "tool_result": tool_result,
    "container_upload": object_of(KIND | {"file_id": text(1)}, MARK),
}

_SERVER_RESULT = object_of(
    KIND | {"tool_use_id": SERVER_ID, "content": anything}, MARK | {"caller": nullable(open_object)}
)
_SERVER_TOOLS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search",
    "advisor",
)
_USE: dict[str, Check] = KIND | {"id": ID, "name": TOOL_NAME, "input": open_object}

ASSISTANT_BLOCKS: dict[str, Check] = {
    "text": TEXT,
    "thinking": object_of(KIND | {"thinking": text(), "signature": text(1)}),
    "redacted_thinking": object_of(KIND | {"data": text(1)}),
    "tool_use": object_of(_USE, MARK | {"caller": nullable(open_object)}),
    "server_tool_use": object_of(_USE | {"id": SERVER_ID}, MARK | {"caller": nullable(open_object)}),
    "mcp_tool_use": object_of(_USE | {"server_name": text(1)}, MARK),
    "mcp_tool_result": object_of(KIND | {"tool_use_id": ID, "is_error": flag, "content": anything}, MARK),
    "compaction": object_of(KIND | {"content": nullable(text())}, MARK | {"encrypted_content": nullable(text())}),
    "fallback": open_object,
    **{f"{name}_tool_result": _SERVER_RESULT for name in _SERVER_TOOLS},
}
