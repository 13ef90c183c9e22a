"""A neutral request as the body of ``POST /chat/completions``:
https://platform.openai.com/docs/api-reference/chat/create.

Bodies are joined from encoded fragments. A message's fragment is kept with the message, and the conversation so far in
the request's memo, so a round encodes what is new and joins the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from agentrio.domain.handoff import ForeignThinking
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest, SystemBlock, ToolSpec
from agentrio.providers.base import ProviderError

from .chat_dialect import Dialect
from .chat_history import Conversation
from .chat_thinking import is_reasoning, openai_effort, thinking_fields
from .json import encode
from .openai_cache import Cache, cache_fields

_OF_TOOLS = ("tool_choice", "parallel_tool_calls")  # servers refuse them where there are no tools


def _key(options: ChatOptions) -> str:
    return f"chat:{options.tag}:{options.dialect}:{options.foreign}"


@attrs.frozen(eq=False)
class ChatOptions:
    """What a model's declaration adds to each request.

    ``extra`` are further fields of the body; ``foreign`` is what becomes of other models' reasoning. ``cache_key``
    stands in place of the session's id. ``long_ttl`` is whether the host keeps a prefix for a day.
    """

    tag: ModelTag
    dialect: Dialect = attrs.field(factory=Dialect)
    max_tokens: int | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    foreign: ForeignThinking = "label"
    cache: Cache = "short"
    cache_key: str | None = None
    long_ttl: bool = False
    key: str = attrs.field(init=False, default=attrs.Factory(_key, takes_self=True))  # of a conversation in its memo


def encode_request(request: ModelRequest, options: ChatOptions) -> bytes:
    """The body, streaming asked for. No optional key appears without a value.

    Raises:
        ProviderError: tools are offered to a server that takes none (``unsupported``).
    """
    dialect, model = options.dialect, options.tag.model
    if request.tools and not dialect.tools:
        raise ProviderError(f"{options.tag.provider} takes no tools.", code="unsupported")
    pieces = [b'{"model":', encode(model), b',"messages":[']
    system = _system(request.system, options)
    messages = _conversation(request, options).pieces(mark=options.cache != "none" and _takes_marks(options))
    pieces += (system, b"," if system and messages else b"", *messages, b"]")
    if request.tools:
        pieces += (b',"tools":', _tools(request))
    for key, value in _fields(request, options).items():
        pieces += (b",", encode(key), b":", encode(value))
    pieces.append(b',"stream":true')
    pieces.append(b',"stream_options":{"include_usage":true}}' if dialect.usage_option else b"}")
    return b"".join(pieces)


def _fields(request: ModelRequest, options: ChatOptions) -> dict[str, Any]:
    dialect, model = options.dialect, options.tag.model
    fields: dict[str, Any] = {}
    max_tokens = request.max_tokens or options.max_tokens
    if max_tokens is not None:
        fields[dialect.max_tokens] = max_tokens
    if request.temperature is not None and not _refuses_temperature(request, options):
        fields["temperature"] = request.temperature
    fields |= thinking_fields(dialect.thinking, model, request.thinking)
    if dialect.cache_key or options.cache_key:
        key = options.cache_key or request.session_id
        fields |= cache_fields(key, options.cache, long_ttl=options.long_ttl)
    extra = {key: value for key, value in options.extra.items() if request.tools or key not in _OF_TOOLS}
    return fields | extra


def _takes_marks(options: ChatOptions) -> bool:
    """Whether what the server is to keep must be marked; other models' servers see for themselves."""
    marked = options.dialect.cache_marks
    return bool(marked) and options.tag.model.startswith(marked)


def _refuses_temperature(request: ModelRequest, options: ChatOptions) -> bool:
    """A reasoning model of OpenAI's does, unless it can be told not to reason, and is."""
    model = options.tag.model
    if options.dialect.thinking != "openai" or not is_reasoning(model):
        return False
    return request.thinking != "off" or openai_effort(model, "off") != "none"


def _conversation(request: ModelRequest, options: ChatOptions) -> Conversation:
    found = request.memo.get(options.key)
    if not isinstance(found, Conversation):
        found = request.memo[options.key] = Conversation(options.tag, options.dialect, options.foreign)
    found.feed(request.messages)
    return found


def _system(layers: Sequence[SystemBlock], options: ChatOptions) -> bytes:
    """One message for all layers: chat templates of open models take no second one."""
    told = [layer for layer in layers if layer.text.strip()]
    if not told:
        return b""
    dialect, model = options.dialect, options.tag.model
    role = "developer" if dialect.developer_role and is_reasoning(model) else "system"
    marked = max((index for index, layer in enumerate(told) if layer.cache), default=-1)
    if marked < 0 or not _takes_marks(options):
        return encode({"role": role, "content": "\n\n".join(layer.text for layer in told)})
    blocks: list[dict[str, Any]] = [{"type": "text", "text": layer.text} for layer in told]
    blocks[marked]["cache_control"] = {"type": "ephemeral"}
    return encode({"role": role, "content": blocks})


_encoded_tools: WeakKeyDictionary[ToolSpec, bytes] = WeakKeyDictionary()


def _tools(request: ModelRequest) -> bytes:
    known = request.memo.get("chat-tools")
    if known is None or known[0] != request.tools:
        known = (request.tools, b"[" + b",".join(map(_tool, request.tools)) + b"]")
        request.memo["chat-tools"] = known
    encoded: bytes = known[1]
    return encoded


def _tool(tool: ToolSpec) -> bytes:
    found = _encoded_tools.get(tool)
    if found is None:
        told = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        function = {key: value for key, value in told.items() if value != ""}
        found = _encoded_tools[tool] = encode({"type": "function", "function": function})
    return found
