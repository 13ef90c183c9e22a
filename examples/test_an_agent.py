"""How to test an agent and its tools: no network, no key, no waiting. Run it with pytest, or as a script.

With pytest-trio, async tests need ``trio_mode = true`` in the configuration of pytest.
"""

import trio

from agentrio import Agent, Scripted, ToolContext, ToolError, ask, read_tool
from agentrio.parts import ToolResult
from agentrio.providers.scripted import call

STOCK = {"rope": 12, "lamp": 0}


@read_tool
async def in_stock(ctx: ToolContext, item: str) -> int:
    """How many of an item are in stock."""
    if item not in STOCK:
        raise ToolError(f"There is no item {item!r}; there are {', '.join(STOCK)}.")
    ctx.remember({"asked_for": item})
    return STOCK[item]


def clerk(model: Scripted) -> Agent[None]:
    return Agent(name="clerk", model=model, prompt="You are a clerk.", tools=[in_stock])


async def test_the_tool_alone() -> None:
    """A tool is still the function that it was made from; a context for tests stands in for the runtime's."""
    ctx = ToolContext.for_test()
    assert await in_stock(ctx, "rope") == 12
    assert ctx.patches == ({"asked_for": "rope"},)


async def test_the_agent_answers_from_the_tool() -> None:
    """The script says what the model does; what is tested is everything else."""
    model = Scripted([[call("in_stock", item="rope")], "We have twelve."])
    result = await ask(clerk(model), "Do you have rope?")
    assert result.status == "succeeded"
    assert result.rounds == 2
    second = model.requests[1]  # what the model was sent in the second round
    assert any(isinstance(part, ToolResult) for part in second.messages[-1].parts)


async def test_a_failed_call_reaches_the_model_in_words_meant_for_it() -> None:
    """What a ToolError says is what the model reads."""
    model = Scripted([[call("in_stock", item="anchor")], "We have no anchors."])
    await ask(clerk(model), "An anchor?")
    (result,) = model.requests[1].messages[-1].parts
    assert isinstance(result, ToolResult)
    assert result.error is not None
    assert "There is no item 'anchor'" in result.error.message


async def main() -> None:
    for test in (
        test_the_tool_alone,
        test_the_agent_answers_from_the_tool,
        test_a_failed_call_reaches_the_model_in_words_meant_for_it,
    ):
        await test()
        print(f"passed: {test.__name__}")


if __name__ == "__main__":
    trio.run(main)
