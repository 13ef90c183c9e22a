"""What a response costs: as its server tells, by prices of your own, or by the list of the package genai-prices.

The list is loaded when a model that needs it is opened, in a thread, as importing it takes a quarter of a second. A
response is priced when it is asked for, so that no delta is dearer for it. A price that is not known for certain is
none: there is a name in the list for a server at its own address only, and a model must be listed there.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from agentrio.domain.errors import DeclarationError
from agentrio.domain.usage import Prices, Usage

from ._opening import begin
from .base import ModelResponse
from .wire.billing import Bill

GivenPrices: TypeAlias = Prices | Literal[False] | None
"""Prices of your own; False for none; None for those of the list."""


class Tariff(Protocol):
    """The prices of one opened model."""

    @property
    def lacks(self) -> str | None:
        """Why no response can be priced, and what to do; None where one may be."""
        ...

    def cost(self, usage: Usage, model: str, bill: Bill) -> Decimal | None:
        """What the tokens cost, in US dollars; None where it is not known. ``model`` is what the server says it ran."""
        ...


MOST_MONEY = 10**9  # US dollars for one response; a server that tells more tells nothing that could be added up


@attrs.frozen
class Seller:
    """Who is paid. ``list_name`` is the server's name in the list, empty where it has none there.

    ``tells`` says that its answers tell what they cost. ``model`` is the declared name, empty where that is a name of
    the customer's own, such as Azure's for a deployment.
    """

    owner: str
    name: str
    list_name: str
    model: str
    tells: bool = False


@attrs.frozen
class OwnPrices:
    """Prices that a declaration gives."""

    prices: Prices
    lacks: str | None = None

    def cost(self, usage: Usage, model: str, bill: Bill) -> Decimal | None:
        return self.prices.cost(usage)


@attrs.frozen
class NoPrices:
    """No prices, and why."""

    lacks: str | None = None

    def cost(self, usage: Usage, model: str, bill: Bill) -> Decimal | None:
        return None


@attrs.frozen(eq=False)
class ListedPrices:
    """Prices of the list, for one server. Of a model it knows the name that was answered, or the one asked for."""

    seller: Seller
    counted: Callable[..., Any]
    priced: Callable[..., Any]
    lacks: str | None = None

    def cost(self, usage: Usage, model: str, bill: Bill) -> Decimal | None:
        for name in dict.fromkeys(filter(None, (model, self.seller.model))):
            try:
                return self._listed(usage, name, bill)
            except Exception:  # it knows no such model (LookupError), or stumbles: no reason for a run to fail
                continue
        return None

    def _listed(self, usage: Usage, name: str, bill: Bill) -> Decimal:
        counted = self.counted(
            input_tokens=usage.input + usage.cache_read + usage.cache_write,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            cache_write_1h_tokens=min(usage.cache_write, bill.hour_writes),
            output_tokens=usage.output,
        )
        context = dict(bill.context)
        found = self.priced(counted, name, provider_id=self.seller.list_name, price_context=context)
        if found.model_price.input_mtok is None or found.model_price.output_mtok is None:
            raise LookupError(name)  # a model without prices of its own: the list would say that it costs nothing
        total: Decimal = found.total_price
        return total


def check_prices(owner: str, prices: object) -> None:
    """Refuse what are no prices.

    Raises:
        DeclarationError: naming what was given.
    """
    if prices is not None and prices is not False and not isinstance(prices, Prices):
        raise DeclarationError(
            f"{owner}.prices is {prices!r}; it must be Prices(input=..., output=...), False for none, or left out."
        )


async def open_tariff(given: GivenPrices, seller: Seller) -> Tariff:
    """The prices that count for a model."""
    if isinstance(given, Prices):
        return OwnPrices(given)
    if given is False or not seller.list_name:
        return NoPrices(_why_none(given, seller))
    return await begin(_load_list, seller)


def _why_none(given: GivenPrices, seller: Seller) -> str | None:
    if seller.tells:
        return None
    if given is False:
        return f"{seller.owner} was given prices=False; give Prices(input=..., output=...)"
    return (
        f"no list has the prices of {seller.model or 'the model'} at {seller.name}; give {seller.owner}(..., "
        "prices=Prices(input=..., output=...))"
    )


def _load_list(seller: Seller) -> Tariff:
    try:
        from genai_prices import Usage as Counted
        from genai_prices import calc_price
    except ImportError:
        return NoPrices(
            None
            if seller.tells
            else f"the list of prices is not installed: pip install 'agentrio[prices]', or give {seller.owner}(..., "
            "prices=Prices(input=..., output=...))"
        )
    return ListedPrices(seller, Counted, calc_price)


@attrs.define(eq=False)
class Pricing:
    """Prices one response as often as it is asked for: worked out anew only when more was told since."""

    tariff: Tariff
    _usage: Usage | None = None
    _cost: Decimal | None = None

    def priced(self, response: ModelResponse, bill: Bill) -> ModelResponse:
        """The response with its cost: as its server told, else by the prices. Without usage there is none."""
        usage = response.usage
        if bill.cost is None and not usage.total:
            return response
        if usage != self._usage:
            self._usage = usage
            cost = self.tariff.cost(usage, response.model, bill) if bill.cost is None else bill.cost
            self._cost = None if cost is None or cost >= MOST_MONEY else cost
        return response if self._cost is None else attrs.evolve(response, usage=attrs.evolve(usage, cost=self._cost))
