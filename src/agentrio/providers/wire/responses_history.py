"""The conversation as ``input`` items of the Responses wire, encoded once:
https://platform.openai.com/docs/api-reference/responses/create.

What the same model wrote goes back as it came: reasoning items to the byte, encrypted content included, other items of
the server's own too, texts and calls in their items with id and phase. Of another model, readable reasoning is labelled
text. We keep no conversation at the server (``store: false``), so everything is sent each time.

Two rules of the server are held here. A reasoning item is refused without the item that came of it, so it is sent only
before one that the server made too: not at the end of what a stop left behind, and not before a text that was
rewritten. And one that the server did not encrypt is looked for in its store, where it is not, so such a one goes only
if it carries its text itself (open models' servers).

The wire has no mark for a failed call; its output says so in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, assert_never

import attrs
import msgspec

from agentrio.domain.handoff import ForeignThinking, for_model, only_paused
from agentrio.domain.messages import Message, ModelTag, memoised
from agentrio.domain.parts import File, Image, Part, RawBlock, Text, Thinking, ToolCall, ToolResult

from .call_ids import CallIds
from .common import GO_ON, call_name, string
from .files import told_as_text
from .json import add_item, encode, says
from .openai_calls import arguments_text, error_text
from .responses_items import CALLS, TEXT_KEYS

CLIENT_CALLS = ("apply_patch_call", "computer_call", "local_shell_call", "shell_call")
"""Calls of tools that a client runs, and that are none of ours. The server refuses one without its output, and an
output without its call.
"""
OUTPUT = "_output"  # how the types of what they gave end
OUTPUTS = {"custom_tool_call": "custom_tool_call_output"}  # by the type of the call
PAGE = "input_text"


@attrs.frozen
class Target:
    """Whom the items are for: the model, what it takes, and what becomes of other models' reasoning."""

    tag: ModelTag
    images: bool = True
    files: bool = True
    foreign: ForeignThinking = "label"


class Items:
    """Encoded items of a history that grows. A history that does not continue the last one starts over."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._restart()

    def _restart(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._ids = CallIds(self._target.tag)
        self._outputs: dict[str, str] = {}  # by our id of a call, where the type is not the usual one
        self._met: set[str] = set()  # the server's ids of its items
        self._pieces: list[bytes] = []  # with the commas between them, ready to be joined
        self._last: Message | None = None  # the last message that left something

    def feed(self, messages: tuple[Message, ...]) -> None:
        """The whole history so far, normalised."""
        done = len(self._seen)
        if messages[:done] != self._seen:  # the same objects compare at C speed
            self._restart()
            done = 0
        for message in messages[done:]:
            if fragment := self._fragment(message):
                add_item(self._pieces, fragment)
                self._last = message
        self._seen = messages

    def pieces(self) -> list[bytes]:
        """All items, to be joined. Behind an answer at the end the user asks for the rest of it."""
        last = self._last
        if last is None or last.role != "assistant" or last.calls or only_paused(self._seen[-1], self._target.tag):
            return self._pieces
        return [*self._pieces, b",", encode({"role": "user", "content": GO_ON})]

    def _fragment(self, message: Message) -> bytes:
        """A message's items, kept with it. The wire's ids are part of the key: they depend on what came before."""
        target = self._target
        told = for_model(message, target.tag, images=target.images, files=target.files, thinking=target.foreign)
        used = tuple(self._names(told))
        ids, items = memoised(told, ("responses", target, used), lambda it: _encoded(it, target.tag, dict(used)))
        if len(ids) > len({*ids} - self._met):
            items = b",".join(_once(_items(told, target.tag, dict(used)), {*self._met}))
        self._met.update(ids)
        return items

    def _names(self, message: Message) -> Iterator[tuple[str, tuple[str, str]]]:
        """Each call's id on the wire and the type of its output, by our id."""
        for part in message.parts:
            if isinstance(part, ToolCall):
                if message.model == self._target.tag and (output := OUTPUTS.get(_call_type(part))):
                    self._outputs[part.id] = output
                yield part.id, (self._ids.of_call(part, message.model), "")
            elif isinstance(part, ToolResult):
                output = self._outputs.get(part.call_id, "function_call_output")
                yield part.call_id, (self._ids.of_result(part), output)


Names = dict[str, tuple[str, str]]


def _call_type(call: ToolCall) -> str:
    return "function_call" if call.raw is None else str(msgspec.json.decode(call.raw).get("type"))


class _Item(msgspec.Struct):
    id: Any = None
    type: Any = None


_read_item = msgspec.json.Decoder(_Item).decode


def _encoded(message: Message, tag: ModelTag, names: Names) -> tuple[tuple[str, ...], bytes]:
    """A message's items, and the ids of those that the server made."""
    items = [*_items(message, tag, names)]
    told = (string(_read_item(item).id) for item in items) if message.model == tag else ()
    return tuple(filter(None, told)), b",".join(items)


def _once(items: Iterable[bytes], met: set[str]) -> Iterator[bytes]:
    """Each id once: servers that say an item twice refuse it. A message, or a call, goes without; others don't."""
    for item in items:
        read = _read_item(item)
        id = string(read.id)
        if id and id in met:
            if read.type not in ("message", *CALLS):
                continue
            item = encode({key: value for key, value in msgspec.json.decode(item).items() if key != "id"})
        met.add(id)
        yield item


def _items(message: Message, tag: ModelTag, names: Names) -> Iterable[bytes]:
    match message.role:
        case "user":
            content = _content(message.parts)
            return [encode({"role": "user", "content": content})] if content else []
        case "tool":
            return [
                encode(_output(part, *names[part.call_id])) for part in message.parts if isinstance(part, ToolResult)
            ]
        case "assistant":
            return _answer(message.parts, message.model == tag, names)
        case _:
            assert_never(message.role)


def _answer(parts: Iterable[Part], own: bool, names: Names) -> list[bytes]:
    """The items of an answer. Reasoning waits for what came of it."""
    out: list[bytes] = []
    waiting: list[bytes] = []
    texts: list[Text] = []
    parts = tuple(parts)
    alone = _alone(parts) if own else frozenset()
    for part in (*parts, None):
        if isinstance(part, Text) and (not texts or _is_of(texts[0], part)):
            texts.append(part)
            continue
        if texts:
            _put(out, waiting, _message(texts), texts[0].raw is not None)
            texts = []
        match part:
            case Text():
                texts = [part]
            case Thinking(raw=str(raw)) if own and _can_return(raw):
                waiting.append(raw.encode("utf-8", "replace"))
            case RawBlock(json=json) if own and part not in alone:
                _put(out, waiting, json.encode("utf-8", "replace"), True)
            case ToolCall():
                _put(out, waiting, _call(part, names[part.id][0]), part.raw is not None)
            case _:
                pass
    return out


def _alone(parts: Sequence[Part]) -> Set[RawBlock]:
    """Calls of a client's tools without an output, and outputs without a call."""
    names = {
        part: (part.kind.removesuffix(OUTPUT), _call_id(part))
        for part in parts
        if isinstance(part, RawBlock) and part.kind.removesuffix(OUTPUT) in CLIENT_CALLS
    }
    met = {(name, part.kind) for part, name in names.items()}
    return {part for part, name in names.items() if not {(name, name[0]), (name, name[0] + OUTPUT)} <= met}


def _call_id(item: RawBlock) -> str:
    return string(msgspec.json.decode(item.json).get("call_id"))


def _put(out: list[bytes], waiting: list[bytes], item: bytes, by_server: bool) -> None:
    """An item, and before it the reasoning that it came of."""
    if by_server:
        out += waiting
    waiting.clear()
    if item:
        out.append(item)


def _can_return(raw: str) -> bool:
    item = msgspec.json.decode(raw)
    return bool(item.get("encrypted_content") or item.get("content"))


def _is_of(first: Text, other: Text) -> bool:
    """Whether two texts are content of one message."""
    if first.raw is None or other.raw is None:
        return first.raw is other.raw
    return _head(first.raw) == _head(other.raw)


def _head(raw: str) -> dict[str, Any]:
    return {key: value for key, value in msgspec.json.decode(raw).items() if key != "content"}


def _message(texts: list[Text]) -> bytes:
    """One message: in its item, or as plain text where no server made it. llama.cpp needs its type said."""
    raws = [text.raw for text in texts if text.raw is not None]
    if not raws:
        text = "".join(text.text for text in texts)
        return encode({"type": "message", "role": "assistant", "content": text}) if says(text) else b""
    content = [msgspec.json.decode(raw)["content"][0] for raw in raws]
    told = [piece | {TEXT_KEYS[piece["type"]]: text.text} for piece, text in zip(content, texts, strict=True)]
    return encode(msgspec.json.decode(raws[0]) | {"content": told})


def _call(call: ToolCall, id: str) -> bytes:
    item = {"type": "function_call"} if call.raw is None else msgspec.json.decode(call.raw)
    key = CALLS.get(item["type"], "arguments")
    text = call.arguments["input"] if key == "input" and call.arguments else arguments_text(call)
    return encode(item | {"call_id": id, "name": call_name(call.name), key: text})


def _output(result: ToolResult, id: str, kind: str) -> dict[str, Any]:
    output = _content(result.parts) if result.status == "succeeded" else error_text(result)
    return {"type": kind, "call_id": id, "output": output}


def _content(parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """A text where there is nothing else: some servers take no list. Texts of nothing but space say nothing."""
    told = [_told(part) for part in parts if isinstance(part, (Text, Image, File))]
    if all(block["type"] == PAGE for block in told):
        return "\n\n".join(block["text"] for block in told if says(block["text"]))
    return [block for block in told if block["type"] != PAGE or says(block["text"])]


def _told(part: Text | Image | File) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": PAGE, "text": text}
        case Image(data=data, media_type=media_type):
            return {"type": "input_image", "image_url": f"data:{media_type};base64,{data}", "detail": "auto"}
        case File():
            return _file(part)
        case _:
            assert_never(part)


def _file(file: File) -> dict[str, Any]:
    """Text as it is, everywhere; other files as they are, under a name that the server asks for."""
    if file.media_type.startswith("text/"):
        return {"type": PAGE, "text": told_as_text(file)}
    name = file.name or f"file.{file.media_type.rpartition('/')[2]}"
    return {"type": "input_file", "filename": name, "file_data": f"data:{file.media_type};base64,{file.data}"}
