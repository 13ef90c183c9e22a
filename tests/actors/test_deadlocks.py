"""Waits that could only hang are refused where they are made; waits that end are not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from agentrio import Agent, RunStream, Scripted, SessionHandle, ToolContext, WouldDeadlock, open_runtime
from agentrio.actors.runtime import Runtime
from agentrio.providers.scripted import call
from tests.actors.kit import read_named, said

LONG = "word " * 3_000
"""More than a reader holds: the run waits for it to be read."""


async def test_the_block_of_a_run_that_has_ended_holds_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """Its reader has nothing more to come, so the next run does not wait for it."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["1", "2", "3"]))) as session:
        async with session.run("1") as run:
            async for _ in run:
                pass
            second = await session.start("2")
            await session.wait_idle()
            assert second.result.text == "2"
            assert (await session.ask("3")).text == "3"


@pytest.mark.parametrize("reading", ["iterating", "has ended"])
async def test_who_reads_is_who_may_not_wait(autojump_clock: trio.testing.MockClock, reading: str) -> None:
    """Where another task iterates, the one that opened the block may wait; unless that one has stopped reading."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted([LONG]))) as session:
        async with session.run("Go.") as run, trio.open_nursery() as nursery:

            async def consume() -> None:
                async for _ in run:
                    if reading == "has ended":
                        return
                    await trio.lowlevel.checkpoint()
                assert (await run.wait()) is run.result

            nursery.start_soon(consume)
            await trio.testing.wait_all_tasks_blocked()
            if reading == "has ended":
                with pytest.raises(WouldDeadlock, match="inside the block of run"):
                    await session.wait_idle()
                run.stop()
            await session.wait_idle()
            assert run.session_id == session.id


Wait = Callable[[Runtime, SessionHandle, RunStream], Awaitable[Any]]


def _current(session: SessionHandle) -> Any:
    return session.current_run


@pytest.mark.parametrize(
    "wait",
    [
        lambda runtime, session, run: run.wait(),
        lambda runtime, session, run: _current(session).wait(),
        lambda runtime, session, run: runtime.wait_quiet(),
    ],
)
async def test_each_wait_in_the_block_of_an_unread_run_is_refused(
    autojump_clock: trio.testing.MockClock, wait: Wait
) -> None:
    """Whichever way it is written; after a stop it is none that hangs."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted([LONG]))) as session:
        async with session.run("Go.") as run:
            with pytest.raises(WouldDeadlock, match="read its events to the end, stop it, or leave the block"):
                await wait(runtime, session, run)
            run.stop()
            await wait(runtime, session, run)
        assert run.result.status == "cancelled"


async def test_a_wait_inside_an_own_subscription_that_holds_runs_back_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Always, not only from the event on at which it would hang; in another task it is fine."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted([LONG] * 2)), id="s") as session:
        async with runtime.subscribe(session="s", on_lag="wait") as events:
            for wait in (session.ask("Go."), session.proceed()):
                with pytest.raises(WouldDeadlock, match=r"inside a subscription with on_lag='wait'.*in another task"):
                    await wait
            await session.wait_idle()
            run = await session.start("Go.")
            with pytest.raises(WouldDeadlock, match="inside a subscription"):
                await session.wait_idle()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run.wait)
                async for event in events:
                    if event.structural and type(event).__name__ == "RunEnded":
                        break
        assert (await session.ask("Go.")).text == LONG


@pytest.mark.parametrize("verb", ["wait_idle", "wait", "ask"])
async def test_tools_of_two_runs_can_not_wait_for_each_other(autojump_clock: trio.testing.MockClock, verb: str) -> None:
    """A's tool asks B, and B's tool waits for A: the circle is refused where it closes, however long it is."""
    held: dict[str, Any] = {}

    async def ask(ctx: ToolContext) -> str:
        return str((await held["B"].ask("Go.")).text)

    async def wait(ctx: ToolContext) -> str:
        a = held["A"]
        waiting = {"wait_idle": a.wait_idle, "wait": a.current_run.wait, "ask": lambda: a.ask("And?")}[verb]
        with pytest.raises(WouldDeadlock, match="one of whose tools waits for the run that it belongs to"):
            await waiting()
        return "refused"

    first = Agent(model=Scripted([[call("ask")], "Done."]), tools=[read_named("ask", ask)])
    second = Agent(model=Scripted([[call("wait")], "Well."]), tools=[read_named("wait", wait)])
    async with open_runtime() as runtime:
        async with runtime.open_session(first) as a, runtime.open_session(second) as b:
            held.update(A=a, B=b)
            assert (await a.ask("Go.")).text == "Done."
            assert [said(part) for part in b.value.messages[2].parts] == ["refused"]  # type: ignore[arg-type]  # a tool message holds results


async def test_a_tool_may_wait_for_a_run_that_waits_for_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """Who started it is not who waits for it."""
    held: dict[str, Any] = {}

    async def start(ctx: ToolContext) -> str:
        held["run"] = await held["B"].start("Go.")
        return "started"

    async def wait(ctx: ToolContext) -> str:
        await held["A"].wait_idle()
        return "waited"

    first = Agent(model=Scripted([[call("start")], "Done."]), tools=[read_named("start", start)])
    second = Agent(model=Scripted([[call("wait")], "Well."]), tools=[read_named("wait", wait)])
    async with open_runtime() as runtime:
        async with runtime.open_session(first) as a, runtime.open_session(second) as b:
            held.update(A=a, B=b)
            assert (await a.ask("Go.")).text == "Done."
            assert (await held["run"].wait()).text == "Well."
