"""What a server says, without our credentials: it may quote what it was sent. The one place that takes them out.

All that a server says of a response goes through here: errors, stop reasons, ids, names of models. What the model
itself says (texts, reasoning, arguments, blocks kept verbatim) is what was asked for, and goes back to it as it came;
nothing in it is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

from .base import ModelResponse, ProviderError

SHORTEST_SECRET = 6  # characters; a local server's "none" or "test" is a word of its messages
TELLING = 16  # characters of a longer secret that are taken out even if the rest does not follow
LONGEST = 500  # characters of a name or a reason that a server gives
REDACTED = "[key]"

_SECRET_NAMES = re.compile("auth|key|token|secret|cookie|credential", re.IGNORECASE)


def secrets_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The credentials among the headers of a request: by their names, without the scheme before them."""
    values = (value for name, value in headers.items() if _SECRET_NAMES.search(name))
    return tuple(value.strip().rpartition(" ")[2] for value in values if value)


def redacted(error: ProviderError, secrets: Iterable[str]) -> ProviderError:
    """The error without our credentials, and without the beginning of one whose rest was cut away.

    What is too short to be a secret (``none``, for a server that asks for no key) is left: it would be in other words.
    """
    for secret in _longest_first(secrets):
        error.message = _without(error.message, secret) or ""
        error.request_id = _without(error.request_id, secret)
        error.type = _without(error.type, secret)
    error.args = (error.message,)
    return error


def redacted_response(response: ModelResponse, secrets: Iterable[str]) -> ModelResponse:
    """The response without our credentials in what the server says of it, each text of it within a bound."""
    said = (response.raw_stop_reason, response.stop_detail, response.model, response.response_id)
    told = said
    for secret in _longest_first(secrets):
        told = tuple(_without(text, secret) for text in told)  # type: ignore[assignment]  # four stay four
    reason, detail, model, id = (text if text is None else text[:LONGEST] for text in told)
    if (reason, detail, model, id) == said:
        return response
    return attrs.evolve(response, raw_stop_reason=reason, stop_detail=detail, model=model or "", response_id=id or "")


def _longest_first(secrets: Iterable[str]) -> list[str]:
    """A secret may begin with another."""
    return sorted({secret for secret in secrets if len(secret) >= SHORTEST_SECRET}, key=len, reverse=True)


def _without(text: str | None, secret: str) -> str | None:
    if text is None or secret[:SHORTEST_SECRET] not in text:  # the usual case
        return text
    text = _without_beginnings(text.replace(secret, REDACTED), secret)
    whole = text.removesuffix("…")
    for size in range(len(secret) - 1, SHORTEST_SECRET - 1, -1):
        if whole.endswith(secret[:size]):
            return whole[:-size] + REDACTED
    return text


def _without_beginnings(text: str, secret: str) -> str:
    """Without as much of a long secret as there is of it: servers quote keys in part, and quotes are cut."""
    beginning = secret[:TELLING]
    if len(beginning) < TELLING:
        return text
    while (at := text.find(beginning)) >= 0:
        end = at + TELLING
        while end - at < len(secret) and text[end : end + 1] == secret[end - at]:
            end += 1
        text = text[:at] + REDACTED + text[end:]
    return text
