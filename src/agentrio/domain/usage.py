"""Tokens and money."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

from .errors import DeclarationError

MILLION = 1_000_000  # tokens: what prices are for


def _check_cost(owner: object, field: object, cost: Any) -> None:
    """Refuse what can't be added up: NaN, infinity, an exponent that no sum has room for, a float."""
    if cost is not None and not (isinstance(cost, Decimal) and cost.is_finite() and -(10**15) < cost < 10**15):
        raise ValueError(f"Usage.cost is {str(cost)[:40]}; it must be a Decimal that is an amount of US dollars.")


@attrs.frozen
class Usage:
    """Tokens of one or more model calls.

    ``input`` is the uncached part on every wire; ``cache_read`` and ``cache_write`` are the rest of the prompt.
    ``reasoning`` is part of ``output``, never beside it. What the server did not tell is not in them.

    ``cost`` is in US dollars, None where it is not known. Of a sum it is None as soon as it is not known of some of the
    tokens: a part of what was spent must not look like all of it.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: Decimal | None = attrs.field(default=None, validator=_check_cost)

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
            _add_cost(self, other),
        )


def _add_cost(one: Usage, other: Usage) -> Decimal | None:
    if one.cost is None:
        return None if one.total else other.cost
    if other.cost is None:
        return None if other.total else one.cost
    return one.cost + other.cost


NO_USAGE = Usage()


def _dollars(value: Decimal | int | str | None) -> Any:
    """Money as Decimal. What can't be money is left for the validator, which knows the field's name."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return value
    try:
        return Decimal(value)
    except InvalidOperation:
        return value


def _check_dollars(owner: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None and attribute.default is None:
        return
    if not isinstance(value, Decimal) or not value.is_finite() or value < 0:
        mend = f"; write {str(value)!r}" if isinstance(value, float) and 0 <= value < float("inf") else ""
        raise DeclarationError(
            f"Prices.{attribute.name} is {value!r}; it must be US dollars for a million tokens: a Decimal, a whole "
            f"number or a text, and not negative{mend}."
        )


@attrs.frozen(kw_only=True)
class Prices:
    """What a model's tokens cost, in US dollars for a million of them: ``Prices(input="0.25", output=2)``.

    ``cache_read`` and ``cache_write`` are for the parts of the prompt that a cache was read for or written with; where
    they are None these cost as much as other input. Floats are refused: ``0.1`` is not a tenth.

    Raises:
        DeclarationError: a price is no number, negative, or a float.
    """

    input: Decimal = attrs.field(converter=_dollars, validator=_check_dollars)
    output: Decimal = attrs.field(converter=_dollars, validator=_check_dollars)
    cache_read: Decimal | None = attrs.field(default=None, converter=_dollars, validator=_check_dollars)
    cache_write: Decimal | None = attrs.field(default=None, converter=_dollars, validator=_check_dollars)

    def cost(self, usage: Usage) -> Decimal:
        """What these tokens cost, in US dollars."""
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        prompt = usage.input * self.input + usage.cache_read * read + usage.cache_write * written
        return (prompt + usage.output * self.output) / MILLION
