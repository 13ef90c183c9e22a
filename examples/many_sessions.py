"""A hundred conversations at once, watched by one subscription."""

from collections import Counter
from collections.abc import AsyncIterator

import trio

from agentrio import Agent, Runtime, Scripted, open_runtime
from agentrio.events import Event, RunEnded

SESSIONS = 100

# Sessions of one runtime share the model's client, and so the script: it needs a reply for each.
agent = Agent(name="greeter", model=Scripted(["Good morning, and welcome."] * SESSIONS))


async def watch(events: AsyncIterator[Event]) -> None:
    endings: Counter[str] = Counter()
    async for event in events:
        if isinstance(event, RunEnded):
            endings[event.result.status] += 1
            if endings.total() == SESSIONS:
                break
    print(f"the subscription saw {dict(endings)}")


async def converse(runtime: Runtime, number: int) -> None:
    async with runtime.open_session(agent, id=f"guest-{number}") as session:
        await session.ask("Good morning.")


async def main() -> None:
    async with open_runtime() as runtime, runtime.subscribe(on_lag="merge") as events, trio.open_nursery() as nursery:
        nursery.start_soon(watch, events)
        for number in range(SESSIONS):
            nursery.start_soon(converse, runtime, number)


if __name__ == "__main__":
    trio.run(main)
