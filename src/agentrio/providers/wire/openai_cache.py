"""How both OpenAI wires say which prompts begin alike: requests with one key go to the server that has their prefix.

https://platform.openai.com/docs/guides/prompt-caching
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias

Cache: TypeAlias = Literal["none", "short", "long"]

LONGEST_KEY = 64  # characters of a prompt_cache_key


def cache_fields(key: str, cache: Cache, *, long_ttl: bool) -> dict[str, Any]:
    """What the body says of it. ``long_ttl`` is whether the host keeps a prefix for a day."""
    if cache == "none" or not key:
        return {}
    if len(key) > LONGEST_KEY:
        key = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
    kept = {"prompt_cache_retention": "24h"} if cache == "long" and long_ttl else {}
    return {"prompt_cache_key": key} | kept
