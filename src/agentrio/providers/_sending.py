"""Sending many bodies to one address: directly, where the credential is a header, or through an SDK's client.

Redirects are followed by neither: a key in a header of its own (``x-api-key``) and the conversation itself would go to
whatever host a server names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import Any, Protocol, cast

import attrs
import httpx2

from ._http import timeout_extension, unreachable
from ._secrets import redacted, secrets_in
from .base import ProviderError, Timeouts

BODY_HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}
"""A compressed stream could not be read as it comes."""

_TELEMETRY = "x-stainless-"  # of the SDKs: how they send, which is not how we do; a third of a request's cost in h11
_CREDENTIALS = ("api_key", "auth_token", "access_token")  # of a client of an SDK


def without_telemetry(headers: Mapping[str, str]) -> dict[str, str]:
    """An SDK's headers that say who we are, not how its own code works."""
    return {name: value for name, value in headers.items() if not name.lower().startswith(_TELEMETRY)}


class Sender(Protocol):
    """Makes one attempt with a body. ``secrets`` are the credentials that it knows, or that went with a request."""

    def secrets(self, request: httpx2.Request | None = None) -> tuple[str, ...]: ...

    async def send(self, body: bytes, timeouts: Timeouts) -> httpx2.Response: ...


class DirectSender:
    """Through httpx2 at once.

    ``own`` says that the client is of our own making. Then its headers do not change and are merged once; a client that
    the user made may come to have cookies, and a request is built by it each time.
    """

    def __init__(
        self, owner: str, http: httpx2.AsyncClient, url: httpx2.URL, headers: Mapping[str, str], *, own: bool
    ) -> None:
        self._owner = owner
        self._http = http
        self._url = url
        self._headers = httpx2.Headers(http.headers) if own else httpx2.Headers()
        self._headers.update(headers)
        self._own = own
        self._secrets = secrets_in(self._headers) + secrets_in(http.headers)

    def secrets(self, request: httpx2.Request | None = None) -> tuple[str, ...]:
        """Those among the headers, also among those that a client of the user's adds."""
        if self._own:
            return self._secrets
        sent = () if request is None else secrets_in(request.headers)
        return self._secrets + secrets_in(self._http.headers) + sent

    async def send(self, body: bytes, timeouts: Timeouts) -> httpx2.Response:
        """The response's head.

        Raises:
            ProviderError: the client that the user made is closed.
            httpx2.HTTPError: no response came.
        """
        if self._http.is_closed:
            raise ProviderError(
                f"The httpx2.AsyncClient given to {self._owner} is closed; keep it open as long as the runtime is.",
                code="invalid_request",
            )
        extensions = {"timeout": timeout_extension(timeouts)}
        make = httpx2.Request if self._own else self._http.build_request
        request = make("POST", self._url, content=body, headers=self._headers, extensions=extensions)
        return await self._http.send(request, stream=True, follow_redirects=False)


@attrs.frozen(eq=False)
class SdkSender:
    """Through an SDK, for credentials that it fetches or signs. The answer is the plain response, not its type.

    ``error`` is the SDK's own base of errors, ``no_credential`` our words for one that says there is none, and
    ``before``, if any, is awaited before each attempt.
    """

    sdk: ModuleType
    client: Any = attrs.field(repr=False)  # AsyncAnthropic, AsyncOpenAI and their sisters have a common ``post``
    path: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    error: type[Exception]
    no_credential: Callable[[str], str]
    before: Callable[[], Awaitable[None]] | None = None

    def secrets(self, request: httpx2.Request | None = None) -> tuple[str, ...]:
        """Those that the client knows by now; one that it fetches is known by the request alone."""
        known = (getattr(self.client, name, None) for name in _CREDENTIALS)
        sent = () if request is None else secrets_in(request.headers)
        return tuple(value for value in known if isinstance(value, str)) + secrets_in(self.headers) + sent

    async def send(self, body: bytes, timeouts: Timeouts) -> httpx2.Response:
        """One attempt.

        Raises:
            ProviderError: no response came, or no credential could be had.
        """
        sdk: Any = self.sdk
        if self.before is not None:
            await self.before()
        options = {
            "headers": {**self.headers, "X-Stainless-Raw-Response": "stream", **BODY_HEADERS},
            "timeout": httpx2.Timeout(None, read=max(timeouts.connect, timeouts.idle)),
            "follow_redirects": False,
        }
        try:
            answer = await self.client.post(
                self.path,
                cast_to=httpx2.Response,
                content=body,
                options=options,
                stream=True,
                stream_cls=sdk.AsyncStream[object],
            )
        except sdk.APIStatusError as refused:
            response: httpx2.Response = refused.response
            return response
        except sdk.APIConnectionError as broken:
            error = unreachable(self.client.base_url.host, broken.__cause__ or broken)
            raise redacted(error, secrets_in(broken.request.headers)) from broken
        except (self.error, TypeError, ValueError) as wrong:
            raise ProviderError(self.no_credential(str(wrong)[:200]), code="not_provisioned") from wrong
        return cast(httpx2.Response, answer)


@attrs.frozen(eq=False)
class NoSender:
    """Where nothing can be sent, and why."""

    message: str

    def secrets(self, request: httpx2.Request | None = None) -> tuple[str, ...]:
        """None."""
        return ()

    async def send(self, body: bytes, timeouts: Timeouts) -> httpx2.Response:
        """Fails.

        Raises:
            ProviderError: always (``not_provisioned``).
        """
        raise ProviderError(self.message, code="not_provisioned")
