"""Reads that the model asks for together run together; their results keep the order of the calls."""

import trio

from agentrio import Agent, Scripted, open_runtime, read_tool
from agentrio.events import CallFinished, CallReturned, CallStarted
from agentrio.providers.scripted import call

DISTANCE = {"Tromsø": 0.3, "Bergen": 0.1, "Oslo": 0.2}  # seconds that a station needs to answer


@read_tool
async def temperature(city: str) -> str:
    """The temperature in a city now."""
    await trio.sleep(DISTANCE[city])
    return f"{city}: {len(city)} °C"


agent = Agent(
    model=Scripted([[call("temperature", city=city) for city in DISTANCE], "It is cool in all three."]),
    tools=[temperature],
)


async def main() -> None:
    cities: dict[str, str] = {}
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        began = trio.current_time()
        async with session.run("How warm is it in Tromsø, Bergen and Oslo?") as run:
            async for event in run:
                match event:
                    case CallStarted(call_id=call_id):
                        cities[call_id] = list(DISTANCE)[len(cities)]
                        print(f"started   {cities[call_id]}")
                    case CallReturned(call_id=call_id):
                        print(f"returned  {cities[call_id]}")
                    case CallFinished(result=result):
                        print(f"result    {cities[result.call_id]}")
        took = trio.current_time() - began
        alone = sum(DISTANCE.values())
        print(run.result.text)
        print("faster than one after another" if took < alone else f"slow: {took:.1f} s")


if __name__ == "__main__":
    trio.run(main)
