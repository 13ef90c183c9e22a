"""What is run again and again, and the ways to end it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import attrs

from agentrio.agent.agent import Agent
from agentrio.domain.keywords import tells_keywords
from agentrio.domain.parts import Text
from agentrio.domain.render import ModelRequest
from agentrio.providers.scripted import Scripted, ScriptedReply

if TYPE_CHECKING:
    from agentrio.actors.handle import RunStream

    from .stage import Stage

__all__ = ["PROBE", "WAYS", "Scenario", "Way", "read_all", "rehearsed"]

PROBE = "Are you still there?"
"""The prompt that follows every replay, and that must succeed."""

LONGEST = 1_000  # model calls that one rehearsed model answers

Way: TypeAlias = Literal["stop", "run scope", "runtime scope", "close", "within"]
"""How a run is ended: ``session.stop()``; a cancel scope round ``session.run``, or round ``open_runtime``;
``runtime.close()``; ``stop()`` by the reader of an event or within a tool."""

WAYS: tuple[Way, ...] = get_args(Way)

Consume: TypeAlias = "Callable[[Stage, RunStream], Awaitable[None]]"


async def read_all(stage: Stage, run: RunStream) -> None:
    """Read a run's events to the end: what most programs do."""
    async for _event in stage.events(run):
        pass


@tells_keywords
@attrs.frozen(kw_only=True)
class Scenario:
    """A run worth cancelling.

    ``open_agent`` gives, for one replay, a block that makes the agent, and keeps open what it talks to: the steps of
    servers that it runs are not counted. The agent must answer ``PROBE`` with a success at any time. ``consume`` reads
    the run and may steer it. ``threads`` says that tools run in threads, whose steps Trio does not see: the scenario
    is then cancelled at the entry and exit of each tool in place of scheduler steps. ``stubborn`` says that tools
    ignore or swallow their cancellation on purpose, which is wrong else. ``also`` is asked after each
    replay for what else is wrong.
    """

    name: str
    open_agent: Callable[[], AbstractAsyncContextManager[Agent[Any]]]
    prompt: str = "Go."
    consume: Consume = read_all
    threads: bool = False
    stubborn: bool = False
    also: Callable[[Stage], Iterable[str]] = lambda stage: ()


def rehearsed(replies: Sequence[ScriptedReply], answer: str = "Still here.") -> Scripted:
    """A scripted model that plays its replies, and answers ``PROBE`` whenever it is asked.

    Each call makes a model with a script of its own.
    """
    waiting = list(replies)

    def reply(request: ModelRequest) -> Any:
        if any(isinstance(part, Text) and PROBE in part.text for message in request.messages for part in message.parts):
            return answer
        following = waiting.pop(0)
        return following(request) if callable(following) else following

    return Scripted([reply] * LONGEST)
