"""Who a session acts for."""

from __future__ import annotations

import attrs

from .keywords import tells_keywords


@tells_keywords
@attrs.frozen
class Identity:
    """The person or service that a session acts for: ``subject`` within ``tenant``, with what it may do."""

    subject: str
    tenant: str = ""
    permissions: frozenset[str] = frozenset()
