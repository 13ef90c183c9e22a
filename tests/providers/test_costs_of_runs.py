"""Money from the wire to a run's end: what is summed, what is kept of attempts in vain, and the limit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import trio

from agentrio import Agent, Anthropic, DeclarationError, Limits, OpenAIChat, Prices, Usage, open_runtime, read_tool
from agentrio.events import TextDelta
from agentrio.providers.scripted import Reply, Scripted, call
from agentrio.testing import Call as WireCall
from agentrio.testing import CallsReply, Fault, TextReply
from agentrio.testing.loopback import open_model_server
from tests.actors.kit import watch

PRICES = Prices(input=1_000_000, output=10_000_000)  # a dollar for a token, ten for one of output
CENT = Decimal("0.01")


@read_tool
async def look() -> str:
    """Looks."""
    return "seen"


def told(result: Any) -> int:
    """The cost of this usage, at our prices."""
    usage: Usage = result
    return usage.input + 10 * usage.output


async def test_a_run_costs_what_its_rounds_cost() -> None:
    """And what it costs at these prices."""
    async with open_model_server([CallsReply([WireCall("look", {})]), TextReply("Rain.")]) as server:
        model = Anthropic("m", api_key="key-of-a-test", base_url=server.base_url, prices=PRICES)
        _, result = await watch(Agent(model=model, tools=[look]))
    assert (result.status, result.rounds) == ("succeeded", 2)
    assert result.usage.total > 0
    assert result.usage.cost == told(result.usage)


async def test_an_attempt_that_broke_off_was_paid_for() -> None:
    """It is counted apart, as its tokens are."""
    cut = TextReply("It rains in Oslo.", fault=Fault(cut_at_byte=700))
    async with open_model_server([cut, TextReply("Rain.")]) as server:
        model = Anthropic("m", api_key="key-of-a-test", base_url=server.base_url, prices=PRICES)
        _, result = await watch(Agent(model=model))
    assert result.status == "succeeded"
    assert result.discarded.input > 0
    assert result.discarded.cost == told(result.discarded)
    assert result.usage.cost == told(result.usage)


async def test_a_stopped_answer_costs_what_was_told_by_then() -> None:
    """Its prompt at least, on a wire that tells it at the head."""
    async with open_model_server([TextReply("And then. ", fault=Fault(endless=True))]) as server:
        model = Anthropic("m", api_key="key-of-a-test", base_url=server.base_url, prices=PRICES)
        async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
            async with session.run("A story.") as run:
                async for event in run:
                    if isinstance(event, TextDelta):
                        run.stop()
    assert run.result.status == "cancelled"
    assert run.result.usage.input > 0
    assert run.result.usage.cost == told(run.result.usage)


async def test_a_limit_of_money_ends_the_run() -> None:
    """The round that passed it still counts."""
    async with open_model_server([CallsReply([WireCall("look", {})])] * 3) as server:
        model = OpenAIChat("m", base_url=f"{server.base_url}/v1", prices=PRICES)
        _, result = await watch(Agent(model=model, tools=[look], limits=Limits(max_cost=CENT)))
    assert result.failure is not None
    assert (result.rounds, result.failure.code) == (1, "limit")
    assert "used its 0.01 US dollars" in result.failure.message


async def test_a_limit_of_money_is_refused_where_no_price_can_be_known() -> None:
    """When the session is opened, before anything was spent."""
    model = OpenAIChat("qwen3", preset="ollama")
    async with open_runtime() as runtime:
        with pytest.raises(DeclarationError, match=r"max_cost can't be held, as what qwen3 costs.*prices=Prices"):
            async with runtime.open_session(Agent(name="a", model=model, limits=Limits(max_cost=1))):
                pass
        async with runtime.open_session(Agent(model=model)):
            pass


async def test_each_fallback_must_have_a_price_too() -> None:
    """The limit would hold for the first model only."""
    first = OpenAIChat("gpt-5.2", base_url="http://127.0.0.1:1/v1", prices=PRICES)
    agent = Agent(model=first, fallbacks=[OpenAIChat("llama", preset="llamacpp")], limits=Limits(max_cost=1))
    async with open_runtime() as runtime:
        with pytest.raises(DeclarationError, match="as what llama costs is not known"):
            async with runtime.open_session(agent):
                pass
    priced = Agent(model=first, fallbacks=[OpenAIChat("x", preset="vllm", prices=PRICES)], limits=Limits(max_cost=1))
    async with open_runtime() as runtime, runtime.open_session(priced) as session:
        assert session.value.messages == ()


async def test_a_price_that_turns_out_to_be_unknown_ends_the_run(autojump_clock: trio.testing.MockClock) -> None:
    """After the first response, whose text is kept: a limit that does not hold is never passed over."""
    model = Scripted(["Rain."])
    _, result = await watch(Agent(model=model, limits=Limits(max_cost=1)))
    assert result.failure is not None
    assert (result.status, result.failure.code, result.text, len(model.requests)) == ("error", "limit", "Rain.", 1)
    assert "what scripted costs is not known" in result.failure.message


async def test_a_scripted_model_costs_what_its_script_says(autojump_clock: trio.testing.MockClock) -> None:
    """So that an agent's limit can be tried without a server."""
    reply = Reply(calls=[call("look")], usage=Usage(1, 1, cost=Decimal("0.4")))
    _, result = await watch(Agent(model=Scripted([reply] * 4), tools=[look], limits=Limits(max_cost=1)))
    assert result.failure is not None
    assert (result.rounds, result.failure.code, result.usage.cost) == (3, "limit", Decimal("1.2"))


@pytest.mark.parametrize("limits", [Limits(max_total_tokens=100), Limits(max_cost=1)])
async def test_a_run_does_not_go_on_where_the_server_tells_no_usage(
    limits: Limits, autojump_clock: trio.testing.MockClock
) -> None:
    """It could go on for ever; an answer that is there at once is one."""
    asks = Reply(calls=[call("look")], usage=Usage())
    _, result = await watch(Agent(model=Scripted([asks, "Never."]), tools=[look], limits=limits))
    assert result.failure is not None
    assert (result.rounds, result.failure.code) == (1, "limit")
    assert "does not tell what was used" in result.failure.message
    _, result = await watch(Agent(model=Scripted([Reply("Rain.", usage=Usage())]), limits=limits))
    assert result.status == "succeeded"
