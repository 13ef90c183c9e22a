"""What a tool is handed beside its arguments: memory, progress, context variables, who it works for."""

from __future__ import annotations

import contextvars

import pytest
import trio

from agentrio import Agent, Identity, Limits, Scripted, ToolContext, ToolError, open_runtime, read_tool, write_tool
from agentrio.domain.parts import Image
from agentrio.events import CallProgress, CallReturned
from agentrio.providers.scripted import call
from tests.actors.kit import Log, names, read_named, results, said, watch

PNG = Image("iVBORw0KGgo=", "image/png")


async def test_memory_is_told_in_call_order_behind_each_result(autojump_clock: trio.testing.MockClock) -> None:
    """The last writer is the last call, however long each took."""

    @read_tool
    async def note(ctx: ToolContext, value: str, seconds: float) -> str:
        """Remembers."""
        ctx.remember({"value": value, value: True})
        await trio.sleep(seconds)
        return value

    calls = [call("note", value="slow", seconds=2), call("note", value="quick", seconds=0)]
    agent = Agent(model=Scripted([calls, "Done."]), tools=[note])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            events = [event async for event in run]
        assert session.value.memory == {"value": "quick", "slow": True, "quick": True}
    kept = [name for name in names(events) if name in ("CallFinished", "MemoryPatched")]
    assert kept == ["CallFinished", "MemoryPatched"] * 2


async def test_a_segment_sees_the_memory_that_it_started_with(autojump_clock: trio.testing.MockClock) -> None:
    """Calls side by side do not see each other's patches; a call sees its own, and the next segment sees all."""
    log = Log()

    async def note(ctx: ToolContext) -> str:
        ctx.remember({ctx.call_id[-1]: 1})
        await trio.sleep(1)
        log(",".join(sorted(ctx.memory)))
        return ""

    reads = read_named("note", note)

    @write_tool
    async def save(ctx: ToolContext) -> str:
        """Looks."""
        log(",".join(sorted(ctx.memory)))
        return ""

    calls = [call("note"), call("note"), call("save")]
    await watch(Agent(model=Scripted([calls, "Done."]), tools=[reads, save]))
    assert (sorted(log.lines[:2]), log.lines[2]) == (["0", "1"], "0,1")


async def test_a_failed_call_keeps_its_memory_and_a_stopped_one_does_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A tool that ran to its end meant what it wrote; one that was cut off is in no state to be remembered."""

    async def fail(ctx: ToolContext) -> str:
        ctx.remember({"failed": 1})
        raise ToolError("No.")

    async def stall(ctx: ToolContext) -> str:
        ctx.remember({"stalled": 1})
        await trio.sleep_forever()

    tools = [read_named("fail", fail), read_named("stall", stall)]
    model = Scripted([[call("fail"), call("stall")], "Done."])
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model, tools=tools, limits=Limits(call_timeout=1.0))) as session:
            await session.ask("Go.")
            assert session.value.memory == {"failed": 1}


async def test_memory_of_a_stopped_run_is_that_of_its_finished_calls(autojump_clock: trio.testing.MockClock) -> None:
    """A call that had returned before the stop keeps its real result and what it remembered."""

    async def quick(ctx: ToolContext) -> str:
        ctx.remember({"quick": 1})
        return "quick"

    async def stall(ctx: ToolContext) -> str:
        ctx.remember({"stalled": 1})
        await trio.sleep_forever()

    tools = [read_named("quick", quick), read_named("stall", stall)]
    agent = Agent(model=Scripted([[call("stall"), call("quick")]]), tools=tools)
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, CallReturned) and event.status == "succeeded":
                    run.stop()
        assert [said(item) for item in results(events)] == ["cancelled", "quick"]
        assert session.value.memory == {"quick": 1}


async def test_progress_is_told_while_a_call_runs_and_never_after(autojump_clock: trio.testing.MockClock) -> None:
    """A view that has drawn a call as returned must not have to take it back."""
    kept: list[ToolContext] = []

    async def work(ctx: ToolContext) -> str:
        kept.append(ctx)
        await ctx.progress("half", done=1, total=2)
        return "done"

    async def later(ctx: ToolContext) -> str:
        await kept[0].progress("too late")
        return "done"

    tools = [read_named("work", work), read_named("later", later)]
    events, _ = await watch(Agent(model=Scripted([[call("work")], [call("later")], "Done."]), tools=tools))
    (told,) = [event for event in events if isinstance(event, CallProgress)]
    assert (told.text, told.done, told.total, told.call_id) == ("half", 1, 2, "c_s-r1_1_0")


request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")


@pytest.mark.parametrize("threaded", [False, True])
async def test_context_variables_of_the_caller_reach_the_tool(threaded: bool) -> None:
    """Tracing parents and request ids are those of whoever started the run."""

    async def in_task() -> str:
        """Looks."""
        return request_id.get()

    def in_thread() -> str:
        """Looks."""
        return request_id.get()

    tool = read_tool(name="look")(in_thread) if threaded else read_tool(name="look")(in_task)
    agent = Agent(model=Scripted([[call("look")], "Done."]), tools=[tool])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        token = request_id.set("r-7")
        async with session.run("Go.") as run:
            request_id.reset(token)
            events = [event async for event in run]
    assert [said(item) for item in results(events)] == ["r-7"]


async def test_a_tool_knows_for_whom_it_works(autojump_clock: trio.testing.MockClock) -> None:
    """Ids, identity and services are handed to it: it needs no globals."""
    seen: list[ToolContext] = []

    async def look(ctx: ToolContext) -> str:
        seen.append(ctx)
        return ""

    agent = Agent(name="copilot", model=Scripted([[call("look")], "Done."]), tools=[read_named("look", look)])
    await watch(agent, identity=Identity(subject="u1", tenant="t1"), services={"db": 1})
    (ctx,) = seen
    assert (ctx.session_id, ctx.run_id, ctx.call_id, ctx.agent) == ("s", "s-r1", "c_s-r1_1_0", "copilot")
    assert (ctx.identity, ctx.services) == (Identity(subject="u1", tenant="t1"), {"db": 1})
