"""Fallback models: asked in order when a model fails for good, and only then."""

from __future__ import annotations

from typing import get_args

import pytest

from agentrio import Agent, DeclarationError, Scripted, open_runtime, read_tool
from agentrio.domain.messages import ModelTag
from agentrio.domain.status import Code
from agentrio.events import Event, MessageCompleted, Retrying
from agentrio.providers.base import ProviderError
from agentrio.providers.scripted import call


@read_tool
async def look() -> str:
    """Look."""
    return "seen"


def refused(code: str = "unauthorized") -> ProviderError:
    return ProviderError("no", code=code)  # type: ignore[arg-type]  # a test names any code


async def test_the_next_model_answers_and_the_run_stays_with_it(autojump_clock: object) -> None:
    """Each round would wait for the dead one again, and a conversation would change its voice in between."""
    first = Scripted([refused(), "never"], model="first")
    second = Scripted([[call("look")], "It is there."], model="second")
    seen: list[Event] = []
    async with open_runtime() as runtime:
        agent = Agent(model=first, fallbacks=[second], tools=[look])
        async with runtime.open_session(agent) as session, session.run("Look.") as run:
            seen.extend([event async for event in run])
    result = run.result
    assert (result.status, result.text, result.model) == ("succeeded", "It is there.", "second")
    assert [event.kind for event in seen if isinstance(event, Retrying)] == ["fallback"]
    tags = [event.message.model for event in seen if isinstance(event, MessageCompleted)]
    assert tags == [ModelTag("scripted", "scripted", "second")] * 2
    assert (len(first.requests), len(second.requests)) == (1, 2)


async def test_the_next_run_begins_with_the_first_model_again(autojump_clock: object) -> None:
    """What was down may be up again."""
    first = Scripted([refused("overloaded"), "Here I am."], model="first")
    async with open_runtime() as runtime:
        agent = Agent(model=first, fallbacks=[Scripted(["Standing in."], model="second")])
        async with runtime.open_session(agent) as session:
            answers = [(await session.ask("Who?")).text, (await session.ask("And now?")).text]
    assert answers == ["Standing in.", "Here I am."]


async def test_retries_come_before_fallbacks_and_the_last_failure_is_told(autojump_clock: object) -> None:
    """A second's overload is no reason to change the model; when none is left, the reason is the last one's."""
    busy = ProviderError("busy", code="overloaded", retry="request")
    first, second = Scripted([busy] * 4, model="first"), Scripted([refused("rate_limited")], model="second")
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=first, fallbacks=[second])) as session:
            result = await session.ask("Anyone?")
    assert (len(first.requests), len(second.requests)) == (4, 1)
    assert result.failure is not None
    assert result.failure.code == "rate_limited"


async def test_a_fault_of_the_request_is_not_tried_elsewhere(autojump_clock: object) -> None:
    """A request that one server finds malformed, or that is over our own limit, is not worth another server's money."""
    second = Scripted(["never"], model="second")
    async with open_runtime() as runtime:
        agent = Agent(model=Scripted([refused("invalid_request")]), fallbacks=[second])
        async with runtime.open_session(agent) as session:
            result = await session.ask("Well?")
    assert (result.status, second.requests) == ("error", [])


MAY_BE_FINE_ELSEWHERE = {
    "context_overflow",
    "dependency_failed",
    "invalid_response",
    "not_provisioned",
    "overloaded",
    "rate_limited",
    "stream_dropped",
    "unauthorized",
    "unsupported",
}


@pytest.mark.parametrize("code", get_args(Code))
async def test_each_failure_that_another_model_may_not_have_is_tried_elsewhere(
    code: str, autojump_clock: object
) -> None:
    """And no other: what a filter stopped must not be asked of the next."""
    second = Scripted(["Fine."], model="second")
    async with open_runtime() as runtime:
        async with runtime.open_session(Agent(model=Scripted([refused(code)]), fallbacks=[second])) as session:
            result = await session.ask("Well?")
    assert (result.status == "succeeded", len(second.requests)) == (code in MAY_BE_FINE_ELSEWHERE,) * 2


def test_a_fallback_that_is_no_model_is_refused_where_it_is_declared() -> None:
    """A typing error must not wait for the day on which the first model is down."""
    with pytest.raises(DeclarationError, match="nobody"):
        Agent(model=Scripted([]), fallbacks=["nobody:model"])
    with pytest.raises(DeclarationError, match="fallbacks"):
        Agent(model=Scripted([]), fallbacks="anthropic:claude-sonnet-5")
