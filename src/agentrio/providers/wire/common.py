"""Odd values that servers send, read without a fault."""

from __future__ import annotations

from agentrio.providers.base import PartDelta

MOST_TOKENS = 2**53 - 1  # the largest whole number that every reader of JSON holds exactly


def count(value: object) -> int:
    """A number of tokens; what is none, is nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # NaN is not itself
        return 0
    return int(max(0, min(value, MOST_TOKENS)))


def string(value: object) -> str:
    """A text; what is none, is empty."""
    return value if isinstance(value, str) else ""


def put(delta: PartDelta | None, out: list[PartDelta]) -> None:
    """Append, unless there is nothing."""
    if delta is not None:
        out.append(delta)
