"""Faults of shared and abandoned streams that other agent runtimes were reported to have; see ``test_known_faults``."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import attrs
import trio
import trio.testing

from agentrio import Agent, Scripted, Usage, open_runtime, read_tool
from agentrio.actors.handle import SessionHandle
from agentrio.domain.session import Session
from agentrio.domain.state import SessionState, reduce
from agentrio.events import Event, TextDelta
from agentrio.providers.scripted import Reply, call


async def test_n06_three_agents_on_one_stream_fold_into_three_conversations(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What a child said and spent is its own: elsewhere it was counted as the parent's."""
    children: dict[str, SessionHandle] = {}

    @read_tool
    async def delegate(to: str) -> str:
        """Asks another agent."""
        return (await children[to].ask("Well?")).text

    asked = Reply(calls=(call("delegate", to="a"), call("delegate", to="b")), usage=Usage(input=1))
    parent = Agent(model=Scripted([asked, Reply("Both.", usage=Usage(input=2))]), tools=[delegate])
    seen: list[Event] = []
    async with open_runtime() as runtime, runtime.subscribe() as events:
        async with runtime.open_session(parent, id="p") as session, trio.open_nursery() as nursery:
            for name, usage in (("a", 10), ("b", 100)):
                model = Scripted([Reply(f"I am {name}. " * 20, usage=Usage(input=usage))])
                children[name] = await runtime.start_session(Agent(model=model), id=name)

            async def read() -> None:
                async for event in events:
                    seen.append(event)

            nursery.start_soon(read)
            result = await session.ask("Go.")
            values = {handle.id: handle.value for handle in (session, *children.values())}
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    order = [event.origin.session for event in seen]
    last = {name: len(order) - order[::-1].index(name) for name in "ab"}
    assert order.index("a") < last["b"]  # side by side, whichever was first
    assert order.index("b") < last["a"]
    states = {id: SessionState(Session(id, "agent")) for id in values}
    for event in seen:
        states[event.origin.session] = reduce(states[event.origin.session], event)
    assert {id: state.session for id, state in states.items()} == values
    spent = {id: state.run.usage.input for id, state in states.items() if state.run is not None}
    assert (spent, result.usage.input) == ({"p": 3, "a": 10, "b": 100}, 3)


@attrs.define
class Spans:
    """A tracer that keeps its open span in a context variable, as tracers do."""

    current: ContextVar[str] = attrs.field(factory=lambda: ContextVar("span", default="none"))
    ended: list[str] = attrs.field(factory=list)

    async def read(self, events: Any) -> None:
        """Read with a span open; the token is of this task's context, and is given back in it."""
        token = self.current.set("reading")
        how = "ended"
        try:
            async for event in events:
                assert self.current.get() == "reading", event
        except trio.Cancelled:
            how = "cancelled"
            raise
        finally:
            self.current.reset(token)
            self.ended.append(how)


async def test_n08_a_span_round_a_stream_ends_in_the_context_that_it_began_in(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No generator holds the reader's context: another task may stop the run or close the stream, or cancel it."""

    @read_tool
    async def stall() -> str:
        """Keeps the run open."""
        await trio.sleep_forever()

    spans = Spans()
    agent = Agent(model=Scripted([[call("stall")]] * 3), tools=[stall])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        for way in ("stop", "close", "cancel"):
            async with session.run("Go.") as run, trio.open_nursery() as nursery:
                nursery.start_soon(spans.read, run)
                await trio.testing.wait_all_tasks_blocked()
                if way == "stop":
                    run.stop()
                elif way == "close":
                    aiter(run).close()
                else:
                    nursery.cancel_scope.cancel()
            assert spans.current.get() == "none"
            assert run.result.status == "cancelled"
    assert spans.ended == ["ended", "ended", "cancelled"]


async def test_n08_a_span_of_the_run_is_seen_by_its_tools_and_kept_from_its_reader(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A tool runs in a copy of the caller's context; what it sets there is gone with it."""
    span: ContextVar[str] = ContextVar("span", default="none")
    seen: list[str] = []

    @read_tool
    async def look() -> str:
        """Looks."""
        seen.append(span.get())
        span.set("the tool's own")
        return "seen"

    agent = Agent(model=Scripted([[call("look"), call("look")], "Done."]), tools=[look])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        token = span.set("the caller's")
        async with session.run("Go.") as run:
            async for event in run:
                assert span.get() == "the caller's", event
                if isinstance(event, TextDelta):
                    break
        span.reset(token)
    assert seen == ["the caller's"] * 2
