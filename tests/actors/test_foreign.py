"""Code of others inside a run: what a prompt layer or a provider lets out harms its own run, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from agentrio import Agent, Scripted, SessionBusy, SessionCrashed, open_runtime, prompt_layer
from agentrio.actors.supervise import Foreign
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest
from agentrio.events import RoundStarted
from agentrio.providers.base import ModelClient, ModelStream, Timeouts


class Odd(BaseException):
    """Neither an error nor a cancel."""


async def leaked() -> BaseException:
    """A cancel of Trio's, let out of the scope that it belongs to."""
    with trio.CancelScope() as scope:  # noqa: ASYNC912  # what it has is the fault of this code
        scope.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled as cancelled:  # noqa: ASYNC103  # the fault of this code
            return cancelled  # noqa: ASYNC104  # as above
    raise AssertionError


async def made(kind: Callable[[], BaseException] | None) -> BaseException:
    return await leaked() if kind is None else kind()


KINDS = pytest.mark.parametrize(
    "kind",
    [None, asyncio.CancelledError, GeneratorExit, Odd, lambda: BaseExceptionGroup("two", [Odd(), ValueError()])],
    ids=["a leaked cancel", "asyncio's cancel", "GeneratorExit", "an own kind", "a group"],
)


@KINDS
async def test_p08_a_prompt_layer_that_raises_no_error_fails_its_run_alone(
    autojump_clock: trio.testing.MockClock, kind: Callable[[], BaseException] | None
) -> None:
    """Its own cancel is not the user's: the run fails, the session goes on, and so does its neighbour."""
    faults = [await made(kind)]

    async def layer(context: Any) -> str:
        if faults:
            raise faults.pop()
        return "Be brief."

    sick = Agent(model=Scripted(["Hi."]), prompt=[prompt_layer("live", layer)])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Ho."]))) as other:
        async with runtime.open_session(sick) as session:
            result = await session.ask("Go.")
            assert result.failure is not None
            assert (result.status, result.failure.code) == ("error", "dependency_failed")
            assert (await session.ask("Go.")).text == "Hi."
        assert (await other.ask("You?")).text == "Ho."


@attrs.define(eq=False)
class Raising:
    """A model that raises where it is asked, or where it is opened."""

    fault: BaseException
    opening: bool = False
    tag: ModelTag = attrs.field(factory=lambda: ModelTag("test", "test", "raising"))

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ModelClient]:
        await trio.lowlevel.checkpoint()
        if self.opening:
            raise self.fault
        yield self

    @asynccontextmanager
    async def stream(self, request: ModelRequest, timeouts: Timeouts) -> AsyncIterator[ModelStream]:
        await trio.lowlevel.checkpoint()
        if not self.opening:
            raise self.fault
        yield _Never()


class _Never:
    """What no test gets to."""

    async def receive(self) -> Any:
        raise NotImplementedError

    def response(self) -> Any:
        raise NotImplementedError


@KINDS
async def test_p08_a_provider_that_raises_no_error_ends_its_session_alone(
    autojump_clock: trio.testing.MockClock, kind: Callable[[], BaseException] | None
) -> None:
    """As with any other fault of a provider: nothing is known of its state, and it is told as a crash."""
    sick = Agent(model=Raising(await made(kind)))
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Ho."]))) as other:
        async with runtime.open_session(sick) as session:
            result = await session.ask("Go.")
            assert result.failure is not None
            assert (result.status, result.failure.code) == ("error", "crashed")
            with pytest.raises(SessionCrashed, match=r"close\(\) it, and open a new one"):
                await session.ask("Go.")
        assert (await other.ask("You?")).text == "Ho."


async def test_a_model_that_raises_no_error_while_it_is_opened_is_told_where_it_was_asked_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The task that opens it is shared by all: nothing of it may get out there."""
    async with open_runtime() as runtime, runtime.open_session(Agent(model=Scripted(["Ho."]))) as other:
        with pytest.raises(RuntimeError, match="raised Odd, which is neither an error nor a cancel"):
            await runtime.start_session(Agent(model=Raising(Odd(), opening=True)))
        assert (await other.ask("You?")).text == "Ho."


@pytest.mark.parametrize("exit", [KeyboardInterrupt, SystemExit])
async def test_an_exit_in_a_prompt_layer_ends_the_program(
    autojump_clock: trio.testing.MockClock, exit: type[BaseException]
) -> None:
    """It is meant for the process, also where it comes in a group; the run has its end first."""

    def layer(context: Any) -> str:
        raise BaseExceptionGroup("both", [exit(), ValueError()])

    runs = []
    with pytest.raises(exit):
        async with open_runtime() as runtime:
            session = await runtime.start_session(Agent(model=Scripted([]), prompt=[prompt_layer("live", layer)]))
            runs.append(await session.start("Go."))
            await trio.sleep_forever()
    assert runs[0].result.status == "cancelled"


async def test_a_layer_that_fails_beside_its_cancel_was_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    """Its clean-up raised while the user stopped it: the stop is what ends the run, and the session goes on."""

    async def fail_on_cancel() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("the clean-up failed")

    turns = [True]

    async def layer(context: Any) -> str:
        if turns:
            turns.pop()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail_on_cancel)
                nursery.start_soon(trio.sleep_forever)
        return ""

    async with open_runtime() as runtime:
        async with runtime.open_session(
            Agent(model=Scripted(["Hi."]), prompt=[prompt_layer("live", layer)])
        ) as session:
            run = await session.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            assert run.stop(reason="enough")
            await run.wait()
            assert (run.result.status, run.result.reason) == ("cancelled", "enough")
            assert (await session.ask("Again.")).text == "Hi."


async def test_an_error_of_foreign_code_passes_as_it_is() -> None:
    """Who calls it knows what to do with errors."""
    with pytest.raises(ValueError, match="mine"):
        with Foreign("a hook"):
            raise ValueError("mine")


async def test_what_ignores_a_stop_is_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The block is left when the grace is over; whoever comes next is told whom the session waits for."""

    async def deaf(context: Any) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
        return ""

    agent = Agent(model=Scripted(["Hi."]), prompt=[prompt_layer("weather", deaf)])
    async with open_runtime() as runtime, runtime.open_session(agent, id="s") as session:
        async with session.run("Go.") as run:
            async for event in run:
                if isinstance(event, RoundStarted):
                    break
        told = "run s-r1 was stopped and waits for prompt layer 'weather', which ignores that"
        assert told in caplog.text
        with pytest.raises(
            SessionBusy, match=r"it is stopping and waits for prompt layer 'weather', which ignores that"
        ):
            await session.ask("Again.")
        from agentrio import RunNotEnded

        with pytest.raises(RunNotEnded, match=r"its block was left\) and waits for prompt layer 'weather'.*await wait"):
            _ = run.result
        outcome: Any = await run.wait()
        assert outcome.status == "cancelled"
        assert (await session.ask("Again.")).text == "Hi."


async def test_what_holds_up_a_session_that_closes_is_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The runtime's block can't be left before it gives in, and somebody has to know why."""

    async def deaf(context: Any) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
        return ""

    agent = Agent(model=Scripted([]), prompt=[prompt_layer("weather", deaf)])
    async with open_runtime() as runtime:
        async with runtime.open_session(agent, id="s") as session:
            run = await session.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
        assert "run s-r1 was stopped and waits for prompt layer 'weather'" in caplog.text
    assert run.result.status == "cancelled"
