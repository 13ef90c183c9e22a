"""What the three that are compared have in common: each does exactly this, and no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

MODEL = "bench-1"
MAX_TOKENS = 1024
PARALLEL = 64  # calls of one response that run at once

Seen: TypeAlias = Callable[[str], None]
ToolFunction: TypeAlias = Callable[..., Awaitable[str]]
History: TypeAlias = Sequence[tuple[str, str]]
"""Roles and texts, ``user`` and ``assistant`` in turn."""


class Conversation(Protocol):
    """One session."""

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """Send a message, run the tools that are asked for, return the answer.

        ``seen`` is called with each piece of text; ``pause`` is how many seconds the reader takes for one.
        """


class Client(Protocol):
    """Connections that all sessions share."""

    def session(self, history: History = ()) -> AbstractAsyncContextManager[Conversation]:
        """A new session."""


Open: TypeAlias = Callable[[str, Sequence[ToolFunction]], AbstractAsyncContextManager[Client]]


def schema(tool: ToolFunction) -> dict[str, object]:
    """What the model is told of a tool."""
    return {
        "name": tool.__name__,
        "description": tool.__doc__ or "",
        "input_schema": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
            "additionalProperties": False,
        },
    }
