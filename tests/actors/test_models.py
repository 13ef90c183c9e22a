"""Models are opened once for a runtime, at their first use, and closed when nobody relies on them any more."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any

import attrs
import pytest
import trio

from agentrio import Agent, Scripted, SessionClosed, open_runtime
from agentrio.actors.models import LINGER, MOST_IDLE, Lease, Models
from agentrio.providers.base import ModelClient
from tests.actors.kit import Log, refused, watch


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


async def test_a_model_is_let_go_when_its_last_session_has_left_for_a_while(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A service that makes an agent for each request keeps no client of each; a quick next one finds it open."""
    log = Log()
    model = Watched(Scripted(["Hi."] * 4), log, _nothing)
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model)):
            async with runtime.open_session(Agent(model=model)):
                pass
            await trio.sleep(LINGER * 2)  # the other one uses it still
        await trio.sleep(LINGER - 1)
        async with runtime.open_session(Agent(model=model)):
            await trio.sleep(LINGER * 2)
        assert log.lines == ["opening", "open"]
        await trio.sleep(LINGER + 1)
        assert log.lines == ["opening", "open", "closed"]
        async with runtime.open_session(Agent(model=model)) as session:
            assert (await session.ask("Go.")).text == "Hi."
    assert log.lines == ["opening", "open", "closed"] * 2


async def test_few_models_linger_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """The one that was left first goes first, however quickly they come."""
    log = Log()
    async with open_runtime() as runtime:
        for _ in range(MOST_IDLE + 3):
            async with runtime.open_session(Agent(model=Watched(Scripted([]), log, _nothing))):
                pass
        await trio.testing.wait_all_tasks_blocked()
        assert log.lines.count("closed") == 3
    assert log.lines.count("closed") == MOST_IDLE + 3


async def test_a_model_whose_time_runs_out_as_it_is_wanted_is_opened_anew(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client that is being closed is given to nobody."""
    log = Log()
    model = Watched(Scripted(["Hi."]), log, _nothing)
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model)):
            pass
        await trio.sleep(LINGER)  # both wake at one time, and this one first
        async with runtime.open_session(Agent(model=model)) as session:
            assert (await session.ask("Go.")).text == "Hi."
        lines = ["opening", "open", "closed", "opening", "open"]
        assert sorted(log.lines) == sorted(lines)


async def test_nobody_waits_for_a_model_that_nobody_wants_any_more(autojump_clock: trio.testing.MockClock) -> None:
    """Its opening is given up, and the next who wants it begins anew."""
    log, first = Log(), [trio.sleep_forever, _nothing]
    model = Watched(Scripted(["Hi."]), log, lambda: first.pop(0)())
    async with open_runtime() as runtime:
        with trio.move_on_after(1):
            await runtime.start_session(Agent(model=model))
        with trio.fail_after(1):
            async with runtime.open_session(Agent(model=model)) as session:
                assert (await session.ask("Go.")).text == "Hi."
    assert log.lines == ["opening", "opening", "open", "closed"]


async def test_a_model_that_fails_while_it_is_let_go_harms_nobody(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged; no session uses it any more, and the next one opens it again."""
    model = Failing(Scripted(["Hi."]))
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model)):
            pass
        await trio.sleep(LINGER + 1)
        assert "failed, and is closed" in caplog.text
        async with runtime.open_session(Agent(model=model)) as session:
            assert (await session.ask("Go.")).text == "Hi."


@attrs.define(eq=False)
class Failing:
    """A model that can't be closed properly the first time."""

    script: Scripted
    failed: bool = False

    @property
    def tag(self) -> Any:
        return self.script.tag

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ModelClient]:
        async with self.script.open() as client:
            yield client
        if not self.failed:
            self.failed = True
            raise OSError("the connection was lost")


async def test_an_open_model_keeps_nothing_of_who_opened_it(autojump_clock: trio.testing.MockClock) -> None:
    """Its task outlives the session: what was in the caller's context would live as long."""
    variable: ContextVar[str] = ContextVar("variable", default="nothing")
    seen: list[str] = []

    async def look() -> None:
        seen.append(variable.get())
        await trio.lowlevel.checkpoint()

    variable.set("a secret of the request")
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Watched(Scripted([]), Log(), look))):
            pass
    assert seen == ["nothing"]


async def test_two_who_wait_for_one_model_of_a_lease_hear_both_of_its_failure(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """And give back one use between them."""

    async def fail() -> None:
        await trio.sleep(1)
        raise OSError("no route")

    model = Watched(Scripted([]), Log(), fail)
    models, raised = Models(), []

    async def wait(lease: Lease) -> None:
        try:
            await lease.client(model)
        except OSError as error:
            raised.append(str(error))

    async with trio.open_nursery() as nursery:
        await nursery.start(models.run)
        lease = models.lease()
        async with trio.open_nursery() as waiting:
            waiting.start_soon(wait, lease)
            waiting.start_soon(wait, lease)
        lease.release()
        models.close()
    assert raised == ["no route"] * 2


def test_agents_of_one_string_share_the_model() -> None:
    """A service that makes an agent for each request would open a connection for each; gone agents keep none."""
    first, second = (Agent(model="anthropic:claude-sonnet-5") for _ in range(2))
    assert first.model is second.model
    assert first.model is not Agent(model="anthropic:claude-opus-5").model


# Fallbacks


async def test_a_fallback_that_can_not_be_opened_is_told_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """Not when the first model has failed, in the middle of somebody's run."""

    async def fail() -> None:
        raise ImportError("install the SDK")

    log = Log()
    first, second = Watched(Scripted(["Hi."]), log, _nothing), Watched(Scripted([]), log, fail)
    async with open_runtime() as runtime:
        with pytest.raises(ImportError, match="install the SDK"):
            await runtime.start_session(Agent(model=first, fallbacks=[second]))
        async with runtime.open_session(Agent(model=first)) as session:
            assert (await session.ask("Go.")).text == "Hi."
    assert log.lines == ["opening", "open", "opening", "closed"]


@pytest.mark.parametrize("error", [ImportError("install the SDK"), refused("not_provisioned", None)])
async def test_a_model_that_can_not_be_opened_in_mid_run_falls_back(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It is a failure like any other of a model; where no other is left, the run ends with it."""
    open_one = Lease.client
    first, second = Scripted(["Never."]), Scripted(["Hi."])

    async def client(self: Lease, model: Any) -> ModelClient:
        if model is first and trio.lowlevel.current_task().name.startswith("run "):
            raise error
        return await open_one(self, model)

    monkeypatch.setattr(Lease, "client", client)
    _, result = await watch(Agent(model=first, fallbacks=[second]))
    assert result.text == "Hi."
    _, result = await watch(Agent(model=first))
    assert result.failure is not None
    assert result.failure.code == ("not_provisioned" if error.args[0] == "The server said no." else "dependency_failed")


async def test_models_that_are_let_go_are_not_opened_again(autojump_clock: trio.testing.MockClock) -> None:
    """Where the runtime broke, who comes late is told that it has ended."""
    models = Models()
    async with trio.open_nursery() as nursery:
        await nursery.start(models.run)
        models.close()
    with pytest.raises(SessionClosed, match="has ended"):
        await models.lease().client(Scripted([]))
