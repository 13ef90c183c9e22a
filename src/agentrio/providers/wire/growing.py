"""A part whose text arrives in pieces: shared by the wires' assemblers.

Text is joined once, when the part is asked for. Two faults of servers are mended here: a surrogate pair that is cut
between two deltas, and a first ``{}`` of a call's arguments that real arguments follow.
"""

from __future__ import annotations

from typing import Any

from agentrio.domain.plain import unicode_text
from agentrio.providers.base import PartDelta, ProviderError

MAX_NAME = 1_000  # characters of a tool's name, which stands in each of its deltas; servers take 64 or 128


def check_name(name: str) -> str:
    """The name.

    Raises:
        ProviderError: it is longer than any name of a tool (``invalid_response``).
    """
    if len(name) > MAX_NAME:
        raise ProviderError(
            f"The server sent a tool's name of more than {MAX_NAME:,} characters; that is the limit.",
            code="invalid_response",
        )
    return name


class Growing:
    """One part: ``part`` is its place in the response, ``length`` the characters that were given out of it.

    Only a part of kind ``text``, ``thinking`` or ``input`` is added to. A name has a limit (``check_name``).
    """

    __slots__ = ("held", "kind", "length", "name", "part", "pieces", "placeholder")

    def __init__(self, part: int, kind: str, name: str = "") -> None:
        self.part: int = part
        self.kind: Any = kind  # a DeltaKind, or that of a part without text
        self.name: str = check_name(name)
        self.pieces: list[str] = []
        self.length: int = 0
        self.held: str = ""  # the first half of a surrogate pair whose other half may come with the next delta
        self.placeholder: str = ""  # a first "{}" of a call's arguments, which real ones replace

    def add(self, text: str) -> PartDelta | None:
        """More text."""
        if self.held:
            text, self.held = unicode_text(self.held + text), ""
        if not text:
            return None
        offset = self.length
        if not offset and text == "{}" and self.kind == "input":
            self.placeholder = text
            return None
        self.length = offset + len(text)
        self.pieces.append(text)
        return PartDelta(self.kind, self.part, offset, text, self.name)

    def add_unmended(self, text: str) -> PartDelta | None:
        """More text that may end in the first half of a surrogate pair."""
        text, self.held = self.held + text, ""
        held = text[-1:] if "\ud800" <= text[-1:] < "\udc00" else ""
        delta = self.add(unicode_text(text[: len(text) - len(held)]))
        self.held = held
        return delta

    def flush(self) -> PartDelta | None:
        """The half that was held back: no other half will come."""
        return self.add("") if self.held else None

    def text(self) -> str:
        """All of it so far."""
        return "".join(self.pieces) + unicode_text(self.held)
