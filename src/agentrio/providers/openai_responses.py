"""OpenAI's Responses API, and servers that speak the same wire (Azure, xAI, OpenRouter, llama.cpp, LM Studio, vLLM).

Nothing is kept at the server: each request has the whole conversation, and what the model reasoned goes back encrypted.
Credentials, headers and sending are ``_openai``'s, shared with the Chat Completions wire.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import attrs

from agentrio.domain.errors import DeclarationError
from agentrio.domain.handoff import ForeignThinking
from agentrio.domain.keywords import tells_keywords
from agentrio.domain.limits import shown
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest

from ._connection import Assemblers, Connection
from ._declared import check_cache, check_cache_key, check_extra, check_foreign, check_model
from ._http import WallClock, wall_clock
from ._openai import Account, check_account, open_connection
from ._prices import GivenPrices, Tariff, check_prices, open_tariff
from ._servers import account_at, as_preset, is_azure_v1, is_openai, preset_name, seller_of, server_of
from .base import ModelClient, ModelStream, Timeouts
from .presets import Preset
from .wire.openai_cache import Cache
from .wire.responses_assembler import Assembler, BodyAssembler
from .wire.responses_history import Target
from .wire.responses_request import ResponsesOptions, Summary, encode_request

if TYPE_CHECKING:
    from ._openai import OpenAIClient

OWNER = "OpenAIResponses"
PATH = "responses"
OURS = frozenset({"model", "instructions", "input", "tools", "store", "stream"})  # fields of the body, not extra


@tells_keywords
@attrs.frozen(eq=False)
class OpenAIResponses:
    """A model behind the Responses wire.

    Without ``preset`` it is OpenAI's own, with its key in ``OPENAI_API_KEY``; or, where a ``base_url`` or a client of
    another server is given, a server of which nothing more is known. ``preset`` is a name, such as ``xai`` or
    ``llamacpp``, or a ``Preset`` of your own. ``client`` may be an ``openai.AsyncOpenAI``, an
    ``openai.AsyncAzureOpenAI`` or an ``httpx2.AsyncClient``; none is closed here. ``max_tokens`` is the default for
    each response, the server's if not given. ``cache`` is how long the prompt's prefix is kept by the server, under the
    session's id or under ``prompt_cache_key``: not at all, for minutes, or (on api.openai.com) a day. ``summary`` is
    what is told of hidden reasoning. ``strict`` makes the model keep to the tools' schemas, which must then be of the
    strict kind. ``headers`` are sent with each request; ``extra`` are further fields of its body, such as ``top_p``.
    ``foreign_thinking`` says whether what another model reasoned before is sent as labelled text, or dropped.
    ``prices`` are ``Prices`` of your own, False for none; without them those of genai-prices count, where it is
    installed and lists server and model. What a server itself tells of the cost goes before both.

    Raises:
        DeclarationError: a value is wrong; the message says which and how to mend it.
    """

    model: str
    preset: Preset | None = attrs.field(default=None, kw_only=True, converter=as_preset, repr=preset_name)
    api_key: str | None = attrs.field(default=None, kw_only=True, repr=False)
    base_url: str | None = attrs.field(default=None, kw_only=True)
    client: OpenAIClient | None = attrs.field(default=None, kw_only=True, repr=False)
    max_tokens: int | None = attrs.field(default=None, kw_only=True)
    cache: Cache = attrs.field(default="short", kw_only=True)
    prompt_cache_key: str | None = attrs.field(default=None, kw_only=True)
    summary: Summary | None = attrs.field(default="auto", kw_only=True)
    strict: bool = attrs.field(default=False, kw_only=True)
    parallel_tool_calls: bool | None = attrs.field(default=None, kw_only=True)
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, repr=False)
    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, repr=False)
    foreign_thinking: ForeignThinking = attrs.field(default="label", kw_only=True)
    prices: GivenPrices = attrs.field(default=None, kw_only=True)
    wall_clock: WallClock = attrs.field(default=wall_clock, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        check_model(OWNER, self.model, self.max_tokens)
        check_account(_account(self))
        check_extra(OWNER, self.extra, OURS)
        check_foreign(OWNER, self.foreign_thinking)
        check_prices(OWNER, self.prices)
        check_cache(OWNER, self.cache)
        check_cache_key(OWNER, self.prompt_cache_key)
        for name in ("strict", "parallel_tool_calls"):
            if not isinstance(value := getattr(self, name), bool) and (value is not None or name == "strict"):
                raise DeclarationError(f"{OWNER}.{name} is {shown(value)}; it must be True or False.")
        if self.summary not in (None, *get_args(Summary)):
            raise DeclarationError(f"{OWNER}.summary is {self.summary!r}; it must be auto, concise, detailed or None.")

    @property
    def server(self) -> Preset:
        """The preset that counts: the given one, or what follows from the client and the base URL."""
        return server_of(self.preset, self.base_url, self.client)

    @property
    def tag(self) -> ModelTag:
        """The preset's name, api ``responses``."""
        return ModelTag(self.server.name, "responses", self.model)

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        """A client for one runtime. What is slow happens in a thread; the network is not touched."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[ModelClient]:
        server = self.server
        with_version = server.deployments and not is_azure_v1(server, self.base_url)
        path = f"openai/v1/{PATH}" if with_version else PATH  # a client of Azure's knows that itself
        async with open_connection(_account(self), path, PATH) as connection:
            seller = seller_of(OWNER, server, self.model, self.base_url, self.client)
            tariff = await open_tariff(self.prices, seller)
            cost = server.reading.cost
            assemblers = (partial(Assembler, cost=cost), partial(BodyAssembler, cost=cost))
            yield _Client(_options(self, connection), connection, assemblers, tariff)


def _account(model: OpenAIResponses) -> Account:
    return account_at(
        model.server, OWNER, model.api_key, model.base_url, model.client, model.headers, model.wall_clock, query={}
    )


def _options(model: OpenAIResponses, connection: Connection) -> ResponsesOptions:
    return ResponsesOptions(
        Target(model.tag, images=model.server.dialect.images, foreign=model.foreign_thinking),
        model.max_tokens,
        model.cache,
        model.prompt_cache_key,
        is_openai(f"https://{connection.host}"),
        model.summary,
        model.strict,
        model.parallel_tool_calls,
        model.extra,
    )


@attrs.frozen(eq=False)
class _Client:
    _options: ResponsesOptions
    _connection: Connection
    _assemblers: Assemblers
    _tariff: Tariff

    @property
    def unpriced(self) -> str | None:
        return self._tariff.lacks

    def stream(self, request: ModelRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[ModelStream]:
        body = encode_request(request, self._options)
        return self._connection.stream(body, timeouts, self._assemblers, self._tariff)
