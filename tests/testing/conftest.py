"""What the tests of the testing kit share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import httpx2
import pytest


class HasUrl(Protocol):
    """A server, in this process or another."""

    base_url: str


OpenClient = Callable[[HasUrl], AbstractAsyncContextManager[httpx2.AsyncClient]]


@asynccontextmanager
async def _open_client(server: HasUrl) -> AsyncIterator[httpx2.AsyncClient]:
    # No certificates and no proxies of the environment: it is loopback.
    async with httpx2.AsyncClient(base_url=server.base_url, verify=False, trust_env=False, timeout=None) as client:
        yield client


@pytest.fixture
def open_client() -> OpenClient:
    """A plain HTTP client for a server, without time limits."""
    return _open_client
