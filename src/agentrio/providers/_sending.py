"""Posting many bodies to one URL: what is the same for each request is made once."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2

_TELEMETRY = "x-stainless-"  # of the SDKs: how they send, which is not how we do; a third of a request's cost in h11


def without_telemetry(headers: Mapping[str, str]) -> dict[str, str]:
    """An SDK's headers that say who we are, not how its own code works."""
    return {name: value for name, value in headers.items() if not name.lower().startswith(_TELEMETRY)}


class Poster:
    """Makes and sends requests that differ in their bodies alone.

    ``own`` says that the client is of our own making. Then its headers do not change and are merged once; a client that
    the user made may come to have cookies, and a request is built by it each time.
    """

    def __init__(self, http: httpx2.AsyncClient, url: httpx2.URL, headers: Mapping[str, str], *, own: bool) -> None:
        self._http = http
        self._url = url
        self._headers = httpx2.Headers(http.headers) if own else httpx2.Headers()
        self._headers.update(headers)
        self._own = own

    async def post(self, body: bytes, limits: dict[str, float | None]) -> httpx2.Response:
        """The response's head; ``limits`` are httpx2's timeouts.

        Raises:
            httpx2.HTTPError: no response came.
        """
        extensions = {"timeout": limits}
        make = httpx2.Request if self._own else self._http.build_request
        request = make("POST", self._url, content=body, headers=self._headers, extensions=extensions)
        return await self._http.send(request, stream=True)
