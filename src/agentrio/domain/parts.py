"""What messages are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from .plain import article, unicode_text

CallStatus: TypeAlias = Literal["succeeded", "failed", "denied", "skipped", "cancelled"]
"""How a tool call ended. Everything but ``succeeded`` carries an ``error``."""

CallCategory: TypeAlias = Literal[
    "unknown_tool",
    "invalid_arguments",
    "denied",
    "skipped",
    "tool_failed",
    "timeout",
    "cancelled",
    "agent_failed",
]
"""What kind of failure the model is told of."""


def _is_text(part: object, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) and not (value is None and field.default is None):
        hint = "; encode it: base64.b64encode(data).decode()" if isinstance(value, bytes) else ""
        raise TypeError(f"{type(part).__name__}.{field.name} must be a str, not {article(value)}{hint}")


@attrs.frozen(weakref_slot=False)
class Text:
    """Plain text. ``raw`` is the provider's own block (JSON) where it says more than its text, such as citations.

    Halves of surrogate pairs are joined, or replaced by U+FFFD: the text is always Unicode.

    Raises:
        TypeError: the text is none.
    """

    text: str = attrs.field(converter=unicode_text)
    raw: str | None = attrs.field(default=None, validator=_is_text)


@attrs.frozen
class Thinking:
    """Reasoning shown or hidden by the provider.

    ``signature`` proves the block to the provider that made it; for a ``redacted`` block it is the opaque data itself,
    and ``text`` is empty. ``raw`` is the provider's own block as JSON, replayed to the same model only.
    """

    text: str = attrs.field(converter=unicode_text)
    signature: str | None = None
    redacted: bool = False
    raw: str | None = None


@attrs.frozen
class ToolCall:
    """A call that the model asks for.

    ``id`` is ours, derived from run, round and index; ``provider_id`` is what the provider called it, perhaps empty.
    ``arguments_json`` is the text as it was streamed; ``arguments`` is that text parsed, or None where it is no JSON
    object. ``raw`` holds the provider's block where it carries more than id, name and arguments.
    """

    id: str
    provider_id: str
    name: str
    arguments_json: str
    arguments: Mapping[str, Any] | None = attrs.field(default=None, hash=False)
    raw: str | None = None


@attrs.frozen
class CallError:
    """Why a call failed, in words that the model may read."""

    category: CallCategory
    message: str


@attrs.frozen
class Image:
    """An image as base64 text, with its media type (``image/png`` and the like).

    Raises:
        TypeError: a field is no text. Whether it is base64 is looked at where it is sent.
    """

    data: str = attrs.field(repr=False, validator=_is_text)
    media_type: str = attrs.field(validator=_is_text)


@attrs.frozen
class File:
    """A document as base64 text, with its media type and, where known, its name.

    Raises:
        TypeError: a field is no text. Whether it is base64 is looked at where it is sent.
    """

    data: str = attrs.field(repr=False, validator=_is_text)
    media_type: str = attrs.field(validator=_is_text)
    name: str | None = attrs.field(default=None, validator=_is_text)


@attrs.frozen
class RawBlock:
    """A block of the provider's own (``kind`` is its type there), kept verbatim as JSON.

    It is sent back only to the model that wrote it.
    """

    kind: str
    json: str


ResultPart: TypeAlias = Text | Image | File


@attrs.frozen
class ToolResult:
    """What became of a call.

    ``uncertain`` means that the call was stopped while it ran and may have taken effect. ``details`` is for
    programs, never for the model.
    """

    call_id: str
    name: str
    status: CallStatus
    parts: tuple[ResultPart, ...] = ()
    error: CallError | None = None
    uncertain: bool = False
    details: Any = attrs.field(default=None, hash=False)


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Image | File | RawBlock
