"""Whether a text that grows is a whole JSON object by now: asked after each piece, each piece read once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from .json import parse_arguments

_State: TypeAlias = Literal["before", "within", "behind", "none"]

_MARK = re.compile(r'[\[\]{}"]')
_QUOTED = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)  # of a string, what stands before its end


class ObjectScan:
    """Brackets are counted as the text comes, and it is parsed once at most: when the outermost one has closed."""

    __slots__ = ("_depth", "_escaped", "_quoted", "_state", "_verdict")

    def __init__(self) -> None:
        self._state: _State = "before"  # the object; then "within", "behind", or "none": this will never be one
        self._depth = 0
        self._quoted = False
        self._escaped = False  # whether a backslash ended the last piece
        self._verdict: bool | None = None

    def feed(self, text: str) -> None:
        """The next piece."""
        at = 0
        if self._state == "before" and (begun := text.lstrip()):
            self._state = "within" if begun[0] == "{" else "none"
        while self._state == "within" and at < len(text):
            at = self._skip_quoted(text, at) if self._quoted else self._to_next_mark(text, at)
        if self._state == "behind" and text[at:].strip():
            self._state = "none"

    def _skip_quoted(self, text: str, at: int) -> int:
        found = _QUOTED.match(text, at + self._escaped)
        assert found is not None  # it takes nothing at all, too
        end = found.end()
        self._escaped = text[end:] == "\\"
        self._quoted = end == len(text) or self._escaped
        return end + 1

    def _to_next_mark(self, text: str, at: int) -> int:
        found = _MARK.search(text, at)
        if found is None:
            return len(text)
        mark = found[0]
        if mark == '"':
            self._quoted = True
        else:
            self._depth += 1 if mark in "{[" else -1
            if not self._depth:
                self._state = "behind"
        return found.end()

    def holds(self, text: Callable[[], str]) -> bool:
        """Whether it is one; ``text`` gives all that was fed."""
        if self._state != "behind":
            return False
        if self._verdict is None:
            self._verdict = parse_arguments(text()) is not None
        return self._verdict
