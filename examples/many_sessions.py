"""A hundred conversations at once, watched by one subscription."""

from collections import Counter

import trio

from agentrio import Agent, Runtime, Scripted, open_runtime
from agentrio.events import RunEnded

SESSIONS = 100

# restart=True: each opening of the model begins its script anew. Here one client serves all, so the script is long.
agent = Agent(name="greeter", model=Scripted(["Good morning, and welcome."] * SESSIONS))


async def watch(runtime: Runtime, *, task_status: trio.TaskStatus[None]) -> None:
    endings: Counter[str] = Counter()
    async with runtime.subscribe(on_lag="merge") as events:
        task_status.started()
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
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        await nursery.start(watch, runtime)
        for number in range(SESSIONS):
            nursery.start_soon(converse, runtime, number)


if __name__ == "__main__":
    trio.run(main)
