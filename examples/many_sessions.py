"""A hundred conversations at once, watched by one subscription."""

from collections import Counter

import trio

from agentrio import Agent, Runtime, Scripted, open_runtime
from agentrio.events import RunEnded

SESSIONS = 100

# Sessions of one runtime share the model's client, and so the script: it needs a reply for each.
agent = Agent(name="greeter", model=Scripted(["Good morning, and welcome."] * SESSIONS))


async def watch(runtime: Runtime, watching: trio.Event) -> None:
    endings: Counter[str] = Counter()
    async with runtime.subscribe(on_lag="merge") as events:
        watching.set()
        async for event in events:  # until the runtime ends: who lags may miss a RunEnded, and must not count on it
            if isinstance(event, RunEnded):
                endings[event.result.status] += 1
    print(f"the subscription saw {dict(endings)}")


async def converse(runtime: Runtime, number: int) -> None:
    async with runtime.open_session(agent, id=f"guest-{number}") as session:
        await session.ask("Good morning.")


async def main() -> None:
    watching = trio.Event()
    async with trio.open_nursery() as outside:
        async with open_runtime() as runtime, trio.open_nursery() as guests:
            outside.start_soon(watch, runtime, watching)  # noqa: ASYNC111  # it outlives the runtime, to see its end
            await watching.wait()
            for number in range(SESSIONS):
                guests.start_soon(converse, runtime, number)


if __name__ == "__main__":
    trio.run(main)
