"""One question in one call, for scripts."""

from __future__ import annotations

from typing import Any

import trio

from agentrio.agent.agent import Agent
from agentrio.domain.status import RunResult

from .runtime import open_runtime
from .session import Content


async def ask(agent: Agent[Any], content: Content) -> RunResult[Any]:
    """Ask an agent one question in a runtime of its own. Cancelling the caller stops the run."""
    async with open_runtime() as runtime, runtime.open_session(agent) as session:
        return await session.ask(content)


def run_sync(agent: Agent[Any], content: Content) -> RunResult[Any]:
    """Ask an agent one question from a program that runs no Trio loop.

    Raises:
        RuntimeError: a Trio loop runs here; there, ``await ask(agent, content)``.
    """
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("run_sync() can't run inside Trio; write `await agentrio.ask(agent, text)` there")
    return trio.run(ask, agent, content)
