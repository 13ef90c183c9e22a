"""Checks of what a model's declaration says, shared by all HTTP providers. Nothing that may be secret is repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

import httpx2

from agentrio.domain.errors import DeclarationError
from agentrio.domain.handoff import ForeignThinking
from agentrio.domain.limits import MOST, shown
from agentrio.domain.plain import unicode_text

from .wire.json import encode

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
NO_KEY = "is empty or holds characters that no key has"
_OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # headers that follow from it


def check_model(owner: str, model: object, max_tokens: object) -> None:
    """Refuse what can't be a model's name or a limit.

    Raises:
        DeclarationError: naming what is wrong.
    """
    if not isinstance(model, str) or not model.strip() or unicode_text(model) != model:
        raise DeclarationError(f"{owner}.model is {shown(model)}; it must be a model's name.")
    if max_tokens is None:
        return
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or not 1 <= max_tokens <= MOST:
        told = f"it must be a whole number above 0 and at most {MOST}, or None."
        raise DeclarationError(f"{owner}.max_tokens is {shown(max_tokens)}; {told}")


def check_cache(owner: str, cache: object) -> None:
    """Refuse what says not how long a prompt's prefix is kept.

    Raises:
        DeclarationError: naming what would.
    """
    if cache not in ("none", "short", "long"):
        raise DeclarationError(f"{owner}.cache is {shown(cache)}; it must be none, short or long.")


def check_cache_key(owner: str, key: object) -> None:
    """Refuse what can't be a key of a prompt's cache.

    Raises:
        DeclarationError: it is no text.
    """
    if not isinstance(key, str | None):
        raise DeclarationError(f"{owner}.prompt_cache_key is {shown(key)}; it must be a text.")


def check_foreign(owner: str, foreign: object) -> None:
    """Refuse what can't be done with other models' reasoning.

    Raises:
        DeclarationError: naming what would.
    """
    if foreign not in get_args(ForeignThinking):
        raise DeclarationError(f"{owner}.foreign_thinking is {shown(foreign)}; it must be label or drop.")


def check_base_url(owner: str, base_url: str) -> None:
    """Refuse what can't be a server's address.

    Raises:
        DeclarationError: naming what is wrong with it.
    """
    if fault := address_fault(base_url):
        raise DeclarationError(f"{owner}.base_url {fault}")


def address_fault(base_url: object) -> str | None:
    """What is wrong with a server's address, and how to mend it; None where it may be one."""
    if not isinstance(base_url, str):
        return f"is {shown(base_url)}; it must be a text, such as 'http://127.0.0.1:8080'."
    told = "is what holds an @" if "@" in base_url else f"is {shown(base_url)}"
    try:
        parts, url = urlsplit(base_url), httpx2.URL(base_url)
        host, _port = url.raw_host.decode("ascii").encode("idna"), parts.port  # as a lookup of its address does
    except (ValueError, httpx2.InvalidURL) as wrong:
        return f"{told}; it is no URL ({wrong})."
    if parts.username is not None or parts.password is not None:
        return "holds a user name or password; give them as api_key or headers."
    if url.scheme not in ("http", "https") or not host:
        return f"{told}; it must be http:// or https:// with a host, such as http://127.0.0.1:8080."
    if not base_url.isprintable() or " " in base_url:
        return f"{told}; it must have no spaces in it."
    if parts.query or parts.fragment:
        return f"{told}; it must have neither a query nor a fragment."
    return None


def check_key(owner: str, api_key: str | None, variables: Iterable[str]) -> None:
    """Refuse what can't be a key. ``variables`` are those of the environment that may hold it instead.

    Raises:
        DeclarationError: it is empty, or can't stand in a header.
    """
    if api_key is not None and not is_key(api_key):
        where = " or ".join(variables) or "none"
        raise DeclarationError(f"{owner}.api_key {NO_KEY}; leave it out to use {where}.")


def is_key(api_key: object) -> bool:
    """Whether this can be a key: what can stand in a header behind another word."""
    return bool(api_key) and _is_header(api_key)


def check_headers(owner: str, headers: Mapping[str, str]) -> None:
    """Refuse what can't be sent as headers.

    Raises:
        DeclarationError: a name or a value can't.
    """
    if not isinstance(headers, Mapping) or not all(map(_is_header, headers.values())):
        raise DeclarationError(
            f"{owner}.headers must map names to texts of printable ASCII characters, without spaces around them."
        )
    for name in headers:
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise DeclarationError(f"{owner}.headers has {shown(name)}, which can't be a header's name.")
        if name.lower() in _OF_THE_BODY:
            raise DeclarationError(f"{owner}.headers must not have {name}: it follows from the body.")


def _is_header(text: object) -> bool:
    """Whether it can be a header's value; HTTP has none that begins or ends with a space."""
    return isinstance(text, str) and text.isascii() and text.isprintable() and text == text.strip()


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
    if not isinstance(extra, Mapping) or not all(isinstance(name, str) for name in extra):
        raise DeclarationError(f"{owner}.extra must map names of fields to their values.")
    if both := ours & extra.keys():
        raise DeclarationError(f"{owner}.extra must not have {', '.join(sorted(both))}; the request has them.")
    try:
        encode(extra)
    except (TypeError, ValueError, OverflowError, RecursionError) as wrong:
        raise DeclarationError(f"{owner}.extra can't be sent as JSON: {wrong}") from None
