"""A tool that says how far it is, and remembers something for the rest of the session."""

import trio

from agentrio import Agent, Scripted, ToolContext, open_runtime, write_tool
from agentrio.events import CallProgress, MemoryPatched
from agentrio.providers.scripted import call

PAGES = 3


@write_tool
async def print_report(ctx: ToolContext, title: str) -> str:
    """Prints a report.

    Args:
        title: What stands on its first page.
    """
    for page in range(1, PAGES + 1):
        await trio.sleep(0.01)
        await ctx.progress("printed", done=page, total=PAGES)
    ctx.remember({"last_report": title})
    return f"{title}: {PAGES} pages"


agent = Agent(model=Scripted([[call("print_report", title="Tides")], "It is in the tray."]), tools=[print_report])


async def main() -> None:
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        async with session.run("Print the report on tides.") as run:
            async for event in run:
                match event:
                    case CallProgress(text=text, done=done, total=total):
                        print(f"{text} {done:g} of {total:g}")
                    case MemoryPatched(patch=patch):
                        print(f"remembered {dict(patch)}")
        print(run.result.text)
        print(f"memory: {dict(session.value.memory)}")


if __name__ == "__main__":
    trio.run(main)
