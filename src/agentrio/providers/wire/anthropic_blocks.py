"""Content blocks of a Messages response while they arrive, and the neutral parts that they become.

A block is kept as the server began it, with its deltas beside it. ``text``, ``thinking``, ``redacted_thinking`` and
``tool_use`` have a neutral form; every other type (server tools and their results, compaction, whatever comes next) is
kept verbatim, because it must go back unchanged.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from agentrio.domain.parts import Part, RawBlock, Text, Thinking, ToolCall
from agentrio.providers.base import PartDelta

from .anthropic_frames import CitationsDelta, InputDelta, SignatureDelta, TextDelta, ThinkingDelta
from .common import string
from .growing import Growing
from .json import encode_text, parse_arguments, scrub

Kind: TypeAlias = Literal["text", "thinking", "input", "redacted", "raw"]

_KINDS: dict[str, Kind] = {
    "text": "text",
    "thinking": "thinking",
    "tool_use": "input",
    "redacted_thinking": "redacted",
}
_TEXT_FIELD = {"text": "text", "thinking": "thinking"}  # of the block; a call's text is its input
_DELTA_FIELD = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
_DELTA_KIND = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "input"}


class Block(Growing):
    """One block of the response."""

    __slots__ = ("closed", "grown", "json", "start", "touched")

    def __init__(self, part: int, json: bytes, start: dict[str, Any]) -> None:
        kind: Kind = _KINDS.get(string(start.get("type")), "raw")
        super().__init__(part, kind, string(start.get("name")) if kind == "input" else "")
        self.json: bytes = json
        self.start: dict[str, Any] = start
        self.touched: bool = False  # whether deltas have changed what was kept verbatim
        self.closed: bool = False
        self.grown: dict[str, list[str]] = {}  # fields of a block kept verbatim that deltas add text to

    def opening(self) -> PartDelta | None:
        """The text that the block began with."""
        field = _TEXT_FIELD.get(self.kind)
        return self.add(string(self.start.get(field))) if field else None

    def apply(self, delta: object) -> PartDelta | None:
        """A delta other than more of the block's own text."""
        match delta:
            case SignatureDelta(signature=signature):
                self.start["signature"] = signature
            case CitationsDelta(citation=citation):
                if not isinstance(self.start.get("citations"), list):
                    self.start["citations"] = []
                self.start["citations"].append(citation)
            case InputDelta(partial_json=text) if self.kind == "raw":
                self.pieces.append(text)
            case TextDelta() | ThinkingDelta() if self.kind == "raw":
                self._append({"text": delta.text} if isinstance(delta, TextDelta) else {"thinking": delta.thinking})
            case _:  # nothing to keep
                pass
        self.touched = True
        return None

    def apply_loosely(self, fields: dict[str, Any]) -> PartDelta | None:
        """A delta that is of no known type, or not of its type's form."""
        kind = fields.get("type")
        text = fields.get(_DELTA_FIELD.get(kind, "")) if isinstance(kind, str) else None
        if isinstance(text, str) and self.kind == _DELTA_KIND.get(str(kind)):
            return self.add_unmended(text)
        if self.kind == "raw":
            self._append({key: scrub(value, strip_nul=False) for key, value in fields.items() if key != "type"})
        return None

    def _append(self, fields: dict[str, Any]) -> None:
        """What a delta of a block that is kept verbatim adds: texts grow (as in ``compaction_delta``), others stay."""
        self.touched = True
        for key, value in fields.items():
            if key == "partial_json" and isinstance(value, str):
                self.pieces.append(value)
            elif isinstance(value, str):
                self.grown.setdefault(key, [string(self.start.get(key))]).append(value)
            elif value is not None:
                self.grown.pop(key, None)
                self.start[key] = value

    def close(self) -> PartDelta | None:
        """The block is complete: the last of its text."""
        self.closed = True
        if self.held:
            return self.flush()
        if self.kind == "input" and not self.length and self.start.get("input"):
            return self.add(encode_text(self.start["input"]))
        return None

    def finished(self) -> Part:
        """The whole block."""
        text = self.text()
        match self.kind:
            case "text":
                return Text(text, self._raw({**self.start, "text": text}, "type", "text"))
            case "thinking":
                return self._thinking(text)
            case "redacted":
                return Thinking("", string(self.start.get("data")), True, self._raw(self.start, "type", "data"))
            case "input":
                return self._call(text)
            case _:
                return self._raw_block(text)

    def partial(self) -> Part | None:
        """What may be kept of the block if nothing more comes."""
        if self.closed or self.kind in ("text", "thinking", "redacted"):
            return self.finished()
        return None

    def _thinking(self, text: str) -> Thinking:
        whole = {**self.start, "thinking": text}
        signature = string(self.start.get("signature"))
        return Thinking(text, signature or None, raw=self._raw(whole, "type", "thinking", "signature"))

    def _call(self, text: str) -> ToolCall:
        given = self.start.get("input")
        if not text.strip():
            text = encode_text(given) if given else self.placeholder or text
        arguments = parse_arguments(text)
        whole = {**self.start, "input": {} if arguments is None else arguments}
        return ToolCall(
            "",
            string(self.start.get("id")),
            self.name,
            text,
            arguments,
            self._raw(whole, "type", "id", "name", "input"),
        )

    def _raw_block(self, text: str) -> RawBlock:
        kind = string(self.start.get("type"))
        if not self.touched:
            return RawBlock(kind, self.json.decode())
        whole = self.start | {key: "".join(pieces) for key, pieces in self.grown.items()}
        if text.strip() and parse_arguments(text) is not None:
            whole["input"] = _verbatim(text)
        return RawBlock(kind, encode_text(whole))

    def _raw(self, block: dict[str, Any], *told: str) -> str | None:
        """The block as JSON, where it says more than the keys that its part tells."""
        if all(key in told or value is None or value == [] for key, value in block.items()):
            return None
        return encode_text(block)


def _verbatim(text: str) -> Any:
    """The text itself where it is JSON to the letter, else its value."""
    try:
        msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return parse_arguments(text)
    return msgspec.Raw(text.encode())
