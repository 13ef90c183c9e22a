"""What the providers of both OpenAI wires share: the server and our account there, and sending a body to it.

For OpenAI itself the official SDK says who we are: base URL, organisation and project, headers, credential. Compatible
servers are sent their own key and nothing of OpenAI's: the SDK would read ``OPENAI_API_KEY``, ``OPENAI_ORG_ID`` and
``OPENAI_CUSTOM_HEADERS`` for them too, so it is not asked. Bodies and the stream's bytes are ours. A client of the SDK
that you made yourself is sent through, by its ``post``: its credential may be fetched or signed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast
from urllib.parse import urlencode

import attrs
import httpx2
import trio

from agentrio.domain.errors import DeclarationError

from ._http import (
    ResponseStream,
    StreamAssembler,
    WallClock,
    check_base_url,
    close_response,
    make_client,
    read_failure,
    redacted,
    send_within,
    timeout_extension,
    unreachable,
    wall_clock,
)
from ._prices import Pricing, Tariff
from ._reading import BodyReader
from ._sending import Poster, without_telemetry
from .base import ModelStream, ProviderError, Timeouts
from .wire.json import encode

if TYPE_CHECKING:
    import openai

    OpenAIClient: TypeAlias = openai.AsyncOpenAI | httpx2.AsyncClient

Assemblers: TypeAlias = tuple[Callable[[], StreamAssembler], Callable[[], StreamAssembler]]
"""What reads a stream, and what reads an answer that is one JSON body."""

BODY_HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}
"""A compressed stream could not be read as it comes."""


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
    if not all(is_header(name) and is_header(value) for name, value in account.headers.items()):
        raise DeclarationError(f"{owner}.headers must map names to texts of printable ASCII characters.")
    if account.base_url is not None:
        check_base_url(owner, account.base_url)
    if account.api_key is not None and not (account.api_key.strip() and is_header(account.api_key)):
        where = " or ".join(account.server.key_env) or "none"
        raise DeclarationError(
            f"{owner}.api_key is empty or holds characters that no key has; leave it out to use {where}."
        )
    client = account.client
    if client is None or isinstance(client, httpx2.AsyncClient):
        return
    if "AsyncOpenAI" not in {cls.__name__ for cls in type(client).__mro__}:
        raise DeclarationError(
            f"{owner}.client is a {type(client).__name__}; it must be an openai.AsyncOpenAI or an httpx2.AsyncClient."
        )
    if account.api_key is not None or account.base_url is not None:
        raise DeclarationError(
            f"{owner}.client is a client of the SDK, which has its own key and base URL; give them to that client."
        )


def check_model(owner: str, model: str, max_tokens: int | None) -> None:
    """Refuse what can't be a model's name or a limit.

    Raises:
        DeclarationError: naming what is wrong.
    """
    if not isinstance(model, str) or not model.strip():
        raise DeclarationError(f"{owner}.model is {model!r}; it must be a model's name.")
    if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1):
        raise DeclarationError(f"{owner}.max_tokens is {max_tokens!r}; it must be a whole number above 0, or None.")


def check_extra(owner: str, extra: Mapping[str, Any], ours: frozenset[str]) -> None:
    """Refuse fields of the body that the request has itself, and what is no JSON.

    Raises:
        DeclarationError: naming what is wrong.
    """
    if both := ours & extra.keys():
        raise DeclarationError(f"{owner}.extra must not have {', '.join(sorted(both))}; the request has them.")
    try:
        encode(extra)
    except (TypeError, ValueError) as wrong:
        raise DeclarationError(f"{owner}.extra can't be sent as JSON: {wrong}") from None


def is_header(text: object) -> bool:
    """Whether a text can stand in an HTTP header."""
    return isinstance(text, str) and text.isascii() and text.isprintable()


@asynccontextmanager
async def open_connection(account: Account, path: str, sdk_path: str | None = None) -> AsyncGenerator[Connection]:
    """Where a model's requests go, for one runtime: the base URL with ``path`` behind it.

    ``sdk_path`` is given to a client of the SDK instead, where that has another idea of its base URL (Azure). The SDK
    is imported in a thread; the network is not touched.
    """
    sdk = await trio.to_thread.run_sync(_load_sdk) if _needs_sdk(account) else None
    address = account.address()
    own = None
    if account.client is None and address is not None:
        own = await trio.to_thread.run_sync(make_client, address)
    try:
        yield await trio.to_thread.run_sync(_connect, account, path, sdk_path or path, sdk, own)
    finally:
        if own is not None:
            await own.aclose()


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
        sender = _SdkSender(sdk, client, f"/{sdk_path}", account)
        return Connection(sender, client.base_url.host, account.clock, tuple(filter(None, (client.api_key,))))
    key, address = account.key(), account.address()
    if address is None or (key is None and _wants_key(account, address)):
        return Connection(_NoSender(_what_lacks(account, address)), account.server.name, account.clock, ())
    http = own or cast(httpx2.AsyncClient, account.client)
    headers = _own_headers(account, key) if sdk is None else _sdk_headers(sdk, account, key, address, http)
    query = f"?{urlencode(account.server.query)}" if account.server.query else ""
    url = httpx2.URL(f"{address.rstrip('/')}/{path}{query}")
    poster = Poster(http, url, headers, own=own is not None)
    return Connection(_DirectSender(poster), url.host, account.clock, (key,) if key else ())


def _wants_key(account: Account, address: str) -> bool:
    """A base URL of your own may be that of a server which asks for none; it says so if it does."""
    named = {name.lower() for name in account.headers}
    if account.server.key_header in named or "authorization" in named:
        return False
    return account.server.key_needed and (address == account.server.base_url or account.server.name != OPENAI.name)


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


class _Sender(Protocol):
    async def send(self, body: bytes, timeouts: Timeouts, limits: dict[str, float | None]) -> httpx2.Response: ...


@attrs.frozen(eq=False)
class _DirectSender:
    """Through httpx2 at once: the credential is a header."""

    poster: Poster

    async def send(self, body: bytes, timeouts: Timeouts, limits: dict[str, float | None]) -> httpx2.Response:
        return await self.poster.post(body, limits)


@attrs.frozen(eq=False)
class _SdkSender:
    """Through the SDK, for credentials that it fetches or signs. The answer is the plain response, not its type."""

    sdk: Any
    client: openai.AsyncOpenAI
    path: str
    account: Account

    async def send(self, body: bytes, timeouts: Timeouts, limits: dict[str, float | None]) -> httpx2.Response:
        """One attempt.

        Raises:
            ProviderError: no response came, or no credential could be had.
        """
        sdk = self.sdk
        options = {
            "headers": {**self.account.headers, "X-Stainless-Raw-Response": "stream", **BODY_HEADERS},
            "timeout": httpx2.Timeout(None, read=max(timeouts.connect, timeouts.idle)),
        }
        try:
            answer = await self.client.post(
                self.path,
                cast_to=httpx2.Response,
                content=body,
                options=cast(Any, options),
                stream=True,
                stream_cls=sdk.AsyncStream[object],
            )
        except sdk.APIStatusError as refused:
            response: httpx2.Response = refused.response
            return response
        except sdk.APIConnectionError as broken:
            raise unreachable(self.client.base_url.host, broken.__cause__ or broken) from broken
        except (sdk.OpenAIError, TypeError, ValueError) as wrong:
            raise ProviderError(
                f"{self.account.owner}.client has no credential: {str(wrong)[:200]}", code="not_provisioned"
            ) from wrong
        return cast(httpx2.Response, answer)


@attrs.frozen(eq=False)
class _NoSender:
    """Where nothing can be sent, and why."""

    message: str

    async def send(self, body: bytes, timeouts: Timeouts, limits: dict[str, float | None]) -> httpx2.Response:
        """Fails.

        Raises:
            ProviderError: always (``not_provisioned``).
        """
        raise ProviderError(self.message, code="not_provisioned")


@attrs.frozen(eq=False)
class Connection:
    """Sends bodies to one address. ``secrets`` never stand in an error."""

    _sender: _Sender
    host: str
    _clock: WallClock
    _secrets: tuple[str, ...] = attrs.field(repr=False)

    @asynccontextmanager
    async def stream(
        self, body: bytes, timeouts: Timeouts, assemblers: Assemblers, tariff: Tariff
    ) -> AsyncGenerator[ModelStream]:
        """One attempt. Entering waits for the response's headers; leaving early closes the connection.

        Raises:
            ProviderError: no credential, no answer, or an error's status.
        """
        limits = timeout_extension(timeouts)
        send = partial(self._sender.send, body, timeouts, limits)
        try:
            response = await send_within(timeouts.connect, self.host, send)
        except ProviderError as failure:
            raise redacted(failure, self._secrets) from failure.__cause__
        limits["read"] = timeouts.idle
        reader = BodyReader(response)
        try:
            if not response.is_success:
                raise redacted(await read_failure(response, reader, self._clock), self._secrets)
            kind = response.headers.get("content-type", "").partition(";")[0]
            of_stream, of_body = assemblers
            assembler = of_body() if kind.strip().lower().endswith("json") else of_stream()
            yield ResponseStream(reader, assembler, timeouts.idle, Pricing(tariff), self._secrets)
        finally:
            await close_response(response, reader)  # noqa: ASYNC102  # it shields itself
