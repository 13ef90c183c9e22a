"""Calls of a run that another process began: what is told of those it had started, and what of theirs still counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from agentrio import Agent, Limits, Scripted, Session, open_runtime, read_tool, write_tool
from agentrio.domain.state import SessionState, reduce
from agentrio.events import CallStarted, Event, RoundEnded
from agentrio.parts import Image, ToolResult
from agentrio.providers.scripted import call
from agentrio.stores.base import NullJournal
from tests.laws.stage import open_from

PNG = Image("iVBORw0KGgo=", "image/png")


async def cut_behind(agent: Agent[Any], last: Callable[[Event], bool]) -> SessionState:
    """What a journal has of a run whose process died behind this event."""
    async with open_runtime() as runtime, runtime.open_session(agent, id="s") as session:
        state = SessionState(session.value)
        async with session.run("Go.") as run:
            async for event in run:
                state = reduce(state, event)
                if last(event):
                    break
    return state


async def resumed(agent: Agent[Any], state: SessionState, *, stop: bool = False) -> Session:
    """The conversation once the run has been taken on, and has ended."""
    assert state.open_run is not None
    async with open_runtime() as runtime:
        actor = await open_from(runtime, agent, state, NullJournal())
        run = actor.resume(state.open_run)
        if stop:
            run.stop()
        await run.wait()
        return actor.value


def results(session: Session) -> list[ToolResult]:
    return [part for message in session.messages for part in message.parts if isinstance(part, ToolResult)]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("write", "The call was stopped while running. It may have taken effect."),
        ("read", "The call was stopped while running."),
    ],
)
async def test_b02_a_call_that_a_lost_process_had_started_is_not_told_as_not_started(
    autojump_clock: trio.testing.MockClock, kind: str, words: str
) -> None:
    """The write may be on the disk by now; a model that believes that nothing happened would do it again."""
    declare = read_tool if kind == "read" else write_tool

    async def work() -> str:
        """Works."""
        await trio.sleep(60)
        return "worked"

    agent = Agent(model=Scripted([[call("work"), call("save")]]), tools=[declare(work), write_tool(work, name="save")])
    state = await cut_behind(agent, lambda event: isinstance(event, CallStarted))
    started, unstarted = results(await resumed(agent, state, stop=True))
    assert started.error
    assert unstarted.error
    assert (started.status, started.error.message, started.uncertain) == ("cancelled", words, kind == "write")
    assert (unstarted.error.message, unstarted.uncertain) == ("Not started: the run was stopped.", False)


async def test_images_that_a_lost_process_returned_still_count(autojump_clock: trio.testing.MockClock) -> None:
    """The limit is the run's, however many processes work on it."""

    @read_tool
    async def shoot() -> list[Image]:
        """Shoots."""
        return [PNG]

    limits = Limits(max_images=2)
    agent = Agent(model=Scripted([[call("shoot")], "Done."]), tools=[shoot], limits=limits)
    state = await cut_behind(agent, lambda event: isinstance(event, RoundEnded))
    more = Agent(model=Scripted([[call("shoot")] * 2, "Done."]), tools=[shoot], limits=limits)
    told = results(await resumed(more, state))
    assert [result.status for result in told] == ["succeeded", "succeeded", "failed"]
    assert told[2].error
    assert "2 were returned before" in told[2].error.message
