"""Messages, and the memo that travels with one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Literal, TypeAlias, TypeVar

import attrs

from .parts import Part, Text, ToolCall

Role: TypeAlias = Literal["user", "assistant", "tool"]

T = TypeVar("T")


@attrs.frozen
class ModelTag:
    """Which model wrote a message: blocks kept verbatim go back to exactly this one."""

    provider: str
    api: str
    model: str


@attrs.frozen(weakref_slot=False)  # there are many, and nobody refers to one weakly
class Message:
    """One message of a conversation: immutable and JSON-safe.

    ``model`` is set on assistant messages. ``interrupted`` marks a partial message that a stop left behind.
    """

    id: str
    role: Role
    parts: tuple[Part, ...]
    model: ModelTag | None = None
    interrupted: bool = False
    _memo: tuple[Any, ...] = attrs.field(default=(), init=False, eq=False, repr=False)

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order the model gave them."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


def user_message(id: str, content: str | Part | tuple[Part, ...]) -> Message:
    """A user message of text, of one part, or of parts."""
    if isinstance(content, str):
        return Message(id, "user", (Text(content),))
    return Message(id, "user", content if isinstance(content, tuple) else (content,))


def forget_memo(message: Message) -> None:
    """Drop what was derived from the message; it is worked out again when it is asked for."""
    object.__setattr__(message, "_memo", ())


def memoised(message: Message, key: Hashable, make: Callable[[Message], T]) -> T:
    """What ``make`` says of the message, worked out once in the message's life.

    A round must not walk the whole history again (encoding it, counting it): messages never change, so what was
    derived from one is kept with it and dies with it.
    """
    memo = message._memo  # key, value, key, value: seldom more than one pair, and a dict is four times as large
    for at in range(0, len(memo), 2):
        if memo[at] == key:
            known: T = memo[at + 1]
            return known
    made = make(message)
    object.__setattr__(message, "_memo", (*message._memo, key, made))
    return made
