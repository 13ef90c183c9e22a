"""Tokens and money."""

from __future__ import annotations

from decimal import Decimal

import attrs


@attrs.frozen
class Usage:
    """Tokens of one or more model calls.

    ``input`` is the uncached part on every wire; ``cache_read`` and ``cache_write`` are the rest of the prompt.
    ``reasoning`` is part of ``output``, never beside it. ``cost`` is in US dollars, None where no price is known.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: Decimal | None = None

    @property
    def total(self) -> int:
        """All tokens: prompt, cached or not, and output."""
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        if self is NO_USAGE:
            return other
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            _add_cost(self.cost, other.cost),
        )


def _add_cost(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other


NO_USAGE = Usage()
