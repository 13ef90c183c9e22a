"""A model server on this machine that misbehaves on purpose, and how a run gets through it.

It speaks the Anthropic Messages wire over real sockets, so the whole client is under test, not a stand-in for it.
"""

import trio

from agentrio import Agent, Anthropic, open_runtime
from agentrio.events import Retrying
from agentrio.testing import ErrorReply, Fault, Reply, TextReply, open_model_server

REPLIES: list[Reply] = [
    ErrorReply(529, message="Overloaded"),  # before the answer: asked again
    TextReply("The tide is high.", fault=Fault(cut_at_byte=600)),  # in the answer: asked again from the start
    TextReply("The tide is low."),
]


async def main() -> None:
    async with open_model_server(REPLIES) as server:
        model = Anthropic("any-name", api_key="not-a-key", base_url=server.base_url)
        async with open_runtime() as runtime, runtime.open_session(Agent(model=model)) as session:
            async with session.run("How is the tide?") as run:
                async for event in run:
                    if isinstance(event, Retrying):
                        print(f"asks again, {event.kind}, {event.attempt} of {event.most}: {event.message}")
        print(f"{run.result.status}: {run.result.text}")
        print("the server saw:", ", ".join(exchange.ended or "open" for exchange in server.record))


if __name__ == "__main__":
    trio.run(main)
