"""A neutral request as the body of ``POST /v1/messages``: https://docs.anthropic.com/en/api/messages.

Bodies are joined from encoded fragments. A message's fragment is kept with the message, and what came of all messages
but the last turn is kept in the request's memo, so a round encodes what is new and joins the rest.

On Google's Vertex the path names the model, and the body a version in its place:
https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import attrs

from agentrio.domain.handoff import ForeignThinking
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest, SystemBlock, ThinkingLevel, ToolSpec

from .anthropic_history import Turns
from .anthropic_thinking import is_adaptive, takes_beginning, thinking_fields
from .json import encode

Cache: TypeAlias = Literal["none", "short", "long"]

DEFAULT_MAX_TOKENS = 32_000
VERTEX_VERSION = "vertex-2023-10-16"


def _key(options: MessagesOptions) -> str:
    return f"messages:{options.tag}:{options.foreign}"


@attrs.frozen
class MessagesOptions:
    """What a model's declaration adds to each request.

    ``long_ttl`` is whether the host knows one-hour caching, ``vertex`` whether it is Google's, ``foreign`` what becomes
    of other models' reasoning.
    """

    tag: ModelTag
    cache: Cache = "short"
    max_tokens: int | None = None
    long_ttl: bool = False
    vertex: bool = False
    foreign: ForeignThinking = "label"
    key: str = attrs.field(init=False, default=attrs.Factory(_key, takes_self=True))  # of the turns in their memo


def encode_request(request: ModelRequest, options: MessagesOptions) -> bytes:
    """The body, streaming asked for. No optional key appears without a value.

    Marks for the prompt cache, at most two of the four that the API allows: on the last prompt layer that asked for
    one, and, unless ``cache`` is ``none``, on the last block of a last user message.
    """
    mark = _mark(options)
    base = request.max_tokens or options.max_tokens or DEFAULT_MAX_TOKENS
    turns = _turns(request, options)
    max_tokens, thinking = thinking_fields(options.tag.model, _level(request, options.tag.model, turns), base)
    pieces = [_head(options), b',"max_tokens":%d' % max_tokens]
    if request.system:
        pieces += (b',"system":', _system(request.system, options.cache, mark))
    pieces.append(b',"messages":[')
    begun = takes_beginning(options.tag.model) and not _thinks(thinking)  # refused beside thinking
    pieces += turns.pieces(mark if options.cache != "none" else None, begun=begun)
    pieces.append(b"]")
    if request.tools:
        pieces += (b',"tools":', _tools(request))
    for key, value in thinking.items():
        pieces += (b',"%b":' % key.encode(), encode(value))
    if request.temperature is not None and not _thinks(thinking):
        pieces += (b',"temperature":', encode(request.temperature))
    pieces.append(b',"stream":true}')
    return b"".join(pieces)


def _level(request: ModelRequest, model: str, turns: Turns) -> ThinkingLevel | None:
    """A model with a budget can't be asked to think behind calls whose answer does not begin with thinking: of another
    model, or sent short. The API refuses that until the next answer
    (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking); those that decide themselves may.
    """
    level = request.thinking
    free = level in (None, "off") or is_adaptive(model)
    return level if free or turns.begins_with_thinking else None


def _head(options: MessagesOptions) -> bytes:
    told = {"anthropic_version": VERTEX_VERSION} if options.vertex else {"model": options.tag.model}
    return encode(told)[:-1]


def _thinks(thinking: dict[str, Any]) -> bool:
    """The API takes no temperature beside thinking."""
    return bool(thinking) and thinking["thinking"]["type"] != "disabled"


def _mark(options: MessagesOptions) -> bytes:
    if options.cache == "long" and options.long_ttl:
        return b',"cache_control":{"type":"ephemeral","ttl":"1h"}}'
    return b',"cache_control":{"type":"ephemeral"}}'


def _turns(request: ModelRequest, options: MessagesOptions) -> Turns:
    turns = request.memo.get(options.key)
    if not isinstance(turns, Turns):
        turns = request.memo[options.key] = Turns(options.tag, options.foreign)
    turns.feed(request.messages)
    return turns


def _system(layers: Sequence[SystemBlock], cache: Cache, mark: bytes) -> bytes:
    told = [layer for layer in layers if layer.text.strip()]
    if len(told) == 1 and not told[0].cache and cache == "none":
        return encode(told[0].text)
    marked = max((index for index, layer in enumerate(told) if layer.cache), default=-1)
    blocks = []
    for index, layer in enumerate(told):
        block = encode({"type": "text", "text": layer.text})
        blocks.append(block[:-1] + mark if index == marked else block)
    return b"[" + b",".join(blocks) + b"]"


_encoded_tools: WeakKeyDictionary[ToolSpec, bytes] = WeakKeyDictionary()


def _tools(request: ModelRequest) -> bytes:
    known = request.memo.get("messages-tools")
    if known is None or known[0] != request.tools:
        known = (request.tools, b"[" + b",".join(map(_tool, request.tools)) + b"]")
        request.memo["messages-tools"] = known
    encoded: bytes = known[1]
    return encoded


def _tool(tool: ToolSpec) -> bytes:
    found = _encoded_tools.get(tool)
    if found is None:
        told = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
        found = encode({key: value for key, value in told.items() if value != ""})
        _encoded_tools[tool] = found
    return found
