"""When a model call is made again, after how long, and what is told and counted of the attempts that failed."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, RunResult, Usage, open_runtime, prompt_layer, read_tool
from agentrio.domain.parts import RawBlock, Text, Thinking
from agentrio.domain.status import Code
from agentrio.events import Event, MessageCompleted, MessageDiscarded, MessageStarted, Retrying, RoundEnded
from agentrio.providers.base import ModelResponse
from tests.actors.kit import SPENT, Broken, Canned, NoJitter, answer, asks, dropped, names, refused, wants, watch


async def run_of(model: Canned, *, jitter: float = 0.0, **options: Any) -> tuple[list[Event], RunResult[Any]]:
    """One run with this model, its jitter fixed."""
    agent = Agent(model=model, **options)
    async with open_runtime(rng=NoJitter(jitter)) as runtime, runtime.open_session(agent, id="s") as session:
        async with session.run("Go.") as run:
            events = [event async for event in run]
        return events, run.result


def waits(model: Canned) -> list[float]:
    """The seconds between its requests."""
    return [later - earlier for earlier, later in zip(model.at, model.at[1:], strict=False)]


def retries(events: list[Event]) -> list[tuple[str, int, int, float]]:
    """Kind, attempt, most and delay of each retry told."""
    return [(event.kind, event.attempt, event.most, event.delay) for event in events if isinstance(event, Retrying)]


def code_of(result: RunResult[Any]) -> Code | None:
    """Why the run failed."""
    assert result.failure is not None
    return result.failure.code


# Before the first content


async def test_a_request_is_made_three_times_again(autojump_clock: trio.testing.MockClock) -> None:
    """After 0.5, 1 and 2 seconds: long enough for a hiccup, short enough for who waits."""
    model = Canned([refused(), refused(), refused(), answer("At last.")])
    events, result = await run_of(model)
    assert waits(model) == [0.5, 1.0, 2.0]
    assert retries(events) == [("request", 1, 3, 0.5), ("request", 2, 3, 1.0), ("request", 3, 3, 2.0)]
    assert (result.status, result.text, result.rounds) == ("succeeded", "At last.", 1)
    assert names(events).count("MessageStarted") == 1
    assert "MessageDiscarded" not in names(events)


async def test_the_fourth_refusal_ends_the_run(autojump_clock: trio.testing.MockClock) -> None:
    """The failure is that of the last attempt, and says that trying later may help."""
    model = Canned([refused(), refused(), refused(), refused("rate_limited", request_id="req_1")])
    events, result = await run_of(model)
    assert result.failure is not None
    assert (code_of(result), result.failure.recoverable, len(model.at)) == ("rate_limited", True, 4)
    assert result.failure.correlation_id == "req_1"
    assert names(events)[-2:] == ["RoundEnded", "RunEnded"]


async def test_jitter_lengthens_a_wait_by_a_quarter_at_most(autojump_clock: trio.testing.MockClock) -> None:
    """A thousand clients that were refused together don't come back together."""
    model = Canned([refused(), dropped(), answer("Yes.")])
    await run_of(model, jitter=1.0)
    assert waits(model) == [0.625, 1.25]


@pytest.mark.parametrize(("asked", "waited"), [(3.0, 3.0), (0.1, 0.5), (60.0, 60.0)])
async def test_the_server_is_given_the_time_it_asks_for(
    autojump_clock: trio.testing.MockClock, asked: float, waited: float
) -> None:
    """Coming back sooner would only be refused again; never sooner than our own schedule either."""
    model = Canned([refused("rate_limited", retry_after=asked), answer("Yes.")])
    await run_of(model)
    assert waits(model) == [waited]


async def test_a_server_that_asks_for_more_than_a_minute_is_not_waited_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nobody watches a spinner that long: the run ends now and says when to come back."""
    model = Canned([refused("rate_limited", retry_after=61.0)])
    events, result = await run_of(model)
    assert result.failure is not None
    assert (result.failure.code, result.failure.retry_after, result.failure.recoverable) == ("rate_limited", 61.0, True)
    assert (retries(events), len(model.at)) == ([], 1)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("unauthorized", "error"),
        ("invalid_request", "error"),
        ("context_overflow", "error"),
        ("not_provisioned", "not_provisioned"),
        ("content_filter", "blocked"),
    ],
)
async def test_what_asking_again_can_not_mend_is_not_asked_again(
    autojump_clock: trio.testing.MockClock, code: Any, status: str
) -> None:
    """A wrong key stays wrong."""
    model = Canned([refused(code, retry=None)])
    _, result = await run_of(model)
    assert result.failure is not None
    assert (result.status, result.failure.code, result.failure.recoverable) == (status, code, False)
    assert len(model.at) == 1


# A stream that breaks off


async def test_a_dropped_stream_is_retracted_before_it_is_asked_for_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A view takes the half answer back first; the next attempt is a message of its own."""
    model = Canned([dropped("Hal"), answer("Hallo.")])
    events, result = await run_of(model)
    assert names(events)[2:] == [
        "RoundStarted",
        "MessageStarted",
        "TextDelta",
        "MessageDiscarded",
        "Retrying",
        "MessageStarted",
        "TextDelta",
        "MessageCompleted",
        "RoundEnded",
        "RunEnded",
    ]
    ids = [event.message_id for event in events if isinstance(event, MessageStarted)]
    gone = [(event.message_id, event.why) for event in events if isinstance(event, MessageDiscarded)]
    done = [event.message.id for event in events if isinstance(event, MessageCompleted)]
    assert (gone, done) == ([(ids[0], "stream_dropped")], [ids[1]])
    assert ids[0] != ids[1]
    assert (result.text, waits(model)) == ("Hallo.", [1.0])


async def test_four_drops_end_the_run(autojump_clock: trio.testing.MockClock) -> None:
    """After 1, 2 and 4 seconds; nothing of any attempt is kept, and all of it is counted."""
    model = Canned([dropped() for _ in range(4)])
    events, result = await run_of(model)
    assert waits(model) == [1.0, 2.0, 4.0]
    assert [retry[0] for retry in retries(events)] == ["stream"] * 3
    assert (code_of(result), result.text) == ("stream_dropped", "")
    assert (result.usage, result.discarded) == (Usage(), Usage(input=28, output=4))


async def test_usage_of_lost_attempts_is_counted_apart(autojump_clock: trio.testing.MockClock) -> None:
    """They cost money and brought nothing: neither hidden nor mixed with what was kept."""
    model = Canned([dropped(usage=Usage(input=7)), dropped(usage=Usage(input=7, output=2)), answer("Yes.")])
    events, result = await run_of(model)
    assert (result.usage, result.discarded) == (SPENT, Usage(input=14, output=2))
    (done,) = [event for event in events if isinstance(event, MessageCompleted)]
    (end,) = [event for event in events if isinstance(event, RoundEnded)]
    assert (done.usage, done.discarded) == (end.usage, end.discarded) == (SPENT, Usage(input=14, output=2))


async def test_refusals_and_drops_have_counts_of_their_own(autojump_clock: trio.testing.MockClock) -> None:
    """A bad minute of both kinds is still outlasted."""
    model = Canned([refused(), dropped(), refused(), dropped(), refused(), dropped(), answer("Yes.")])
    _, result = await run_of(model)
    assert (result.text, waits(model)) == ("Yes.", [0.5, 1.0, 1.0, 2.0, 2.0, 4.0])


async def test_each_round_has_its_schedule_anew(autojump_clock: trio.testing.MockClock) -> None:
    """A long run is not ended by what its first round met."""

    @read_tool
    async def look() -> str:
        """Looks."""
        return "seen"

    model = Canned([refused(), refused(), asks(wants("look")), refused(), refused(), answer("Yes.")])
    _, result = await run_of(model, tools=[look])
    assert (result.text, result.rounds, waits(model)) == ("Yes.", 2, [0.5, 1.0, 0.0, 0.5, 1.0])


# A response that was cut, or can't be used


@pytest.mark.parametrize(
    ("policy", "budgets"), [("same", [500, 500, 500]), ("escalate", [500, 1000, 2000]), ("off", [500])]
)
async def test_a_response_cut_at_its_limit_is_asked_for_again(
    autojump_clock: trio.testing.MockClock, policy: Any, budgets: list[int]
) -> None:
    """With the same limit, with twice as much, or not at all; the last one is kept, and the run says it was cut."""
    model = Canned([answer("Half an", "max_tokens") for _ in budgets])
    events, result = await run_of(model, max_tokens=500, limits=Limits(length_policy=policy))
    assert [request.max_tokens for request in model.asked] == budgets
    assert [retry[0] for retry in retries(events)] == ["length"] * (len(budgets) - 1)
    assert (code_of(result), result.text) == ("truncated", "Half an")
    assert names(events).count("MessageCompleted") == 1
    assert result.discarded == Usage(input=10 * (len(budgets) - 1), output=5 * (len(budgets) - 1))


async def test_escalating_without_a_limit_asks_for_the_same(autojump_clock: trio.testing.MockClock) -> None:
    """There is nothing to double where the provider's own default was used."""
    model = Canned([answer("Half", "max_tokens"), answer("Whole.")])
    _, result = await run_of(model, limits=Limits(length_policy="escalate"))
    assert ([request.max_tokens for request in model.asked], result.text) == ([None, None], "Whole.")


async def test_a_raised_limit_is_of_one_round(autojump_clock: trio.testing.MockClock) -> None:
    """The next round asks for what the agent declares."""

    @read_tool
    async def look() -> str:
        """Looks."""
        return "seen"

    model = Canned([answer("Half", "max_tokens"), asks(wants("look")), answer("Yes.")])
    await run_of(model, tools=[look], max_tokens=100, limits=Limits(length_policy="escalate"))
    assert [request.max_tokens for request in model.asked] == [100, 200, 100]


async def test_a_cut_then_a_drop_then_a_success_is_a_success(autojump_clock: trio.testing.MockClock) -> None:
    """The counts do not add up to one another's limit."""
    model = Canned([answer("Half", "max_tokens"), dropped(), answer("Half", "max_tokens"), answer("Whole.")])
    events, result = await run_of(model)
    assert [retry[0] for retry in retries(events)] == ["length", "stream", "length"]
    assert (result.status, result.text) == ("succeeded", "Whole.")


_THINKING = ModelResponse((Thinking("Hm."),), "end", "end_turn", SPENT)
_THINKING_AND_NOTHING = ModelResponse((Thinking("Hm."), Text("")), "end", "end_turn", SPENT)
_PROMISE = ModelResponse((Text("Let me look."),), "tool_calls", "tool_use", SPENT)
_EMPTY_PROMISE = ModelResponse((), "tool_calls", "tool_use", SPENT)


@pytest.mark.parametrize("unusable", [_THINKING, _THINKING_AND_NOTHING, _PROMISE, _EMPTY_PROMISE])
async def test_a_response_without_what_it_promises_is_asked_for_once_more(
    autojump_clock: trio.testing.MockClock, unusable: ModelResponse
) -> None:
    """Reasoning and no answer, or calls announced and none made: models do that, and seldom twice."""
    model = Canned([unusable, answer("Yes.")])
    events, result = await run_of(model)
    assert retries(events) == [("response", 1, 1, 0.0)]
    assert (result.text, result.usage, result.discarded) == ("Yes.", SPENT, SPENT)

    model = Canned([unusable, unusable])
    events, result = await run_of(model)
    assert (code_of(result), result.text, len(model.asked)) == ("invalid_response", "", 2)
    assert "MessageCompleted" not in names(events)
    assert result.discarded == SPENT + SPENT


async def test_a_pause_after_reasoning_is_no_fault(autojump_clock: trio.testing.MockClock) -> None:
    """Only a response that says it is done must have said something."""
    model = Canned([ModelResponse((Thinking("Hm."),), "pause", "pause_turn", SPENT), answer("Yes.")])
    events, result = await run_of(model)
    assert (retries(events), result.text, result.rounds) == ([], "Yes.", 2)


async def test_two_calls_with_one_id_are_refused_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """Their results could not be told apart on the wire; asking again would be a guess."""

    @read_tool
    async def look() -> str:
        """Must not run."""
        raise AssertionError

    model = Canned([asks(wants("look", id="a"), wants("look", id="b"), wants("look", id="a"))])
    events, result = await run_of(model, tools=[look])
    assert (code_of(result), len(model.asked)) == ("invalid_response", 1)
    assert "CallProposed" not in names(events)
    assert result.discarded == SPENT


async def test_a_raw_block_is_an_answer_of_its_kind(autojump_clock: trio.testing.MockClock) -> None:
    """It is stored for the provider's sake; a run without a word of text still has no answer."""
    model = Canned([ModelResponse((RawBlock("search", "{}"),), "end", "end_turn", SPENT)])
    events, result = await run_of(model)
    assert (code_of(result), "MessageCompleted" in names(events)) == ("invalid_response", True)


# A stop meanwhile


@pytest.mark.parametrize("outcome", [refused("rate_limited", retry_after=50.0), dropped()], ids=["refused", "dropped"])
async def test_a_stop_ends_a_wait_at_once(autojump_clock: trio.testing.MockClock, outcome: Any) -> None:
    """No further request goes out, and the run is cancelled, not failed."""
    model = Canned([outcome])
    async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
        start = trio.current_time()
        async with session.run("Go.") as run:
            events: list[Event] = []
            async for event in run:
                events.append(event)
                if isinstance(event, Retrying):
                    run.stop(reason="enough")
        assert (run.result.status, run.result.reason) == ("cancelled", "enough")
        assert (trio.current_time() - start, len(model.at)) == (0, 1)
        expected = outcome.usage if isinstance(outcome, Broken) else Usage()
        assert run.result.discarded == expected


async def test_a_prompt_layer_that_fails_ends_the_run(autojump_clock: trio.testing.MockClock) -> None:
    """The app's own function broke: a dependency, named by its kind only, since its text may hold a secret."""

    def layer(context: Any) -> str:
        raise ValueError("password 1234")

    model = Canned([])
    events, result = await watch(Agent(model=model, prompt=[prompt_layer("live", layer)]))
    assert result.failure is not None
    assert (result.failure.code, "1234" in result.failure.message) == ("dependency_failed", False)
    assert names(events) == ["RunStarted", "MessageAdded", "RoundStarted", "RoundEnded", "RunEnded"]
