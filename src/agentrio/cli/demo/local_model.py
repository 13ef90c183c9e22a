"""The demo with a real model: llama.cpp's server and a small model, from the folder that ``make local-model`` sets up.

The model is too small to be relied on for what it says; that it streams, calls and stops is what is shown.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import httpx2
import trio

from agentrio.actors.runtime import open_runtime
from agentrio.agent.agent import Agent
from agentrio.testing import child

from ..command import UNAVAILABLE, Refusal
from .cast import served_model, weather_agent
from .perform import PATIENCE, Interrupts, Play, Stage, goes_on, side_by_side, stopped
from .tempo import Tempo
from .view import Stop, View

URL = "AGENTRIO_LOCAL_MODEL_URL"  # of a server that runs already
LAST_WORDS = 5.0  # seconds for the server to end after its stdin did; then it is killed
MOST = 400  # tokens of an answer: the model seldom ends by itself
POLL = 0.005  # seconds between two looks at what the server does


def play_with(folder: Path) -> Play:
    """The play with the model of a folder.

    Raises:
        Refusal: there is none; the message says how to get one.
    """
    if not os.environ.get(URL) and not (folder / "whole").exists():
        raise Refusal(
            f"there is no local model in {folder}. In a checkout of agentrio, `make local-model` sets one up (127 MB "
            "are fetched, once); or name its folder: --local-model FOLDER",
            UNAVAILABLE,
        )

    home = folder.resolve()

    async def play(view: View, tempo: Tempo, interrupts: Interrupts) -> None:
        view.note("Starting llama.cpp's server with SmolLM2-135M. Its words may be foolish; they are not recorded.")
        async with _open_server(home) as url, open_runtime() as runtime:
            async with runtime.open_session(weather_agent(url, tempo, MOST), id="demo") as session:
                stage = interrupts.stage = LocalStage(session, view, tempo, url=url)
                await side_by_side(stage)
                value = session.value
            # To this model a tool is there to be called; for a story there must be none.
            teller = Agent(name="demo", model=served_model(url), max_tokens=MOST)
            async with runtime.open_session(teller, id="demo", value=value) as session:
                stage = interrupts.stage = LocalStage(session, view, tempo, stage.stops, url=url)
                await stopped(stage)
                await goes_on(stage)
                view.close([], stage.stops)

    return play


@attrs.define(eq=False)
class LocalStage(Stage):
    """Before a server that tells which of its slots compute."""

    url: str = attrs.field(kw_only=True)

    async def seen(self, at: int, reason: str) -> str:
        """When the server computed no more."""
        idle = None
        with trio.move_on_after(PATIENCE):
            async with httpx2.AsyncClient(verify=False, trust_env=False) as client:
                while await _busy(client, self.url):  # noqa: ASYNC110  # another process: there is only asking
                    await trio.sleep(POLL)
            idle = (time.perf_counter_ns() - at) / 1e6
        self.stops.append(Stop(0, reason, idle))
        if idle is None:
            return f"The server still computes {PATIENCE:g} s after stop()."
        return f"The server computed no more {idle:.0f} ms after stop()."


async def _busy(client: httpx2.AsyncClient, url: str) -> bool:
    slots = (await client.get(f"{url}/slots")).json()
    return any(slot["is_processing"] for slot in slots)


@asynccontextmanager
async def _open_server(home: Path) -> AsyncGenerator[str]:
    """The URL of a server that runs for the length of the block, or of one that runs anyway."""
    if url := os.environ.get(URL):
        yield url.rstrip("/")
        return
    command = [str(home / "venv" / "bin" / "python"), str(home / "serve.py")]
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )  # a session of its own: Ctrl-C is for the demo
    try:
        url = await child.first_line(process)
        if url is None:
            raise Refusal("the local model's server ended before it could be asked", UNAVAILABLE)
        yield url
    finally:
        await child.end(process, LAST_WORDS)  # noqa: ASYNC102  # it shields itself, and has its deadline
