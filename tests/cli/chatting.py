"""Chats with a model server of a test: in a terminal, and the options of one in a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentrio.testing import Fault, TextReply
from tests.cli.support import AGENTRIO, Server, Terminal, terminal

STORY = TextReply("And then. ", fault=Fault(endless=True))
WITHOUT_KEYS = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "OPENAI_API_KEY": "", "GROQ_API_KEY": ""}
WIRES = {  # model, what stands behind the server's address, the path of its requests
    "anthropic": ("anthropic:any", "", "/v1/messages"),
    "chat": ("llamacpp:any", "/v1", "/v1/chat/completions"),
    "responses": ("openai:any", "/v1", "/v1/responses"),
}
TOOLS = '''
import trio
from agentrio import ToolContext, read_tool, write_tool

@read_tool
async def tide(ctx: ToolContext, place: str) -> str:
    """When the tide is high."""
    await ctx.progress("looking it up", done=1, total=2)
    return f"{place}: at noon"

@write_tool
async def paint(ctx: ToolContext) -> str:
    """Paints the boat."""
    await ctx.progress("painting")
    with trio.CancelScope(shield=True):
        await trio.sleep(3600)
    return "painted"

@read_tool
async def leak() -> str:
    """Fails."""
    raise ValueError("a secret of the tool")

many = [tide, paint]
number = 7
'''


def chat_at(server: Server, *options: str, wire: str = "chat") -> list[str]:
    """The options of a chat with that server; the Chat wire's loads fastest."""
    model, behind, _ = WIRES[wire]
    return ["chat", "--model", model, "--base-url", server.base_url + behind, *options]


@contextmanager
def chatting(
    folder: Path, server: Server, *options: str, wire: str = "chat", redirect: str = "", **env: str
) -> Iterator[Terminal]:
    """A chat in a terminal, at its first prompt."""
    command = [*AGENTRIO, *chat_at(server, *options, wire=wire)]
    keys = {"ANTHROPIC_API_KEY": "a-key", "OPENAI_API_KEY": "a-key", "XDG_STATE_HOME": str(folder / "state")}
    with terminal(command, cwd=folder, redirect=redirect, **{**keys, **env}) as shown:
        shown.read_next("> ")
        yield shown
