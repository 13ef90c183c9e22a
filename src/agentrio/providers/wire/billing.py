"""What an answer says of its own price: the cost itself, on some servers, and what a list of prices has to know."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias, assert_never

import attrs

TICKS = 10**10  # of xAI's, to a dollar

CostStyle: TypeAlias = Literal["none", "number", "parts", "ticks"]
"""How a server tells the cost of an answer within its usage:

- ``none``: it does not;
- ``number``: ``cost`` in US dollars; beside it ``cost_details.upstream_inference_cost``, which the owner of a key of
  their own (``is_byok``) pays elsewhere;
- ``parts``: ``cost.total_cost`` in US dollars;
- ``ticks``: ``cost_in_usd_ticks``.
"""


@attrs.frozen
class Bill:
    """What was told beside the tokens.

    ``cost`` is in US dollars, None where the server does not tell it. ``hour_writes`` are those of the tokens written
    to a cache that are kept for an hour. ``context`` is what else the price depends on, such as ``service_tier``.
    """

    cost: Decimal | None = None
    hour_writes: int = 0
    context: Mapping[str, str] = attrs.field(factory=dict)


def told_cost(usage: Mapping[str, Any], style: CostStyle) -> Decimal | None:
    """The cost in US dollars that a server tells, None where it tells none that can be one."""
    match style:
        case "none":
            return None
        case "number":
            return _number_told(usage)
        case "parts":
            parts = usage.get("cost")
            return _amount(parts.get("total_cost")) if isinstance(parts, Mapping) else None
        case "ticks":
            ticks = _amount(usage.get("cost_in_usd_ticks"))
            return None if ticks is None else ticks / TICKS
        case _:
            assert_never(style)


def tier_context(tier: str | None) -> dict[str, str]:
    """The tier that a request was served at, where it was told: it may differ from what was asked for."""
    return {"service_tier": tier} if tier else {}


def _number_told(usage: Mapping[str, Any]) -> Decimal | None:
    cost = _amount(usage.get("cost"))
    if cost is None or usage.get("is_byok") is not True:
        return cost
    details = usage.get("cost_details")
    upstream = _amount(details.get("upstream_inference_cost")) if isinstance(details, Mapping) else None
    return None if upstream is None else cost + upstream


def _amount(value: object) -> Decimal | None:
    """A number of JSON by the digits it was written with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    amount = Decimal(str(value))
    return amount if amount.is_finite() and amount >= 0 else None
