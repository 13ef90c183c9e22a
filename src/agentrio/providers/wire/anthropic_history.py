"""The conversation as turns of the Messages wire, encoded once.

Neighbours of one role are one turn: tool results and the user's text that follows them, or an answer that was continued
after a pause. What was written by the same model goes back as it was: signed reasoning, redacted blocks and blocks of
the server's own, in their places. Of another model, readable reasoning is labelled text, and such blocks are left out.

Rules of the API that are held here: the first turn is the user's, and so is the last, unless the model goes on with
what it had begun; an answer does not end in reasoning; a call of a server's tool has its result unless the answer is
still to be continued; and a result has its call before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any, Literal, TypeAlias, assert_never

import attrs
import msgspec

from agentrio.domain.handoff import ForeignThinking, for_model, only_paused
from agentrio.domain.messages import Message, ModelTag, memoised
from agentrio.domain.parts import File, Image, Part, RawBlock, Text, Thinking, ToolCall, ToolResult

from .call_ids import CallIds
from .common import GO_ON, call_name, string
from .files import file_text, left_out
from .json import encode, encode_text, says, trimmed

WireRole: TypeAlias = Literal["user", "assistant"]

_OPEN: dict[WireRole, bytes] = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
}
_CLOSE = b"]}"
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
SERVER_RESULT = "_tool_result"  # how the types of their results end
_BEFORE = _OPEN["user"] + encode({"type": "text", "text": "[What was said before is not shown.]"}) + b"]},"
_GO_ON = encode({"type": "text", "text": GO_ON})
_UNFINISHED = Text("[A tool of the server was called, and gave no result.]")


class Turns:
    """Encoded turns of a history that grows. A history that does not continue the last one starts over."""

    def __init__(self, tag: ModelTag, foreign: ForeignThinking) -> None:
        self._tag = tag
        self._foreign: ForeignThinking = foreign
        self._restart()

    def _restart(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._ids = CallIds(self._tag)
        self._pieces: list[bytes] = []  # all turns but the last, ready to be joined
        self._role: WireRole | None = None  # of the last turn
        self._turn: list[bytes] = []  # its fragments
        self._told: list[Message] = []  # the messages that left them
        self._answer: list[Message] = []  # those of the last answer that is over
        self._called: set[str] = set()  # ids of the server's own blocks in all turns but the last

    def feed(self, messages: tuple[Message, ...]) -> None:
        """The whole history so far."""
        done = len(self._seen)
        if messages[:done] != self._seen:  # the same objects compare at C speed
            self._restart()
            done = 0
        for message in messages[done:]:
            self._add(message)
        self._seen = messages

    def _add(self, message: Message) -> None:
        told = for_model(message, self._tag, thinking=self._foreign)
        fragment = _fragment(told, self._tag, self._ids)
        if not fragment:
            return
        role: WireRole = "assistant" if told.role == "assistant" else "user"
        if role != self._role:
            self._close(role)
        self._turn.append(fragment)
        self._told.append(told)

    def _close(self, role: WireRole) -> None:
        """The turn is over, and one of the other role begins."""
        if self._role is not None:
            self._pieces += (_OPEN[self._role], b",".join(self._settle()), b"]},")
        elif role == "assistant":
            self._pieces.append(_BEFORE)
        self._role = role
        self._turn = []
        self._told = []

    def _settle(self) -> list[bytes]:
        """The turn's fragments, without calls of the server's tools that have no result, and results without a call."""
        told, turn = self._left(_unanswered(self._told) | _uncalled(self._told, self._called))
        if self._role == "assistant":
            self._answer = told
        self._called.update(_field(part, "id") for it in told for part in it.parts if isinstance(part, RawBlock))
        return turn

    def _left(self, dropped: Set[RawBlock]) -> tuple[list[Message], list[bytes]]:
        """The turn's messages and fragments without these blocks; where nothing is left, a word of that."""
        if not dropped:
            return self._told, self._turn
        left = [_without(it, dropped) for it in self._told]
        found = [(it, fragment) for it in left if (fragment := _encoded(it, self._tag, self._ids))]
        if not found:
            only = attrs.evolve(self._told[-1], parts=(_UNFINISHED,))
            found = [(only, _encoded(only, self._tag, self._ids))]
        return [it for it, _ in found], [fragment for _, fragment in found]

    @property
    def begins_with_thinking(self) -> bool:
        """Whether the last answer begins with reasoning that goes back to its model, or has no calls."""
        answer = self._told if self._role == "assistant" else self._answer
        if not any(it.calls for it in answer):
            return True
        parts = ((part, it) for it in answer for part in it.parts)
        first = next(part for part, it in parts if _block(part, it.model == self._tag, it.model, self._ids))
        return isinstance(first, Thinking)

    def pieces(self, mark: bytes | None, *, begun: bool) -> list[bytes]:
        """What is to be joined. ``mark`` ends a last user turn's last block.

        A last answer loses trailing space; or, unless ``begun`` says that the model goes on with one, the user asks for
        the rest of it. One that paused is always sent as it is: calls of the server's tools may still get their
        results.
        """
        if self._role is None:
            return []
        over = self._role == "assistant" and not begun and not only_paused(self._seen[-1], self._tag)
        dropped = _uncalled(self._told, self._called)
        told, fragments = self._left(dropped | _unanswered(self._told) if over else dropped)
        turn = b",".join(fragments)
        if over:
            return [*self._pieces, _OPEN["assistant"], turn, b"]},", _OPEN["user"], _GO_ON, _CLOSE]
        if self._role == "user":
            turn = turn if mark is None else turn[:-1] + mark
        elif (ended := _trimmed(told[-1])) is not told[-1]:
            turn = b",".join((*fragments[:-1], _encoded(ended, self._tag, self._ids)))
        return [*self._pieces, _OPEN[self._role], turn, _CLOSE]


def _without(message: Message, dropped: Set[RawBlock]) -> Message:
    kept = tuple(part for part in message.parts if not (isinstance(part, RawBlock) and part in dropped))
    return attrs.evolve(message, parts=kept)


def _trimmed(message: Message) -> Message:
    """The API refuses an assistant's message at the end whose text ends in space; texts of nothing else are not sent.

    Such a message is the same one where nothing is to be cut.
    """
    parts = list(message.parts)
    while isinstance(last := parts[-1], Thinking) or (isinstance(last, Text) and not says(last.text)):
        parts.pop()  # as _encoded does
    if not isinstance(last, Text) or last.text == trimmed(last.text):
        return message
    return attrs.evolve(message, parts=(*parts[:-1], Text(trimmed(last.text))))


def _unanswered(messages: Sequence[Message]) -> Set[RawBlock]:
    """Calls of the server's tools without a result: of an answer that was stopped in the middle of one.

    Where there are calls of ours too, the server's may wait for their results (programmatic tool calling).
    """
    if any(it.calls for it in messages):
        return frozenset()
    blocks = [part for it in messages for part in it.parts if isinstance(part, RawBlock)]
    answered = {_field(block, "tool_use_id") for block in blocks if block.kind.endswith(SERVER_RESULT)}
    return {block for block in blocks if block.kind in SERVER_CALLS and _field(block, "id") not in answered}


def _uncalled(messages: Sequence[Message], called: Set[str]) -> Set[RawBlock]:
    """Results of the server's tools whose call is not before them: that half of a paused answer was shortened."""
    met: set[str] = set()
    found: set[RawBlock] = set()
    for part in (part for it in messages for part in it.parts if isinstance(part, RawBlock)):
        if part.kind.endswith(SERVER_RESULT) and (id := _field(part, "tool_use_id")) not in met and id not in called:
            found.add(part)
        met.add(_field(part, "id"))
    return found


def _field(block: RawBlock, key: str) -> str:
    return string(msgspec.json.decode(block.json).get(key))


def _fragment(message: Message, tag: ModelTag, ids: CallIds) -> bytes:
    """A message's blocks, kept with it. The wire's ids are part of the key: they depend on what came before."""
    used = tuple(_wire_ids(message, ids))
    key = (tag, used) if used else tag  # most messages hold no call, and share this key
    return memoised(message, key, lambda message: _encoded(message, tag, ids))


def _wire_ids(message: Message, ids: CallIds) -> Iterable[str]:
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield ids.of_call(part, message.model)
        elif isinstance(part, ToolResult):
            yield ids.of_result(part)


def _encoded(message: Message, tag: ModelTag, ids: CallIds) -> bytes:
    own = message.model == tag
    blocks = [(part, block) for part in message.parts if (block := _block(part, own, message.model, ids))]
    while blocks and isinstance(blocks[-1][0], Thinking):
        blocks.pop()
    return b",".join(block for _, block in blocks)


def _block(part: Part, own: bool, tag: ModelTag | None, ids: CallIds) -> bytes:
    match part:
        case Text() | Image() | File():
            return _content(part, own)
        case Thinking():
            return _thinking(part) if own else b""
        case RawBlock(json=json):
            return json.encode("utf-8", "replace") if own else b""
        case ToolCall():
            return _tool_use(part, own, ids.of_call(part, tag))
        case ToolResult():
            return encode(_tool_result(part, ids.of_result(part)))
    assert_never(part)


def _content(part: Text | Image | File, own: bool) -> bytes:
    if isinstance(part, Text) and part.raw is not None and own and says(part.text):
        return part.raw.encode("utf-8", "replace")
    told = _told(part)
    return b"" if told is None else encode(told)


def _thinking(part: Thinking) -> bytes:
    if part.raw is not None:
        return part.raw.encode("utf-8", "replace")
    if not part.signature:  # never finished, so it proves nothing to the server
        return b""
    if part.redacted:
        return encode({"type": "redacted_thinking", "data": part.signature})
    return encode({"type": "thinking", "thinking": part.text, "signature": part.signature})


def _tool_use(call: ToolCall, own: bool, id: str) -> bytes:
    arguments = call.arguments if call.arguments is not None else {}
    block: dict[str, Any] = {"type": "tool_use", "id": id, "name": call_name(call.name), "input": arguments}
    if call.raw is not None and own:
        block = {**msgspec.json.decode(call.raw), "id": id, "name": call_name(call.name), "input": arguments}
    return encode(block)


def _tool_result(result: ToolResult, id: str) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": id}
    if result.status == "succeeded":
        block["content"] = [told for part in result.parts if (told := _told(part)) is not None]
        return block
    category, message = ("tool_failed", "") if result.error is None else (result.error.category, result.error.message)
    block["content"] = [{"type": "text", "text": encode_text({"error": category, "message": message})}]
    block["is_error"] = True
    return block


def _told(part: Text | Image | File) -> dict[str, Any] | None:
    """A block of content; None for a text of nothing but space, which the API refuses."""
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if says(text) else None
        case Image(data=data, media_type=media_type):
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        case File():
            return _document(part)
    assert_never(part)


def _document(file: File) -> dict[str, Any]:
    """PDF as it is, text as text; the API takes no other documents, so of others the model is told the name."""
    source = _source(file)
    if source is None:
        return {"type": "text", "text": left_out(file)}
    return {"type": "document", "source": source} | ({"title": file.name} if file.name else {})


def _source(file: File) -> dict[str, str] | None:
    if file.media_type == "application/pdf":
        return {"type": "base64", "media_type": file.media_type, "data": file.data}
    if not file.media_type.startswith("text/"):
        return None
    text = file_text(file)
    return None if text is None else {"type": "text", "media_type": "text/plain", "data": text}
