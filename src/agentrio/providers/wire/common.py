"""What the wires' assemblers share: odd values read without a fault, and answers that are one body."""

from __future__ import annotations

import math
from typing import Any

from agentrio.providers.base import PartDelta, ProviderError

from .json import decode
from .sse import MAX_EVENT

MAX_BODY = 4 * MAX_EVENT  # bytes of an answer that is no stream


def count(value: object) -> int:
    """A number of tokens; what is none, is nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0
    return max(0, int(value))


def string(value: object) -> str:
    """A text; what is none, is empty."""
    return value if isinstance(value, str) else ""


def put(delta: PartDelta | None, out: list[PartDelta]) -> None:
    """Append, unless there is nothing."""
    if delta is not None:
        out.append(delta)


def dropped(message: str) -> ProviderError:
    """A response that broke off."""
    return ProviderError(message, code="stream_dropped", retry="stream")


class Body:
    """The one body of an answer, as it comes. ``what`` says in errors what it should have been."""

    def __init__(self, what: str, limit: int = MAX_BODY) -> None:
        self._what = what
        self._limit = limit
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        """More of it.

        Raises:
            ProviderError: it is larger than the limit (``invalid_response``).
        """
        self._data += data
        if len(self._data) > self._limit:
            raise ProviderError(
                f"The server sent a body of more than {self._limit:,} bytes; that is the limit.",
                code="invalid_response",
            )

    def read(self) -> dict[str, Any]:
        """The whole.

        Raises:
            ProviderError: it is no JSON object (``invalid_response``).
        """
        try:
            found = decode(bytes(self._data))
        except ValueError:
            raise self.unfit("it is no JSON") from None
        if isinstance(found, list) and found and isinstance(found[0], dict) and "error" in found[0]:
            found = found[0]  # how Gemini's server wraps its errors
        if not isinstance(found, dict):
            raise self.unfit("it is no JSON object")
        return found

    def unfit(self, why: str) -> ProviderError:
        """The error for a body that is not what it should be."""
        return ProviderError(f"The server's answer is not {self._what}: {why}.", code="invalid_response")
