"""Parts of a Chat Completions message while they arrive, and the neutral parts that they become.

A message has one text, one reasoning and a list of calls; only where ``content`` is a list do text and reasoning
alternate. What must go back to the same model stands in a part's ``raw``, as JSON:

- reasoning: ``{"field": "reasoning_content"}``, the field it came in, and ``"details"``, OpenRouter's
  ``reasoning_details`` with their signatures (https://openrouter.ai/docs/use-cases/reasoning-tokens);
- a call: the fields beside id, name and arguments, such as Gemini's ``extra_content`` with its thought signature
  (https://ai.google.dev/gemini-api/docs/thought-signatures);
- a refusal: ``{"type": "refusal"}``.
"""

from __future__ import annotations

from typing import Any

from agentrio.domain.parts import Part, Text, Thinking, ToolCall

from .common import string
from .growing import Growing
from .json import encode_text, parse_arguments

REFUSAL = '{"type":"refusal"}'

_DETAIL_TEXT = {"reasoning.text": "text", "reasoning.summary": "summary"}
_SAYS = ("text", "summary", "data", "signature")


class TextPart(Growing):
    """The answer, or a refusal."""

    __slots__ = ("refusal",)

    def __init__(self, part: int, refusal: bool = False) -> None:
        super().__init__(part, "text")
        self.refusal: bool = refusal

    def finished(self) -> Part:
        """The whole text."""
        return Text(self.text(), REFUSAL if self.refusal else None)

    def partial(self) -> Part | None:
        """What has come of it."""
        return self.finished()


class ThinkingPart(Growing):
    """Reasoning. ``field`` is where its text came in; empty while there was none."""

    __slots__ = ("details", "field")

    def __init__(self, part: int, field: str) -> None:
        super().__init__(part, "thinking")
        self.field: str = field
        self.details: list[dict[str, Any]] = []

    def finished(self) -> Part:
        """The whole reasoning; hidden reasoning is what the server gave in its place."""
        text = self.text()
        raw = encode_text({"field": self.field} | ({"details": self.details} if self.details else {}))
        data = next(filter(None, (string(detail.get("data")) for detail in self.details)), "")
        if not text and data:
            return Thinking("", data, True, raw)
        signatures = (string(detail.get("signature")) for detail in reversed(self.details))
        return Thinking(text, next(filter(None, signatures), None), raw=raw)

    def partial(self) -> Part | None:
        """Its text alone: details that are not whole prove nothing to the server."""
        text = self.text()
        if not text:
            return None
        return Thinking(text, raw=None if self.details else encode_text({"field": self.field}))


class CallPart(Growing):
    """A tool call; ``extra`` is what else the server said of it."""

    __slots__ = ("extra", "id", "index")

    def __init__(self, part: int, index: int | None) -> None:
        super().__init__(part, "input")
        self.index: int | None = index
        self.id: str = ""
        self.extra: dict[str, Any] = {}

    def whole(self) -> str:
        """The arguments so far, a placeholder among them."""
        return self.text() or self.placeholder

    def finished(self) -> Part:
        """The whole call."""
        text = self.whole()
        raw = encode_text(self.extra) if self.extra else None
        return ToolCall("", self.id, self.name, text, parse_arguments(text), raw)

    def partial(self) -> Part | None:
        """Nothing: no mark within the stream says that a call is complete."""
        return None


AnyPart = TextPart | ThinkingPart | CallPart


class Calls:
    """Which call a piece belongs to: by its index, where servers give one, else by id and name.

    Some servers give no index (Mistral), index 0 to all calls, an id to the first piece alone or to each, the name in
    each piece, or another id in each piece of one call.
    """

    def __init__(self) -> None:
        self._all: list[CallPart] = []
        self._latest: dict[int, CallPart] = {}

    def find(self, index: int | None, id: str, name: str, arguments: object) -> CallPart | None:
        """The call that this piece continues; None where it begins one."""
        latest = (self._all[-1] if self._all else None) if index is None else self._latest.get(index)
        if latest is None:
            return None
        if id and latest.id and id != latest.id:
            same = next((call for call in self._all if call.id == id and call.index == index), None)
            return same or (None if name else latest)
        return None if _begins(latest, id, name, arguments) else latest

    def add(self, call: CallPart) -> None:
        """A call that began."""
        self._all.append(call)
        if call.index is not None:
            self._latest[call.index] = call


def _begins(latest: CallPart, id: str, name: str, arguments: object) -> bool:
    """Whether a name begins another call, where no id tells: not if it is said again, or more of a name."""
    if not name or not latest.name:
        return False
    if name != latest.name:
        loose = not latest.id if id else latest.index is None
        return loose or bool(latest.length or latest.placeholder)
    text = latest.text()
    return isinstance(arguments, str) and arguments[:1] == "{" and bool(text) and parse_arguments(text) is not None


def name_piece(call: CallPart, name: str) -> None:
    """The name, or more of it; servers that repeat it in each piece mean one name."""
    if name and name != call.name and not call.length:
        call.name += name


def merge_details(details: list[dict[str, Any]], more: list[Any]) -> str:
    """Add what came to the details, pieces of one text joined; returns the text that they add.

    A detail in which nothing is said is left out: servers open with an empty one.
    """
    added: list[str] = []
    for detail in more:
        if not isinstance(detail, dict) or not any(detail.get(key) for key in _SAYS):
            continue
        kind = detail.get("type")
        key = _DETAIL_TEXT.get(kind) if isinstance(kind, str) else None
        if key is not None:
            added.append(string(detail.get(key)))
        last = details[-1] if details else {}
        if key is not None and (last.get("type"), last.get("index")) == (kind, detail.get("index")):
            _join(last, detail, key)
        else:
            details.append(dict(detail))
    return "".join(added)


def _join(detail: dict[str, Any], more: dict[str, Any], key: str) -> None:
    for name, value in more.items():
        if name == key:
            detail[key] = string(detail.get(key)) + string(value)
        elif value not in (None, ""):
            detail[name] = value
