"""What the providers of both OpenAI wires share: the server and our account there, and sending a body to it.

For OpenAI itself the official SDK says who we are: base URL, organisation and project, headers, credential. Compatible
servers are sent their own key and nothing of OpenAI's: the SDK would read ``OPENAI_API_KEY``, ``OPENAI_ORG_ID`` and
``OPENAI_CUSTOM_HEADERS`` for them too, so it is not asked. Bodies and the stream's bytes are ours. A client of the SDK
that you made yourself is sent through, by its ``post``: its credential may be fetched or signed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import urlencode

import attrs
import httpx2

from ._connection import Connection
from ._declared import NO_KEY, address_fault, check_base_url, check_headers, check_key, check_sdk_client, is_key
from ._http import WallClock, make_client, wall_clock
from ._opening import begin
from ._sending import BODY_HEADERS, DirectSender, NoSender, SdkSender, without_telemetry

if TYPE_CHECKING:
    import openai

    OpenAIClient: TypeAlias = openai.AsyncOpenAI | httpx2.AsyncClient

SDK_CLIENTS = ("AsyncOpenAI",)  # and AsyncAzureOpenAI, which is one


@attrs.frozen(kw_only=True)
class Server:
    """How a server is reached. ``key_header`` is ``authorization`` (a bearer token) or a header of its own.

    ``key_env`` are the variables that may hold the key, ``url_env`` those that may hold the base URL; the first that is
    set counts. ``base_url`` is None where there is none to guess.
    """

    name: str
    base_url: str | None
    key_env: tuple[str, ...] = ()
    url_env: tuple[str, ...] = ()
    key_header: str = "authorization"
    key_needed: bool = True
    query: Mapping[str, str] = attrs.field(factory=dict)


OPENAI = Server(
    name="openai", base_url="https://api.openai.com/v1", key_env=("OPENAI_API_KEY",), url_env=("OPENAI_BASE_URL",)
)


@attrs.frozen(kw_only=True, eq=False)
class Account:
    """A server and what a model's declaration says of us there. ``owner`` is the declaring class, for messages."""

    owner: str
    server: Server
    api_key: str | None = attrs.field(repr=False)
    base_url: str | None
    client: OpenAIClient | None = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    clock: WallClock = attrs.field(default=wall_clock, repr=False)

    def address(self) -> str | None:
        """The base URL: as given, of the environment, or the server's own."""
        return self.base_url or _first_set(self.server.url_env) or self.server.base_url

    def key(self) -> str | None:
        """The key: as given, or of the environment."""
        return self.api_key or _first_set(self.server.key_env)


def _first_set(names: tuple[str, ...]) -> str | None:
    return next(filter(None, map(os.environ.get, names)), None)


def check_account(account: Account) -> None:
    """Refuse what can't be right.

    Raises:
        DeclarationError: naming what is wrong and how to mend it.
    """
    owner = account.owner
    check_headers(owner, account.headers)
    if account.base_url is not None:
        check_base_url(owner, account.base_url)
    check_key(owner, account.api_key, account.server.key_env)
    if _is_sdk_client(account):
        given = account.api_key is not None or account.base_url is not None
        wanted = "an openai.AsyncOpenAI or an httpx2.AsyncClient"
        check_sdk_client(owner, account.client, SDK_CLIENTS, wanted, given=given)


@asynccontextmanager
async def open_connection(account: Account, path: str, sdk_path: str | None = None) -> AsyncGenerator[Connection]:
    """Where a model's requests go, for one runtime: the base URL with ``path`` behind it.

    ``sdk_path`` is given to a client of the SDK instead, where that has another idea of its base URL (Azure). The SDK
    is imported in a thread; the network is not touched.
    """
    if fault := _environment_fault(account):
        yield Connection(NoSender(fault), account.server.name, account.clock)
        return
    sdk = await begin(_load_sdk) if _needs_sdk(account) else None
    address = account.address()
    own = None
    if account.client is None and address is not None:
        own = await begin(make_client, address)
    try:
        yield await begin(_connect, account, path, sdk_path or path, sdk, own)
    finally:
        if own is not None:
            await own.aclose()


def _environment_fault(account: Account) -> str | None:
    """What can't be right of the key and the address; those that were declared have been checked."""
    if _is_sdk_client(account):
        return None
    key, address = account.key(), account.address()
    if key is not None and not is_key(key) and not _has_own_credential(account):
        return f"{' or '.join(account.server.key_env)} {NO_KEY}, such as a space or the end of a line."
    fault = None if address is None else address_fault(address)
    told = account.server.url_env if _first_set(account.server.url_env) else (f"The base URL of {account.server.name}",)
    return fault and f"{' or '.join(told)} {fault}"


def _is_sdk_client(account: Account) -> bool:
    return account.client is not None and not isinstance(account.client, httpx2.AsyncClient)


def _needs_sdk(account: Account) -> bool:
    return account.server.name == OPENAI.name or _is_sdk_client(account)


def _load_sdk() -> ModuleType:
    """Importing it takes the better part of a second."""
    import openai

    return openai


def _connect(
    account: Account, path: str, sdk_path: str, sdk: ModuleType | None, own: httpx2.AsyncClient | None
) -> Connection:
    """Done in a thread: the SDK looks at the platform."""
    if sdk is not None and _is_sdk_client(account):
        client = cast("openai.AsyncOpenAI", account.client).with_options(max_retries=0)
        no_credential = partial(_no_credential, account.owner)
        sender = SdkSender(sdk, client, f"/{sdk_path}", account.headers, sdk.OpenAIError, no_credential)
        return Connection(sender, client.base_url.host, account.clock)
    key, address = account.key(), account.address()
    if address is None or (key is None and _wants_key(account, address)):
        return Connection(NoSender(_what_lacks(account, address)), account.server.name, account.clock)
    http = own or cast(httpx2.AsyncClient, account.client)
    headers = _own_headers(account, key) if sdk is None else _sdk_headers(sdk, account, key, address, http)
    query = f"?{urlencode(account.server.query)}" if account.server.query else ""
    url = httpx2.URL(f"{address.rstrip('/')}/{path}{query}")
    return Connection(DirectSender(account.owner, http, url, headers, own=own is not None), url.host, account.clock)


def _no_credential(owner: str, why: str) -> str:
    return f"{owner}.client has no credential: {why}"


def _wants_key(account: Account, address: str) -> bool:
    """A base URL of your own may be that of a server which asks for none; it says so if it does."""
    if _has_own_credential(account):
        return False
    return account.server.key_needed and (address == account.server.base_url or account.server.name != OPENAI.name)


def _has_own_credential(account: Account) -> bool:
    named = {name.lower() for name in account.headers}
    return account.server.key_header in named or "authorization" in named


def _what_lacks(account: Account, address: str | None) -> str:
    server, owner = account.server, account.owner
    what, names, argument = "credential", server.key_env, "api_key"
    if address is None:
        what, names, argument = "base URL", server.url_env, "base_url"
    ways = [f"set {' or '.join(names)}"] if names else []
    ways.append(f"give {owner}(..., {argument}=...)")
    return f"There is no {what} for {server.name}: {', or '.join(ways)}."


def _own_headers(account: Account, key: str | None) -> dict[str, str]:
    headers = {"accept": "application/json", "user-agent": "agentrio"}
    if key is not None:
        name = account.server.key_header
        headers[name] = f"Bearer {key}" if name == "authorization" else key
    return headers | {name.lower(): value for name, value in account.headers.items()} | BODY_HEADERS


def _sdk_headers(
    sdk: ModuleType, account: Account, key: str | None, address: str, http: httpx2.AsyncClient
) -> dict[str, str]:
    """The SDK's headers for this credential; without one, as without the SDK."""
    if key is None:
        return _own_headers(account, key)
    client = sdk.AsyncOpenAI(
        api_key=key, base_url=address, http_client=http, max_retries=0, default_headers=dict(account.headers)
    )
    told = {**client.auth_headers, **client.default_headers}
    texts = {name.lower(): value for name, value in told.items() if isinstance(value, str)}
    return without_telemetry(texts) | BODY_HEADERS
