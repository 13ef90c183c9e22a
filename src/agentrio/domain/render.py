"""From state to the request that a provider sends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from .history import Normaliser, block_of, normalise_history
from .messages import Message, forget_memo
from .parts import Part, RawBlock, Text, Thinking, ToolCall, ToolResult
from .session import Session
from .state import SessionState

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]


@attrs.frozen
class SystemBlock:
    """One layer of the prompt, resolved. ``cache`` marks the end of the prefix worth caching."""

    text: str
    cache: bool = False


@attrs.frozen(eq=False)
class ToolSpec:
    """What the model is told of a tool. ``schema`` is JSON Schema with an object on top, and is not to be changed.

    ``chars`` is what it takes of a request, the schema as compact JSON.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    chars: int = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        schema = json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))
        object.__setattr__(self, "chars", len(self.name) + len(self.description) + len(schema))


@attrs.frozen
class RequestInputs:
    """What is gathered fresh for each round and is no part of the state."""

    system: tuple[SystemBlock, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    thinking: ThinkingLevel | None = None
    temperature: float | None = None


@attrs.frozen
class ModelRequest:
    """A request in neutral terms; ``messages`` are normalised. Absent options are left to the provider.

    ``memo`` lives as long as the session: a provider may keep what it has encoded of earlier rounds there.
    """

    session_id: str
    messages: tuple[Message, ...]
    system: tuple[SystemBlock, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    thinking: ThinkingLevel | None = None
    temperature: float | None = None
    memo: dict[str, Any] = attrs.field(factory=dict, eq=False, repr=False)


NOTHING_SHORT: tuple[int, tuple[str, ...]] = (0, ())
KEPT = 200  # characters of a text that is shortened
SHORT = 64  # messages; so few are encoded again in 0.2 ms, and their encoded form is a third of an idle session


class RenderMemo:
    """What a session keeps from round to round so that no round walks its whole history again."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.normaliser: Normaliser = Normaliser()
        self.provider: dict[str, Any] = {}
        self.head: tuple[Message, ...] = ()  # what is sent short in part, as it is stored, and as it is sent
        self.sent: tuple[Message, ...] = ()
        self.short: tuple[int, tuple[str, ...]] = (0, ())  # what of it the session says is sent short

    def rest(self, history: Sequence[Message]) -> None:
        """The session has nothing to do: keep only what takes long to make again."""
        if len(history) <= SHORT:
            self._start()
            for message in history:
                forget_memo(message)


def render(state: SessionState, inputs: RequestInputs, memo: RenderMemo | None = None) -> ModelRequest:
    """The next request: the conversation so far, normalised, with the round's inputs. A memo only makes it faster."""
    history = _history(state.session, memo)
    messages = normalise_history(history) if memo is None else memo.normaliser.feed(history)
    return ModelRequest(
        state.session.id,
        messages,
        inputs.system,
        inputs.tools,
        inputs.max_tokens,
        inputs.thinking,
        inputs.temperature,
        {} if memo is None else memo.provider,
    )


def _history(session: Session, memo: RenderMemo | None) -> tuple[Message, ...]:
    short = session.compacted, session.shortened
    if short == NOTHING_SHORT:
        return session.messages
    memo = RenderMemo() if memo is None else memo
    end = len(memo.head) if short == memo.short else _end_of_short(session)
    head, rest = session.messages[:end], session.messages[end:]
    if short != memo.short or head != memo.head:  # identical objects compare at C speed
        memo.short, memo.head, memo.sent = short, head, tuple(_sent_short(session, head))
    return memo.sent + rest


def _end_of_short(session: Session) -> int:
    ids = frozenset(session.shortened)
    shortened = (place + 1 for place, message in enumerate(session.messages) if message.id in ids)
    return max(session.compacted, *shortened, 0)


def _sent_short(session: Session, head: Sequence[Message]) -> Iterable[Message]:
    ids = frozenset(session.shortened)
    for place, message in enumerate(head):
        if message.id in ids:
            yield shorten(message)
        else:
            yield _compact(message) if place < session.compacted else message


def _compact(message: Message) -> Message:
    """The message with its tool results replaced by their size, where that is shorter."""
    if message.role != "tool":
        return message
    return attrs.evolve(message, parts=tuple(map(_compact_result, message.parts)))


def _compact_result(part: Part) -> Part:
    if not isinstance(part, ToolResult):
        return part
    size = sum(_part_chars(item) for item in part.parts)
    mark = _mark(size)
    return part if size <= len(mark) else attrs.evolve(part, parts=(Text(mark),))


def _mark(size: int) -> str:
    return f"[compacted: {size} chars]"


def shorten(message: Message) -> Message:
    """Results as ``[compacted: N chars]``; an answer as the beginning of its texts, its calls with their size for
    arguments, and without its reasoning.

    Such an answer is no model's own any more: its blocks are not those that a signature proves.
    """
    if message.role != "assistant":
        return _compact(message)
    parts = [short for part in message.parts if (short := _shorten_part(part)) is not None]
    told = any(isinstance(part, ToolCall) or (isinstance(part, Text) and part.text) for part in parts)
    nothing = () if told else (Text(_mark(message_chars(message))),)
    return Message(message.id, "assistant", (*parts, *nothing), interrupted=message.interrupted)


def _shorten_part(part: Part) -> Part | None:
    match part:
        case Text(text=text):
            mark = f" {_mark(len(text))}"
            return Text(text if len(text) <= KEPT + len(mark) else text[:KEPT] + mark)
        case ToolCall(arguments_json=arguments):
            short = {"compacted": f"{len(arguments)} chars"}
            told = json.dumps(short)
            if len(arguments) <= len(told):
                return attrs.evolve(part, raw=None)
            return attrs.evolve(part, arguments_json=told, arguments=short, raw=None)
        case _:
            return None


@attrs.frozen
class Compaction:
    """What is sent short from here on: results in the first ``messages`` messages, and the ``shortened`` messages.

    ``chars`` is what that saves.
    """

    messages: int
    shortened: tuple[str, ...]
    chars: int


def compaction(session: Session, excess: int, spare: int = 0) -> Compaction | None:
    """What to send short so that ``excess`` characters are saved; None where nothing would do.

    Results go first, from the oldest. Beyond the excess they save ``spare`` characters, or what of them can be had:
    each compaction makes the server's cache of the prompt void, so the next one should be some rounds away. The latest
    round stays as it is, for its results are what the model is to answer. Where that is not enough, messages that alone
    take more than ``spare`` are shortened, or no request would ever be possible again: answers, and results that a
    message of the user has followed.
    """
    sent = [*_sent_short(session, session.messages)]
    latest = max((place for place, message in enumerate(sent) if message.role == "assistant"), default=0)
    end, saved = session.compacted, 0
    for place in range(session.compacted, latest):
        if saved >= excess + spare:
            break
        if sent[place].id in session.shortened:
            continue
        if shorter := _put_short(sent, place, _compact(sent[place])):
            end, saved = place + 1, saved + shorter
    shortened: list[str] = []
    for place, message in enumerate(sent):
        if saved >= excess:
            break
        if message_chars(message) <= spare or not _may_be_shortened(session, end, place):
            continue
        if shorter := _put_short(sent, place, shorten(message)):
            shortened.append(message.id)
            saved += shorter
    return Compaction(end, tuple(shortened), saved) if saved >= excess > 0 else None


def _put_short(sent: list[Message], place: int, short: Message) -> int:
    """By how many characters a request is shorter with this message in that place, where it then is; else 0.

    What is not sent at all, such as an answer of reasoning alone, saves nothing.
    """
    message = sent[place]
    if message_chars(short) >= message_chars(message):
        return 0
    block = block_of(sent, place)
    before = sum(map(message_chars, normalise_history(sent[block])))
    sent[place] = short
    saved = before - sum(map(message_chars, normalise_history(sent[block])))
    if saved <= 0:
        sent[place] = message
    return max(0, saved)


def _may_be_shortened(session: Session, compacted: int, place: int) -> bool:
    message = session.messages[place]
    if message.id in session.shortened:
        return False
    if message.role == "assistant":
        return True
    return place >= compacted and any(later.role == "user" for later in session.messages[place:])


def request_chars(request: ModelRequest) -> int:
    """The request's size in characters: prompt, history and tools with their schemas, without images and files."""
    return (
        sum(len(block.text) for block in request.system)
        + sum(tool.chars for tool in request.tools)
        + _history_chars(request)
    )


def _history_chars(request: ModelRequest) -> int:
    """Of a session's history only what came since its last request is counted."""
    seen, chars = request.memo.get("chars", ((), 0))
    done = len(seen)
    if request.messages[:done] != seen:  # identical objects compare at C speed
        done = chars = 0
    chars += sum(map(message_chars, request.messages[done:]))
    request.memo["chars"] = (request.messages, chars)
    return int(chars)


def message_chars(message: Message) -> int:
    """Characters of a message that a model would read."""
    return sum(_part_chars(part) for part in message.parts)


def _part_chars(part: object) -> int:
    match part:
        case Text(text=text) | Thinking(text=text):
            return len(text)
        case ToolCall(name=name, arguments_json=arguments):
            return len(name) + len(arguments)
        case ToolResult(parts=parts, error=error):
            told = 0 if error is None else len(error.category) + len(error.message)
            return told + sum(_part_chars(item) for item in parts)
        case RawBlock(json=json):
            return len(json)
        case _:  # images and files have limits of their own
            return 0
