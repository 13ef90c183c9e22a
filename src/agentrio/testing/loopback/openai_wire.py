"""What the two OpenAI wires share: ids, token counts, errors. Pure.

Written from the published rules: https://platform.openai.com/docs/guides/error-codes for errors.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agentrio.testing.loopback.script import Call, CallsReply, ModelReply, Received, WireUsage
from agentrio.testing.validators import Problem

__all__ = ["CREATED", "arguments_of", "call_id", "calls_of", "error_body", "error_of", "prompt_tokens", "refused_body"]

CREATED = 1_767_225_600  # seconds; the server's answers do not depend on the day
ERRORS: Mapping[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("server_error", "slow_down"),
}
"""Type and code by status."""


def error_body(status: int, error_type: str | None, message: str) -> bytes:
    """Return the body of an error status; without a type, the type and code that the API has for the status."""
    kind, code = ERRORS.get(status, ("server_error", None)) if error_type is None else (error_type, error_type)
    return msgspec.json.encode({"error": error_of(kind, code, message)})


def refused_body(problem: Problem) -> bytes:
    """Return the body that refuses a request, naming the parameter."""
    return msgspec.json.encode(
        {"error": error_of("invalid_request_error", None, str(problem)) | {"param": problem.path or None}}
    )


def error_of(kind: str, code: str | None, message: str) -> dict[str, object]:
    """Return the error itself, as bodies and streams have it."""
    return {"message": message, "type": kind, "param": None, "code": code}


def prompt_tokens(usage: WireUsage) -> int:
    """Return the whole prompt's tokens: here the cached ones are among them."""
    return usage.input + usage.cache_read + usage.cache_write


def calls_of(reply: ModelReply) -> tuple[Call, ...]:
    """Return the calls of a reply, perhaps none."""
    return reply.calls if isinstance(reply, CallsReply) else ()


def call_id(call: Call, request: Received, index: int) -> str:
    """Return the call's id, as given or made for the request."""
    return f"call_{request.number:06d}_{index}" if call.id is None else call.id


def arguments_of(call: Call) -> str:
    """Return the arguments as text; none at all are an empty object."""
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
