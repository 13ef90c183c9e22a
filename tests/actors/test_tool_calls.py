"""The calls of a response: what runs beside what, in which order their results are told, and what becomes of errors."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, Scripted, ToolContext, ToolError, open_runtime, read_tool, write_tool
from agentrio.agent.tool import tool_from_schema
from agentrio.domain.parts import Image, Text, ToolResult
from agentrio.events import CallProposed, CallReturned, CallStarted, MemoryPatched
from agentrio.providers.base import ModelResponse
from agentrio.providers.scripted import Reply, call
from tests.actors.kit import SPENT, Canned, Log, answer, asks, read_named, results, said, wants, watch

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

    turns: list[Any] = [[call("look", seconds=seconds) for seconds in (5, 1, 1, 1, 1, 1)], "Done."]
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
    assert [said(part) for part in model.requests[1].messages[2].parts] == told  # type: ignore[arg-type]  # all are results
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
    turns: list[Any] = [[call("shoot")], [call("shoot"), call("shoot")], "Done."]
    events, _ = await watch(Agent(model=Scripted(turns), tools=[tool], limits=Limits(max_images=2)))
    assert [item.status for item in results(events)] == ["succeeded", "succeeded", "failed"]  # in call order
    assert results(events)[0].parts == (Text("Look:"), PNG)


class _Journal:
    """Takes as long for each append as it is told."""

    seconds = 0.0

    async def append(self, batch: Any) -> None:
        await trio.sleep(self.seconds)


async def test_an_image_is_counted_once_though_its_result_is_told_late(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop that comes while the result waits for its turn to be told must not turn it into one image too many."""
    journal = _Journal()
    monkeypatch.setattr("agentrio.actors.runtime.NullJournal", lambda: journal)

    async def shoot(ctx: ToolContext) -> Any:
        await trio.sleep(1)
        return PNG

    agent = Agent(model=Scripted([[call("shoot")]]), tools=[read_named("shoot", shoot)], limits=Limits(max_images=1))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        run = await session.start("Go.")
        await trio.sleep(0.9)
        journal.seconds = 0.5
        session.steer("S")  # being committed from 0.9 to 1.4, and nothing else meanwhile
        await trio.sleep(0.3)
        journal.seconds = 0
        run.stop()
        await run.wait()
        (result,) = session.value.messages[2].parts
    assert isinstance(result, ToolResult)
    assert (result.status, result.parts) == ("succeeded", (PNG,))


async def test_an_image_that_is_too_large_is_a_failed_result(autojump_clock: trio.testing.MockClock) -> None:
    """The model is told why, so that it can ask for a smaller one."""
    tool = read_named("shoot", lambda ctx: _give(PNG))
    agent = Agent(model=Scripted([[call("shoot")], "Done."]), tools=[tool], limits=Limits(max_image_bytes=5))
    events, _ = await watch(agent)
    (result,) = results(events)
    assert result.error is not None
    assert "at most 5 are allowed" in result.error.message


# Arguments


async def test_a_published_call_is_not_rewritten_by_its_tool(autojump_clock: trio.testing.MockClock) -> None:
    """What was told, and journaled, is what the model asked for; approval and audit go by it."""

    async def remove(arguments: dict[str, Any]) -> str:
        arguments["path"] = "/etc/passwd"
        arguments["options"].append({1, 2})
        return "removed"

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = tool_from_schema("remove", "Removes.", schema, remove, "write")
    asked = {"path": "/tmp/x", "options": ["-r"]}
    events, _ = await watch(Agent(model=Scripted([[call("remove", **asked)], "Done."]), tools=[tool]))
    assert [said(item) for item in results(events)] == ["removed"]
    (proposed,) = [event for event in events if isinstance(event, CallProposed)]
    assert proposed.call.arguments == asked


async def test_a_fingerprint_is_of_what_is_asked_for_not_of_how_it_is_written(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An approval holds for the tool and its arguments (L04): not for other ones, and not only for one spelling."""

    @read_tool
    async def pay(to: str, sum: int = 0, how: Any = None) -> str:
        """Pays."""
        return ""

    spellings = ['{"to":"a","how":[{"x":1,"y":2}]}', '{ "how": [ {"y": 2, "x": 1} ],\n "to": "\\u0061" }']
    others = ['{"to":"a","how":[{"x":1,"y":3}]}', '{"to":"a","how":{}}', '{"to":"a","how":[]}', '{"to":"a","sum":1}']
    asked = asks(*(wants("pay", text) for text in spellings + others))
    events, _ = await watch(Agent(model=Canned([asked, answer("Done.")]), tools=[pay]))
    marks = [event.fingerprint for event in events if isinstance(event, CallProposed)]
    assert marks[0] == marks[1]
    assert len(set(marks)) == 5


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
