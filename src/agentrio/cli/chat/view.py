"""How a chat is shown: to people as text, to programs as JSON lines.

What the model says goes to stdout, everything else to stderr: the answer can be piped on, and the rest still be read.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from decimal import Decimal
from typing import Protocol, TextIO

import attrs

from agentrio.domain import events as ev
from agentrio.domain.codec import dumps
from agentrio.domain.parts import Text, ToolCall, ToolResult
from agentrio.domain.status import RunResult
from agentrio.domain.usage import Usage

LEAST = Decimal("0.0001")  # dollars that are shown; what is less is not nothing
SHOWN = 100  # characters of a call's arguments, and of its result
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
UNSAFE_JSON = re.compile(r"[\x7f-\x9f\u2028\u2029]")  # JSON has them raw; terminals and readers of lines obey
DIM, RED, PLAIN = "\x1b[2m", "\x1b[31m", "\x1b[0m"
TO_END_OF_LINE = "\x1b[K"


def tame(text: str) -> str:
    """The text as a terminal may be given it: what it would obey is replaced, for a model must not drive it."""
    return CONTROLS.sub("\ufffd", text).replace("\r", "")  # a line may end with CR and LF, and be cut between them


class View(Protocol):
    """Shows a chat."""

    def event(self, event: ev.Event) -> None:
        """The session tells an event."""

    def note(self, text: str) -> None:
        """The chat itself says something."""

    def close(self) -> None:
        """The chat is over, whatever was in the middle of being told."""


@attrs.define(eq=False)
class JsonView:
    """Each event as one line, as the codec writes it; what the chat says goes to stderr."""

    _answer: TextIO = attrs.field(factory=lambda: sys.stdout)

    def event(self, event: ev.Event) -> None:
        print(UNSAFE_JSON.sub(_escaped, dumps(event, ev.Event)), file=self._answer, flush=True)

    def note(self, text: str) -> None:
        print(tame(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


@attrs.define(eq=False)
class TextView:
    """The answer as it streams; thinking folded into its length; calls, their progress and the usage as lines."""

    show_thinking: bool = False
    _answer: TextIO = attrs.field(factory=lambda: sys.stdout)
    _notes: TextIO = attrs.field(factory=lambda: sys.stderr)
    _line_open: bool = False
    """Whether the answer's last line has no end yet."""
    _thought: int = 0
    """Characters of thinking whose line is open."""
    _calls: dict[str, str] = attrs.field(factory=dict)

    def event(self, event: ev.Event) -> None:
        match event:
            case ev.TextDelta():
                self._say(event.text)
            case ev.ThinkingDelta():
                self._think(event.text)
            case ev.MessageCompleted():
                self._end_lines()
            case ev.MessageDiscarded():
                self.note(f"[void: {event.why}]")
            case ev.Retrying():
                self.note(f"[{event.message.rstrip('.')}; {told_retry(event)}]")
            case ev.Notice():
                self.note(f"[{event.text}]")
            case ev.Compacted():
                self.note(f"[the conversation outgrew its limit: what is old is sent {event.chars} characters shorter]")
            case ev.RunEnded():
                self._ended(event.result)
            case _:
                self._call_event(event)

    def note(self, text: str) -> None:
        self._line(text, DIM)

    def close(self) -> None:
        """End an open line, for what comes next in the terminal or the file."""
        with suppress(OSError):  # it is told where the chat itself writes
            self._end_lines()

    def _call_event(self, event: ev.Event) -> None:
        match event:
            case ev.CallProposed(call=call):
                self._calls[call.id] = call.name
                self.note(f"[call {told_call(call)}]")
            case ev.CallProgress(call_id=call_id):
                share = "" if event.done is None else f" {event.done:g}"
                share += "" if event.total is None else f" of {event.total:g}"
                self.note(f"[{self._calls.get(call_id, 'call')}: {event.text}{share}]")
            case ev.CallFinished(result=result):
                self.note(f"[{result.name}: {told_result(result)}]")
            case _:
                pass

    def _ended(self, result: RunResult[object]) -> None:
        self._end_lines()
        if result.status == "cancelled":
            self.note("[stopped; what was said is kept]" if result.text else "[stopped]")
        elif result.status != "succeeded":
            why = "" if result.failure is None else f": {result.failure.message}"
            self._line(f"agentrio: {result.status}{why}", RED)
        if result.usage.total:
            self.note(f"[{told_usage(result.usage)}]")

    def _say(self, text: str) -> None:
        if not text:
            return
        self._end_thinking()
        shown = tame(text) if self._answer.isatty() else text
        print(shown, end="", file=self._answer, flush=True)
        self._line_open = not text.endswith("\n")

    def _think(self, text: str) -> None:
        if not self._thought:
            self._end_lines()
        self._thought += len(text)
        if self.show_thinking:
            self._write(text, DIM)
        elif self._is_live:
            told = f"[thinking: {self._thought} characters]"[
                : _width(self._notes) - 1
            ]  # a line of two is not drawn over
            self._write(f"\r{told}{TO_END_OF_LINE}", DIM, safe=True)

    def _end_lines(self) -> None:
        self._end_thinking()
        if self._line_open:
            print(file=self._answer, flush=True)
            self._line_open = False

    def _end_thinking(self) -> None:
        thought, self._thought = self._thought, 0
        if not thought:
            return
        if self.show_thinking or self._is_live:
            self._write("\n", "", safe=True)
        else:
            self._write(f"[thinking: {thought} characters]\n", "", safe=True)

    def _line(self, text: str, style: str) -> None:
        self._end_lines()
        self._write(text, style)
        self._write("\n", "", safe=True)

    def _write(self, text: str, style: str, *, safe: bool = False) -> None:
        shown = text if safe or not self._notes.isatty() else tame(text)
        styled = f"{style}{shown}{PLAIN}" if style and self._is_live and not os.environ.get("NO_COLOR") else shown
        print(styled, end="", file=self._notes, flush=True)

    @property
    def _is_live(self) -> bool:
        """Whether a line can be drawn over."""
        return self._notes.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def _width(terminal: TextIO) -> int:
    """Its columns; 80 where it does not know them."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns or 80
    except OSError:
        return 80


def told_retry(event: ev.Retrying) -> str:
    """What comes of a failed attempt."""
    if event.kind == "fallback":
        return "asking the next model"
    return f"trying again in {event.delay:.1f} s" if event.delay else "trying again"


def told_call(call: ToolCall) -> str:
    """A call in one line."""
    return f"{call.name} {_short(call.arguments_json or '{}')}"


def told_result(result: ToolResult) -> str:
    """A call's result in one line."""
    if result.error is not None:
        return f"{result.status}, {_short(result.error.message)}"
    text = "".join(part.text for part in result.parts if isinstance(part, Text))
    others = sum(not isinstance(part, Text) for part in result.parts)
    return _short(text) + (f" and {others} attachments" if others else "")


def told_usage(usage: Usage) -> str:
    """Tokens, and money where a price is known, in one line."""
    parts = [f"{usage.input} tokens in", f"{usage.output} out"]
    if usage.reasoning:
        parts[-1] += f" ({usage.reasoning} of them thinking)"
    if usage.cache_read:
        parts.append(f"{usage.cache_read} read from the cache")
    if usage.cache_write:
        parts.append(f"{usage.cache_write} written to the cache")
    if usage.cost is not None:
        parts.append("less than $0.0001" if 0 < usage.cost < LEAST else f"${usage.cost:.4f}")
    return ", ".join(parts)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}... ({len(text)} characters)"
