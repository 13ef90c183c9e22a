"""Odd values that servers send, read without a fault."""

from __future__ import annotations

import math

from agentrio.providers.base import PartDelta


def count(value: object) -> int:
    """A number of tokens; what is none, is nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0
    return max(0, int(value))


def string(value: object) -> str:
    """A text; what is none, is empty."""
    return value if isinstance(value, str) else ""


def put(delta: PartDelta | None, out: list[PartDelta]) -> None:
    """Append, unless there is nothing."""
    if delta is not None:
        out.append(delta)
