"""Checks of what a model's declaration says, shared by all HTTP providers. Nothing that may be secret is repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from agentrio.domain.errors import DeclarationError

from .wire.json import encode


def check_model(owner: str, model: object, max_tokens: object) -> None:
    """Refuse what can't be a model's name or a limit.

    Raises:
        DeclarationError: naming what is wrong.
    """
    if not isinstance(model, str) or not model.strip():
        raise DeclarationError(f"{owner}.model is {model!r}; it must be a model's name.")
    if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1):
        raise DeclarationError(f"{owner}.max_tokens is {max_tokens!r}; it must be a whole number above 0, or None.")


def check_base_url(owner: str, base_url: str) -> None:
    """Refuse what can't be a server's address.

    Raises:
        DeclarationError: naming what is wrong with it.
    """
    mend = f"{owner}.base_url is {base_url!r}; "
    try:
        parts = urlsplit(base_url)
        host, _port = parts.hostname, parts.port
    except ValueError as wrong:
        raise DeclarationError(f"{mend}it is no URL ({wrong}).") from None
    if parts.username is not None or parts.password is not None:
        raise DeclarationError(f"{owner}.base_url holds a user name or password; give them as api_key or headers.")
    if parts.scheme not in ("http", "https") or not host:
        raise DeclarationError(f"{mend}it must be http:// or https:// with a host, such as http://127.0.0.1:8080.")
    if parts.query or parts.fragment:
        raise DeclarationError(f"{mend}it must have neither a query nor a fragment.")


def check_key(owner: str, api_key: str | None, variables: Iterable[str]) -> None:
    """Refuse what can't be a key. ``variables`` are those of the environment that may hold it instead.

    Raises:
        DeclarationError: it is empty, or can't stand in a header.
    """
    if api_key is not None and not (api_key.strip() and _is_header(api_key)):
        where = " or ".join(variables) or "none"
        raise DeclarationError(
            f"{owner}.api_key is empty or holds characters that no key has; leave it out to use {where}."
        )


def check_headers(owner: str, headers: Mapping[str, str]) -> None:
    """Refuse what can't be sent as headers.

    Raises:
        DeclarationError: a name or a value can't.
    """
    if not all(_is_header(name) and _is_header(value) for name, value in headers.items()):
        raise DeclarationError(f"{owner}.headers must map names to texts of printable ASCII characters.")


def _is_header(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable()


def check_sdk_client(owner: str, client: object, kinds: tuple[str, ...], wanted: str, *, given: bool) -> None:
    """Refuse a client that is none of the SDK's, or that a key or a base URL is ``given`` beside.

    The SDK may not have been imported yet, so ``kinds`` are names of its classes; ``wanted`` names them to the user.

    Raises:
        DeclarationError: naming what it is, and what it should be.
    """
    if not {cls.__name__ for cls in type(client).__mro__} & {*kinds}:
        raise DeclarationError(f"{owner}.client is a {type(client).__name__}; it must be {wanted}.")
    if given:
        raise DeclarationError(
            f"{owner}.client is a client of the SDK, which has its own key and base URL; give them to that client."
        )


def check_extra(owner: str, extra: Mapping[str, Any], ours: frozenset[str]) -> None:
    """Refuse fields of the body that the request has itself, and what is no JSON.

    Raises:
        DeclarationError: naming what is wrong.
    """
    if both := ours & extra.keys():
        raise DeclarationError(f"{owner}.extra must not have {', '.join(sorted(both))}; the request has them.")
    try:
        encode(extra)
    except (TypeError, ValueError) as wrong:
        raise DeclarationError(f"{owner}.extra can't be sent as JSON: {wrong}") from None
