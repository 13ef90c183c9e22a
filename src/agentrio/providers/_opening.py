"""The slow part of opening a model, in a thread that nobody has to wait for.

An SDK takes a second or more to import, and nothing can stop an import. Whoever is cancelled while he waits for one
leaves it to its thread, which ends with it. Who opens the same SDK meanwhile joins that import, by the interpreter's
own lock on the module.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TypeVar, TypeVarTuple

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def begin(fn: Callable[[*Ts], T], *args: *Ts) -> T:
    """What ``fn`` returns. A cancel leaves it to itself, and drops what it returns: it must hold nothing open."""
    return await trio.to_thread.run_sync(_begin, fn, args, abandon_on_cancel=True)


def _begin(fn: Callable[[*Ts], T], args: tuple[*Ts]) -> T:
    return fn(*args)


def begins(frame: FrameType | None) -> bool:
    """Whether the thread with this frame on top is at work for ``begin``: it ends by itself, and is no leak."""
    while frame is not None:
        if frame.f_code is _begin.__code__:
            return True
        frame = frame.f_back
    return False
