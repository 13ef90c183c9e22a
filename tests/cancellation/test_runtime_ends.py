"""How a runtime ends: in order, whoever ends it, and with the exception that ended it."""

from __future__ import annotations

import trio

from agentrio import Agent, open_runtime
from agentrio.events import RunEnded
from agentrio.providers.scripted import Scripted


async def test_a_cancel_while_the_runtime_opens_ends_it(autojump_clock: trio.testing.MockClock) -> None:
    """Its infrastructure is shielded; a cancel that comes before it is up must not wait for it for ever."""
    with trio.fail_after(10):
        with trio.CancelScope() as scope:
            scope.cancel()
            async with open_runtime():
                await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught


async def test_a_subscription_ends_with_the_runtime(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever watches a runtime from outside learns that it is over; a loop that waits for ever is a leak."""
    with trio.fail_after(10):
        async with open_runtime() as runtime:
            block = runtime.subscribe()
            reader = await block.__aenter__()
            async with runtime.open_session(Agent(model=Scripted(["Hello."]))) as session:
                await session.ask("Hi.")
        events = [event async for event in reader]
        assert isinstance(events[-1], RunEnded)
        async with runtime.subscribe() as late:
            assert [event async for event in late] == []
