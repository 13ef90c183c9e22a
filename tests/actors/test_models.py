"""Models are opened once for a runtime, at their first use, and closed when nobody relies on them any more."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs
import pytest
import trio

from agentrio import Agent, Scripted, SessionClosed, open_runtime
from agentrio.actors.models import Models
from agentrio.providers.base import ModelClient
from tests.actors.kit import Log


@attrs.define(eq=False)
class Watched:
    """A scripted model that notes when it is opened and closed, after it has done what it is told to."""

    script: Scripted
    log: Log
    first: Callable[[], Any]

    @property
    def tag(self) -> Any:
        return self.script.tag

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ModelClient]:
        self.log("opening")
        await self.first()
        async with self.script.open() as client:
            self.log("open")
            yield client
        self.log("closed")


async def _nothing() -> None:
    await trio.lowlevel.checkpoint()


async def test_a_model_is_opened_once_and_closed_at_the_end(autojump_clock: trio.testing.MockClock) -> None:
    """Sessions of one model share its connections; two that open at once wait for the same opening."""
    log = Log()
    model = Watched(Scripted(["Hi."] * 4), log, functools.partial(trio.sleep, 1))
    async with open_runtime() as runtime:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(runtime.start_session, Agent(model=model))
        async with runtime.open_session(Agent(model=model)) as session:
            await session.ask("Go.")
        assert log.lines == ["opening", "open"]
    assert log.lines == ["opening", "open", "closed"]


async def test_a_model_that_can_not_be_opened_says_so_where_it_was_asked_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The error is for everyone who waited to handle; the runtime works on, and the next try may succeed."""
    log, failures = Log(), [OSError("no route"), OSError("no route")]

    async def fail() -> None:
        await trio.sleep(1)
        if failures:
            raise failures.pop()

    model = Watched(Scripted(["Hi."]), log, fail)
    raised: list[OSError] = []
    async with open_runtime() as runtime:

        async def open_one() -> None:
            try:
                await runtime.start_session(Agent(model=model))
            except OSError as error:
                raised.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(open_one)
            nursery.start_soon(open_one)
        assert [str(error) for error in raised] == ["no route"] * 2
        with pytest.raises(OSError, match="no route"):
            async with runtime.open_session(Agent(model=model)):
                pass
        async with runtime.open_session(Agent(model=model)) as session:
            assert (await session.ask("Go.")).text == "Hi."
    assert log.lines == ["opening", "opening", "opening", "open", "closed"]


async def test_a_runtime_does_not_wait_for_a_model_that_is_still_opening(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Who wanted it has gone."""
    log = Log()
    model = Watched(Scripted([]), log, trio.sleep_forever)
    start = trio.current_time()
    async with open_runtime() as runtime:
        with trio.move_on_after(1):
            await runtime.start_session(Agent(model=model))
    assert trio.current_time() - start == pytest.approx(1)
    assert log.lines == ["opening"]


async def test_who_waits_for_a_model_while_the_runtime_ends_is_told_so(autojump_clock: trio.testing.MockClock) -> None:
    """A task outside of the runtime's block must not hang or see one of our own assertions."""
    model = Watched(Scripted([]), Log(), trio.sleep_forever)
    raised: list[BaseException] = []
    async with trio.open_nursery() as nursery:
        async with open_runtime() as runtime:

            async def wait() -> None:
                with pytest.raises(SessionClosed) as caught:
                    await runtime.start_session(Agent(model=model))
                raised.append(caught.value)

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
    assert len(raised) == 1


async def test_runs_end_before_their_model_is_closed(autojump_clock: trio.testing.MockClock) -> None:
    """What a run relies on outlives it, a cancel from outside included."""
    log = Log()
    model = Watched(Scripted(["A long answer, in pieces."]), log, _nothing)
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime:
            session = await runtime.start_session(Agent(model=model))
            async with session.run("Go.") as run:
                async for event in run:
                    log(type(event).__name__)
                    if log.lines[-1] == "TextDelta":
                        scope.cancel()
    assert run.result.status == "cancelled"
    assert log.lines[-1] == "closed"


async def test_models_that_are_let_go_are_not_opened_again(autojump_clock: trio.testing.MockClock) -> None:
    """Where the runtime broke, who comes late is told that it has ended."""
    models = Models()
    async with trio.open_nursery() as nursery:
        await nursery.start(models.run)
        models.close()
    with pytest.raises(SessionClosed, match="has ended"):
        await models.client(Scripted([]))
