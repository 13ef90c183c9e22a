"""The scenarios that are cancelled everywhere: one plot each, played by a scripted model or by a real provider.

The providers are ours, over a socket, to a model server in the same loop: what a stop must reach.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, TypeAlias

import attrs
import msgspec
import trio

from agentrio import Agent, Anthropic, Limits, OpenAIChat, OpenAIResponses, read_tool, write_tool
from agentrio.actors.handle import RunStream
from agentrio.agent.tool import Tool
from agentrio.domain.events import SteerMode
from agentrio.events import CallStarted, RunStarted
from agentrio.providers.base import Model, ProviderError
from agentrio.providers.scripted import Reply as Scripted_
from agentrio.providers.scripted import ScriptedReply, call
from agentrio.testing import (
    PROBE,
    Call,
    CallsReply,
    ErrorReply,
    Fault,
    ModelServer,
    Received,
    Reply,
    Scenario,
    Stage,
    TextReply,
    open_model_server,
    read_all,
    rehearsed,
)
from agentrio.testing.validators import WireName, validate

Player: TypeAlias = Literal["scripted", "anthropic", "openai chat", "openai responses"]

# Tools


@read_tool
async def look(n: int) -> str:
    """Look at something; the higher its number, the longer it takes."""
    await trio.sleep(n / 10)
    return f"saw {n}"


@read_tool
async def dig(n: int) -> str:
    """Bring up more than a small context holds twice."""
    return "earth " * 60


@write_tool
async def put(n: int) -> str:
    """Put something down."""
    await trio.sleep(n / 10)
    return f"put {n}"


@read_tool
async def stubborn(n: int) -> str:
    """Look, and hear nothing meanwhile."""
    with trio.CancelScope(shield=True):
        await trio.sleep(10)
    return f"saw {n}"


@write_tool
async def stubborn_put(n: int) -> str:
    """Put, and hear nothing meanwhile."""
    with trio.CancelScope(shield=True):
        await trio.sleep(0.5)
    return f"put {n}"


@read_tool
def look_in_thread(n: int) -> str:
    """Look, in a worker thread."""
    time.sleep(0.001 * n)
    return f"saw {n}"


@write_tool
def put_in_thread(n: int) -> str:
    """Put something down, in a worker thread."""
    time.sleep(0.001 * n)
    return f"put {n}"


# Plots


@attrs.frozen
class Say:
    """The model answers."""

    text: str


@attrs.frozen
class Ask:
    """The model calls tools, each with a number."""

    calls: Sequence[tuple[str, int]]
    text: str = ""


@attrs.frozen
class Drop:
    """The response breaks off in its middle."""

    text: str


@attrs.frozen
class Overloaded:
    """The server has no time."""


Turn: TypeAlias = Say | Ask | Drop | Overloaded


def _scripted(turn: Turn) -> ScriptedReply:
    match turn:
        case Say(text=text):
            return text
        case Ask(calls=calls, text=text):
            return Scripted_(text, [call(name, n=n) for name, n in calls])
        case Drop():
            return ProviderError("The stream broke off.", code="stream_dropped", retry="stream")
        case Overloaded():
            return ProviderError("Overloaded.", code="overloaded", retry="request", status=529)


def _on_wire(turn: Turn) -> Reply:
    match turn:
        case Say(text=text):
            return TextReply(text)
        case Ask(calls=calls, text=text):
            return CallsReply([Call(name, {"n": n}) for name, n in calls], text=text)
        case Drop(text=text):
            return TextReply(text, fault=Fault(cut_at_byte=900))
        case Overloaded():
            return ErrorReply(529)


# Readers of the run


async def _slowly(stage: Stage, run: RunStream) -> None:
    async for _event in stage.events(run):
        await trio.sleep(0.005)


async def _stalled(stage: Stage, run: RunStream) -> None:
    """Reads three events, then nothing for a minute, then leaves."""
    events = stage.events(run)
    for _ in range(3):
        await events.__anext__()
    await trio.sleep(60)


def _steering(mode: SteerMode) -> Callable[[Stage, RunStream], Any]:
    async def consume(stage: Stage, run: RunStream) -> None:
        assert stage.session is not None
        async for event in stage.events(run):
            if isinstance(event, CallStarted) and event.call_id.endswith("_1_1"):
                stage.session.steer("Mind the wind, too.", mode)

    return consume


async def _following_up(stage: Stage, run: RunStream) -> None:
    assert stage.session is not None
    async for event in stage.events(run):
        if isinstance(event, RunStarted):
            stage.session.follow_up("And tomorrow?")


# Scenarios


@attrs.frozen
class Plot:
    """What happens in a scenario."""

    name: str
    turns: Sequence[Turn]
    tools: Sequence[Tool[..., Any]] = ()
    consume: Callable[[Stage, RunStream], Any] = read_all
    threads: bool = False
    limits: Limits | None = None
    alike: bool = False  # whether most of its steps are


LONG = "A word after a word after a word is power. " * 160  # more deltas than an unread run may get ahead

READS: Sequence[tuple[str, int]] = [("look", 2), ("look", 1), ("look", 0), ("look", 3)]

PLOTS = [
    Plot("text", [Say("It will be sunny in Oslo, with a light breeze.")]),
    Plot("four reads", [Ask(READS, "Let me look."), Say("All seen.")], [look]),
    Plot("read, write, read", [Ask([("look", 1), ("put", 1), ("look", 2)]), Say("Done.")], [look, put]),
    Plot("stubborn read", [Ask([("stubborn", 1), ("look", 1)]), Say("Done.")], [look, stubborn]),
    Plot("stubborn write", [Ask([("look", 1), ("stubborn_put", 1)]), Say("Done.")], [look, stubborn_put]),
    Plot("slow reader", [Ask([("look", 1)]), Say("A slow reader gets all of it, piece by piece.")], [look], _slowly),
    Plot("stalled reader", [Say(LONG)], consume=_stalled, alike=True),
    Plot("stream retry", [Drop("It will be sunny, I thi"), Say("It will be sunny.")]),
    Plot("request retry", [Overloaded(), Overloaded(), Say("Here I am.")]),
    Plot(
        "steering after calls",
        [Ask([("look", 1), ("look", 2)]), Say("Noted: the wind.")],
        [look],
        _steering("after_calls"),
    ),
    Plot(
        "steering interrupts",
        [Ask([("look", 1), ("look", 2), ("put", 1)]), Say("Noted: the wind.")],
        [look, put],
        _steering("interrupt"),
    ),
    Plot("follow-up", [Say("Sunny."), Say("Rain.")], consume=_following_up),
    Plot(
        "compaction",
        [Ask([("dig", 1)], "A long word. " * 30), Ask([("dig", 2)]), Say("All dug up.")],
        [dig],
        limits=Limits(max_context_chars=900),
    ),
    Plot(
        "threads", [Ask([("look_in_thread", 2), ("look_in_thread", 1)]), Say("Seen.")], [look_in_thread], threads=True
    ),
    Plot(
        "write in a thread",
        [Ask([("look_in_thread", 1), ("put_in_thread", 2)]), Say("Done.")],
        [look_in_thread, put_in_thread],
        threads=True,
    ),
]


def scenario(plot: Plot, player: Player, limits: Limits | None = None) -> Scenario:
    """The plot as a scenario."""
    limits = limits or plot.limits
    wire = None if player == "scripted" else _Wire(plot, limits, *WIRES[player])
    return Scenario(
        name=f"{plot.name} ({player})",
        open_agent=wire.open_agent if wire is not None else lambda: _open_scripted(plot, limits),
        prompt="How will the weather be?",
        consume=plot.consume,
        threads=plot.threads,
        stubborn=plot.name.startswith("stubborn"),
        also=wire.problems if wire is not None else lambda stage: (),
    )


@asynccontextmanager
async def _open_scripted(plot: Plot, limits: Limits | None) -> AsyncIterator[Agent[Any]]:
    yield Agent(model=rehearsed([_scripted(turn) for turn in plot.turns]), tools=plot.tools, limits=limits)


WIRES: Mapping[Player, tuple[WireName, Callable[[str], Model]]] = {
    "anthropic": ("messages", lambda url: Anthropic("claude-loopback", api_key="key", base_url=url)),
    "openai chat": ("chat", lambda url: OpenAIChat("gpt-loopback", api_key="key", base_url=f"{url}/v1")),
    "openai responses": ("responses", lambda url: OpenAIResponses("gpt-loopback", api_key="key", base_url=f"{url}/v1")),
}
"""The wire that a player speaks, and its model at a URL."""


@attrs.define(eq=False)
class _Wire:
    """A plot over a socket, and what the server has to say against it."""

    plot: Plot
    limits: Limits | None
    wire: WireName
    model: Callable[[str], Model]
    server: ModelServer | None = None

    def open_agent(self) -> AbstractAsyncContextManager[Agent[Any]]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Agent[Any]]:
        async with open_model_server(_Script(list(self.plot.turns)).reply) as server:
            self.server = server
            yield Agent(model=self.model(server.base_url), tools=self.plot.tools, limits=self.limits)

    def problems(self, stage: Stage) -> Iterable[str]:
        """Requests that a real server would refuse, and exchanges that nobody ended."""
        assert self.server is not None
        for exchange in self.server.record:
            yield from (f"request {exchange.number}: {problem}" for problem in validate(self.wire, exchange.body))
            if exchange.ended is None:
                yield f"request {exchange.number} is still open"


@attrs.define(eq=False)
class _Script:
    _turns: list[Turn]

    def reply(self, request: Received) -> Reply:
        if PROBE.encode() in msgspec.json.encode(request.body):
            return TextReply("Still here.")
        return _on_wire(self._turns.pop(0))
