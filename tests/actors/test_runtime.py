"""The root: what it opens, what it refuses, and the order in which everything ends."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import agentrio
from agentrio import (
    Agent,
    DeclarationError,
    Identity,
    Run,
    RuntimeCrashed,
    Scripted,
    Session,
    SessionClosed,
    ToolContext,
    WouldDeadlock,
    open_runtime,
    read_tool,
)
from agentrio.actors.supervise import crashed
from agentrio.events import CallStarted, Event, RunEnded
from agentrio.providers.scripted import call
from tests.actors.kit import names, read_named, results, said


def agent_of(*replies: Any, name: str = "agent", tools: Any = ()) -> Agent[Any]:
    """An agent with a script."""
    return Agent(name=name, model=Scripted(replies), tools=tools)


async def _stall(ctx: ToolContext) -> str:
    await trio.sleep_forever()


# Opening


async def test_an_agent_can_be_opened_by_its_name(autojump_clock: trio.testing.MockClock) -> None:
    """A host that stores names only needs no table of its own."""
    async with open_runtime(agents=[agent_of("I plan.", name="planner"), agent_of(name="other")]) as runtime:
        async with runtime.open_session("planner") as session:
            assert (await session.ask("Go.")).text == "I plan."
            assert session.value.agent == "planner"
        with pytest.raises(DeclarationError, match=r"no agent 'nosuch'.*other, planner"):
            await runtime.start_session("nosuch")
    async with open_runtime() as runtime:
        with pytest.raises(DeclarationError, match="was given: none"):
            await runtime.start_session("planner")


async def test_two_agents_of_one_name_are_refused(autojump_clock: trio.testing.MockClock) -> None:
    """Which one a name means would be chance."""
    with pytest.raises(DeclarationError, match=r"two agents are called 'a'; rename one"):
        async with open_runtime(agents=[agent_of(name="a"), agent_of(name="a")]):
            pass


async def test_what_this_version_lacks_is_refused_by_name(autojump_clock: trio.testing.MockClock) -> None:
    """A store that is silently not used would lose runs."""
    with pytest.raises(DeclarationError, match="store= is not supported"):
        async with open_runtime(store="sqlite:x"):
            pass


async def test_sessions_have_ids_of_their_own_or_given_ones(autojump_clock: trio.testing.MockClock) -> None:
    """An id is one conversation; it is free again once that is closed."""
    agent = agent_of()
    async with open_runtime() as runtime:
        async with runtime.open_session(agent) as one, runtime.open_session(agent, id="mine") as mine:
            assert one.id.startswith("s_")
            assert mine.id == "mine"
            assert runtime.session("mine").value is mine.value
            with pytest.raises(ValueError, match="'mine' is open already"):
                await runtime.start_session(agent, id="mine")
            with pytest.raises(ValueError, match="the value's is 'mine'"):
                await runtime.start_session(agent, id="other", value=mine.value)
            with pytest.raises(KeyError, match="nosuch"):
                runtime.session("nosuch")
        with pytest.raises(KeyError):
            runtime.session("mine")
        async with runtime.open_session(agent, id="mine", value=mine.value) as again:
            assert again.id == "mine"


async def test_a_started_session_outlives_the_block_that_started_it(autojump_clock: trio.testing.MockClock) -> None:
    """The runtime owns it, and ends it."""
    async with open_runtime() as runtime:
        session = await runtime.start_session(agent_of("One.", "Two."), id="s")
        assert repr(runtime) == "<Runtime open with 1 sessions>"
        assert (await session.ask("Go.")).text == "One."
        assert (await runtime.session("s").ask("Go.")).text == "Two."
    assert repr(runtime) == "<Runtime closing with 0 sessions>"
    with pytest.raises(SessionClosed):
        await session.ask("Again.")


async def test_two_sessions_of_one_agent_work_side_by_side(autojump_clock: trio.testing.MockClock) -> None:
    """Conversations share nothing but the model's connections."""

    async def look(ctx: ToolContext) -> str:
        await trio.sleep(1)
        return f"{ctx.session_id} for {ctx.identity.subject if ctx.identity else None}"

    def reply(request: Any) -> Any:
        return [call("look")] if len(request.messages) == 1 else said(request.messages[2].parts[0])

    agent = agent_of(*[reply] * 4, tools=[read_named("look", look)])
    start = trio.current_time()
    texts: list[str] = []
    async with open_runtime() as runtime, trio.open_nursery() as nursery:

        async def converse(name: str) -> None:
            async with runtime.open_session(agent, id=name, identity=Identity(subject=f"u{name}")) as session:
                texts.append((await session.ask("Go.")).text)

        nursery.start_soon(converse, "1")
        nursery.start_soon(converse, "2")
    assert sorted(texts) == ["1 for u1", "2 for u2"]
    assert trio.current_time() - start == pytest.approx(1)


# Watching


async def test_a_subscriber_hears_every_session_and_its_stream_ends(autojump_clock: trio.testing.MockClock) -> None:
    """Dashboards need no list of sessions, and end with the runtime."""
    seen: list[Event] = []
    async with trio.open_nursery() as nursery:
        async with open_runtime() as runtime:

            async def watch() -> None:
                async with runtime.subscribe() as events:
                    async for event in events:
                        seen.append(event)

            nursery.start_soon(watch)
            await trio.testing.wait_all_tasks_blocked()
            for name in "ab":
                async with runtime.open_session(agent_of("Hi."), id=name) as session:
                    await session.ask("Go.")
    assert [event.origin.session for event in seen if isinstance(event, RunEnded)] == ["a", "b"]
    async with runtime.subscribe() as late:
        assert [event async for event in late] == []


@pytest.mark.parametrize("on_lag", ["merge", "drop", "wait"])
async def test_a_subscriber_may_hear_one_session_only(autojump_clock: trio.testing.MockClock, on_lag: Any) -> None:
    """In each way of lagging; the stream ends with the session."""
    async with open_runtime() as runtime:
        async with runtime.open_session(agent_of("Hi."), id="a") as a, runtime.open_session(agent_of("Ho.")) as b:
            async with runtime.subscribe(session="a", on_lag=on_lag) as events:
                await b.ask("Go.")
                await a.start("Go.")
                await trio.testing.wait_all_tasks_blocked()
                await a.close()
                seen = [event async for event in events]
    assert {event.origin.session for event in seen} == {"a"}
    assert names(seen)[-1] == "RunEnded"


async def test_a_subscription_that_can_not_work_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    """At the call, with the reason."""
    async with open_runtime() as runtime:
        with pytest.raises(ValueError, match="'merge', 'drop' or 'wait'"):
            runtime.subscribe(on_lag="loudly")  # type: ignore[arg-type]  # that is the mistake
        with pytest.raises(ValueError, match="name the session"):
            runtime.subscribe(on_lag="wait")
        with pytest.raises(KeyError):
            runtime.subscribe(session="nosuch")


# Waiting


async def test_quiet_is_when_no_run_and_no_tool_works(autojump_clock: trio.testing.MockClock) -> None:
    """Orphans too: what a test or a deployment wants to know before it goes on."""

    async def deaf(ctx: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(20)
        return ""

    async with open_runtime() as runtime:
        session = await runtime.start_session(agent_of([call("deaf")], tools=[read_named("deaf", deaf)]))
        await runtime.wait_quiet()
        start = trio.current_time()
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        run.stop()
        await runtime.wait_quiet()
        assert (run.result.status, trio.current_time() - start) == ("cancelled", 20)


async def test_a_tool_can_not_wait_for_quiet(autojump_clock: trio.testing.MockClock) -> None:
    """It is what makes the noise."""
    held: list[Any] = []

    async def work(ctx: ToolContext) -> str:
        with pytest.raises(WouldDeadlock):
            await held[0].wait_quiet()
        return "refused"

    async with open_runtime() as runtime:
        held.append(runtime)
        agent = agent_of([call("work")], "Done.", tools=[read_named("work", work)])
        async with runtime.open_session(agent) as session, session.run("Go.") as run:
            events = [event async for event in run]
    assert [said(item) for item in results(events)] == ["refused"]


# Ending


async def test_a_closed_runtime_opens_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """Closing stops every run; the block goes on, and closing twice is fine. Its end is final, for new models too."""
    async with open_runtime() as runtime:
        session = await runtime.start_session(agent_of([call("stall")], tools=[read_named("stall", _stall)]))
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        await runtime.close()
        await runtime.close()
        assert (run.result.status, run.result.reason) == ("cancelled", "the session was closed")
        with pytest.raises(SessionClosed, match="opens no more sessions"):
            await runtime.start_session(agent_of())
    with pytest.raises(SessionClosed):
        await runtime.start_session(agent_of())


async def test_a_tool_may_close_the_runtime(autojump_clock: trio.testing.MockClock) -> None:
    """An emergency stop is a tool like any other: its run ends, and nothing hangs."""
    held: list[Any] = []

    async def shut(ctx: ToolContext) -> str:
        await held[0].close()
        return "closed"

    start = trio.current_time()
    async with open_runtime() as runtime:
        held.append(runtime)
        session = await runtime.start_session(agent_of([call("shut")], tools=[read_named("shut", shut)]))
        run = await session.start("Go.")
        await run.wait()
        assert run.result.status == "cancelled"
    assert trio.current_time() - start < 1.5


async def test_a_cancel_from_outside_ends_runs_before_it_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    """Each run gets its ending and its results; the cancel is not swallowed."""
    after = False
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime:
            session = await runtime.start_session(agent_of([call("stall")], tools=[read_named("stall", _stall)]))
            run = await session.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.sleep(1)
        after = True
    assert scope.cancelled_caught
    assert not after
    assert run.result.status == "cancelled"
    assert session.value.messages[-1].role == "tool"


async def test_a_run_ends_by_a_cancel_that_its_user_has_not_noticed_yet(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The body may still be busy in a shield of its own; nobody has closed anything."""
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime:
            session = await runtime.start_session(agent_of([call("stall")], tools=[read_named("stall", _stall)]))
            run = await session.start("Go.")
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
                assert run.result.status == "cancelled"
                assert run.result.reason == "the task that hosts the session was cancelled"


async def test_a_cancel_while_a_session_is_opened_leaves_none_behind(autojump_clock: trio.testing.MockClock) -> None:
    """Nobody has a handle to close it with."""
    async with open_runtime() as runtime:
        agent = agent_of("Hi.")
        async with runtime.open_session(agent):
            pass  # the model is open from here on
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.start_session(agent, id="s")
        assert scope.cancelled_caught
        await trio.testing.wait_all_tasks_blocked()
        assert repr(runtime) == "<Runtime open with 0 sessions>"
        async with runtime.open_session(agent, id="s") as session:
            assert (await session.ask("Go.")).text == "Hi."


class Odd(BaseException):
    """Passes ``except Exception``."""


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3), Odd()])
async def test_what_the_body_raises_comes_as_it_is(
    autojump_clock: trio.testing.MockClock, error: BaseException
) -> None:
    """No group, no other name, whatever was at work meanwhile."""
    runs: list[Run] = []
    with pytest.raises(type(error)) as caught:
        async with open_runtime() as runtime:
            session = await runtime.start_session(agent_of([call("stall")], tools=[read_named("stall", _stall)]))
            runs.append(await session.start("Go."))
            await trio.testing.wait_all_tasks_blocked()
            raise error
    assert caught.value is error
    assert runs[0].result.status == "cancelled"


async def test_a_group_of_the_bodys_own_nursery_stays_a_group(autojump_clock: trio.testing.MockClock) -> None:
    """Exactly what the body would raise without us."""

    async def fail() -> None:
        raise KeyError("x")

    with pytest.RaisesGroup(KeyError):
        async with open_runtime(), trio.open_nursery() as nursery:  # noqa: ASYNC112  # its group is what is looked at
            nursery.start_soon(fail)


class _SickModel(Scripted):
    """A model whose connection fails when it is closed."""

    def open(self) -> Any:
        from contextlib import asynccontextmanager

        @asynccontextmanager
        async def opened() -> Any:
            async with super(_SickModel, self).open() as client:
                yield client
            raise OSError("the connection was lost")

        return opened()


async def test_a_fault_of_the_runtime_is_told_as_one(autojump_clock: trio.testing.MockClock) -> None:
    """Loudly, with its cause; what the body raised besides is beside it, not lost."""
    with pytest.raises(RuntimeCrashed) as caught:
        async with open_runtime() as runtime, runtime.open_session(Agent(model=_SickModel(["Hi."]))):
            pass
    assert isinstance(caught.value.__cause__, BaseExceptionGroup)
    with pytest.RaisesGroup(RuntimeCrashed, KeyError):
        async with open_runtime() as runtime, runtime.open_session(Agent(model=_SickModel(["Hi."]))):
            raise KeyError("mine")


def test_an_exit_beside_a_fault_keeps_its_name() -> None:
    """KeyboardInterrupt and SystemExit are never relabelled."""
    group = BaseExceptionGroup("x", [KeyboardInterrupt(), ValueError("a bug")])
    raised = crashed(group, None)
    assert isinstance(raised, BaseExceptionGroup)
    assert [type(error) for error in raised.exceptions] == [KeyboardInterrupt, RuntimeCrashed]


# In one call


async def test_asking_once_needs_no_runtime_of_ones_own(autojump_clock: trio.testing.MockClock) -> None:
    """Three lines for a script."""
    assert (await agentrio.ask(agent_of("42."), "What is it?")).text == "42."


def test_a_program_without_a_loop_asks_too() -> None:
    """The loop is ours, for as long as the question takes."""
    assert agentrio.run_sync(agent_of("42."), "What is it?").text == "42."


def test_the_session_of_a_block_is_a_value_in_the_end() -> None:
    """It can be kept, sent and opened again, wherever."""

    async def main() -> Session:
        async with open_runtime() as runtime, runtime.open_session(agent_of("Hi."), id="s") as session:
            await session.ask("Go.")
        return session.value

    value = trio.run(main)
    assert Session.from_json(value.to_json()) == value


def test_a_tool_keeps_its_call_signature() -> None:
    """Declared tools are still functions."""

    @read_tool
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(1) == 2
    assert CallStarted.structural
