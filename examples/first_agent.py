"""An agent with one tool, asked one question.

The model is scripted, so no key is needed: it says what it is told to. With a real model, only the ``model=`` line
changes: ``model="anthropic:claude-sonnet-5"``, and ANTHROPIC_API_KEY in the environment.
"""

import trio

from agentrio import Agent, Scripted, open_runtime, read_tool
from agentrio.providers.scripted import call


@read_tool
async def forecast(city: str, days: int = 3) -> str:
    """Weather forecast for a city.

    Args:
        city: Name of the city.
        days: How many days ahead.
    """
    return f"{city}: sunny for {days} days"


agent = Agent(
    name="weather",
    model=Scripted([[call("forecast", city="Oslo")], "It stays sunny in Oslo."]),
    prompt="You know the weather.",
    tools=[forecast],
)


async def main() -> None:
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        result = await session.ask("How will the weather be in Oslo?")
        print(result.status)
        print(result.text)
        for message in session.value.messages:
            print(f"  {message.role}: {[type(part).__name__ for part in message.parts]}")


if __name__ == "__main__":
    trio.run(main)
