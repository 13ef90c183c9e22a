"""OpenAI's Chat Completions API, Azure's, and the many servers that speak the same wire.

A preset says how a server is reached, what it takes and how its answers are read; ``presets.toml`` has them, each fact
with its source. Credentials, headers and sending are ``_openai``'s, shared with the Responses wire.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs
import httpx2

from agentrio.domain.errors import DeclarationError
from agentrio.domain.handoff import ForeignThinking
from agentrio.domain.keywords import tells_keywords
from agentrio.domain.limits import shown
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest

from ._connection import Assemblers, Connection
from ._declared import check_cache, check_cache_key, check_extra, check_foreign, check_model, is_key
from ._http import WallClock, wall_clock
from ._openai import Account, check_account, open_connection
from ._prices import GivenPrices, Tariff, check_prices, open_tariff
from ._servers import account_at, as_preset, is_azure_v1, is_openai, preset_name, seller_of, server_of
from .base import ModelClient, ModelStream, Timeouts
from .presets import Preset
from .wire.chat_assembler import ChatAssembler, ChatBodyAssembler
from .wire.chat_request import ChatOptions, encode_request
from .wire.openai_cache import Cache

if TYPE_CHECKING:
    from ._openai import OpenAIClient

PATH = "chat/completions"
OURS = frozenset({"model", "messages", "tools", "stream", "stream_options"})  # fields of the body that are not extra


@tells_keywords
@attrs.frozen(eq=False)
class OpenAIChat:
    """A model behind the Chat Completions wire.

    Without ``preset`` it is OpenAI's own, with its key in ``OPENAI_API_KEY``; or, where a ``base_url`` or a client of
    another server is given, a server of which nothing more is known. ``preset`` is a name, such as ``groq`` or
    ``ollama``, or a ``Preset`` of your own. ``client`` may be an ``openai.AsyncOpenAI``, an ``openai.AsyncAzureOpenAI``
    or an ``httpx2.AsyncClient``; none is closed here. ``max_tokens`` is the default for each response, the server's if
    not given. ``cache`` is how long the prompt's prefix is kept by servers that must be told: not at all, for minutes,
    or (on api.openai.com) a day; OpenAI keeps it under the session's id or ``prompt_cache_key``. ``headers`` are sent
    with each request; ``extra`` are further fields of its body, such as ``top_p``. ``foreign_thinking`` says whether
    what another model reasoned before is sent as labelled text, or dropped. For Azure ``model`` is the deployment's
    name, and ``api_version`` may be given. ``prices`` are ``Prices`` of your own, False for none; without them those of
    genai-prices count, where it is installed and lists server and model. What a server itself tells of the cost goes
    before both.

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
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, repr=False)
    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, repr=False)
    api_version: str | None = attrs.field(default=None, kw_only=True)
    foreign_thinking: ForeignThinking = attrs.field(default="label", kw_only=True)
    prices: GivenPrices = attrs.field(default=None, kw_only=True)
    wall_clock: WallClock = attrs.field(default=wall_clock, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        check_model("OpenAIChat", self.model, self.max_tokens)
        check_account(_account(self))
        check_extra("OpenAIChat", self.extra, OURS)
        check_foreign("OpenAIChat", self.foreign_thinking)
        check_cache("OpenAIChat", self.cache)
        check_cache_key("OpenAIChat", self.prompt_cache_key)
        check_prices("OpenAIChat", self.prices)
        if self.api_version is not None and not is_key(self.api_version):
            raise DeclarationError(f"OpenAIChat.api_version is {shown(self.api_version)}; it is a date, or left out.")

    @property
    def server(self) -> Preset:
        """The preset that counts: the given one, or what follows from the client and the base URL."""
        return server_of(self.preset, self.base_url, self.client)

    @property
    def tag(self) -> ModelTag:
        """The preset's name, api ``chat``."""
        return ModelTag(self.server.name, "chat", self.model)

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        """A client for one runtime. What is slow happens in a thread; the network is not touched."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[ModelClient]:
        account = _account(self)
        path, sdk_path = _paths(self, account)
        async with open_connection(account, path, sdk_path) as connection:
            seller = seller_of("OpenAIChat", self.server, self.model, self.base_url, self.client)
            yield _Client(self, connection, await open_tariff(self.prices, seller))


def _account(model: OpenAIChat) -> Account:
    return account_at(
        model.server,
        "OpenAIChat",
        model.api_key,
        model.base_url,
        model.client,
        model.headers,
        model.wall_clock,
        _query(model),
    )


def _query(model: OpenAIChat) -> dict[str, str]:
    """Azure's version of the API; its ``/openai/v1`` has none any more."""
    found = model.server
    if not found.deployments or is_azure_v1(found, model.base_url):
        return {}
    version = model.api_version or os.environ.get(found.api_version_variable) or found.api_version
    return {"api-version": version}


def _paths(model: OpenAIChat, account: Account) -> tuple[str, str]:
    """Behind the base URL, and behind that of a client of the SDK. On Azure a deployment is part of the path:
    https://learn.microsoft.com/azure/ai-services/openai/reference.
    """
    if not model.server.deployments or is_azure_v1(model.server, model.base_url):
        return PATH, PATH
    path = f"deployments/{quote(model.model, safe='')}/{PATH}"
    client = account.client
    told = client is not None and not isinstance(client, httpx2.AsyncClient) and "/deployments/" in client.base_url.path
    return f"openai/{path}", PATH if told else path


class _Client:
    def __init__(self, model: OpenAIChat, connection: Connection, tariff: Tariff) -> None:
        found = model.server
        self._tariff = tariff
        self._connection = connection
        self._options = ChatOptions(
            model.tag,
            found.dialect,
            model.max_tokens,
            model.extra,
            model.foreign_thinking,
            model.cache,
            model.prompt_cache_key,
            is_openai(f"https://{connection.host}"),
        )
        self._assemblers: Assemblers = (
            partial(ChatAssembler, found.reading),
            partial(ChatBodyAssembler, found.reading),
        )

    @property
    def unpriced(self) -> str | None:
        return self._tariff.lacks

    def stream(self, request: ModelRequest, timeouts: Timeouts) -> AbstractAsyncContextManager[ModelStream]:
        body = encode_request(request, self._options)
        return self._connection.stream(body, timeouts, self._assemblers, self._tariff)
