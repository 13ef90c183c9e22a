"""Talking to a run that is under way: steering goes into its next round, a follow-up waits until it would end."""

import trio

from agentrio import Agent, Scripted, open_runtime, read_tool
from agentrio.events import CallStarted, MessageAdded, MessageCompleted
from agentrio.providers.scripted import call


@read_tool
async def search(topic: str) -> str:
    """Looks something up."""
    await trio.sleep(0.1)
    return f"much about {topic}"


agent = Agent(
    model=Scripted([[call("search", topic="fjords")], "Fjords: deep, old.", "Skerries: small, many."]), tools=[search]
)


async def main() -> None:
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Tell me about fjords.") as run:
            async for event in run:
                match event:
                    case CallStarted():
                        session.steer("Be brief.")  # joins after the calls of this round
                        session.follow_up("And skerries?")  # answered before the run ends
                    case MessageAdded(message=message, source=source):
                        print(f"{source}: {message.text}")
                    case MessageCompleted(message=message) if message.text:
                        print(f"  answer: {message.text}")
        print(f"one run, {run.result.rounds} rounds")


if __name__ == "__main__":
    trio.run(main)
