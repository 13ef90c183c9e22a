"""A neutral request as the body of ``POST /responses``: https://platform.openai.com/docs/api-reference/responses/create.

Bodies are joined from encoded fragments. A message's fragment is kept with the message, and the conversation so far in
the request's memo, so a round encodes what is new and joins the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import attrs

from agentrio.domain.render import ModelRequest, SystemBlock, ThinkingLevel, ToolSpec

from .chat_thinking import openai_effort, xai_effort
from .json import encode
from .openai_cache import Cache, cache_fields
from .responses_history import Items, Target

Summary: TypeAlias = Literal["auto", "concise", "detailed"]

ENCRYPTED = "reasoning.encrypted_content"
OF_TOOLS = ("tool_choice", "parallel_tool_calls")  # servers refuse them where there are no tools

_REASONS = re.compile(r"(?:^|[/.])(?:o\d|gpt-5(?!.*chat)|gpt-[6-9]|codex)")
_REASONS_NOT = re.compile(r"(?:^|[/.])(?:chatgpt|gpt-(?:3|4|5.*chat))")

_EFFORTS: dict[ThinkingLevel, str] = {"off": "none", "minimal": "low", "xhigh": "high", "max": "high"}
"""Of models that are not OpenAI's: the three efforts that all of them know."""


def _key(options: ResponsesOptions) -> str:
    return f"responses:{options.target}"


@attrs.frozen(eq=False)
class ResponsesOptions:
    """What a model's declaration adds to each request.

    ``cache_key`` stands in place of the session's id. ``long_ttl`` is whether the host keeps a prefix for a day.
    ``extra`` are further fields of the body.
    """

    target: Target
    max_tokens: int | None = None
    cache: Cache = "short"
    cache_key: str | None = None
    long_ttl: bool = False
    summary: Summary | None = "auto"
    strict: bool = False
    parallel_tool_calls: bool | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    key: str = attrs.field(init=False, default=attrs.Factory(_key, takes_self=True))  # of the items in their memo


def encode_request(request: ModelRequest, options: ResponsesOptions) -> bytes:
    """The body, streaming asked for and nothing kept at the server. No optional key appears without a value."""
    pieces = [b'{"model":', encode(options.target.tag.model)]
    if instructions := _instructions(request.system):
        pieces += (b',"instructions":', encode(instructions))
    pieces += (b',"input":[', *_items(request, options).pieces(), b"]")
    if request.tools:
        pieces += (b',"tools":', _tools(request, options.strict))
    for key, value in _fields(request, options).items():
        pieces += (b",", encode(key), b":", encode(value))
    pieces.append(b',"store":false,"stream":true}')
    return b"".join(pieces)


def _instructions(layers: Sequence[SystemBlock]) -> str:
    return "\n\n".join(layer.text for layer in layers if layer.text.strip())


def _items(request: ModelRequest, options: ResponsesOptions) -> Items:
    found = request.memo.get(options.key)
    if not isinstance(found, Items):
        found = request.memo[options.key] = Items(options.target)
    found.feed(request.messages)
    return found


def _fields(request: ModelRequest, options: ResponsesOptions) -> dict[str, Any]:
    model, level = options.target.tag.model, request.thinking
    fields: dict[str, Any] = {}
    if request.tools and options.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = options.parallel_tool_calls
    max_tokens = request.max_tokens or options.max_tokens
    if max_tokens is not None:
        fields["max_output_tokens"] = max_tokens
    effort = None if level is None else effort_of(model, level)
    thinks = effort not in (None, "none") or (level is None and bool(_REASONS.search(model)))
    if effort is not None:
        summary = {} if options.summary is None or not thinks else {"summary": options.summary}
        fields["reasoning"] = {"effort": effort} | summary
    if thinks:
        fields["include"] = [ENCRYPTED]
    elif request.temperature is not None:  # refused beside reasoning
        fields["temperature"] = request.temperature
    extra = {key: value for key, value in options.extra.items() if request.tools or key not in OF_TOOLS}
    key = options.cache_key or request.session_id
    return fields | cache_fields(key, options.cache, long_ttl=options.long_ttl) | extra


def effort_of(model: str, level: ThinkingLevel) -> str | None:
    """The effort that a model knows for a level; None where it does not reason, and refuses to be asked.

    GPT-5 can't be told not to think, nor can its forerunners; they are told to think as little as they can.
    """
    if "grok-" in model:
        return xai_effort(model, level)
    if _REASONS_NOT.search(model):
        return None
    if not _REASONS.search(model):
        return _EFFORTS.get(level, level)
    return openai_effort(model, level)


_encoded_tools: WeakKeyDictionary[ToolSpec, dict[bool, bytes]] = WeakKeyDictionary()


def _tools(request: ModelRequest, strict: bool) -> bytes:
    key = f"responses-tools:{strict}"
    known = request.memo.get(key)
    if known is None or known[0] != request.tools:
        known = (request.tools, b"[" + b",".join(_tool(tool, strict) for tool in request.tools) + b"]")
        request.memo[key] = known
    encoded: bytes = known[1]
    return encoded


def _tool(tool: ToolSpec, strict: bool) -> bytes:
    """In its flat form. ``strict`` is always said: where it is not, the API makes the schema strict."""
    found = _encoded_tools.setdefault(tool, {})
    if strict not in found:
        told = {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema}
        found[strict] = encode({key: value for key, value in told.items() if value != ""} | {"strict": strict})
    return found[strict]
