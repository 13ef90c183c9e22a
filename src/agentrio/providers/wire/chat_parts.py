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

from .assembling import MAX_PARTS, endless
from .common import string
from .growing import Growing, check_name
from .json import encode_text, parse_arguments
from .objects import ObjectScan

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


class Details:
    """OpenRouter's ``reasoning_details``, pieces of one text joined. The last one's text waits in pieces."""

    __slots__ = ("_all", "_pieces")

    def __init__(self) -> None:
        self._all: list[dict[str, Any]] = []
        self._pieces: list[str] = []

    @property
    def empty(self) -> bool:
        """Whether nothing was said yet."""
        return not self._all

    def add(self, more: list[Any]) -> str:
        """Add what came; returns the text in it. A detail in which nothing is said is left out: servers open with one.

        Raises:
            ProviderError: there are more of them than of any answer's parts (``invalid_response``).
        """
        added: list[str] = []
        for detail in more:
            if not isinstance(detail, dict) or not any(detail.get(key) for key in _SAYS):
                continue
            kind = detail.get("type")
            key = _DETAIL_TEXT.get(kind) if isinstance(kind, str) else None
            if key is not None:
                added.append(string(detail.get(key)))
            self._put(detail, key)
        return "".join(added)

    def _put(self, detail: dict[str, Any], key: str | None) -> None:
        last = self._all[-1] if self._all else {}
        if key is None or (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index")):
            self._join()
            if len(self._all) >= MAX_PARTS:
                raise endless()
            self._all.append(dict(detail))
            return
        if not self._pieces:
            self._pieces.append(string(last.get(key)))
        self._pieces.append(string(detail.get(key)))
        last |= {name: value for name, value in detail.items() if name != key and value not in (None, "")}

    def _join(self) -> None:
        if self._pieces:
            last = self._all[-1]
            last[_DETAIL_TEXT[last["type"]]] = "".join(self._pieces)
            self._pieces.clear()

    def all(self) -> list[dict[str, Any]]:
        """The details so far."""
        self._join()
        return self._all


class ThinkingPart(Growing):
    """Reasoning. ``field`` is where its text came in; empty while there was none."""

    __slots__ = ("details", "field")

    def __init__(self, part: int, field: str) -> None:
        super().__init__(part, "thinking")
        self.field: str = field
        self.details: Details = Details()

    def finished(self) -> Part:
        """The whole reasoning; hidden reasoning is what the server gave in its place."""
        text, details = self.text(), self.details.all()
        raw = encode_text({"field": self.field} | ({"details": details} if details else {}))
        data = next(filter(None, (string(detail.get("data")) for detail in details)), "")
        if not text and data:
            return Thinking("", data, True, raw)
        signatures = (string(detail.get("signature")) for detail in reversed(details))
        return Thinking(text, next(filter(None, signatures), None), raw=raw)

    def partial(self) -> Part | None:
        """Its text alone: details that are not whole prove nothing to the server."""
        text = self.text()
        if not text:
            return None
        return Thinking(text, raw=None if not self.details.empty else encode_text({"field": self.field}))


class CallPart(Growing):
    """A tool call; ``extra`` is what else the server said of it."""

    __slots__ = ("_scan", "_scanned", "extra", "id", "index")

    def __init__(self, part: int, index: int | None) -> None:
        super().__init__(part, "input")
        self.index: int | None = index
        self.id: str = ""
        self.extra: dict[str, Any] = {}
        self._scan = ObjectScan()
        self._scanned = 0  # pieces that the scan has seen

    def holds_object(self) -> bool:
        """Whether the arguments so far are a whole object. However often this is asked, each piece is read once."""
        for piece in self.pieces[self._scanned :]:
            self._scan.feed(piece)
        self._scanned = len(self.pieces)
        return self._scan.holds(self.text)

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
        self._last: CallPart | None = None
        self._latest: dict[int, CallPart] = {}
        self._named: dict[tuple[int | None, str], CallPart] = {}  # by index and id

    def find(self, index: int | None, id: str, name: str, arguments: object) -> CallPart | None:
        """The call that this piece continues; None where it begins one."""
        latest = self._last if index is None else self._latest.get(index)
        if latest is None:
            return None
        if id and latest.id and id != latest.id:
            return self._named.get((index, id)) or (None if name else latest)
        return None if _begins(latest, id, name, arguments) else latest

    def add(self, call: CallPart) -> None:
        """A call that began."""
        self._last = call
        if call.index is not None:
            self._latest[call.index] = call

    def identify(self, call: CallPart, id: str) -> None:
        """The id of a call, which may come late; the first one counts."""
        if id and not call.id:
            call.id = id
            self._named.setdefault((call.index, id), call)


def _begins(latest: CallPart, id: str, name: str, arguments: object) -> bool:
    """Whether a name begins another call, where no id tells: not if it is said again, or more of a name."""
    if not name or not latest.name:
        return False
    if name != latest.name:
        loose = not latest.id if id else latest.index is None
        return loose or bool(latest.length or latest.placeholder)
    return isinstance(arguments, str) and arguments[:1] == "{" and latest.holds_object()


def name_piece(call: CallPart, name: str) -> None:
    """The name, or more of it; servers that repeat it in each piece mean one name."""
    if name and name != call.name and not call.length:
        call.name = check_name(call.name + name)
