"""Two ways to stop a run: from the loop that reads it, and by a time limit around it. The session goes on."""

import trio

from agentrio import Agent, Scripted, SessionHandle, open_runtime, read_tool
from agentrio.events import TextDelta
from agentrio.providers.scripted import call

STORY = "Once upon a time there was a lighthouse keeper who counted every wave that came in. " * 20


@read_tool
async def ponder() -> str:
    """Thinks for a very long time."""
    await trio.sleep(3600)
    return "42"


agent = Agent(model=Scripted([STORY, [call("ponder")], "Good night."]), tools=[ponder])


async def stop_from_the_reader(session: SessionHandle) -> None:
    async with session.run("Tell me a story.") as run:
        async for event in run:
            if isinstance(event, TextDelta) and event.offset > 50:
                run.stop(reason="heard enough")  # the loop goes on to the run's last event
    result = run.result
    print(f"{result.status} ({result.reason}): {result.text[:27]}...")


async def stop_by_a_time_limit(session: SessionHandle) -> None:
    with trio.move_on_after(0.2):
        await session.ask("What is the answer?")
    answer = session.value.messages[-1]
    print(f"after the time limit the conversation ends with a {answer.role} message")


async def main() -> None:
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        await stop_from_the_reader(session)
        await stop_by_a_time_limit(session)
        result = await session.ask("Then good night.")
        print(f"{result.status}: {result.text}")


if __name__ == "__main__":
    trio.run(main)
