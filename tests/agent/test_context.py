"""What a tool is given beside its arguments."""

from __future__ import annotations

import pytest

from agentrio.agent.context import ToolContext
from agentrio.domain.errors import MemoryPatchError
from agentrio.domain.identity import Identity


def test_a_context_is_made_with_no_runtime() -> None:
    """A tool must be testable as the function that it is."""
    ctx = ToolContext.for_test(identity=Identity("u1"), services={"db": 1}, memory={"a": 1})
    assert (ctx.identity, ctx.services, dict(ctx.memory)) == (Identity("u1"), {"db": 1}, {"a": 1})
    assert ctx.patches == ()
    assert ToolContext.for_test().services == {}


def test_a_call_sees_its_own_patches_and_nobody_elses() -> None:
    """Calls that run side by side share a snapshot; what each writes is merged in call order, later."""
    snapshot = {"count": 1, "gone": True}
    first, second = ToolContext.for_test(memory=snapshot), ToolContext.for_test(memory=snapshot)
    first.remember({"count": 2})
    first.remember({"gone": None, "never": None, "new": {"inner": None}})
    assert dict(first.memory) == {"count": 2, "new": {"inner": None}}
    assert dict(second.memory) == {"count": 1, "gone": True}
    assert first.patches == ({"count": 2}, {"gone": None, "never": None, "new": {"inner": None}})


def test_changing_what_is_read_from_memory_changes_nothing_else() -> None:
    """Memory is written by ``remember`` only; a list read from it, or from the patches, is the call's own copy."""
    snapshot = {"items": [1]}
    ctx = ToolContext.for_test(memory=snapshot)
    ctx.remember({"more": [1]})
    ctx.memory["items"].append(2)
    ctx.memory["more"].append(2)
    ctx.patches[0]["more"].append(2)
    assert snapshot == {"items": [1]}
    assert ctx.patches == ({"more": [1]},)
    with pytest.raises(TypeError):
        ctx.memory["items"] = []  # type: ignore[index]  # the mistake that is tested


def test_a_refused_patch_leaves_no_trace() -> None:
    """Half of a patch would be worse than none."""
    ctx = ToolContext.for_test()
    with pytest.raises(MemoryPatchError, match=r"^patch\.b is a set"):
        ctx.remember({"a": 1, "b": set()})
    assert (dict(ctx.memory), ctx.patches) == ({}, ())


async def test_progress_reaches_who_listens() -> None:
    """The pool passes a callback in; a unit test may too, or none."""
    heard = []

    async def listen(text: str, done: float | None, total: float | None) -> None:
        heard.append((text, done, total))

    await ToolContext.for_test(progress=listen).progress("half", done=1, total=2)
    await ToolContext.for_test().progress("nobody listens")
    assert heard == [("half", 1, 2)]
