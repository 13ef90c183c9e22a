"""What a tool may remember: plain JSON, checked where it is written."""

from __future__ import annotations

from typing import Any

from ..domain.errors import MemoryPatchError
from ..domain.plain import NotPlain, article, plain_copy


def check_patch(patch: object) -> dict[str, Any]:
    """A deep copy of a memory patch, made of nothing but JSON values of the exact Python types.

    Raises:
        MemoryPatchError: something in it is not a dict with string keys, list, string, integer, finite float, bool or
            None; the message names its path, such as ``patch.a.items[2]``.
    """
    if type(patch) is not dict:
        raise MemoryPatchError(f"patch is {article(patch)}; it must be a dict.")
    try:
        copy: dict[str, Any] = plain_copy(patch, "patch")
    except NotPlain as wrong:
        raise MemoryPatchError(str(wrong)) from None
    return copy
