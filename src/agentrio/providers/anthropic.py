"""Anthropic's Messages API, and every server that speaks it.

The official SDK says who we are: base URL, headers, credential. Request bodies and the stream's bytes are ours, because
the SDK's typed path costs milliseconds that grow with the history. Where the credential is a plain header the request
goes out through httpx2 at once; where it is fetched or signed (a profile, a federated identity, a client that you made
yourself) it goes through the SDK's own ``post``. So do Claude's models at Google's Vertex AI, which has a path and a
version of its own, and answers with the same stream.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs
import httpx2
import trio

from agentrio.domain.errors import DeclarationError
from agentrio.domain.keywords import tells_keywords
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest

from ._http import (
    ResponseStream,
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
from ._prices import GivenPrices, NoPrices, Pricing, Seller, Tariff, check_prices, open_tariff
from ._reading import BodyReader
from ._sending import Poster, without_telemetry
from ._vertex import fetch_token, is_vertex, vertex_path, what_lacks
from .base import ModelClient, ModelStream, ProviderError, Timeouts
from .wire.anthropic_assembler import Assembler, BodyAssembler
from .wire.anthropic_request import Cache, MessagesOptions, encode_request

if TYPE_CHECKING:
    import anthropic
    from anthropic.lib.vertex import AsyncAnthropicVertex  # the package itself exports it to no type checker

    SdkClient: TypeAlias = anthropic.AsyncAnthropic | AsyncAnthropicVertex
    AnthropicClient: TypeAlias = SdkClient | httpx2.AsyncClient

PATH = "v1/messages"
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
        sdk = await trio.to_thread.run_sync(_load_sdk)
        own = await trio.to_thread.run_sync(_own_client, self) if self.client is None else None
        try:
            client = await trio.to_thread.run_sync(_connect, self, sdk, own)
            if client.host is not None:
                client.tariff = await open_tariff(self.prices, _seller(self, client.host))
            yield client
        finally:
            if own is not None:
                await own.aclose()


def _check_model(model: Anthropic) -> None:
    if not isinstance(model.model, str) or not model.model.strip():
        raise DeclarationError(
            f"Anthropic.model is {model.model!r}; it must be a model's name, such as claude-sonnet-5."
        )
    if model.cache not in ("none", "short", "long"):
        raise DeclarationError(f"Anthropic.cache is {model.cache!r}; it must be none, short or long.")
    tokens = model.max_tokens
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1):
        raise DeclarationError(f"Anthropic.max_tokens is {tokens!r}; it must be a whole number above 0, or None.")
    if not all(_is_header(name) and _is_header(value) for name, value in model.headers.items()):
        raise DeclarationError("Anthropic.headers must map names to texts of printable ASCII characters.")


def _is_header(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable()


def _check_client(model: Anthropic) -> None:
    if model.base_url is not None:
        check_base_url("Anthropic", model.base_url)
        if model.base_url.rstrip("/").endswith("/v1"):
            raise DeclarationError("Anthropic.base_url ends in /v1; leave that away, it is added to every request.")
    if model.api_key is not None and not (model.api_key.strip() and _is_header(model.api_key)):
        raise DeclarationError(
            "Anthropic.api_key is empty or holds characters that no key has; leave it out to use ANTHROPIC_API_KEY."
        )
    if model.client is None or isinstance(model.client, httpx2.AsyncClient):
        return
    names = {cls.__name__ for cls in type(model.client).__mro__}
    if any("Bedrock" in name for name in names):
        raise DeclarationError(
            "Anthropic.client speaks Bedrock's own wire, which is not supported; use Anthropic's API or Vertex."
        )
    if not (names & {"AsyncAnthropic", "AsyncAnthropicVertex"}):
        raise DeclarationError(
            f"Anthropic.client is a {type(model.client).__name__}; it must be an anthropic.AsyncAnthropic, an "
            "anthropic.AsyncAnthropicVertex or an httpx2.AsyncClient."
        )
    if model.api_key is not None or model.base_url is not None:
        raise DeclarationError(
            "Anthropic.client is a client of the SDK, which has its own key and base URL; give them to that client."
        )


def _load_sdk() -> ModuleType:
    """Importing it takes a second and more."""
    import anthropic

    return anthropic


def _own_client(model: Anthropic) -> httpx2.AsyncClient:
    return make_client(model.base_url or os.environ.get("ANTHROPIC_BASE_URL") or f"https://{OFFICIAL_HOST}")


def _connect(model: Anthropic, sdk: ModuleType, own: httpx2.AsyncClient | None) -> _Client:
    """Ask the SDK who we are. Done in a thread: it looks at the platform, and may read a profile from disk."""
    injected = model.client
    if injected is not None and not isinstance(injected, httpx2.AsyncClient):
        copy = injected.with_options(max_retries=0, default_headers=dict(model.headers))
        return _Client(model, sdk, copy, None, what_lacks(copy) if is_vertex(copy) else None)
    http = own or injected
    try:
        client = sdk.AsyncAnthropic(
            api_key=model.api_key,
            base_url=model.base_url,
            http_client=http,
            max_retries=0,
            default_headers=dict(model.headers),
        )
    except Exception as wrong:  # a profile that can't be read, a base URL in the environment that is none
        return _Client(model, sdk, None, None, _not_provisioned(f"{type(wrong).__name__}: {wrong}"))
    return _Client(model, sdk, client, None if client.credentials is not None else http)


def _not_provisioned(why: str) -> ProviderError:
    return ProviderError(
        f"There is no credential for Anthropic ({why}). Set ANTHROPIC_API_KEY, or give Anthropic(..., api_key=...).",
        code="not_provisioned",
    )


def _seller(model: Anthropic, host: str) -> Seller:
    """Who is paid. Google's regions have prices of their own, and another host may be anybody's."""
    return Seller("Anthropic", host, _LISTED.get(host, ""), model.model)


class _Client:
    """``http`` is set where requests go out directly: the credential is a header then."""

    tariff: Tariff = NoPrices()

    def __init__(
        self,
        model: Anthropic,
        sdk: ModuleType,
        client: SdkClient | None,
        http: httpx2.AsyncClient | None,
        failure: ProviderError | None = None,
    ) -> None:
        self._sdk = sdk
        self._client = client
        self._http = http
        self._failure = failure
        self._clock = model.wall_clock
        base = httpx2.URL("https://invalid") if client is None else client.base_url
        self._host = base.host
        self._vertex = client if is_vertex(client) else None
        self._path = f"/{PATH}" if self._vertex is None else vertex_path(self._vertex, model.model)
        self._options = MessagesOptions(
            model.tag, model.cache, model.max_tokens, base.host == OFFICIAL_HOST, self._vertex is not None
        )
        self._secrets = tuple(filter(None, (getattr(client, name, None) for name in _SECRETS)))
        if client is not None and http is not None:
            headers = _headers(client)
            self._poster = Poster(http, base.join(PATH), headers, own=model.client is None)
            if not {"authorization", "x-api-key"} & {name.lower() for name in headers}:
                self._failure = _not_provisioned("none was given, and the environment has none")

    @property
    def host(self) -> str | None:
        """Where requests go; None where there is no credential to send them with."""
        return None if self._client is None else self._host

    @property
    def unpriced(self) -> str | None:
        return self.tariff.lacks

    @asynccontextmanager
    async def stream(self, request: ModelRequest, timeouts: Timeouts) -> AsyncGenerator[ModelStream]:
        if self._failure is not None:
            raise self._failure
        limits = timeout_extension(timeouts)
        body = encode_request(request, self._options)
        try:
            response = await send_within(timeouts.connect, self._host, partial(self._send, body, timeouts, limits))
        except ProviderError as failure:
            raise redacted(failure, self._secrets) from failure.__cause__
        limits["read"] = timeouts.idle
        reader = BodyReader(response)
        secrets = self._secrets_of(response.request)
        try:
            if not response.is_success:
                raise redacted(await read_failure(response, reader, self._clock), secrets)
            kind = response.headers.get("content-type", "").partition(";")[0]
            assembler = BodyAssembler() if kind.strip().lower().endswith("json") else Assembler()
            yield ResponseStream(reader, assembler, timeouts.idle, Pricing(self.tariff), secrets)
        finally:
            await close_response(response, reader)  # noqa: ASYNC102  # it holds the shield, and its deadline

    async def _send(self, body: bytes, timeouts: Timeouts, limits: dict[str, float | None]) -> httpx2.Response:
        if self._http is None:
            return await self._post(body, timeouts)
        if self._http.is_closed:
            raise ProviderError("The httpx2.AsyncClient given to Anthropic is closed.", code="invalid_request")
        return await self._poster.post(body, limits)

    async def _post(self, body: bytes, timeouts: Timeouts) -> httpx2.Response:
        """Through the SDK, for credentials that it fetches or signs. The answer is the plain response, not its type.

        Raises:
            ProviderError: no response came, or no credential could be had.
        """
        sdk: Any = self._sdk
        assert self._client is not None
        if self._vertex is not None:
            await fetch_token(self._vertex)
        options = {
            "headers": {"X-Stainless-Raw-Response": "stream", **_BODY_HEADERS},
            "timeout": httpx2.Timeout(None, read=max(timeouts.connect, timeouts.idle)),
        }
        try:
            answer = await self._client.post(
                self._path,
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
            raise unreachable(self._host, broken.__cause__ or broken) from broken
        except (sdk.AnthropicError, TypeError, ValueError) as wrong:
            raise _not_provisioned(str(wrong)[:200]) from wrong
        return cast(httpx2.Response, answer)

    def _secrets_of(self, request: httpx2.Request) -> tuple[str, ...]:
        """A credential that was fetched is known by the request alone."""
        sent = (request.headers.get(name, "") for name in ("authorization", "x-api-key"))
        return (*self._secrets, *(value.removeprefix("Bearer ") for value in sent))


_SECRETS = ("api_key", "auth_token", "access_token")
_BODY_HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}


def _headers(client: SdkClient) -> dict[str, str]:
    """The SDK's headers for this credential. A compressed stream could not be read as it comes."""
    told = {name: value for name, value in client.default_headers.items() if isinstance(value, str)}
    kept = without_telemetry(told)
    return {name: value for name, value in kept.items() if name.lower() not in _BODY_HEADERS} | _BODY_HEADERS
