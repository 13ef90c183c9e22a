"""A run from its prompt to its end, watched by whoever sent it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import (
    Agent,
    Limits,
    RunFailed,
    Scripted,
    Session,
    ToolContext,
    Usage,
    open_runtime,
    prompt_layer,
    read_tool,
    write_tool,
)
from agentrio.domain.parts import RawBlock, Text, Thinking, ToolResult
from agentrio.events import (
    Compacted,
    MessageCompleted,
    MessageDiscarded,
    MessageStarted,
    RoundEnded,
    RunStarted,
    TextDelta,
    ToolInputDelta,
)
from agentrio.providers.base import ModelResponse
from agentrio.providers.scripted import Reply, call
from tests.actors.kit import (
    SPENT,
    Canned,
    Log,
    added,
    answer,
    asks,
    ending,
    names,
    read_named,
    results,
    said,
    wants,
    watch,
)


@read_tool
async def forecast(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


@read_tool
async def broken() -> str:
    """Fails."""
    raise ValueError("the password is 1234")


async def test_a_plain_answer_tells_exactly_these_events(autojump_clock: trio.testing.MockClock) -> None:
    """The order of events is a contract: views and stores are written against it."""
    events, result = await watch(Agent(model=Scripted(["Hello there, friend."])), "Hi")
    assert names(events) == [
        "RunStarted",
        "MessageAdded",
        "RoundStarted",
        "MessageStarted",
        "TextDelta",
        "TextDelta",
        "MessageCompleted",
        "RoundEnded",
        "RunEnded",
    ]
    assert (result.status, result.text, result.rounds) == ("succeeded", "Hello there, friend.", 1)
    assert ending(events) == result
    assert [event.seq for event in events] == [1, 2, 3, 3, 3, 3, 4, 5, 6]
    assert {event.origin.run for event in events} == {"s-r1"}


async def test_a_round_with_a_tool_tells_exactly_these_events(autojump_clock: trio.testing.MockClock) -> None:
    """A call's life is proposed, started, returned, finished, and its round closes before the next one opens."""
    model = Scripted([[call("forecast", city="Oslo")], "Take a hat."])
    events, result = await watch(Agent(model=model, tools=[forecast]), "Oslo?")
    assert [name for name in names(events) if not name.endswith("Delta")] == [
        "RunStarted",
        "MessageAdded",
        "RoundStarted",
        "MessageStarted",
        "MessageCompleted",
        "CallProposed",
        "CallStarted",
        "CallReturned",
        "CallFinished",
        "RoundEnded",
        "RoundStarted",
        "MessageStarted",
        "MessageCompleted",
        "RoundEnded",
        "RunEnded",
    ]
    assert [said(item) for item in results(events)] == ["sunny in Oslo"]
    assert (result.text, result.rounds, result.usage) == ("Take a hat.", 2, Usage(input=20, output=10))
    typed = [event for event in events if isinstance(event, ToolInputDelta)]
    assert "".join(event.text for event in typed) == '{"city":"Oslo"}'
    assert {event.name for event in typed} == {"forecast"}


async def test_deltas_join_to_the_text_by_their_offsets(autojump_clock: trio.testing.MockClock) -> None:
    """A view that joins deltas by offset shows the message, no more and no less."""
    events, _ = await watch(Agent(model=Scripted([Reply("A longer answer than one piece.", thinking="Hm.")])))
    text = ""
    for event in events:
        if isinstance(event, TextDelta):
            assert event.offset == len(text)
            text += event.text
    assert text == "A longer answer than one piece."


async def test_the_model_reads_the_results_of_its_calls(autojump_clock: trio.testing.MockClock) -> None:
    """The second request is the first one, the response, and one message with its results."""
    model = Scripted([[call("forecast", city="Oslo"), call("forecast", city="Bergen")], "Done."])
    await watch(Agent(model=model, tools=[forecast]))
    second = model.requests[1].messages
    assert [message.role for message in second] == ["user", "assistant", "tool"]
    assert [said(part) for part in second[2].parts if isinstance(part, ToolResult)] == [
        "sunny in Oslo",
        "sunny in Bergen",
    ]


async def test_a_run_ends_after_its_most_rounds(autojump_clock: trio.testing.MockClock) -> None:
    """A model that calls for ever is stopped by a number, not by a bill."""
    model = Scripted([[call("forecast", city="Oslo")]] * 3)
    _, result = await watch(Agent(model=model, tools=[forecast], limits=Limits(max_rounds=2)))
    assert result.failure is not None
    assert (result.status, result.failure.code, result.failure.recoverable) == ("error", "max_rounds", True)
    assert (len(model.requests), result.rounds) == (2, 2)


async def test_a_message_that_waits_is_not_eaten_by_the_last_round(autojump_clock: trio.testing.MockClock) -> None:
    """An answered run that has no round left ends as answered; what waits is kept for the next run."""
    agent = Agent(model=Scripted(["One.", "Two."]), limits=Limits(max_rounds=1))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("P") as run:
            first = []
            async for event in run:
                first.append(event)
                if isinstance(event, MessageStarted):
                    session.steer("S")
        assert (run.result.status, run.result.queued, added(first)) == ("succeeded", 1, ["P"])
        assert (await session.proceed()).text == "Two."


async def test_a_run_ends_at_its_token_limit(autojump_clock: trio.testing.MockClock) -> None:
    """The limit is looked at before each request; the round that passed it still counts."""
    model = Scripted([[call("forecast", city="Oslo")]] * 3)
    _, result = await watch(Agent(model=model, tools=[forecast], limits=Limits(max_total_tokens=30)))
    assert result.failure is not None
    assert (result.failure.code, result.rounds, result.usage.total) == ("limit", 2, 30)


async def test_a_conversation_over_the_context_limit_is_not_sent(autojump_clock: trio.testing.MockClock) -> None:
    """The provider would refuse it, and may charge for it."""
    model = Scripted(["Never."])
    live = prompt_layer("live", lambda context: "It is late.")
    events, result = await watch(Agent(model=model, limits=Limits(max_context_chars=10), prompt=[live]), "Hi.")
    assert result.failure is not None
    assert (result.status, result.failure.code, model.requests) == ("error", "limit", [])
    assert names(events) == ["RunStarted", "MessageAdded", "RoundStarted", "RoundEnded", "RunEnded"]


async def test_a_conversation_that_outgrows_its_limit_is_compacted(autojump_clock: trio.testing.MockClock) -> None:
    """Long work goes on: old results go out as their size, the latest stay, and nothing is lost of the conversation."""

    async def dig(ctx: ToolContext) -> str:
        return "earth " * 50

    model = Scripted([[call("dig")], [call("dig")], [call("dig")], "Done.", "Still here."])
    agent = Agent(model=model, tools=[read_named("dig", dig)], limits=Limits(max_context_chars=900))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Dig.") as run:
            events = [event async for event in run]
        assert run.result.status == "succeeded"
        assert (await session.ask("And now?")).text == "Still here."
        value = Session.from_json(session.value.to_json())
    compacted = [event for event in events if isinstance(event, Compacted)]
    assert [(event.messages, event.chars) for event in compacted] == [(5, 556)]  # room for a quarter more
    assert names(events)[names(events).index("Compacted") - 1 :][:3] == ["RoundStarted", "Compacted", "MessageStarted"]
    sent = [
        "".join(part.text for part in result.parts if isinstance(part, Text))
        for message in model.requests[3].messages
        for result in message.parts
        if isinstance(result, ToolResult)
    ]
    assert sent == ["[compacted: 300 chars]", "[compacted: 300 chars]", "earth " * 50]
    assert value.compacted == 5
    assert "compacted:" not in "".join(str(message.parts) for message in value.messages)


async def test_a_conversation_that_nothing_makes_shorter_says_what_to_do(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of many small messages none can be left out: the value goes on where the limit is larger."""
    small = Agent(model=Scripted(["x" * 90] * 9), limits=Limits(max_context_chars=400))
    async with open_runtime() as runtime:
        async with runtime.open_session(small) as session:
            while (result := await session.ask("Go on.")).failure is None:
                pass
            assert result.failure.code == "limit"
            assert "the limit is 400. Raise Limits.max_context_chars" in result.failure.message
        async with runtime.open_session(Agent(model=Scripted(["Fine."])), value=session.value) as session:
            assert (await session.proceed()).text == "Fine."


async def test_an_answer_larger_than_the_limit_is_sent_as_its_beginning(autojump_clock: trio.testing.MockClock) -> None:
    """The next prompt just works, and so does the one behind it; the conversation keeps the answer."""
    model = Scripted(["x" * 900, "Fine.", "Still."])
    agent = Agent(model=model, limits=Limits(max_context_chars=600))
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        long = await session.ask("Go.")
        async with session.run("On.") as run:
            told = [event for event in [event async for event in run] if isinstance(event, Compacted)]
        assert (await session.ask("And?")).text == "Still."
    assert [(event.messages, event.shortened) for event in told] == [(0, (f"{long.run_id}-1a1",))]
    assert [request.messages[1].text for request in model.requests[1:]] == ["x" * 200 + " [compacted: 900 chars]"] * 2
    assert session.value.messages[1].text == "x" * 900


async def test_three_failures_in_a_row_end_the_run(autojump_clock: trio.testing.MockClock) -> None:
    """A model that can't use its tools is stopped before it burns every round."""
    model = Scripted([[call("broken")]] * 5)
    _, result = await watch(Agent(model=model, tools=[broken]))
    assert result.failure is not None
    assert (result.status, result.failure.code, result.rounds) == ("error", "dependency_failed", 3)


async def test_a_success_starts_the_count_of_failures_anew(autojump_clock: trio.testing.MockClock) -> None:
    """Failures in a row, not failures in all."""
    turns: list[Any] = [[call("broken")], [call("broken")], [call("forecast", city="Oslo")], [call("broken")], "Done."]
    _, result = await watch(Agent(model=Scripted(turns), tools=[broken, forecast]))
    assert (result.status, result.text) == ("succeeded", "Done.")


async def test_the_limit_of_failures_stays_reached_and_skips_the_rest(autojump_clock: trio.testing.MockClock) -> None:
    """A success that ran beside the last failure does not save the run, and a later segment is not started."""
    log = Log()

    @read_tool
    async def late() -> str:
        """Succeeds, after the failures in call order."""
        return "fine"

    @write_tool
    async def save() -> str:
        """Must not run."""
        log("saved")
        return "saved"

    model = Scripted([[call("broken"), call("broken"), call("broken"), call("late"), call("save")]])
    events, result = await watch(Agent(model=model, tools=[broken, late, save], limits=Limits(max_parallel_calls=8)))
    assert [item.status for item in results(events)] == ["failed", "failed", "failed", "succeeded", "skipped"]
    assert log.lines == []
    assert result.failure is not None
    assert result.failure.code == "dependency_failed"


async def test_a_response_over_the_call_limit_starts_none_of_its_calls(autojump_clock: trio.testing.MockClock) -> None:
    """Four allowed, three made, three asked for: none of these runs, and each is answered."""
    log = Log()

    @read_tool
    async def look() -> str:
        """Counts."""
        log("looked")
        return "seen"

    model = Scripted([[call("look")] * 3, [call("look")] * 3])
    events, result = await watch(Agent(model=model, tools=[look], limits=Limits(max_calls=4)))
    assert log.lines == ["looked"] * 3
    assert [item.status for item in results(events)] == ["succeeded"] * 3 + ["skipped"] * 3
    assert result.failure is not None
    assert (result.status, result.failure.code) == ("error", "limit")


async def test_an_empty_answer_after_tools_gives_the_latest_text(autojump_clock: trio.testing.MockClock) -> None:
    """Some models say all they have to say beside their last call, then stop with nothing."""
    model = Canned(
        [ModelResponse((Text("Here."), wants("forecast", '{"city":"O"}')), "tool_calls", "t", SPENT), answer("")]
    )
    events, result = await watch(Agent(model=model, tools=[forecast]))
    assert (result.status, result.text, result.rounds) == ("succeeded", "Here.", 2)
    assert names(events)[-3:] == ["MessageDiscarded", "RoundEnded", "RunEnded"]
    assert result.usage == Usage(input=20, output=10)


@pytest.mark.parametrize("parts", [(), (Text(""),)], ids=["nothing", "an empty text"])
async def test_an_empty_answer_is_invalid_and_never_stored(
    autojump_clock: trio.testing.MockClock, parts: tuple[Text, ...]
) -> None:
    """A success without a word would look like a hang, and an empty message is refused by every provider."""
    model = Canned([ModelResponse(parts, "end", "end_turn", SPENT)])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        result = await session.ask("Hi")
        assert result.failure is not None
        assert (result.status, result.failure.code, result.usage) == ("error", "invalid_response", SPENT)
        assert [message.role for message in session.value.messages] == ["user"]


async def test_an_answer_of_an_earlier_run_is_not_given_again(autojump_clock: trio.testing.MockClock) -> None:
    """An empty answer is empty, whatever was said before this prompt."""
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Canned([answer("One."), answer("")]))) as session:
            assert (await session.ask("1")).text == "One."
            assert ((result := await session.ask("2")).status, result.text) == ("error", "")


@pytest.mark.parametrize(
    ("stop", "status", "code"),
    [
        ("refusal", "refused", None),
        ("content_filter", "blocked", "content_filter"),
        ("unknown", "error", "invalid_response"),
        ("error", "error", "invalid_response"),
        ("max_tokens", "error", "truncated"),
        ("stop_sequence", "succeeded", None),
    ],
)
async def test_each_stop_reason_has_its_ending(
    autojump_clock: trio.testing.MockClock, stop: str, status: str, code: str | None
) -> None:
    """Text is kept whatever the reason, and the raw reason is always told."""
    agent = Agent(model=Canned([answer("So far.", stop)]), limits=Limits(length_policy="off"))
    events, result = await watch(agent)
    assert (result.status, result.text, result.raw_stop_reason) == (status, "So far.", stop)
    assert (None if result.failure is None else result.failure.code) == code
    assert "MessageCompleted" in names(events)


async def test_an_empty_refusal_is_refused_and_the_history_stays_usable(autojump_clock: trio.testing.MockClock) -> None:
    """A refusal with no content is one, not a malformed answer; it is neither retried nor replayed."""
    model = Canned([ModelResponse((), "refusal", "refusal", SPENT), answer("Better.")])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        assert (await session.ask("Bad")).status == "refused"
        assert (await session.ask("Good")).text == "Better."
        assert [message.role for message in model.asked[1].messages] == ["user", "user"]


async def test_an_unknown_stop_reason_is_named(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever reads the failure can look the provider's word up."""
    model = Canned([ModelResponse((Text("Hm."),), "unknown", "solar_flare", SPENT)])
    _, result = await watch(Agent(model=model))
    assert result.failure is not None
    assert "solar_flare" in result.failure.message
    assert result.raw_stop_reason == "solar_flare"


async def test_a_pause_is_continued_by_the_next_round(autojump_clock: trio.testing.MockClock) -> None:
    """A provider that works long on its side pauses, and goes on when it gets its own message back."""
    raw = RawBlock("server_tool_use", '{"type":"server_tool_use"}')
    model = Canned([ModelResponse((raw,), "pause", "pause_turn", SPENT), answer("Found it.")])
    _, result = await watch(Agent(model=model))
    assert (result.status, result.text, result.rounds) == ("succeeded", "Found it.", 2)
    assert model.asked[1].messages[-1].parts == (raw,)


@pytest.mark.parametrize(("rest", "text"), [("and old.", "Fjords are deep and old."), ("", "Fjords are deep ")])
async def test_a_response_that_paused_is_one_answer(
    autojump_clock: trio.testing.MockClock, rest: str, text: str
) -> None:
    """The halves belong together, also where the model has nothing to add to the first."""
    model = Canned([answer("Fjords are deep ", "pause"), answer(rest)])
    _, result = await watch(Agent(model=model))
    assert (result.status, result.text, result.rounds) == ("succeeded", text, 2)


async def test_calls_of_a_cut_response_never_run(autojump_clock: trio.testing.MockClock) -> None:
    """Arguments that happen to parse may still be a prefix of what was meant."""
    log = Log()

    @read_tool
    async def look() -> str:
        """Must not run."""
        log("looked")
        return ""

    agent = Agent(
        model=Canned([asks(wants("look"), stop="max_tokens")]), tools=[look], limits=Limits(length_policy="off")
    )
    events, result = await watch(agent)
    assert log.lines == []
    assert [item.status for item in results(events)] == ["skipped"]
    assert result.failure is not None
    assert result.failure.code == "truncated"


async def test_calls_beside_a_refusal_never_run(autojump_clock: trio.testing.MockClock) -> None:
    """Only a stop reason that allows it lets tools run."""
    agent = Agent(model=Canned([asks(wants("broken"), stop="refusal")]), tools=[broken])
    events, result = await watch(agent)
    assert [item.status for item in results(events)] == ["skipped"]
    assert result.status == "refused"


async def test_usage_of_a_round_is_the_rounds_own(autojump_clock: trio.testing.MockClock) -> None:
    """Adding up a run's usage must not change what an earlier round was told to have cost."""
    model = Scripted(
        [Reply(calls=[call("forecast", city="O")], usage=Usage(input=3)), Reply("Done.", usage=Usage(output=4))]
    )
    events, result = await watch(Agent(model=model, tools=[forecast]))
    rounds = [event.usage for event in events if isinstance(event, RoundEnded)]
    assert rounds == [Usage(input=3), Usage(output=4)]
    assert result.usage == Usage(input=3, output=4)


async def test_the_start_of_a_run_tells_what_it_runs_with(autojump_clock: trio.testing.MockClock) -> None:
    """A resumed run goes by the limits that the first process had, not by those of today's code."""
    limits = Limits(max_rounds=3)
    events, _ = await watch(Agent(model=Scripted(["Hi."]), thinking="high", limits=limits))
    start = events[0]
    assert isinstance(start, RunStarted)
    assert (start.model, start.provider, start.thinking, start.limits) == ("scripted", "scripted", "high", limits)


async def test_a_run_past_its_deadline_ends_as_an_error(autojump_clock: trio.testing.MockClock) -> None:
    """Nobody stopped it, so it is no cancel; who reads the code can raise the limit."""

    @read_tool
    async def stall() -> str:
        """Takes for ever."""
        await trio.sleep_forever()

    agent = Agent(model=Scripted([[call("stall")]]), tools=[stall], limits=Limits(deadline=5))
    start = trio.current_time()
    events, result = await watch(agent)
    assert result.failure is not None
    assert (result.status, result.failure.code, result.failure.recoverable) == ("error", "deadline", True)
    assert [item.status for item in results(events)] == ["cancelled"]
    assert trio.current_time() - start == pytest.approx(5, abs=0.1)


async def test_a_failed_result_can_be_raised(autojump_clock: trio.testing.MockClock) -> None:
    """Scripts want an exception where programs want data."""
    _, good = await watch(Agent(model=Scripted(["Hi."])))
    good.raise_for_status()
    _, bad = await watch(Agent(model=Scripted([])))
    with pytest.raises(RunFailed, match="run out"):
        bad.raise_for_status()


async def test_a_message_keeps_its_reasoning_before_its_text(autojump_clock: trio.testing.MockClock) -> None:
    """The parts stand in the order in which the provider gave them, and are one message."""
    events, _ = await watch(Agent(model=Scripted([Reply("Yes.", thinking="Is it?")])))
    (done,) = [event for event in events if isinstance(event, MessageCompleted)]
    assert done.message.parts == (Thinking("Is it?"), Text("Yes."))
    assert not [event for event in events if isinstance(event, MessageDiscarded)]
