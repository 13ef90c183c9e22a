"""Anthropic's Messages API, and every server that speaks it.

The official SDK says who we are: base URL, headers, credential. Request bodies and the stream's bytes are ours, because
the SDK's typed path costs milliseconds that grow with the history. Where the credential is a plain header the request
goes out through httpx2 at once; where it is fetched or signed (a profile, a federated identity, a client that you made
yourself) it goes through the SDK's own ``post``. So do Claude's models at Google's Vertex AI, which has a path and a
version of its own, and answers with the same stream.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import attrs
import httpx2

from agentrio.domain.errors import DeclarationError
from agentrio.domain.handoff import ForeignThinking
from agentrio.domain.keywords import tells_keywords
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest

from ._connection import Connection
from ._declared import (
    NO_KEY,
    address_fault,
    check_base_url,
    check_cache,
    check_foreign,
    check_headers,
    check_key,
    check_model,
    check_sdk_client,
    is_key,
)
from ._http import WallClock, make_client, wall_clock
from ._opening import begin
from ._prices import GivenPrices, NoPrices, Seller, Tariff, check_prices, open_tariff
from ._sending import BODY_HEADERS, DirectSender, NoSender, SdkSender, without_telemetry
from ._vertex import fetch_token, is_vertex, vertex_path, what_lacks
from .base import ModelClient, ModelStream, Timeouts
from .wire.anthropic_assembler import Assembler, BodyAssembler
from .wire.anthropic_request import Cache, MessagesOptions, encode_request

if TYPE_CHECKING:
    import anthropic
    from anthropic.lib.vertex import AsyncAnthropicVertex  # the package itself exports it to no type checker

    SdkClient: TypeAlias = anthropic.AsyncAnthropic | AsyncAnthropicVertex
    AnthropicClient: TypeAlias = SdkClient | httpx2.AsyncClient

OWNER = "Anthropic"
PATH = "v1/messages"
SDK_CLIENTS = ("AsyncAnthropic", "AsyncAnthropicVertex")
KEYS, ADDRESS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_BASE_URL"  # of the environment
OFFICIAL_HOST = "api.anthropic.com"  # the only one known to keep a prompt cache for an hour
_LISTED = {OFFICIAL_HOST: "anthropic", "aiplatform.googleapis.com": "google"}  # hosts, and their names in genai-prices


@tells_keywords
@attrs.frozen(eq=False)
class Anthropic:
    """A model behind the Messages API.

    Without ``api_key`` and ``base_url`` the SDK looks for ``ANTHROPIC_API_KEY``, ``ANTHROPIC_AUTH_TOKEN``, its profiles
    and ``ANTHROPIC_BASE_URL`` when a runtime opens the model. ``client`` may be an ``anthropic.AsyncAnthropic``, an
    ``anthropic.AsyncAnthropicVertex`` or an ``httpx2.AsyncClient`` of your own; none is closed here. ``cache`` is how
    long the prompt's prefix is kept by the server: not at all, five minutes, or (on api.anthropic.com) an hour.
    ``max_tokens`` is the default for each response, 32,000 if not given. ``headers`` are sent with each request.
    ``foreign_thinking`` says whether what another model reasoned before is sent as labelled text, or dropped.
    ``prices`` are ``Prices`` of your own, False for none; without them those of genai-prices count, where it is
    installed and lists the model, and the server is Anthropic's own or Google's global one.

    Raises:
        DeclarationError: a value is wrong; the message says which and how to mend it.
    """

    model: str
    api_key: str | None = attrs.field(default=None, kw_only=True, repr=False)
    base_url: str | None = attrs.field(default=None, kw_only=True)
    client: AnthropicClient | None = attrs.field(default=None, kw_only=True, repr=False)
    cache: Cache = attrs.field(default="short", kw_only=True)
    max_tokens: int | None = attrs.field(default=None, kw_only=True)
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, repr=False)
    foreign_thinking: ForeignThinking = attrs.field(default="label", kw_only=True)
    prices: GivenPrices = attrs.field(default=None, kw_only=True)
    wall_clock: WallClock = attrs.field(default=wall_clock, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        _check_model(self)
        _check_client(self)
        check_prices("Anthropic", self.prices)

    @property
    def tag(self) -> ModelTag:
        """Provider ``anthropic``, api ``messages``, on Vertex too.

        Signatures of one platform are valid on the other ("compatible across platforms",
        https://platform.claude.com/docs/en/build-with-claude/extended-thinking), so a model that has one name on both
        is the same model; one with another name there (``...@20250929``) is another.
        """
        return ModelTag("anthropic", "messages", self.model)

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        """A client for one runtime. The SDK is imported in a thread; the network is not touched."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[ModelClient]:
        if fault := _environment_fault(self):
            yield _unusable(self, fault)
            return
        sdk = await begin(_load_sdk)
        own = await begin(_own_client, self) if self.client is None else None
        try:
            client = await begin(_connect, self, sdk, own)
            if client.host:
                tariff = await open_tariff(self.prices, _seller(self, client.host))
                client = attrs.evolve(client, tariff=tariff)
            yield client
        finally:
            if own is not None:
                await own.aclose()


def _check_model(model: Anthropic) -> None:
    check_model(OWNER, model.model, model.max_tokens)
    check_cache(OWNER, model.cache)
    check_headers(OWNER, model.headers)
    check_foreign(OWNER, model.foreign_thinking)


def _check_client(model: Anthropic) -> None:
    if model.base_url is not None:
        check_base_url(OWNER, model.base_url)
        if model.base_url.rstrip("/").endswith("/v1"):
            raise DeclarationError("Anthropic.base_url ends in /v1; leave that away, it is added to every request.")
    check_key(OWNER, model.api_key, ("ANTHROPIC_API_KEY",))
    if model.client is None or isinstance(model.client, httpx2.AsyncClient):
        return
    if any("Bedrock" in cls.__name__ for cls in type(model.client).__mro__):
        raise DeclarationError(
            "Anthropic.client speaks Bedrock's own wire, which is not supported; use Anthropic's API or Vertex."
        )
    wanted = "an anthropic.AsyncAnthropic, an anthropic.AsyncAnthropicVertex or an httpx2.AsyncClient"
    given = model.api_key is not None or model.base_url is not None
    check_sdk_client(OWNER, model.client, SDK_CLIENTS, wanted, given=given)


def _environment_fault(model: Anthropic) -> str | None:
    """What can't be right of the key and the address that the SDK would find; what is declared has been checked."""
    if model.client is not None and not isinstance(model.client, httpx2.AsyncClient):
        return None
    for name in KEYS if model.api_key is None else ():
        if (key := os.environ.get(name)) and not is_key(key):
            return f"{name} {NO_KEY}, such as a space or the end of a line."
    address = model.base_url or os.environ.get(ADDRESS)
    fault = address_fault(address) if address else None
    return fault and f"{ADDRESS} {fault}"


def _load_sdk() -> ModuleType:
    """Importing it takes a second and more."""
    import anthropic

    return anthropic


def _own_client(model: Anthropic) -> httpx2.AsyncClient:
    return make_client(model.base_url or os.environ.get(ADDRESS) or f"https://{OFFICIAL_HOST}")


def _connect(model: Anthropic, sdk: ModuleType, own: httpx2.AsyncClient | None) -> _Client:
    """Ask the SDK who we are. Done in a thread: it looks at the platform, and may read a profile from disk."""
    injected = model.client
    if injected is not None and not isinstance(injected, httpx2.AsyncClient):
        copy = injected.with_options(max_retries=0, default_headers=dict(model.headers))
        return _at_vertex(model, sdk, copy) if is_vertex(copy) else _through_sdk(model, sdk, copy, f"/{PATH}")
    http = own or injected
    try:
        client = sdk.AsyncAnthropic(
            api_key=model.api_key,
            base_url=model.base_url or (f"https://{OFFICIAL_HOST}" if os.environ.get(ADDRESS) == "" else None),
            http_client=http,
            max_retries=0,
            default_headers=dict(model.headers),
        )
    except Exception as wrong:  # a profile that can't be read, a base URL in the environment that is none
        return _unusable(model, _no_credential(f"{type(wrong).__name__}: {wrong}"))
    if http is None or client.credentials is not None:
        return _through_sdk(model, sdk, client, f"/{PATH}")
    headers = _headers(client)
    if not {"authorization", "x-api-key"} & {name.lower() for name in headers}:
        return _unusable(model, _no_credential("none was given, and the environment has none"))
    url = client.base_url.join(PATH)
    sender = DirectSender(OWNER, http, url, headers, own=own is not None)
    return _Client(_options(model, url.host), Connection(sender, url.host, model.wall_clock))


def _at_vertex(model: Anthropic, sdk: ModuleType, client: AsyncAnthropicVertex) -> _Client:
    if lacks := what_lacks(client):
        return _unusable(model, lacks)
    path = vertex_path(client, model.model)
    return _through_sdk(model, sdk, client, path, partial(fetch_token, client), vertex=True)


def _through_sdk(
    model: Anthropic,
    sdk: ModuleType,
    client: SdkClient,
    path: str,
    before: Callable[[], Awaitable[None]] | None = None,
    *,
    vertex: bool = False,
) -> _Client:
    sender = SdkSender(sdk, client, path, {}, sdk.AnthropicError, _no_credential, before)
    host = client.base_url.host
    return _Client(_options(model, host, vertex=vertex), Connection(sender, host, model.wall_clock))


def _unusable(model: Anthropic, why: str) -> _Client:
    return _Client(_options(model, ""), Connection(NoSender(why), "", model.wall_clock))


def _options(model: Anthropic, host: str, *, vertex: bool = False) -> MessagesOptions:
    long_ttl = host == OFFICIAL_HOST
    return MessagesOptions(model.tag, model.cache, model.max_tokens, long_ttl, vertex, model.foreign_thinking)


def _seller(model: Anthropic, host: str) -> Seller:
    """Who is paid. Google's regions have prices of their own, and another host may be anybody's."""
    return Seller(OWNER, host, _LISTED.get(host, ""), model.model)


def _no_credential(why: str) -> str:
    return f"There is no credential for Anthropic ({why}). Set ANTHROPIC_API_KEY, or give Anthropic(..., api_key=...)."


def _headers(client: SdkClient) -> dict[str, str]:
    """The SDK's headers for this credential."""
    told = {name: value for name, value in client.default_headers.items() if isinstance(value, str)}
    kept = without_telemetry(told)
    return {name: value for name, value in kept.items() if name.lower() not in BODY_HEADERS} | BODY_HEADERS


@attrs.frozen(eq=False)
class _Client:
    _options: MessagesOptions
    _connection: Connection
    _tariff: Tariff = attrs.field(factory=NoPrices)

    @property
    def host(self) -> str:
        """Where requests go; empty where there is no credential to send them with."""
        return self._connection.host

    @property
    def unpriced(self) -> str | None:
        return self._tariff.lacks

    def stream(self, request: ModelRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[ModelStream]:
        body = encode_request(request, self._options)
        return self._connection.stream(body, timeouts, (Assembler, BodyAssembler), self._tariff)
