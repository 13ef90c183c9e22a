"""A session whose run rests: what can be asked of it until runs can be resumed."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from agentrio import Agent, Limits, Scripted, SessionBusy, open_runtime
from agentrio.actors.handle import SessionHandle
from agentrio.domain.messages import user_message
from agentrio.domain.session import Session
from agentrio.domain.state import SessionState, reduce
from agentrio.events import Event, MessageAdded, Origin, RunStarted, RunSuspended
from agentrio.stores.base import NullJournal
from tests.laws.stage import open_from

ORIGIN = Origin("s", "agent", "s-r1")


def resting() -> SessionState:
    """A run that was begun and suspended."""
    state = SessionState(Session("s", "agent"))
    events: list[Event] = [
        RunStarted(ORIGIN, "m", "p", None, Limits(), seq=1),
        MessageAdded(ORIGIN, user_message("s-r1-p", "Go."), seq=2),
        RunSuspended(ORIGIN, "detached", seq=3),
    ]
    for event in events:
        state = reduce(state, event)
    return state


async def test_a_session_whose_run_rests_takes_no_other(autojump_clock: trio.testing.MockClock) -> None:
    """Two runs would write one conversation. There is none to stop, and the refusal harms nothing."""
    async with open_runtime() as runtime:
        session = SessionHandle(await open_from(runtime, Agent(model=Scripted(["Hi."])), resting(), NullJournal()))
        assert not session.stop()
        assert not session.stop(when="after_round")
        assert session.current_run is None
        for use in (session.start, session.ask):
            with pytest.raises(SessionBusy, match=r"a run that rests \(s-r1\), and has not ended"):
                await use("And this?")
        with pytest.raises(SessionBusy):
            await session.proceed()
        receipt = session.follow_up("Later.")
        await session.wait_idle()
        assert session.unqueue(receipt.message_id)
        await session.close()
        assert session.value.runs == 1
