"""Items of a Responses answer while they arrive, and the neutral parts that they become.

A ``message`` becomes a text per content part, a ``reasoning`` item one ``Thinking``, a ``function_call`` or
``custom_tool_call`` one ``ToolCall``; every other item (searches, code, images, whatever comes next) is kept verbatim,
because it must go back unchanged. When an item is done the server gives it whole, and that is what counts: what was
streamed of it may differ (the deltas of shell calls lack line ends, LM Studio streams no arguments at all).

What of an item is not in its part goes into the part's ``raw``: for texts and calls the item without the text itself,
for reasoning the item as the server sent it, encrypted content included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from agentrio.domain.parts import Part, RawBlock, Text, Thinking, ToolCall
from agentrio.providers.base import PartDelta

from .assembling import MAX_BODY, endless
from .common import string
from .growing import Growing
from .json import encode, encode_text, parse_arguments

Kind: TypeAlias = Literal["text", "thinking", "input", "raw"]

SEAM = "\n\n"  # between two parts of a summary
TEXT_KEYS = {"output_text": "text", "refusal": "refusal"}  # where a message's content has its text, by type
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}  # where a call has its arguments, by type


class Slot(Growing):
    """What becomes one part. ``final`` is its text as the done item has it."""

    __slots__ = ("final", "index", "item")

    def __init__(self, item: Item, part: int, kind: Kind, name: str = "") -> None:
        super().__init__(part, kind, name)
        self.item: Item = item
        self.index: int = 0  # of the item's content
        self.final: str | None = None

    def settle(self, text: str) -> PartDelta | None:
        """The done item's text. What is missing of it is given out; what differs is not, the whole part is."""
        self.held = ""
        streamed = self.text()
        self.final = text
        if text.startswith(streamed):
            return self.add(text[len(streamed) :])
        return None

    def whole(self) -> str:
        """The text: the done item's, or as much as was streamed."""
        return self.text() or self.placeholder if self.final is None else self.final

    def finished(self) -> Part:
        """The whole part."""
        return self.item.finished(self)

    def partial(self) -> Part | None:
        """What may be kept of it if nothing more comes."""
        return self.item.finished(self) if self.item.done or self.kind in ("text", "thinking") else None


class Item:
    """One item of the output. ``json`` and ``fields`` are the item as it was last given whole."""

    kind: Kind = "raw"

    def __init__(self, json: bytes, fields: dict[str, Any]) -> None:
        self.done: bool = False
        self.slots: dict[int, Slot] = {}  # by the index of the content, in the order of their coming
        self._tell(json, fields)

    def _tell(self, json: bytes, fields: dict[str, Any]) -> None:
        self.json = json
        self.fields = fields
        self.id: str = string(fields.get("id"))
        self.type: str = string(fields.get("type"))

    def open(self, index: int, part: int) -> Slot:
        """A slot for one of its contents, which becomes the part of that number."""
        slot = self.slots[index] = self._slot(part)
        slot.index = index
        return slot

    def _slot(self, part: int) -> Slot:
        return Slot(self, part, self.kind)

    def finish(self, json: bytes, fields: dict[str, Any]) -> None:
        """The item is done, and this is all of it. What it is does not change any more, whatever is said now."""
        self.done = True
        if fields.get("type") != self.type:
            fields = {**fields, "type": self.type}
            json = encode(fields)
        self._tell(json, fields)

    def texts(self) -> Mapping[int, str]:
        """The texts that the done item has, by the index of the content."""
        return {0: ""}

    def refuses(self) -> bool:
        """Whether any of it is a refusal."""
        return False

    def finished(self, slot: Slot) -> Part:
        """The part that a slot has become."""
        return RawBlock(self.type, self.json.decode())


class MessageItem(Item):
    """A message: its ``phase`` and id go back with each of its texts."""

    kind: Kind = "text"

    def texts(self) -> Mapping[int, str]:
        """Of content without a text, none."""
        return {index: string(found.get(_text_key(found))) for index, found in enumerate(self._content)}

    def refuses(self) -> bool:
        """Whether any of it is a refusal."""
        return any(found.get("type") == "refusal" for found in self._content)

    def _tell(self, json: bytes, fields: dict[str, Any]) -> None:
        super()._tell(json, fields)
        content = fields.get("content")
        self._content = [found for found in content if isinstance(found, dict)] if isinstance(content, list) else []
        if len(self._content) > 1:  # each goes back with all that the message says beside
            beside = len(encode({**fields, "content": None}))
            if beside * len(self._content) > MAX_BODY:
                raise endless()

    def finished(self, slot: Slot) -> Part:
        """A text; content of an unknown type stays as it is."""
        index, content = slot.index, self._content
        if not self.done or not 0 <= index < len(content):
            return Text(slot.whole())
        found = content[index]
        key = _text_key(found)
        if not key:
            return RawBlock(string(found.get("type")), encode_text({**self.fields, "content": [found]}))
        rest = {name: value for name, value in found.items() if name != key}
        return Text(slot.whole(), encode_text({**self.fields, "content": [rest]}))


def _text_key(content: Mapping[str, Any]) -> str:
    return TEXT_KEYS.get(string(content.get("type")), "")


class ReasoningItem(Item):
    """Reasoning: its summary, on some servers its own text, or only what is encrypted."""

    kind: Kind = "thinking"

    def __init__(self, json: bytes, fields: dict[str, Any]) -> None:
        super().__init__(json, fields)
        self._place: object = None

    def seam(self, place: object) -> str:
        """What stands before text of this place (of the summary, or of the content), if the last was of another."""
        seam = SEAM if place != self._place and self.slots and self.slots[0].length else ""
        self._place = place
        return seam

    def texts(self) -> Mapping[int, str]:
        """All in one: the summary, then the text."""
        told = [self.fields.get("summary"), self.fields.get("content")]
        found = [piece for pieces in told if isinstance(pieces, list) for piece in pieces]
        texts = [string(piece.get("text")) for piece in found if isinstance(piece, dict)]
        return {0: SEAM.join(filter(None, texts))}

    def finished(self, slot: Slot) -> Part:
        """With the item, once it is done: half of one proves nothing."""
        return Thinking(slot.whole(), raw=self.json.decode() if self.done else None)


class CallItem(Item):
    """A call of a function."""

    kind: Kind = "input"
    key = "arguments"

    def _slot(self, part: int) -> Slot:
        return Slot(self, part, self.kind, string(self.fields.get("name")))

    def texts(self) -> Mapping[int, str]:
        """The arguments; some servers send the object itself."""
        found = self.fields.get(self.key)
        return {0: encode_text(found) if isinstance(found, dict) else string(found)}

    def finished(self, slot: Slot) -> Part:
        """The call; of one that is not done, what was said when it was added."""
        text = slot.whole()
        rest = {name: value for name, value in self.fields.items() if name != self.key}
        name = string(self.fields.get("name"))
        return ToolCall("", string(self.fields.get("call_id")), name, text, parse_arguments(text), encode_text(rest))


class CustomCallItem(CallItem):
    """A call whose input is free text: in our terms, of a tool with one argument, ``input``."""

    key = "input"

    def _slot(self, part: int) -> Slot:
        return CustomSlot(self, part, self.kind, string(self.fields.get("name")))

    def texts(self) -> Mapping[int, str]:
        """The input as JSON."""
        return {0: encode_text({"input": string(self.fields.get("input"))})}


class CustomSlot(Slot):
    """Puts free text into JSON as it comes."""

    def add(self, text: str) -> PartDelta | None:
        """More of the free text; once it is settled, of the JSON."""
        if self.final is not None or not text:
            return super().add(text)
        opening = "" if self.length else '{"input":"'
        return super().add(opening + encode(text)[1:-1].decode())


ITEMS: dict[str, type[Item]] = {
    "message": MessageItem,
    "reasoning": ReasoningItem,
    "function_call": CallItem,
    "custom_tool_call": CustomCallItem,
}


def new_item(json: bytes, fields: dict[str, Any]) -> Item:
    """An item as it was added."""
    return ITEMS.get(string(fields.get("type")), Item)(json, fields)
