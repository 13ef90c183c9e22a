"""What a tool raises: told to the model, kept from it, or let through."""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, Scripted, ToolContext, ToolError, open_runtime, read_tool, write_tool
from agentrio.domain.parts import Image, Text
from agentrio.events import CallStarted
from agentrio.parts import ToolResult
from agentrio.providers.scripted import call
from agentrio.testing import check_events
from tests.actors.kit import read_named, results, said, watch

PNG = Image("iVBORw0KGgo=", "image/png")


async def _give(value: Any) -> Any:
    return value


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


@pytest.mark.parametrize("threaded", [False, True])
async def test_the_log_of_a_failed_tool_begins_with_the_tool(caplog: pytest.LogCaptureFixture, threaded: bool) -> None:
    """Its author looks for a line of his own; how he was called is the same each time, and long."""

    def deeper() -> str:
        raise ValueError("here")

    @read_tool
    def plain() -> str:
        """Fails in a thread."""
        return deeper()

    @read_tool
    async def task() -> str:
        """Fails in a task."""
        return deeper()

    tool = plain if threaded else task
    await watch(Agent(model=Scripted([[call(tool.name)], "Done."]), tools=[tool]))
    (record,) = caplog.records
    assert record.exc_info is not None
    assert [frame.name for frame in traceback.extract_tb(record.exc_info[2])] == [tool.name, "deeper"]


class Odd(BaseException):
    """What some libraries raise past ``except Exception``."""


async def _odd(ctx: ToolContext) -> str:
    raise Odd


async def _foreign_cancel(ctx: ToolContext) -> str:
    raise asyncio.CancelledError


async def _kept_cancel(ctx: ToolContext) -> str:
    kept: list[trio.Cancelled] = []
    with trio.CancelScope() as scope:  # noqa: ASYNC912  # the sleep is the cancel point
        scope.cancel()
        try:
            await trio.sleep(1)
        except trio.Cancelled as cancelled:  # noqa: ASYNC103  # keeping it is the mistake to be played
            kept.append(cancelled)
    raise kept[0]


async def _kept_cancel_in_a_group(ctx: ToolContext) -> str:
    try:
        await _kept_cancel(ctx)
    except trio.Cancelled as cancelled:
        raise BaseExceptionGroup("odd", [cancelled, ValueError("x")]) from None  # noqa: ASYNC104  # it is in the group
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


GENERIC = "The tool failed."


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    ("seconds", "cut"),
    [(None, "The call was stopped while running."), (0.5, "The tool took too long and was stopped.")],
)
async def test_a_write_whose_clean_up_raises_may_have_taken_effect(
    seconds: float | None, cut: str, threaded: bool
) -> None:
    """Client libraries turn a cancel into an error of their own; as a plain failure it would be paid once more."""
    begun = trio.Event()

    async def pay() -> str:
        """Pays."""
        try:
            begun.set()
            await trio.sleep_forever()
        finally:
            raise OSError("connection torn down")

    def pay_in_thread() -> str:
        """Pays."""
        trio.from_thread.run_sync(begun.set)
        try:
            while True:
                time.sleep(0.001)
                trio.from_thread.check_cancelled()
        finally:
            raise OSError("connection torn down")

    tool = write_tool(pay_in_thread if threaded else pay, name="pay", timeout=seconds)
    agent = Agent(model=Scripted([[call("pay")], "Done."]), tools=[tool])
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await begun.wait()
        if seconds is None:
            run.stop()
        await run.wait()
        result = session.value.messages[2].parts[0]
    assert isinstance(result, ToolResult)
    assert result.error is not None
    assert (result.status, result.uncertain) == ("failed", True)
    assert result.error.message == f"{GENERIC} ({cut} It may have taken effect.)"


async def test_a_write_that_fails_by_itself_is_a_certain_failure(autojump_clock: trio.testing.MockClock) -> None:
    """As a read that raises when it is stopped: it has no effect to be in doubt of."""

    @write_tool
    async def pay() -> str:
        """Pays."""
        raise OSError("no route to the bank")

    @read_tool(timeout=1.0)
    async def look() -> str:
        """Looks."""
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("connection torn down")

    events, _ = await watch(Agent(model=Scripted([[call("look"), call("pay")], "Done."]), tools=[look, pay]))
    told = [(item.uncertain, item.error and item.error.message) for item in results(events)]
    assert told == [(False, GENERIC)] * 2


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


class _Modelled:
    def model_dump(self) -> dict[str, Any]:
        return {}


async def _forgotten() -> None:
    pass


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: b"x", "type bytes$"),
        (lambda: (n for n in range(3)), "type generator; make a list of it$"),
        (lambda: [_Modelled()], r"type _Modelled; return its \.model_dump\(\)$"),
        (_forgotten, "type coroutine; await it in the tool$"),
    ],
)
async def test_a_result_that_can_not_be_sent_is_logged_with_advice(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture, make: Any, advice: str
) -> None:
    """It is a mistake of the tool's author, whom only the log reaches: the run goes on."""

    async def give(ctx: ToolContext) -> Any:
        return make()

    await watch(Agent(model=Scripted([[call("give")], "Done."]), tools=[read_named("give", give)]))
    (record,) = caplog.records
    assert re.search(f"tool 'give' of call .* returned what can't be sent: .*{advice}", record.getMessage())


async def test_a_plain_function_that_returns_a_coroutine_is_told_to_be_async(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An `await` was forgotten, or rather could not be written: Trio's own message shows our internals."""

    @read_tool
    def nap() -> Any:
        """Sleeps, or so it looks."""
        return _forgotten()

    events, _ = await watch(Agent(model=Scripted([[call("nap")], "Done."]), tools=[nap]))
    assert said(results(events)[0]) == "tool_failed"
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "'nap' is a plain `def` and returned a coroutine; use `async def`" in str(record.exc_info[1])


class _Speechless(ToolError):
    def __str__(self) -> str:
        raise RuntimeError("secret")


class _Trap(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("secret")


class _OddTrap(list[Any]):
    def __iter__(self) -> Any:
        raise asyncio.CancelledError("secret")


class _Exit(list[Any]):
    def __iter__(self) -> Any:
        raise SystemExit(3)


class _Moody:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("secret")


class _Shapeless:
    @property  # type: ignore[misc]  # what isinstance asks
    def __class__(self) -> Any:
        raise RuntimeError("secret")


def _raise(error: Exception) -> Any:
    raise error


def _with(part: Any, name: str, value: Any) -> Any:
    object.__setattr__(part, name, value)  # past what its class may check
    return part


@pytest.mark.parametrize(
    "make",
    [
        lambda: _with(Image("aGk=", "image/png"), "data", b"raw"),
        lambda: _with(Image("aGk=", "image/png"), "media_type", None),
        lambda: [Text("see"), _with(Text("a"), "text", 5)],
        lambda: _raise(_Speechless()),
        _Trap,
        _OddTrap,
        _Moody,
        lambda: [_Moody()],
        _Shapeless,
    ],
)
async def test_what_can_not_be_read_fails_its_call_and_nothing_else(
    autojump_clock: trio.testing.MockClock, make: Any
) -> None:
    """It is read in the pool, where calls of other sessions run: a write of theirs goes on, and tells what it did."""

    async def give(ctx: ToolContext) -> Any:
        return make()

    @write_tool
    async def pay() -> str:
        """Pays."""
        await trio.sleep(5)
        return "paid"

    broken = Agent(model=Scripted([[call("give")], "Done."]), tools=[read_named("give", give)])
    paying = Agent(model=Scripted([[call("pay")], "Paid."]), tools=[pay])
    async with open_runtime() as runtime, runtime.open_session(paying) as other:
        run = await other.start("Pay.")
        await trio.testing.wait_all_tasks_blocked()
        async with runtime.open_session(broken) as session, session.run("Go.") as broken_run:
            events = [event async for event in broken_run]
        assert [said(item) for item in results(events)] == ["tool_failed"]
        assert "secret" not in str(results(events))
        assert (broken_run.result.text, check_events(events, broken_run.id)) == ("Done.", [])
        await run.wait()
        paid = other.value.messages[2].parts[0]
    assert (run.result.text, paid) == ("Paid.", ToolResult("c_" + run.id + "_1_0", "pay", "succeeded", (Text("paid"),)))


async def test_an_exit_is_one_also_where_a_result_is_read(autojump_clock: trio.testing.MockClock) -> None:
    """It is meant for the process, whichever code of the tool's raises it; the run gets its end first."""

    async def give(ctx: ToolContext) -> Any:
        return _Exit()

    agent = Agent(model=Scripted([[call("give")], "Never."]), tools=[read_named("give", give)])
    values = []
    with pytest.raises(SystemExit):
        async with open_runtime() as runtime, runtime.open_session(agent) as session:
            run = await session.start("Go.")
            try:
                await trio.sleep_forever()
            finally:
                values.append((run, session))
    run, session = values[0]
    (result,) = session.value.messages[-1].parts
    assert isinstance(result, ToolResult)
    assert (run.result.status, said(result)) == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    "make", [lambda: _raise(ToolError("x" * 30)), lambda: _with(Image("aGk=", "image/png"), "media_type", "x" * 30)]
)
async def test_the_words_of_a_failure_are_cut_like_any_output(
    autojump_clock: trio.testing.MockClock, make: Any
) -> None:
    """An error as long as a page, told whole, would soon leave no room for anything else."""

    async def give(ctx: ToolContext) -> Any:
        return make()

    agent = Agent(
        model=Scripted([[call("give")], "Done."]), tools=[read_named("give", give)], limits=Limits(max_output_chars=10)
    )
    events, result = await watch(agent)
    (told,) = results(events)
    assert told.error is not None
    assert re.fullmatch(r".{10}…\[truncated \d+ chars\]", told.error.message)
    assert result.status == "succeeded"


async def test_a_name_that_a_model_made_up_is_not_repeated_whole(autojump_clock: trio.testing.MockClock) -> None:
    """It stands in the call already."""
    events, _ = await watch(Agent(model=Scripted([[call("n" * 5000)], "Done."])))
    (told,) = results(events)
    assert told.error is not None
    assert told.error.message == f"There is no tool called '{'n' * 80}'."
