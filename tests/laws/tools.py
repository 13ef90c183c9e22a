"""The tools of generated scenes: deterministic by their arguments, of both kinds, well and badly behaved."""

from __future__ import annotations

import trio

from agentrio.agent.context import ToolContext
from agentrio.agent.results import ToolError
from agentrio.agent.tool import read_tool, write_tool


@read_tool
async def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


@read_tool
async def dig(chars: int) -> str:
    """Bring up a lot."""
    return "earth " * (chars // 6)


@read_tool
async def wait(seconds: float) -> str:
    """Look for a while."""
    await trio.sleep(seconds)
    return f"waited {seconds}"


@read_tool(timeout=1)
async def hang(ctx: ToolContext) -> str:
    """Never come back by itself."""
    ctx.remember({"hung": True})
    await trio.sleep_forever()


@read_tool
async def fail(n: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {n}")


@read_tool
async def explain(n: int) -> str:
    """Fail in words for the model."""
    raise ToolError(f"no {n}")


@read_tool
async def remember(ctx: ToolContext, key: str, seconds: float = 0) -> str:
    """Remember something, and be slow about it."""
    ctx.remember({key: ctx.call_id})
    await trio.sleep(seconds)
    return "noted"


@read_tool
async def report(ctx: ToolContext, times: int) -> str:
    """Tell how far it is."""
    for number in range(times):
        await ctx.progress(f"step {number}", done=number, total=times)
        await trio.sleep(0.1)
    return "reported"


@read_tool(timeout=0.5)
async def stubborn(seconds: float) -> str:
    """Ignore every cancellation for a while."""
    with trio.CancelScope(shield=True):
        await trio.sleep(seconds)
    return "done at last"


@write_tool
async def write(ctx: ToolContext, n: int, seconds: float = 0) -> str:
    """Write and remember it."""
    await trio.sleep(seconds)
    ctx.remember({"written": n})
    return f"wrote {n}"


@write_tool(timeout=1)
async def hang_writing(n: int) -> str:
    """Write without end."""
    await trio.sleep_forever()


@write_tool
async def fail_writing(n: int) -> str:
    """Fail to write."""
    raise ToolError("the disk is full")


@write_tool
async def finish_writing(seconds: float) -> str:
    """Write to the end although it was cancelled."""
    with trio.CancelScope(shield=True):
        await trio.sleep(seconds)
    return "written"


TOOLS = (
    look,
    dig,
    wait,
    hang,
    fail,
    explain,
    remember,
    report,
    stubborn,
    write,
    hang_writing,
    fail_writing,
    finish_writing,
)
