"""The reader that pauses where it would have to wait."""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any

import pytest

from agentrio.providers._reading import _step


def test_what_is_thrown_at_a_reader_reaches_the_work_within() -> None:
    """As if there were nothing between the two: the work may answer it, or let it pass."""

    @types.coroutine
    def trap(name: str) -> Generator[Any, Any, Any]:
        return (yield name)

    async def work() -> bytes:
        try:
            answer: bytes = await trap("first")
        except KeyError:
            answer = await trap("second")
        return answer

    stepping = _step(work())
    assert stepping.send(None) == "first"
    assert stepping.throw(KeyError("thrown")) == "second"
    with pytest.raises(StopIteration) as returned:
        stepping.send(b"answer")
    assert returned.value.value == b"answer"
    stepping = _step(work())
    stepping.send(None)
    with pytest.raises(ValueError, match="not caught"):
        stepping.throw(ValueError("not caught"))
