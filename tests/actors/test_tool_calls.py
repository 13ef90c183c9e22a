"""The calls of a response: what runs beside what, in which order their results are told, and what becomes of errors."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest
import trio

from agentrio import Agent, Identity, Limits, Scripted, ToolContext, ToolError, open_runtime, read_tool, write_tool
from agentrio.domain.parts import Image, Text
from agentrio.events import CallProgress, CallProposed, CallReturned, CallStarted, MemoryPatched
from agentrio.providers.base import ModelResponse
from agentrio.providers.scripted import Reply, call
from tests.actors.kit import SPENT, Canned, Log, answer, asks, names, read_named, results, said, wants, watch

PNG = Image("iVBORw0KGgo=", "image/png")


async def test_reads_run_together_and_a_write_is_a_barrier(autojump_clock: trio.testing.MockClock) -> None:
    """R1 R2 W1 R3 W2 W3: a write sees all that was asked before it, and nothing runs beside it."""
    log = Log()

    @read_tool
    async def look(name: str, seconds: float = 1) -> str:
        """Reads."""
        log(f"+{name}")
        await trio.sleep(seconds)
        log(f"-{name}")
        return name

    @write_tool
    async def save(name: str) -> str:
        """Writes."""
        log(f"+{name}")
        await trio.sleep(1)
        log(f"-{name}")
        return name

    calls = [
        call("look", name="R1", seconds=2),
        call("look", name="R2"),
        call("save", name="W1"),
        call("look", name="R3"),
        call("save", name="W2"),
        call("save", name="W3"),
    ]
    events, _ = await watch(Agent(model=Scripted([calls, "Done."]), tools=[look, save]))
    assert sorted(log.lines[:2]) == ["+R1", "+R2"]
    assert log.lines[2:] == ["-R2", "-R1", "+W1", "-W1", "+R3", "-R3", "+W2", "-W2", "+W3", "-W3"]
    assert [said(item) for item in results(events)] == ["R1", "R2", "W1", "R3", "W2", "W3"]


async def test_no_more_reads_run_at_once_than_allowed(autojump_clock: trio.testing.MockClock) -> None:
    """The next one starts as soon as any has ended, not when the batch has."""
    running = most = 0

    @read_tool
    async def look(seconds: float) -> str:
        """Reads."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(seconds)
        running -= 1
        return "seen"

    turns = [[call("look", seconds=seconds) for seconds in (5, 1, 1, 1, 1, 1)], "Done."]
    start = trio.current_time()
    await watch(Agent(model=Scripted(turns), tools=[look], limits=Limits(max_parallel_calls=2)))
    assert most == 2
    assert trio.current_time() - start == pytest.approx(5)


async def test_a_call_may_wait_for_one_behind_it(autojump_clock: trio.testing.MockClock) -> None:
    """Reads of a segment really run beside each other; their results are in call order all the same."""
    ready = trio.Event()

    async def first(ctx: ToolContext) -> str:
        await ready.wait()
        return "first"

    async def second(ctx: ToolContext) -> str:
        ready.set()
        return "second"

    tools = [read_named("first", first), read_named("second", second)]
    events, _ = await watch(Agent(model=Scripted([[call("first"), call("second")], "Done."]), tools=tools))
    assert [said(item) for item in results(events)] == ["first", "second"]
    returned = [event.call_id for event in events if isinstance(event, CallReturned)]
    assert returned == ["c_s-r1_1_1", "c_s-r1_1_0"]


async def test_results_come_in_call_order_whatever_became_of_each(autojump_clock: trio.testing.MockClock) -> None:
    """Slow, unknown, invalid, quick and failing calls: the order of the results is that of the calls."""

    @read_tool
    async def look(seconds: float) -> str:
        """Reads."""
        await trio.sleep(seconds)
        return f"after {seconds:g}"

    @read_tool
    async def fail() -> str:
        """Fails."""
        raise ToolError("It is closed.")

    calls = [call("look", seconds=3), call("nosuch"), call("look", seconds="x"), call("look", seconds=1), call("fail")]
    model = Scripted([calls, "Done."])
    agent = Agent(model=model, tools=[look, fail], limits=Limits(max_consecutive_failures=9))
    events, _ = await watch(agent)
    told = ["after 3", "unknown_tool", "invalid_arguments", "after 1", "tool_failed"]
    assert [said(item) for item in results(events)] == told
    assert [said(part) for part in model.requests[1].messages[2].parts] == told  # type: ignore[arg-type]  # results
    started = [event.call_id for event in events if isinstance(event, CallStarted)]
    assert started == ["c_s-r1_1_0", "c_s-r1_1_3", "c_s-r1_1_4"]


async def test_a_rejected_call_is_proposed_with_its_problem(autojump_clock: trio.testing.MockClock) -> None:
    """A view shows at once what will not run, and why."""
    calls = [call("nosuch"), call("look", city=5)]

    @read_tool
    async def look(city: str) -> str:
        """Reads."""
        return city

    events, _ = await watch(Agent(model=Scripted([calls, "Done."]), tools=[look]))
    problems = [event.problem for event in events if isinstance(event, CallProposed)]
    assert [problem and problem.category for problem in problems] == ["unknown_tool", "invalid_arguments"]
    assert not [event for event in events if isinstance(event, CallStarted)]


@pytest.mark.parametrize(
    ("policy", "statuses", "status"),
    [
        ("skip", ["succeeded", "failed", "skipped", "skipped"], "succeeded"),
        ("continue", ["succeeded", "failed", "succeeded", "succeeded"], "succeeded"),
        ("end", ["succeeded", "failed", "skipped", "skipped"], "error"),
    ],
)
async def test_what_becomes_of_the_calls_behind_a_failed_write(
    autojump_clock: trio.testing.MockClock, policy: Any, statuses: list[str], status: str
) -> None:
    """The model asked for them on the assumption that the write would work."""

    @read_tool
    async def look() -> str:
        """Reads."""
        return "seen"

    @write_tool
    async def save(good: bool) -> str:
        """Writes."""
        if not good:
            raise ToolError("The disk is full.")
        return "saved"

    calls = [call("look"), call("save", good=False), call("look"), call("save", good=True)]
    agent = Agent(model=Scripted([calls, "Done."]), tools=[look, save], limits=Limits(on_failed_write=policy))
    events, result = await watch(agent)
    assert [item.status for item in results(events)] == statuses
    assert result.status == status


async def test_a_write_with_invalid_arguments_counts_as_failed(autojump_clock: trio.testing.MockClock) -> None:
    """Whether it failed before its start or after, the calls behind it rely on what did not happen."""

    @write_tool
    async def save(name: str) -> str:
        """Writes."""
        return name

    calls = [call("save"), call("save", name="b")]
    events, _ = await watch(Agent(model=Scripted([calls, "Done."]), tools=[save]))
    assert [said(item) for item in results(events)] == ["invalid_arguments", "skipped"]


@pytest.mark.parametrize("arguments", ["", "  ", "{}", "null"])
async def test_no_arguments_are_no_error_where_none_are_needed(
    autojump_clock: trio.testing.MockClock, arguments: str
) -> None:
    """Some models send nothing at all for a tool without parameters."""
    tool = read_named("look", lambda ctx: _give("seen"))
    events, _ = await watch(Agent(model=Canned([asks(wants("look", arguments)), answer("Done.")]), tools=[tool]))
    assert [said(item) for item in results(events)] == ["seen"]


@pytest.mark.parametrize("arguments", ["[]", '"x"', "3", '{"a":1}}', '{"pa'])
async def test_arguments_that_are_no_object_are_invalid(autojump_clock: trio.testing.MockClock, arguments: str) -> None:
    """Never a crash, and never a guess at what was meant."""
    tool = read_named("look", lambda ctx: _give("seen"))
    events, _ = await watch(Agent(model=Canned([asks(wants("look", arguments)), answer("Done.")]), tools=[tool]))
    assert [said(item) for item in results(events)] == ["invalid_arguments"]


async def _give(value: Any) -> Any:
    return value


# Errors


async def test_only_a_tool_errors_own_words_reach_the_model(autojump_clock: trio.testing.MockClock) -> None:
    """What another exception says was not written for a model, and may hold a secret."""

    async def fail(ctx: ToolContext) -> str:
        raise ValueError("postgres://admin:hunter2@db")

    async def explain(ctx: ToolContext) -> str:
        raise ToolError("Ask for a city in Norway.")

    tools = [read_named("fail", fail), read_named("explain", explain)]
    events, _ = await watch(Agent(model=Scripted([[call("fail"), call("explain")], "Done."]), tools=tools))
    told = [item.error and item.error.message for item in results(events)]
    assert told == ["The tool failed.", "Ask for a city in Norway."]


class Odd(BaseException):
    """What some libraries raise past ``except Exception``."""


async def _odd(ctx: ToolContext) -> str:
    raise Odd


async def _foreign_cancel(ctx: ToolContext) -> str:
    raise asyncio.CancelledError


async def _kept_cancel(ctx: ToolContext) -> str:
    kept: list[trio.Cancelled] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep(1)
        except trio.Cancelled as cancelled:
            kept.append(cancelled)
    raise kept[0]


async def _kept_cancel_in_a_group(ctx: ToolContext) -> str:
    try:
        await _kept_cancel(ctx)
    except trio.Cancelled as cancelled:
        raise BaseExceptionGroup("odd", [cancelled, ValueError("x")]) from None
    return ""


async def _group(ctx: ToolContext) -> str:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_odd, ctx)
        raise ValueError("x")


@pytest.mark.parametrize("work", [_odd, _foreign_cancel, _kept_cancel, _kept_cancel_in_a_group, _group])
async def test_whatever_a_tool_raises_is_its_own_failure(autojump_clock: trio.testing.MockClock, work: Any) -> None:
    """A tool's library may raise odd things, its own cancel among them: none of it is the user's cancel, and neither
    the run nor its neighbours die of it."""
    tool = read_named("odd", work)
    beside = read_named("beside", lambda ctx: _give("fine"))
    agent = Agent(model=Scripted([[call("odd"), call("beside")], "Done."]), tools=[tool, beside])
    events, result = await watch(agent)
    assert [said(item) for item in results(events)] == ["tool_failed", "fine"]
    assert result.status == "succeeded"


async def test_a_tool_that_fails_while_it_is_stopped_harms_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """Its clean-up raised beside the cancel: that is one failed call, not the end of the runtime."""

    async def fail_on_cancel() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("the clean-up failed")

    async def stall(ctx: ToolContext) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_on_cancel)
            nursery.start_soon(trio.sleep_forever)
        return ""

    agent = Agent(model=Scripted([[call("stall")], "Done."]), tools=[read_named("stall", stall)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Go.") as run:
            async for event in run:
                if isinstance(event, CallStarted):
                    await trio.testing.wait_all_tasks_blocked()
                    run.stop()
        assert run.result.status == "cancelled"
        assert (await session.ask("Again.")).text == "Done."


async def test_a_tool_that_fails_while_the_runtime_closes_harms_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """An orphan whose clean-up fails at the very end must not turn a clean exit into a crash."""

    async def stall(ctx: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(3)
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("the clean-up failed")

    agent = Agent(model=Scripted([[call("stall")]]), tools=[read_named("stall", stall)])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await trio.testing.wait_all_tasks_blocked()
        run.stop()
    assert run.result.status == "cancelled"


async def test_a_tool_that_exits_ends_the_runtime_in_order(autojump_clock: trio.testing.MockClock) -> None:
    """SystemExit means the process, not the call: the run gets its end, then the exit goes on its way."""

    async def leave(ctx: ToolContext) -> str:
        raise SystemExit(3)

    agent = Agent(model=Scripted([[call("leave")], "Never."]), tools=[read_named("leave", leave)])
    outcomes = []
    with pytest.raises(SystemExit):
        async with open_runtime() as runtime, runtime.open_session(agent) as session:
            run = await session.start("Go.")
            try:
                await trio.sleep_forever()
            finally:
                outcomes.append(run)
    assert outcomes[0].result.status == "cancelled"


# Time


@pytest.mark.parametrize("where", ["the tool", "the limits"])
async def test_a_tool_that_takes_too_long_is_stopped(autojump_clock: trio.testing.MockClock, where: str) -> None:
    """The tool's own timeout beats the default; either way the run goes on with a timeout result."""

    async def stall() -> str:
        """Takes for ever."""
        await trio.sleep_forever()
        return ""

    tool = read_tool(timeout=2.0)(stall) if where == "the tool" else read_tool(stall)
    default = 9.0 if where == "the tool" else 2.0
    agent = Agent(model=Scripted([[call("stall")], "Done."]), tools=[tool], limits=Limits(call_timeout=default))
    start = trio.current_time()
    events, result = await watch(agent)
    assert [said(item) for item in results(events)] == ["timeout"]
    assert trio.current_time() - start == pytest.approx(2)
    assert result.status == "succeeded"


async def test_a_write_that_took_too_long_may_have_taken_effect(autojump_clock: trio.testing.MockClock) -> None:
    """The model must not believe that nothing happened."""

    @write_tool(timeout=1.0)
    async def save() -> str:
        """Takes for ever."""
        await trio.sleep_forever()
        return ""

    events, _ = await watch(Agent(model=Scripted([[call("save")], "Done."]), tools=[save]))
    (result,) = results(events)
    assert result.uncertain
    assert result.error is not None
    assert (result.error.category, "may have taken effect" in result.error.message) == ("timeout", True)


async def test_a_tool_that_ignores_its_timeout_delays_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """Its slot is free for the call behind it, its late value is dropped, and the pool counts it meanwhile."""

    async def deaf(ctx: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(50)
        ctx.remember({"late": True})
        await ctx.progress("late")
        return "late"

    quick = read_named("quick", lambda ctx: _give("quick"))
    agent = Agent(
        model=Scripted([[call("deaf"), call("quick")], "Done."]),
        tools=[read_named("deaf", deaf), quick],
        limits=Limits(max_parallel_calls=1, call_timeout=2.0),
    )
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        start = trio.current_time()
        async with session.run("Go.") as run:
            events = [event async for event in run]
        assert trio.current_time() - start == pytest.approx(2.003)
        assert [said(item) for item in results(events)] == ["timeout", "quick"]
        assert runtime.orphans == 1
        await runtime.wait_quiet()
        assert (trio.current_time() - start, runtime.orphans) == (pytest.approx(50), 0)
        assert session.value.memory == {}


async def test_what_a_tool_returns_within_its_grace_counts(autojump_clock: trio.testing.MockClock) -> None:
    """A tool that winds up quickly gives a real result, though its time was over."""

    async def polite(ctx: ToolContext) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return "what I have"
        return ""

    tool = read_named("polite", polite)
    agent = Agent(model=Scripted([[call("polite")], "Done."]), tools=[tool], limits=Limits(call_timeout=1.0))
    events, _ = await watch(agent)
    assert [said(item) for item in results(events)] == ["what I have"]


# Memory, progress, context


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
        return ""

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
        return ""

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


# Results


async def test_a_long_result_is_cut_and_says_so(autojump_clock: trio.testing.MockClock) -> None:
    """The model knows that there is more, and how much."""
    tool = read_named("look", lambda ctx: _give("x" * 25))
    agent = Agent(model=Scripted([[call("look")], "Done."]), tools=[tool], limits=Limits(max_output_chars=10))
    events, _ = await watch(agent)
    assert said(results(events)[0]) == "x" * 10 + "…[truncated 15 chars]"


async def test_images_are_counted_over_the_run(autojump_clock: trio.testing.MockClock) -> None:
    """Each costs as much as a page of text, in every request from then on."""
    tool = read_named("shoot", lambda ctx: _give([Text("Look:"), PNG]))
    turns = [[call("shoot")], [call("shoot"), call("shoot")], "Done."]
    events, _ = await watch(Agent(model=Scripted(turns), tools=[tool], limits=Limits(max_images=2)))
    assert [item.status for item in results(events)] == ["succeeded", "succeeded", "failed"]  # in call order
    assert results(events)[0].parts == (Text("Look:"), PNG)


async def test_an_image_that_is_too_large_is_a_failed_result(autojump_clock: trio.testing.MockClock) -> None:
    """The model is told why, so that it can ask for a smaller one."""
    tool = read_named("shoot", lambda ctx: _give(PNG))
    agent = Agent(model=Scripted([[call("shoot")], "Done."]), tools=[tool], limits=Limits(max_image_bytes=5))
    events, _ = await watch(agent)
    (result,) = results(events)
    assert result.error is not None
    assert "at most 5 are allowed" in result.error.message


async def test_ids_used_again_in_a_later_round_are_other_calls(autojump_clock: trio.testing.MockClock) -> None:
    """Some servers count their ids from 0 in each response."""
    tool = read_named("look", lambda ctx: _give(ctx.call_id))
    turns = [asks(wants("look", id="call_0")), asks(wants("look", id="call_0")), answer("Done.")]
    events, _ = await watch(Agent(model=Canned([*turns]), tools=[tool]))
    assert [said(item) for item in results(events)] == ["c_s-r1_1_0", "c_s-r1_2_0"]


@pytest.mark.parametrize("id", ["", "look"])
async def test_calls_without_ids_are_told_apart(autojump_clock: trio.testing.MockClock, id: str) -> None:
    """A server that sends no ids still asks for two calls, and gets two results, each with an id of ours."""
    tool = read_named("look", lambda ctx: _give(ctx.call_id))
    calls = asks(wants("look", id=id), wants("look", id=""))
    events, _ = await watch(Agent(model=Canned([calls, answer("Done.")]), tools=[tool]))
    assert [said(item) for item in results(events)] == ["c_s-r1_1_0", "c_s-r1_1_1"]


async def test_text_and_calls_of_one_response_are_one_message(autojump_clock: trio.testing.MockClock) -> None:
    """What is said beside a call belongs to it, and stands before it."""
    tool = read_named("look", lambda ctx: _give("seen"))
    model = Scripted([Reply("Let me look.", calls=[call("look")]), "Done."])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model, tools=[tool])) as session:
        await session.ask("Go.")
        message = session.value.messages[1]
    assert (message.text, [item.name for item in message.calls]) == ("Let me look.", ["look"])


async def test_calls_beside_a_normal_end_run_too(autojump_clock: trio.testing.MockClock) -> None:
    """Some servers say ``stop`` although they ask for calls."""
    tool = read_named("look", lambda ctx: _give("seen"))
    turns = [ModelResponse((wants("look"),), "end", "stop", SPENT), answer("Done.")]
    _, result = await watch(Agent(model=Canned([*turns]), tools=[tool]))
    assert (result.text, result.rounds) == ("Done.", 2)


def test_memory_patches_name_their_call() -> None:
    """An audit finds who wrote a key."""
    assert "call_id" in MemoryPatched.__annotations__
