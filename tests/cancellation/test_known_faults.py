"""Faults of stopping that other agent runtimes were reported to have, and that must be impossible here.

The letters and numbers are those of the project's list of such faults. Each scene is the reported sequence in our
terms; the assertions are what is right.
"""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import attrs
import pytest
import trio
import trio.testing

from agentrio import (
    Agent,
    Anthropic,
    OpenAIChat,
    OpenAIResponses,
    Scripted,
    Session,
    open_runtime,
    read_tool,
    write_tool,
)
from agentrio.actors.handle import RunStream, SessionHandle
from agentrio.actors.readers import Reader
from agentrio.agent.tool import Tool
from agentrio.domain.messages import Message, ModelTag
from agentrio.domain.parts import CallError, Text, ToolCall, ToolResult
from agentrio.domain.render import ModelRequest
from agentrio.events import CallFinished, CallReturned, CallStarted, Event, RunEnded, TextDelta
from agentrio.providers.base import ModelClient, ModelStream, Timeouts
from agentrio.providers.scripted import call
from agentrio.testing import (
    DescriptorCounter,
    Fault,
    HoldingClock,
    LeakCheck,
    ModelServer,
    Reply,
    TextReply,
    WireUsage,
    check_events,
    check_history,
    no_leaks,
    open_model_server,
)

Seen = list[Event]


def agent(*replies: Any, tools: tuple[Tool[..., Any], ...] = ()) -> Agent[Any]:
    return Agent(model=Scripted(list(replies)), tools=tools)


@asynccontextmanager
async def served(*replies: Reply) -> AsyncIterator[tuple[ModelServer, SessionHandle]]:
    """A session whose model answers over a socket in the same loop."""
    async with open_model_server(replies) as server, open_runtime() as runtime:
        model = Anthropic("claude-loopback", api_key="key", base_url=server.base_url)
        async with runtime.open_session(Agent(model=model)) as session:
            yield server, session


async def read_until(run: RunStream | Reader, kind: type[Event], seen: Seen | None = None) -> None:
    async for event in run:
        if seen is not None:
            seen.append(event)
        if isinstance(event, kind):
            return


def results(session: Session) -> list[ToolResult]:
    return [part for message in session.messages for part in message.parts if isinstance(part, ToolResult)]


def endings(events: Seen) -> list[str]:
    return [event.result.status for event in events if isinstance(event, RunEnded)]


@attrs.define
class Told:
    """A tool that waits, and what became of it."""

    cancelled_at: float | None = None

    def tool(self, seconds: float) -> Tool[..., Any]:
        @read_tool(name="wait")
        async def wait() -> str:
            """Waits."""
            try:
                await trio.sleep(seconds)
            except trio.Cancelled:
                self.cancelled_at = trio.current_time()
                raise
            return "waited"

        return wait


# A. A stop reaches the wire, and the tools


async def test_a01_a_deadline_round_the_next_event_ends_a_slow_tool(autojump_clock: trio.testing.MockClock) -> None:
    """A timeout of the reader is a cancel of the run that it owns; elsewhere the run did not notice."""
    told = Told()
    async with open_runtime() as runtime:
        async with runtime.open_session(agent([call("wait")], tools=(told.tool(120),))) as session:
            with pytest.raises(trio.TooSlowError):
                with trio.fail_after(5):
                    async with session.run("Go.") as run:
                        await read_until(run, RunEnded)
            await runtime.wait_quiet()
            assert trio.current_time() == pytest.approx(5)
            async with session.events(after=0) as events:
                heard: Seen = []
                with trio.move_on_after(1):
                    async for event in events:
                        heard.append(event)
    assert told.cancelled_at == 5
    assert endings(heard) == endings(heard[-1:]) == ["cancelled"]


async def test_a01_a_deadline_of_a_mere_reader_leaves_the_run_alone(autojump_clock: trio.testing.MockClock) -> None:
    """Who only watches owns nothing: the run goes on, and can be read again from where the watching ended."""
    told = Told()
    async with open_runtime() as runtime:
        async with runtime.open_session(agent([call("wait")], "Done.", tools=(told.tool(120),))) as session:
            run = await session.start("Go.")
            with trio.move_on_after(5):
                async with session.events() as events:
                    async for _ in events:
                        pass
            assert run.outcome is None
            async with session.events(after=0) as events:
                again: Seen = []
                await read_until(events, RunEnded, again)
            assert endings(again) == ["succeeded"]
    assert told.cancelled_at is None


@pytest.mark.parametrize("fault", [Fault(stall_after=4), Fault(stall_after=0), Fault(stall_before_headers=True)])
async def test_a03_a_stop_wakes_a_silent_stream(fault: Fault, holding_clock: HoldingClock) -> None:
    """No chunk has to come before the flag is looked at: the server sees the connection go, and the run is over."""
    async with served(TextReply("It will be sunny, I think.", fault=fault), TextReply("Yes.")) as (server, session):
        run = await session.start("Go.")
        await server.wait_request()
        await trio.sleep(0.1)
        assert run.stop()
        with trio.fail_after(0.1):
            result = await run.wait()
            exchange = await server.wait_ended()
        assert getattr(result, "status", None) == "cancelled"
        assert exchange.ended == "client_closed"
        assert (await session.ask("Again?")).text == "Yes."


@pytest.mark.parametrize("how", ["shielded", "swallowed", "own error"])
async def test_a09_a_tool_that_swallows_the_stop_starts_no_request(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Elsewhere the loop took its result for a go-ahead. Here it is kept, where it came in time, and that is all."""

    @write_tool
    async def deaf() -> str:
        """Writes, whatever is asked of it."""
        try:
            with trio.CancelScope(shield=how == "shielded"):
                await trio.sleep(0.5)
        except trio.Cancelled:  # noqa: ASYNC103  # the fault of this tool
            if how == "own error":
                raise ValueError("I was interrupted") from None  # noqa: ASYNC104  # as above
        return "written"

    model = Scripted([[call("deaf")], "Never said."])
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=model, tools=[deaf])) as session:
            async with session.run("Go.") as run:
                await read_until(run, CallStarted)
                await trio.testing.wait_all_tasks_blocked()
                run.stop()
            assert run.result.status == "cancelled"
            assert len(model.requests) == 1
            (result,) = results(session.value)
            assert result.status == ("failed" if how == "own error" else "succeeded")
            assert check_history(session.value.messages) == []


async def test_a13_stopped_streams_give_their_connections_back(holding_clock: HoldingClock) -> None:
    """Elsewhere the pool was empty after some stops, and every later request timed out."""
    stalled = TextReply("It will be sunny, I think.", fault=Fault(stall_after=4))
    async with served(*[stalled] * 20, TextReply("Yes.")) as (server, session):
        idle = LeakCheck(DescriptorCounter())
        for number in range(1, 21):
            async with session.run("Go.") as run:
                await read_until(run, TextDelta)
            assert run.result.status == "cancelled"
            assert (await server.wait_ended(number)).ended == "client_closed"
            await idle.check()
        with trio.fail_after(1):
            assert (await session.ask("Again?")).text == "Yes."


# B. What a stop leaves behind


async def test_b02_a_stopped_write_and_one_never_started_are_told_apart(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A model that believes that nothing happened on disk would do it again."""
    files: list[str] = []

    @write_tool
    async def create(name: str) -> str:
        """Creates a file."""
        files.append(name)
        await trio.sleep(60)
        return "created"

    asked = [call("create", name="a"), call("create", name="b")]
    async with open_runtime() as runtime, runtime.open_session(agent(asked, tools=(create,))) as session:
        async with session.run("Go.") as run:
            await read_until(run, CallStarted)
            await trio.testing.wait_all_tasks_blocked()
        interrupted, unstarted = results(session.value)
    assert files == ["a"]
    assert interrupted.error
    assert unstarted.error
    assert (interrupted.status, interrupted.uncertain) == ("cancelled", True)
    assert "may have taken effect" in interrupted.error.message
    assert (unstarted.status, unstarted.uncertain) == ("cancelled", False)
    assert "Not started" in unstarted.error.message


async def test_b04_a_read_that_had_returned_keeps_its_result(autojump_clock: trio.testing.MockClock) -> None:
    """Also where its result could not be told yet, because an earlier call was still running."""

    @read_tool
    async def slow() -> str:
        """Takes a minute."""
        await trio.sleep(60)
        return "late"

    @read_tool
    async def fast() -> str:
        """Takes no time."""
        return "done"

    async with open_runtime() as runtime:
        both = agent([call("slow"), call("fast")], "Again.", tools=(slow, fast))
        async with runtime.open_session(both) as session:
            seen: Seen = []
            async with session.run("Go.") as run:
                await read_until(run, CallReturned, seen)
                run.stop()
                seen += [event async for event in run]
            assert [result.status for result in results(session.value)] == ["cancelled", "succeeded"]
            told = [event.result.name for event in seen if isinstance(event, CallFinished)]
            assert told == ["slow", "fast"]
            assert (await session.ask("Again?")).text == "Again."
            assert check_history(session.value.messages) == []


async def test_b06_a_stop_of_an_idle_session_is_not_remembered(autojump_clock: trio.testing.MockClock) -> None:
    """The next run is another run."""
    async with open_runtime() as runtime, runtime.open_session(agent("One.", "Two.")) as session:
        assert not session.stop()
        assert (await session.ask("Go.")).status == "succeeded"
        assert not session.stop()
        assert not session.stop(when="after_round")
        assert (await session.ask("Go.")).status == "succeeded"


async def test_b08_text_and_usage_that_had_come_are_kept(holding_clock: HoldingClock) -> None:
    """They were paid for, and the user has read them."""
    deltas = [f"word{number} " for number in range(200)]
    reply = TextReply(deltas, usage=WireUsage(input=321), fault=Fault(stall_after=203))
    async with served(reply) as (_, session):
        said = ""
        async with session.run("Go.") as run:
            async for event in run:
                said += event.text if isinstance(event, TextDelta) else ""
                if said.count("word") == 200:
                    break
        answer = session.value.messages[-1]
        assert (answer.text, answer.interrupted) == ("".join(deltas), True)
        assert run.result.text == answer.text
        assert run.result.usage.input == 321


async def test_b10_behind_a_stop_come_what_was_published_and_the_ending(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A bounded number of events, without waiting for any of them, and nothing behind the ending."""
    async with open_runtime() as runtime, runtime.open_session(agent("word " * 4_000)) as session:
        async with session.run("Go.") as run:
            await trio.testing.wait_all_tasks_blocked()  # the run has published what an unread run may
            run.stop()
            await trio.testing.wait_all_tasks_blocked()
            assert run.outcome is not None
            rest = [event async for event in run]
    assert 500 < sum(isinstance(event, TextDelta) for event in rest) < 1_000
    assert endings(rest[-1:]) == ["cancelled"]
    assert check_events(rest, run.id) == []


B12_MODELS: dict[str, Callable[[str], Any]] = {
    "messages": lambda url: Anthropic("claude-loopback", api_key="key", base_url=url),
    "chat": lambda url: OpenAIChat("gpt-loopback", api_key="key", base_url=f"{url}/v1"),
    "responses": lambda url: OpenAIResponses("gpt-loopback", api_key="key", base_url=f"{url}/v1"),
}


def sent_arguments(body: Any) -> list[Any]:
    """The arguments of each call in a request's history, whichever wire it is of."""
    if isinstance(body, list):
        return [found for item in body for found in sent_arguments(item)]
    if not isinstance(body, dict):
        return []
    if body.get("type") == "tool_use":
        return [body["input"]]
    if "arguments" in body:
        return [json.loads(body["arguments"])]
    return [found for item in body.values() for found in sent_arguments(item)]


@pytest.mark.parametrize("wire", B12_MODELS)
async def test_b12_a_stored_call_with_half_its_arguments_blocks_nothing(wire: str, holding_clock: HoldingClock) -> None:
    """It was answered once as interrupted; it is sent as an object, and nobody holds it against the tool's schema."""

    @read_tool
    async def look(path: str) -> str:
        """Looks."""
        return path

    broken = ToolCall("c_s-r1_1_0", "toolu_1", "look", '{"pa', None)
    lost = ToolResult(broken.id, "look", "cancelled", error=CallError("cancelled", "Not started."))
    old = Session(
        "s",
        messages=(
            Message("s-r1-p", "user", (Text("Look."),)),
            Message("s-r1-1a1", "assistant", (Text("I look."), broken), interrupted=True),
            Message("s-r1-1t", "tool", (lost,)),
        ),
        runs=1,
    )
    value = Session.from_json(old.to_json())
    assert value == old
    async with open_model_server([TextReply("Fine.")]) as server, open_runtime() as runtime:
        declared: Agent[Any] = Agent(model=B12_MODELS[wire](server.base_url), tools=[look])
        async with runtime.open_session(declared, value=value) as session:
            result = await session.ask("And now?")
            assert (result.status, result.text) == ("succeeded", "Fine.")
            assert session.value.messages[:3] == old.messages
        (exchange,) = server.record
    history = {key: item for key, item in cast("dict[str, Any]", exchange.body).items() if key != "tools"}
    assert sent_arguments(history) == [{}]


# C. Scopes, tasks, leaks


async def test_c03_timeouts_round_single_events_lose_none(autojump_clock: trio.testing.MockClock) -> None:
    """They are cancel scopes of the reader's own task; nothing is entered in one task and left in another."""
    told = Told()
    async with open_runtime() as runtime:
        async with runtime.open_session(agent([call("wait")], "Done.", tools=(told.tool(1),))) as session:
            seen: Seen = []
            misses = 0
            async with session.run("Go.") as run:
                while not seen or not isinstance(seen[-1], RunEnded):
                    with trio.move_on_after(0.1) as patience:
                        seen.append(await run.__anext__())
                    misses += patience.cancelled_caught
    assert misses >= 9
    assert run.result.status == "succeeded"
    assert check_events(seen, run.id) == []


@pytest.mark.parametrize("watching", [False, True])
async def test_c05_a_reader_may_leave_the_loop_inside_a_nursery(
    watching: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """No scope and no nursery is held open between two events, so leaving early breaks nobody's stack."""
    told = Told()
    async with open_runtime() as runtime:
        async with runtime.open_session(agent([call("wait")], tools=(told.tool(60),))) as session:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 1)
                if watching:
                    await session.start("Go.")
                    async with session.events(after=0) as events:
                        async for _ in events:
                            break
                else:
                    async with session.run("Go.") as run:
                        async for _ in run:
                            break
                    assert run.result.status == "cancelled"
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
                assert scope.cancelled_caught


async def test_c05_another_task_may_close_a_reader(autojump_clock: trio.testing.MockClock) -> None:
    """The reader's loop ends; nothing is raised in either task."""
    told = Told()
    async with open_runtime() as runtime:
        async with runtime.open_session(agent([call("wait")], tools=(told.tool(60),))) as session:
            await session.start("Go.")
            async with session.events(after=0) as events, trio.open_nursery() as nursery:

                async def close() -> None:
                    await trio.testing.wait_all_tasks_blocked()
                    events.close()

                nursery.start_soon(close)
                async for _ in events:
                    pass


def test_c07_a_run_with_a_tool_works_in_a_plain_trio_program() -> None:
    """No other event loop is asked for, by us or by what we stand on."""

    async def main() -> str:
        async with open_runtime() as runtime:
            async with runtime.open_session(agent([call("wait")], "Done.", tools=(Told().tool(0),))) as session:
                return (await session.ask("Go.")).text

    assert trio.run(main) == "Done."


async def test_c09_children_end_when_their_shared_stream_is_abandoned(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Three runs under one supervisor; who leaves the block leaves no task behind."""
    told = [Told(), Told(), Told()]

    async def ask(session: SessionHandle) -> None:
        await session.ask("Go.")

    async with no_leaks(), open_runtime() as runtime:
        with trio.move_on_after(5):
            async with trio.open_nursery() as nursery, runtime.subscribe() as shared:
                for one in told:
                    session = await runtime.start_session(agent([call("wait")], tools=(one.tool(60),)))
                    nursery.start_soon(ask, session)
                async for _ in shared:
                    pass
        await runtime.wait_quiet()
        await runtime.close()
    assert [one.cancelled_at for one in told] == [5, 5, 5]


@attrs.define(eq=False)
class Counted:
    """A model whose streams are counted, and take two steps to close."""

    inner: Scripted
    open_streams: int = 0
    tag: ModelTag = attrs.field(factory=lambda: ModelTag("test", "test", "counted"))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ModelClient]:
        async with self.inner.open() as client:
            yield _CountedClient(self, client)


@attrs.define(eq=False)
class _CountedClient:
    model: Counted
    client: ModelClient

    @asynccontextmanager
    async def stream(self, request: ModelRequest, timeouts: Timeouts) -> AsyncIterator[ModelStream]:
        self.model.open_streams += 1
        try:
            async with self.client.stream(request, timeouts) as stream:
                yield stream
        finally:
            with trio.move_on_after(1, shield=True):
                await trio.sleep(0.01)
                await trio.sleep(0.01)
                self.model.open_streams -= 1


async def test_c11_a_streams_cleanup_is_over_when_its_run_is(autojump_clock: trio.testing.MockClock) -> None:
    """Elsewhere the first await of the cleanup raised once more, and the rest of it never happened."""
    model = Counted(Scripted(["word " * 50] * 30))
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        for deltas in range(20):
            async with session.run("Go.") as run:
                for _ in range(deltas):
                    await run.__anext__()
                run.stop()
                await read_until(run, RunEnded)
                assert model.open_streams == 0
            assert run.result.status == "cancelled"


async def test_c13_a_stopped_run_is_kept_until_it_has_cleaned_up(autojump_clock: trio.testing.MockClock) -> None:
    """Elsewhere it was dropped from the registry first, and collected while it was pending."""
    cleaned = []

    @write_tool
    async def tidy() -> str:
        """Tidies up when it is stopped."""
        try:
            await trio.sleep(60)
        finally:
            with trio.move_on_after(1, shield=True):
                await trio.sleep(0.5)
                cleaned.append(trio.current_time())
        return "done"

    async with open_runtime() as runtime:
        session = await runtime.start_session(agent([call("tidy")], tools=(tidy,)), id="s_child")
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        run.stop()
        gc.collect()
        assert session.current_run is run
        assert runtime.session("s_child").value is session.value
        await run.wait()
        assert cleaned == [0.5]
        assert session.current_run is None


# D. Threads


@attrs.define
class Blocked:
    """A plain function that blocks its thread until it is released."""

    release: threading.Event = attrs.field(factory=threading.Event)
    entered: threading.Event = attrs.field(factory=threading.Event)

    def tool(self, timeout: float | None = None) -> Tool[..., Any]:
        @read_tool(name="block", timeout=timeout)
        def block() -> str:
            """Blocks."""
            self.entered.set()
            self.release.wait()
            return "much too late"

        return block


async def _entered(blocked: Blocked) -> None:
    await trio.to_thread.run_sync(blocked.entered.wait)
    await trio.testing.wait_all_tasks_blocked()


async def test_d06_the_timeout_of_a_blocked_thread_fires(holding_clock: HoldingClock) -> None:
    """The wait for a thread is no shield: the call has its result, and the run goes on without it."""
    blocked = Blocked()
    async with open_runtime() as runtime:
        agent_ = agent([call("block")], "Without it.", tools=(blocked.tool(timeout=0.5),))
        async with runtime.open_session(agent_) as session:
            run = await session.start("Go.")
            await _entered(blocked)
            holding_clock.jump(0.5)
            await run.wait()
            (result,) = results(session.value)
            assert result.error
            assert result.error.category == "timeout"
            assert run.result.text == "Without it."
            await _let_go(runtime, blocked)
            assert results(session.value) == [result]


async def test_d06_a_stop_does_not_wait_for_a_blocked_thread(holding_clock: HoldingClock) -> None:
    """The thread is left behind and counted; what it brings later is dropped."""
    blocked = Blocked()
    async with open_runtime() as runtime:
        async with runtime.open_session(agent([call("block")], tools=(blocked.tool(),))) as session:
            run = await session.start("Go.")
            await _entered(blocked)
            run.stop()
            await run.wait()
            before = session.value
            assert [result.status for result in results(before)] == ["cancelled"]
            await _let_go(runtime, blocked)
            assert session.value is before


async def _let_go(runtime: Any, blocked: Blocked) -> None:
    assert runtime.orphans == 1
    blocked.release.set()
    await runtime.wait_quiet()
    assert runtime.orphans == 0


async def test_a_write_in_a_thread_has_the_grace_to_finish(holding_clock: HoldingClock) -> None:
    """A thread can't be stopped: what a write did within the grace is known, and said to be so."""
    entered = threading.Event()

    @write_tool
    def save() -> str:
        """Saves, which takes a moment."""
        entered.set()
        time.sleep(0.05)
        return "saved"

    async with open_runtime() as runtime, runtime.open_session(agent([call("save")], tools=(save,))) as session:
        run = await session.start("Go.")
        await trio.to_thread.run_sync(entered.wait)
        run.stop()
        with holding_clock.hold():  # the thread is left by its task, and holds it no longer
            await run.wait()
        (result,) = results(session.value)
    assert run.result.status == "cancelled"
    assert (result.status, result.uncertain) == ("succeeded", False)


async def test_a_write_in_a_thread_that_takes_too_long_is_uncertain(holding_clock: HoldingClock) -> None:
    """The grace is the most that a stop may take."""
    entered, release = threading.Event(), threading.Event()

    @write_tool
    def save() -> str:
        """Saves, some day."""
        entered.set()
        release.wait()
        return "saved"

    async with open_runtime() as runtime, runtime.open_session(agent([call("save")], tools=(save,))) as session:
        run = await session.start("Go.")
        await trio.to_thread.run_sync(entered.wait)
        await trio.testing.wait_all_tasks_blocked()
        run.stop()
        with trio.fail_after(2):
            await run.wait()
        (result,) = results(session.value)
        assert (result.status, result.uncertain) == ("cancelled", True)
        assert runtime.orphans == 1
        release.set()
        await runtime.wait_quiet()
