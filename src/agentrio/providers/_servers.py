"""Which server a model of an OpenAI wire is at, and our account there: shared by both wires."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import httpx2

from agentrio.domain.errors import DeclarationError
from agentrio.domain.limits import shown

from ._http import WallClock
from ._openai import OPENAI, Account, Server
from ._prices import Seller
from .presets import Preset, preset

if TYPE_CHECKING:
    from ._openai import OpenAIClient


def as_preset(value: Preset | str | None) -> Preset | None:
    """A preset of that name, or the one that was given.

    Raises:
        DeclarationError: no preset has that name, or it is none.
    """
    if value is None or isinstance(value, Preset):
        return value
    if isinstance(value, str):
        return preset(value)
    raise DeclarationError(f"preset is {shown(value)}; it must be a name such as 'groq', a Preset, or None.")


def preset_name(value: Preset | None) -> str:
    """How a preset stands in a model's ``repr``."""
    return repr(value and value.name)


def server_of(given: Preset | None, base_url: str | None, client: OpenAIClient | None) -> Preset:
    """The preset that counts: the given one, or what follows from the client and the base URL."""
    if given is not None:
        return given
    if "AsyncAzureOpenAI" in {cls.__name__ for cls in type(client).__mro__}:
        return preset("azure")
    if client is not None and not isinstance(client, httpx2.AsyncClient):
        base_url = str(getattr(client, "base_url", ""))  # what is no client is refused by ``check_account``
    return preset("openai" if base_url is None or is_openai(base_url) else "compatible")


def is_openai(base_url: str) -> bool:
    """Whether this is OpenAI itself."""
    return _split(base_url).hostname == _split(OPENAI.base_url).hostname


def _split(base_url: str | None) -> SplitResult:
    """Of what is no URL, nothing: it is refused where it is checked."""
    try:
        return urlsplit(base_url if isinstance(base_url, str) else "")
    except ValueError:
        return urlsplit("")


def seller_of(owner: str, server: Preset, model: str, base_url: str | None, client: OpenAIClient | None) -> Seller:
    """Who is paid for a model there: the server of the preset, if it is at its own address.

    A host that is not known may be anybody's, at any price; but where each customer has an address, the preset counts.
    """
    if client is not None and not isinstance(client, httpx2.AsyncClient):
        base_url = str(client.base_url)
    variable = server.base_url_variable
    address = base_url or (os.environ.get(variable) if variable else None) or server.base_url
    own = server.base_url is None or _split(address).hostname == _split(server.base_url).hostname
    named = "" if server.deployments else model
    return Seller(owner, server.name, server.price_list if own else "", named, server.reading.cost != "none")


def is_azure_v1(server: Preset, base_url: str | None) -> bool:
    """Whether the base URL is that of Azure's newer API, which has neither deployments nor versions."""
    url = base_url or os.environ.get(server.base_url_variable) or ""
    return _split(url).path.rstrip("/").endswith("/openai/v1")


def account_at(
    server: Preset,
    owner: str,
    api_key: str | None,
    base_url: str | None,
    client: OpenAIClient | None,
    headers: Mapping[str, str],
    clock: WallClock,
    query: Mapping[str, str],
) -> Account:
    """Our account at that server, as a model's declaration says."""
    reached = Server(
        name=server.name,
        base_url=server.base_url,
        key_env=(server.key,) if server.key else (),
        url_env=(server.base_url_variable,) if server.base_url_variable else (),
        key_header=server.key_header,
        key_needed=bool(server.key),
        query=query,
    )
    return Account(
        owner=owner, server=reached, api_key=api_key, base_url=base_url, client=client, headers=headers, clock=clock
    )
