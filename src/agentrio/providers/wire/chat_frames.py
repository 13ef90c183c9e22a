"""Chunks of a Chat Completions stream, typed:
https://developers.openai.com/api/reference/resources/chat/subresources/completions/streaming-events.

A chunk of the usual form is decoded into its type at once. One that is not (a number where a text should be, half of a
surrogate pair, a field that is a list on this server alone) is read field by field: what does not fit is left out.

Servers give their reasoning under four names: ``reasoning_content`` (DeepSeek, xAI, Z.ai, llama.cpp), ``reasoning``
(Ollama, Groq, OpenRouter, vLLM), ``reasoning_details`` (OpenRouter, Vercel, with signatures) and as parts of a
``content`` that is a list (Mistral).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from agentrio.domain.plain import unicode_text

from .common import string
from .failures import unwrapped
from .json import SHALLOW, check_depth, decode, decode_unmended, scrub


class Function(Struct, gc=False):
    """What is called. ``arguments`` is text; some servers send the object itself."""

    name: str | None = None
    arguments: Any = None


class CallPiece(Struct, gc=False):
    """A piece of one tool call: the first has its id and name, on some servers each has.

    The last two fields are opaque and go back with the call: Gemini's thought signature, and where LiteLLM keeps it.
    """

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Any = None
    provider_specific_fields: Any = None


class Delta(Struct, gc=False):
    """More of the message; of an answer that is no stream, the message."""

    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None
    function_call: Function | None = None
    extra_content: Any = None


class Choice(Struct, gc=False):
    """One of the answers; only the first was asked for."""

    index: int | None = 0
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    error: Any = None


class Chunk(Struct, gc=False, rename={"body": ":body", "unmended": ":unmended"}):
    """One event of the stream. ``body`` is the whole of it where it is an error.

    ``unmended`` says that the texts may hold halves of surrogate pairs. Neither comes from the wire.
    """

    choices: list[Choice] | None = None
    id: str | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None
    x_groq: Any = None
    object: str | None = None
    detail: Any = None
    service_tier: str | None = None
    body: Any = None
    unmended: bool = False


_decode = Decoder(Chunk).decode


def read_chunk(name: bytes, data: bytes) -> Chunk | None:
    """The chunk in an event's data; None where it is no JSON object, such as the ``[DONE]`` at the end.

    Raises:
        ProviderError: the data is nested too deeply (``invalid_response``).
    """
    if len(data) > SHALLOW:
        check_depth(data)
    try:
        chunk = _decode(data)
    except MsgspecError:
        return _read_loosely(name, data)
    if chunk.error or chunk.choices is None or name:
        return _checked(name, data, chunk)
    return chunk


def _checked(name: bytes, data: bytes, chunk: Chunk) -> Chunk:
    if name == b"error" or is_error(chunk):
        chunk.body = unwrapped(decode(data))  # an error is needed whole
    return chunk


def is_error(chunk: Chunk) -> bool:
    """Whether this is an error in one of the ways that servers put it into an answer of status 200."""
    return bool(chunk.error or (not chunk.choices and (chunk.object == "error" or chunk.detail)))


def _read_loosely(name: bytes, data: bytes) -> Chunk | None:
    try:
        found = unwrapped(decode_unmended(data))
    except ValueError:
        return None
    return _checked(name, data, loose_chunk(found)) if isinstance(found, dict) else None


def loose_chunk(found: Mapping[str, Any]) -> Chunk:
    """A chunk of a decoded object, whatever its fields are."""
    choices = found.get("choices")
    return Chunk(
        [_choice(choice) for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else None,
        _text(found.get("id")),
        _text(found.get("model")),
        found.get("usage"),
        found.get("error"),
        found.get("x_groq"),
        _text(found.get("object")),
        found.get("detail"),
        string(found.get("service_tier")),
        unmended=True,
    )


def _choice(found: dict[str, Any]) -> Choice:
    delta, message = found.get("delta"), found.get("message")
    return Choice(
        _index(found.get("index")),
        _delta(delta) if isinstance(delta, dict) else None,
        _delta(message) if isinstance(message, dict) else None,
        _text(found.get("finish_reason")),
        found.get("error"),
    )


def _delta(found: dict[str, Any]) -> Delta:
    content, details, calls = (found.get(key) for key in ("content", "reasoning_details", "tool_calls"))
    return Delta(
        content if isinstance(content, (str, list)) else None,
        string(found.get("reasoning_content")),
        string(found.get("reasoning")),
        scrub(details, strip_nul=False) if isinstance(details, list) else None,
        string(found.get("refusal")),
        [_call(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else None,
        _function(found.get("function_call")),
        scrub(found.get("extra_content"), strip_nul=False),
    )


def _call(found: dict[str, Any]) -> CallPiece:
    id = found.get("id")
    return CallPiece(
        _index(found.get("index")),
        str(id) if isinstance(id, int) else _text(id),
        _function(found.get("function")),
        scrub(found.get("extra_content"), strip_nul=False),
        scrub(found.get("provider_specific_fields"), strip_nul=False),
    )


def _function(found: Any) -> Function | None:
    return Function(_text(found.get("name")), found.get("arguments")) if isinstance(found, dict) else None


def _text(found: Any) -> str:
    return unicode_text(string(found))


def _index(found: Any) -> int | None:
    if isinstance(found, str) and found.isdecimal() and len(found) < 9:
        return int(found)
    return int(found) if isinstance(found, (int, float)) and 0 <= found < 1e9 else None
