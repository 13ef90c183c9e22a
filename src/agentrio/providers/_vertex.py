"""Claude at Google's Vertex AI: where a model is there, and a token that can be left waiting for.

The Messages API but for two things: the model is named in the path, and the version in the body. The SDK makes that
path from a body that is a dict; ours are bytes, so the path is ours too:
https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard
from urllib.parse import quote

import trio

from .base import ProviderError

if TYPE_CHECKING:
    from anthropic.lib.vertex import AsyncAnthropicVertex

CLIENT = "AsyncAnthropicVertex"
PROJECT_VARIABLE, REGION_VARIABLE = "ANTHROPIC_VERTEX_PROJECT_ID", "CLOUD_ML_REGION"
_PATH = "/projects/{project}/locations/{region}/publishers/anthropic/models/{model}:streamRawPredict"
_SAFE = "@:"  # claude-sonnet-4-5@20250929, and projects of a domain (example.com:name)


def is_vertex(client: object) -> TypeGuard[AsyncAnthropicVertex]:
    """Whether this is the SDK's client for Vertex, known by its name: the SDK may not have been imported yet."""
    return CLIENT in {cls.__name__ for cls in type(client).__mro__}


def vertex_path(client: AsyncAnthropicVertex, model: str) -> str:
    """Where the model's streams are, below the client's base URL."""
    named = {"project": client.project_id or "", "region": client.region, "model": model}
    return _PATH.format(**{name: quote(value, safe=_SAFE) for name, value in named.items()})


def what_lacks(client: AsyncAnthropicVertex) -> str | None:
    """What is wrong with a client that does not know its project or region.

    The SDK would take the project from Google's credentials, but only once the path has been made without it.
    """
    lacks = [
        f"{argument} (set {variable}, or give {CLIENT}(..., {argument}=...))"
        for argument, variable in (("project_id", PROJECT_VARIABLE), ("region", REGION_VARIABLE))
        if not getattr(client, argument)
    ]
    if not lacks:
        return None
    return f"Anthropic.client does not know its {' nor its '.join(lacks)}."


async def fetch_token(client: AsyncAnthropicVertex) -> None:
    """See that the client has a token that is valid now.

    Google's library fetches one with blocking calls. The SDK waits for their thread even when cancelled, up to minutes
    where the network is gone; this one is left behind by a stop.

    Raises:
        ProviderError: there is none to be had.
    """
    credentials = client.credentials
    if client.access_token is not None or (credentials and credentials.token and not credentials.expired):
        return
    try:
        await trio.to_thread.run_sync(trio.run, client._ensure_access_token, abandon_on_cancel=True)
    except Exception as wrong:  # of google-auth, of requests, of the SDK, of credentials that the user wrote
        raise _no_token(wrong) from wrong


def _no_token(wrong: Exception) -> ProviderError:
    words = " ".join(str(wrong).split())[:200] or type(wrong).__name__
    if getattr(wrong, "retryable", False) is True or type(wrong).__name__ == "TransportError":
        return ProviderError(f"Google gave no token: {words}", code="dependency_failed", retry="request")
    return ProviderError(
        f"There is no credential for Vertex ({words}). Install anthropic[vertex] and run `gcloud auth "
        f"application-default login`, or give {CLIENT}(..., access_token=...).",
        code="not_provisioned",
    )
