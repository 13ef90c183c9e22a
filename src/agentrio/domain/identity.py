"""Who a session acts for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from .errors import DeclarationError
from .keywords import tells_keywords


def _text(identity: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or (attribute.name == "subject" and not value):
        raise DeclarationError(f"Identity.{attribute.name} is {value!r:.100}; it must be a text.")


def _permissions(value: Iterable[str]) -> frozenset[str]:
    if isinstance(value, str):  # each of its letters would be one
        raise DeclarationError(f"Identity.permissions is the text {value!r:.100}; give a list or a set of texts.")
    try:
        made = frozenset(value)
    except TypeError:
        raise DeclarationError(f"Identity.permissions is {value!r:.100}; give a list or a set of texts.") from None
    for item in made:
        if not isinstance(item, str):
            raise DeclarationError(f"Identity.permissions holds {item!r:.100}; give texts.")
    return made


@tells_keywords
@attrs.frozen
class Identity:
    """The person or service that a session acts for: ``subject`` within ``tenant``, with what it may do.

    Raises:
        DeclarationError: the subject is empty, or something is no text.
    """

    subject: str = attrs.field(validator=_text)
    tenant: str = attrs.field(default="", validator=_text)
    permissions: frozenset[str] = attrs.field(default=frozenset(), converter=_permissions)
