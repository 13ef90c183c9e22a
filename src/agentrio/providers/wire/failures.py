"""What a server's error means: by status and typed code first, by words only for the size of a prompt.

Shared by all wires. An error body is read whatever its shape: Anthropic's ``{"type": "error", "error": {"type",
"message"}, "request_id"}``, OpenAI's ``{"error": {"message", "type", "code"}}`` (llama.cpp too), Gemini's
``[{"error": {"code", "message", "status", "details"}}]``, xAI's ``{"error": "text"}``, Mistral's ``{"detail": ...}``,
a proxy's HTML, nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs

from agentrio.domain.plain import unicode_text
from agentrio.domain.status import Code
from agentrio.providers.base import ProviderError

from .json import decode

Retry: TypeAlias = Literal["request", "stream"] | None

MAX_QUOTE = 500  # characters of the server's own message


@attrs.frozen
class ServerError:
    """What an error body says: its type, its code, its message, and where given the status it stands for.

    Of OpenAI's errors the code is the more exact one: type ``tokens`` has code ``rate_limit_exceeded``. Google tells a
    reason in the details instead, and there the seconds to ``wait`` (https://google.aip.dev/193).
    """

    type: str = ""
    message: str = ""
    status: int | None = None
    request_id: str | None = None
    code: str = ""
    wait: float | None = None


def unwrapped(found: Any) -> Any:
    """The error of a list that holds nothing else, as Gemini's server sends it."""
    return found[0] if isinstance(found, list) and found and _is_error(found[0]) else found


def _is_error(found: Any) -> bool:
    return isinstance(found, Mapping) and "error" in found


def read_error(body: bytes) -> ServerError:
    """What the body of an error says; never raises."""
    try:
        found = decode(body)
    except (ValueError, ProviderError):
        return ServerError(message=_quote(body.decode("utf-8", "replace")))
    return error_of(found)


def error_of(found: Any) -> ServerError:
    """What a decoded error says, whatever its shape."""
    found = unwrapped(found)
    if not isinstance(found, Mapping):
        return ServerError(message=_quote(found if isinstance(found, str) else ""))
    inner = found.get("error")
    source = inner if isinstance(inner, Mapping) else found
    message = next((text for text in map(_text, _messages(inner, source, found)) if text), "")
    code, details = source.get("code"), _details(source)
    status = code if isinstance(code, int) else source.get("status")
    named = code if isinstance(code, str) else details.get("reason")
    request_id = found.get("request_id")
    return ServerError(
        _type(source)[:MAX_QUOTE],
        _quote(message),
        status if isinstance(status, int) and 400 <= status < 600 else None,
        request_id[:MAX_QUOTE] if isinstance(request_id, str) else None,
        named[:MAX_QUOTE] if isinstance(named, str) else "",
        _seconds(details.get("retryDelay")),
    )


def _details(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """What Google's details say, each of which has keys of its own."""
    found = source.get("details")
    told = [detail for detail in found if isinstance(detail, Mapping)] if isinstance(found, list) else []
    return {key: value for detail in reversed(told) for key, value in detail.items() if isinstance(key, str)}


def _seconds(duration: Any) -> float | None:
    """Of a duration as Google writes it: ``34.07s``."""
    return _number(duration[:-1], 1) if isinstance(duration, str) and duration.endswith("s") else None


def _messages(inner: Any, source: Mapping[str, Any], found: Mapping[str, Any]) -> list[Any]:
    return [source.get("message"), inner, found.get("detail"), found.get("message"), found.get("title")]


def _text(value: Any) -> str:
    if isinstance(value, list) and value:  # FastAPI's list of {"msg": ...}
        value = value[0].get("msg") if isinstance(value[0], Mapping) else value[0]
    return value if isinstance(value, str) else ""


def _type(source: Mapping[str, Any]) -> str:
    for key in ("type", "code"):
        value = source.get(key)
        if isinstance(value, str) and value not in ("", "error"):
            return value
    return ""


def _quote(text: str) -> str:
    text = unicode_text(re.sub(r"<[^<>]*>", " ", text) if text.lstrip()[:1] == "<" else text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


def from_status(status: int, headers: Mapping[str, str], body: bytes, now: float) -> ProviderError:
    """The error that an HTTP answer is. ``headers`` are looked up in lower case; ``now`` is the wall clock's."""
    said = read_error(body)
    code, retry = _of_status(status, said)
    if headers.get("x-should-retry") == "false":  # the server knows that trying again is of no use
        retry = None
    return ProviderError(
        f"The model server answered {status}: {_where_to(status, headers) or said.message or 'no message'}",
        code=code,
        retry=retry,
        status=status,
        retry_after=_longest([retry_after(headers, now), said.wait]) if retry else None,
        request_id=said.request_id or _request_id(headers),
        type=said.type or None,
    )


def _request_id(headers: Mapping[str, str]) -> str | None:
    told = headers.get("request-id") or headers.get("x-request-id")
    return told and told[:MAX_QUOTE]


def _where_to(status: int, headers: Mapping[str, str]) -> str:
    """Of a redirect, where it leads: it is not followed, for the credential would go with the request."""
    if not 300 <= status < 400:
        return ""
    try:
        host = urlsplit(headers.get("location", "")).hostname or "another path"
    except ValueError:
        host = "an address that is none"
    return f"it redirects to {_quote(host)}, and redirects are not followed; give the server's own address as base_url."


def from_frame(found: Any, *, begun: bool) -> ProviderError:
    """The error that a frame within a stream tells; ``begun`` is whether content came before it."""
    said = error_of(found)
    code, retry = _of_type(said)
    return ProviderError(
        f"The model server broke off: {said.message or said.type or 'no message'}",
        code=code,
        retry="stream" if retry and begun else retry,
        retry_after=said.wait if retry else None,
        request_id=said.request_id,
        type=said.type or None,
    )


_BY_STATUS: dict[int, tuple[Code, Retry]] = {
    401: ("unauthorized", None),
    402: ("unauthorized", None),
    403: ("unauthorized", None),
    408: ("dependency_failed", "request"),
    409: ("dependency_failed", "request"),
    429: ("rate_limited", "request"),
    503: ("not_provisioned", "request"),
    529: ("overloaded", "request"),
}

_BY_TYPE: dict[str, tuple[Code, Retry]] = {
    "overloaded_error": ("overloaded", "request"),
    "rate_limit_error": ("rate_limited", "request"),
    "rate_limit_exceeded": ("rate_limited", "request"),
    "insufficient_quota": ("rate_limited", None),
    "server_error": ("dependency_failed", "request"),
    "server_is_overloaded": ("overloaded", "request"),
    "slow_down": ("overloaded", "request"),
    "invalid_api_key": ("unauthorized", None),
    "model_not_found": ("invalid_request", None),
    "data_residency_mismatch": ("invalid_request", None),
    "failed_to_download_image": ("invalid_request", None),
    "invalid_base64_image": ("invalid_request", None),
    "invalid_image": ("invalid_request", None),
    "invalid_image_format": ("invalid_request", None),
    "invalid_image_url": ("invalid_request", None),
    "invalid_prompt": ("invalid_request", None),
    "image_file_too_large": ("invalid_request", None),
    "image_parse_error": ("invalid_request", None),
    "image_too_large": ("invalid_request", None),
    "image_too_small": ("invalid_request", None),
    "unsupported_image_media_type": ("invalid_request", None),
    "bio_policy": ("content_filter", None),
    "content_filter": ("content_filter", None),
    "content_policy_violation": ("content_filter", None),
    "image_content_policy_violation": ("content_filter", None),
    "misalignment_policy_violation": ("content_filter", None),
    "invalid_request_error": ("invalid_request", None),
    "not_found_error": ("invalid_request", None),
    "request_too_large": ("context_overflow", None),
    "authentication_error": ("unauthorized", None),
    "permission_error": ("unauthorized", None),
    "billing_error": ("unauthorized", None),
}
"""https://docs.anthropic.com/en/api/errors, https://platform.openai.com/docs/guides/error-codes, and of the codes of
``response.error`` (https://platform.openai.com/docs/api-reference/responses/object) those that are no server's fault.
"""


def _of_status(status: int, said: ServerError) -> tuple[Code, Retry]:
    if status in (400, 413, 422) and (is_overflow(said) or (status == 413 and not said.message)):
        return "context_overflow", None
    if status == 400 and said.code in ("content_filter", "content_policy_violation"):  # Azure's
        return "content_filter", None
    if status == 400 and said.code == "API_KEY_INVALID":  # Google's
        return "unauthorized", None
    if status >= 500 and said.type == "overloaded_error":
        return "overloaded", "request"
    if status == 429 and "insufficient_quota" in (said.type, said.code):
        return "rate_limited", None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return ("dependency_failed", "request") if status >= 500 else ("invalid_request", None)


def _of_type(said: ServerError) -> tuple[Code, Retry]:
    if is_overflow(said):
        return "context_overflow", None
    for name in (said.code, said.type):
        if name in _BY_TYPE:
            return _BY_TYPE[name]
    if said.status is not None:
        return _of_status(said.status, said)
    return "dependency_failed", "request"


_OVERFLOW_TYPES = frozenset(
    {"request_too_large", "context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}
)

_OVERFLOW = re.compile(
    r"prompt is too long|input is too long for requested model|exceeds? the (?:model's )?context window"
    r"|input token count.*exceeds the maximum|maximum prompt length is \d|reduce the length of the messages"
    r"|maximum context length is \d|exceeds the limit of \d|exceeds the available context size"
    r"|greater than the context length|context window exceeds limit|exceeded model token limit"
    r"|too large for model with \d+ maximum context length|context[ _]length[ _]exceeded|too many tokens"
    r"|token limit exceeded|exceed context limit",
    re.IGNORECASE | re.DOTALL,
)

_THROTTLED = re.compile(r"please wait|rate limit|throttl|try again later|per (?:minute|second|hour|day)", re.IGNORECASE)


def is_overflow(said: ServerError) -> bool:
    """Whether the prompt did not fit: by type, then by words, which must not be those of a throttled server."""
    if said.type in _OVERFLOW_TYPES or said.code in _OVERFLOW_TYPES:
        return True
    if {said.type, said.code} & {"rate_limit_error", "overloaded_error", "rate_limit_exceeded"}:
        return False
    return bool(_OVERFLOW.search(said.message)) and not _THROTTLED.search(said.message)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds the server asks to wait: the longest of what it says.

    Azure sends ``retry-after-ms: 0`` beside ``retry-after: 1``; dates are read against ``now``.
    """
    asked = [_number(headers.get("retry-after-ms"), 1000), _seconds_or_date(headers.get("retry-after"), now)]
    return _longest(asked)


def _longest(asked: Iterable[float | None]) -> float | None:
    return max((wait for wait in asked if wait is not None), default=None)


def _number(text: str | None, per_second: int) -> float | None:
    try:
        wait = float(text or "") / per_second
    except ValueError:
        return None
    return wait if 0 <= wait < float("inf") else None


def _seconds_or_date(text: str | None, now: float) -> float | None:
    wait = _number(text, 1)
    if wait is not None or not text:
        return wait
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
