"""How a runtime ends: in order, whoever ends it, and with the exception that ended it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from agentrio import Agent, RuntimeCrashed, Scripted, SessionClosed, SessionCrashed, open_runtime, read_tool
from agentrio.actors import loop
from agentrio.actors.models import Models
from agentrio.actors.runtime import Runtime
from agentrio.agent.tool import Tool
from agentrio.domain.messages import ModelTag
from agentrio.domain.plan import plan
from agentrio.domain.state import SessionState
from agentrio.events import CallStarted, RunEnded
from agentrio.providers.base import ModelClient
from agentrio.providers.scripted import call
from agentrio.testing import check_history


async def test_a_cancel_while_the_runtime_opens_ends_it(autojump_clock: trio.testing.MockClock) -> None:
    """Its infrastructure is shielded; a cancel that comes before it is up must not wait for it for ever."""
    with trio.fail_after(10):
        with trio.CancelScope() as scope:
            scope.cancel()
            async with open_runtime():
                await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught


async def test_a_subscription_ends_with_the_runtime(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever watches a runtime from outside learns that it is over; a loop that waits for ever is a leak."""
    with trio.fail_after(10):
        async with open_runtime() as runtime:
            block = runtime.subscribe()
            reader = await block.__aenter__()
            async with runtime.open_session(Agent(model=Scripted(["Hello."]))) as session:
                await session.ask("Hi.")
        events = [event async for event in reader]
        assert isinstance(events[-1], RunEnded)
        async with runtime.subscribe() as late:
            assert [event async for event in late] == []


# The body's exception, and ours


async def test_the_bodys_own_exception_passes_as_it_is() -> None:
    """The block hides a nursery; nobody who writes `except KeyError` should have to know."""
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hello."]))):
            raise error
    assert caught.value is error


async def test_the_bodys_exception_passes_as_it_is_under_a_cancel_too() -> None:
    """What a cleanup raises is louder than the cancel it came from, as everywhere on Trio."""
    with pytest.raises(KeyError):
        with trio.CancelScope() as scope:
            async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hello."]))):
                scope.cancel()
                raise KeyError("mine")


async def test_an_outer_cancel_goes_through_the_block() -> None:
    """A runtime that swallowed it would let its caller go on after a timeout."""
    passed = []
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hello."]))):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                scope.cancel()
        passed.append("the block was left as if nothing had happened")
    assert scope.cancelled_caught
    assert not passed


async def test_a_cancelled_block_may_use_its_sessions_until_it_has_unwound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A cancel reaches the block first, and the sessions through it: no step of the block finds them gone."""
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Hello."]))) as session:
            scope.cancel()
            for _ in range(5):
                await trio.lowlevel.cancel_shielded_checkpoint()
            session.steer("Mind the wind.")
            async with session.run("Go.") as run:
                await trio.sleep_forever()
    assert scope.cancelled_caught
    assert run.result.status == "cancelled"
    assert [item.message.text for item in session.value.queue] == ["Mind the wind."]


async def test_a_fault_of_the_runtime_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its cause; and the cancel that it brought upon the body does not leak out of the block with it."""
    monkeypatch.setattr(Models, "close", _fails)
    with pytest.raises(RuntimeCrashed) as caught:
        async with open_runtime():
            pass
    assert set(_leaves(caught.value.__cause__)) == {ZeroDivisionError}


async def test_a_fault_beside_the_bodys_exception_comes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither hides the other."""
    monkeypatch.setattr(Models, "close", _fails)
    with pytest.RaisesGroup(RuntimeCrashed, KeyError):
        async with open_runtime():
            raise KeyError("mine")


def _fails(*_: object) -> None:
    raise ZeroDivisionError


def _leaves(error: BaseException | None) -> list[type[BaseException]]:
    if isinstance(error, BaseExceptionGroup):
        return [kind for inner in error.exceptions for kind in _leaves(inner)]
    return [type(error)] if error is not None else []


# Exits


@read_tool
async def leave(code: int = 3) -> str:
    """Leaves the program."""
    raise SystemExit(code)


@read_tool
async def interrupted() -> str:
    """Is where Ctrl-C happens to strike."""
    raise KeyboardInterrupt


@read_tool
async def wait() -> str:
    """Waits."""
    await trio.Event().wait()
    return ""


@read_tool
async def shielded_wait() -> str:
    """Waits, and hears nothing meanwhile."""
    with trio.CancelScope(shield=True):
        await trio.sleep(10)
    return ""


@pytest.mark.parametrize(("tool", "kind"), [(leave, SystemExit), (interrupted, KeyboardInterrupt)])
@pytest.mark.parametrize("other", [wait, shielded_wait])
@pytest.mark.parametrize("nested", [False, True])
async def test_an_exit_raised_by_a_tool_ends_the_runtime_in_order(
    tool: Tool[..., Any],
    kind: type[BaseException],
    other: Tool[..., Any],
    nested: bool,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Every run is told its end, then the exit comes out as what it is: not in a group, not as a failed call."""
    leaving = Agent(model=Scripted([[call(tool.name)]]), tools=[tool])
    staying = Agent(model=Scripted([[call(other.name)]]), tools=[other])
    ended: list[tuple[str, str]] = []
    with pytest.raises(kind):
        async with open_runtime() as runtime:
            reader = await runtime.subscribe(max_pending=10_000).__aenter__()
            first, second = await runtime.start_session(staying), await runtime.start_session(leaving)
            await first.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            await second.start("Go.")
            if nested:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(trio.sleep_forever)
                    nursery.start_soon(trio.sleep_forever)
            await trio.sleep_forever()
    async for event in reader:
        if isinstance(event, RunEnded):
            ended.append((event.origin.session, event.result.status))
    assert sorted(ended) == sorted([(first.id, "cancelled"), (second.id, "cancelled")])
    assert check_history(first.value.messages) == check_history(second.value.messages) == []


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
async def test_an_exit_in_a_run_itself_ends_the_runtime_in_order(
    kind: type[BaseException], autojump_clock: trio.testing.MockClock
) -> None:
    """Ctrl-C strikes whichever task is at work; its run and all others are told their end all the same."""

    def leave_now(request: object) -> str:
        raise kind

    with pytest.raises(kind):
        async with open_runtime() as runtime:
            reader = await runtime.subscribe(max_pending=10_000).__aenter__()
            waiting = await runtime.start_session(Agent(model=Scripted([[call("wait")]]), tools=[wait]))
            struck = await runtime.start_session(Agent(model=Scripted([leave_now])))
            await waiting.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            await struck.ask("Go.")
    ended = [event.result.status async for event in reader if isinstance(event, RunEnded)]
    assert ended == ["cancelled", "cancelled"]


async def test_an_exit_of_a_tool_is_not_held_up_by_another_tool(autojump_clock: trio.testing.MockClock) -> None:
    """The runs end at once; only the block waits for a tool that does not hear."""
    leaving = Agent(model=Scripted([[call("leave")]]), tools=[leave])
    staying = Agent(model=Scripted([[call("shielded_wait")]]), tools=[shielded_wait])
    with pytest.raises(SystemExit):
        async with open_runtime() as runtime:
            first, second = await runtime.start_session(staying), await runtime.start_session(leaving)
            run = await first.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            try:
                await second.ask("Go.")
            finally:
                with trio.CancelScope(shield=True):
                    await run.wait()
                assert trio.current_time() < 1


# Faults within a session


async def test_a_fault_in_one_session_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run ends as crashed, its next use says so; a neighbour notices nothing."""
    sound = plan

    def planned(state: SessionState) -> Any:
        if state.session.id == "s_bad":
            raise ZeroDivisionError
        return sound(state)

    monkeypatch.setattr(loop, "plan", planned)
    async with open_runtime() as runtime:
        bad = await runtime.start_session(Agent(model=Scripted(["Hello."])), id="s_bad")
        good = await runtime.start_session(Agent(model=Scripted(["Hello."])))
        result = await bad.ask("Hi.")
        assert (result.status, result.failure and result.failure.code) == ("error", "crashed")
        with pytest.raises(SessionCrashed) as caught:
            await bad.ask("Hi.")
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert (await good.ask("Hi.")).status == "succeeded"


# Tools that outlive their runs


async def test_a_tool_that_hears_nothing_holds_the_block_and_is_named(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    """Structured concurrency has no way round it; whoever waits must at least learn for what."""
    agent = Agent(model=Scripted([[call("shielded_wait")]]), tools=[shielded_wait])
    async with open_runtime() as runtime:
        session = await runtime.start_session(agent, id="s_held")
        async with session.run("Go.") as run:
            async for event in run:
                if isinstance(event, CallStarted):
                    await trio.testing.wait_all_tasks_blocked()
                    break
        assert run.result.status == "cancelled"
        assert trio.current_time() < 0.1
        assert runtime.orphans == 1
    assert trio.current_time() == pytest.approx(10)
    told = [
        record.message for record in caplog.records if record.name == "agentrio" and "closing waits" in record.message
    ]
    assert len(told) == 1
    assert "'shielded_wait'" in told[0]
    assert "s_held" in told[0]
    assert "await trio.sleep(10)" in told[0]


# A runtime that closes while a session opens


@attrs.define(eq=False)
class SlowModel:
    """A model that takes its time to open."""

    seconds: float
    opened: int = 0
    closed: int = 0
    tag: ModelTag = attrs.field(factory=lambda: ModelTag("test", "test", "slow"))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ModelClient]:
        self.opened += 1
        try:
            await trio.sleep(self.seconds)
            async with Scripted(["Hello."]).open() as client:
                yield client
        finally:
            self.closed += 1


@pytest.mark.parametrize("seconds", [1.0, 1_000.0])
async def test_a_runtime_may_close_while_a_model_opens(seconds: float, autojump_clock: trio.testing.MockClock) -> None:
    """Whoever waits for the session is told that there will be none, and nobody is left in the opening."""
    model = SlowModel(seconds)
    refused: list[bool] = []

    async def open_one(runtime: Runtime) -> None:
        with pytest.raises(SessionClosed):
            await runtime.start_session(Agent(model=model))
        refused.append(True)

    with trio.fail_after(100):
        async with trio.open_nursery() as nursery, open_runtime() as runtime:
            nursery.start_soon(open_one, runtime)  # noqa: ASYNC111  # a caller that outlives the runtime
            await trio.testing.wait_all_tasks_blocked()
            await runtime.close()
    assert refused
    assert model.opened == model.closed == 1


async def test_a_closed_runtime_opens_no_session() -> None:
    """It says so, whatever it would have had to open first."""
    async with open_runtime() as runtime:
        await runtime.close()
        with pytest.raises(SessionClosed):
            await runtime.start_session(Agent(model=Scripted(["Hello."])))
    with pytest.raises(SessionClosed):
        await runtime.start_session(Agent(model=Scripted(["Hello."])))


async def test_a_cancelled_opening_leaves_no_session_behind(autojump_clock: trio.testing.MockClock) -> None:
    """At every step of it: the id is free again, and no task is left that nobody has a handle to."""
    done = trio.Event()
    for steps in range(12):
        async with open_runtime() as runtime:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_cancel_after, steps, scope)
                    async with runtime.open_session(Agent(model=Scripted(["Hello."])), id="s_mine"):
                        done.set()
                        await trio.sleep_forever()
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(KeyError):
                runtime.session("s_mine")
    assert done.is_set()  # the last one came far enough


async def _cancel_after(steps: int, scope: trio.CancelScope) -> None:
    for _ in range(steps):
        await trio.lowlevel.checkpoint()
    scope.cancel()
