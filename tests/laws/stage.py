"""A real runtime for a generated scene, with everything written down: events, commits, requests, what was delivered."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, TypeAlias

import attrs
import trio
import trio.testing

from agentrio.actors import readers
from agentrio.actors.handle import SessionHandle
from agentrio.actors.readers import Reader
from agentrio.actors.runtime import Runtime, open_runtime
from agentrio.actors.session import SessionActor, Surroundings
from agentrio.actors.supervise import shielded
from agentrio.agent.agent import Agent
from agentrio.domain.events import Event, StructuralEvent
from agentrio.domain.limits import Limits
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ModelRequest
from agentrio.domain.session import Session
from agentrio.domain.state import SessionState, reduce
from agentrio.domain.status import RunResult
from agentrio.domain.usage import NO_USAGE, Usage
from agentrio.providers.base import ModelClient, ModelResponse, ModelStream, PartDelta, ProviderError, Timeouts
from agentrio.providers.scripted import Reply, Scripted

from .tools import TOOLS

Order: TypeAlias = Literal["stop", "after_round", "steer", "interrupt", "follow_up", "unqueue"]
Pace: TypeAlias = Literal["fast", "slow", "stalled", "leaving"]


@attrs.frozen
class Said:
    """One model call: a reply, or an error. ``cut`` breaks the stream off, ``pause`` silences it, before delta n."""

    reply: Reply | None = None
    error: tuple[str, str | None] | None = None
    cut: int | None = None
    pause: tuple[int, float] | None = None


@attrs.frozen
class Command:
    """An order at a time in virtual seconds, or from within the nth event."""

    order: Order
    at: float | None = None
    event: int | None = None


@attrs.frozen
class Scene:
    """What happens to a session."""

    script: tuple[Said, ...]
    prompts: tuple[str, ...] = ("hi",)
    limits: Limits = attrs.field(factory=Limits)
    commands: tuple[Command, ...] = ()
    pace: Pace = "fast"
    reads: int = 3  # events that a stalled or leaving consumer reads first
    commit: float = 0.0  # seconds that the journal takes


@attrs.define(eq=False)
class Record:
    """What was seen of a scene."""

    scene: Scene
    start: SessionState = attrs.field(factory=lambda: SessionState(Session("s", "agent")))
    events: list[Event] = attrs.field(factory=list)
    commits: list[tuple[StructuralEvent, ...]] = attrs.field(factory=list)
    requests: list[tuple[int, ModelRequest]] = attrs.field(factory=list)  # with the structural events before it
    requests_at_commit: list[int] = attrs.field(factory=list)
    delivered: dict[str, Usage] = attrs.field(factory=dict)  # by run
    streams: dict[str, list[Event]] = attrs.field(factory=dict)  # by run: what its consumer read
    results: dict[str, RunResult[Any]] = attrs.field(factory=dict)
    agent: Agent[Any] | None = None
    end: SessionState | None = None

    @property
    def structural(self) -> list[StructuralEvent]:
        """The structural events in their order."""
        return [event for event in self.events if event.structural]  # type: ignore[misc]  # structural says so

    def fold(self, count: int) -> SessionState:
        """The state after the first structural events."""
        state = self.start
        for event in self.structural[:count]:
            state = reduce(state, event)
        return state


class Recorder(Reader):
    """Sees each event as it is published, and gives the orders that are due within it."""

    def __init__(self, record: Record, give: Callable[[Order], None]) -> None:
        super().__init__(lambda reader: None)
        self._record = record
        self._give = give

    def put(self, events: Sequence[Event]) -> None:
        """Write down, then act."""
        for event in events:
            self._record.events.append(event)
            for command in self._record.scene.commands:
                if command.event == len(self._record.events):
                    self._give(command.order)


class Commits:
    """A journal that takes its time and can't be hurried."""

    def __init__(self, record: Record, seconds: float) -> None:
        self._record = record
        self._seconds = seconds

    async def append(self, batch: Sequence[StructuralEvent]) -> None:
        """Commit a batch."""
        if self._seconds:
            with shielded(1.0):
                await trio.sleep(self._seconds)
        self._record.commits.append(tuple(batch))
        self._record.requests_at_commit.append(len(self._record.requests))


@attrs.define(eq=False)
class Model:
    """``Scripted`` with streams that break off or fall silent; from reply ``first`` on."""

    record: Record
    first: int = 0
    script: Scripted = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        said = self.record.scene.script[self.first :]
        self.script = Scripted([self._reply(number, item) for number, item in enumerate(said)])

    def _reply(self, number: int, said: Said) -> Callable[[ModelRequest], Any]:
        def reply(request: ModelRequest) -> Reply | Exception:
            if said.error is not None:
                code, retry = said.error
                return ProviderError("The server said no.", code=code, retry=retry)  # type: ignore[arg-type]  # scenes give literals
            return said.reply or Reply()

        return reply

    @property
    def tag(self) -> ModelTag:
        """The model that a scene is played with."""
        return self.script.tag

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        """A client."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ModelClient]:
        async with self.script.open() as inner:
            yield _Client(self, inner)


@attrs.define(eq=False)
class _Client:
    model: Model
    inner: ModelClient

    @asynccontextmanager
    async def stream(self, request: ModelRequest, timeouts: Timeouts) -> AsyncIterator[ModelStream]:
        record = self.model.record
        count = len(record.structural)
        number = self.model.first + len(record.requests)
        record.requests.append((count, request))
        run = record.structural[-1].origin.run if record.structural else record.start.run.id  # type: ignore[union-attr]  # a run is open
        script = record.scene.script
        async with self.inner.stream(request, timeouts) as inner:
            stream = _Stream(inner, script[number])
            try:
                yield stream
            finally:
                record.delivered[run] = record.delivered.get(run, NO_USAGE) + stream.response().usage


@attrs.define(eq=False)
class _Stream:
    inner: ModelStream
    said: Said
    given: int = 0

    async def receive(self) -> Sequence[PartDelta]:
        if self.said.cut is not None and self.given >= self.said.cut:
            raise ProviderError("The stream broke off.", code="stream_dropped", retry="stream")
        if self.said.pause is not None and self.given == self.said.pause[0]:
            await trio.sleep(self.said.pause[1])
        self.given += 1
        return await self.inner.receive()

    def response(self) -> ModelResponse:
        return self.inner.response()


async def open_from(runtime: Runtime, agent: Agent[Any], state: SessionState, journal: Any) -> SessionActor:
    """A session of the runtime that starts from a whole state, with a journal."""
    lease = runtime._models.lease()
    around = Surroundings(runtime._pool, lease.client, random.Random(0), runtime._taps, journal)
    actor = SessionActor(around, agent, state, None, None)
    assert runtime._nursery is not None
    runtime._actors[state.session.id] = actor
    runtime._nursery.start_soon(runtime._host, actor, lease)
    await actor.ready.wait()
    return actor


def play(scene: Scene) -> Record:
    """The scene, played to its end in virtual time."""
    record = Record(scene)
    full, low = readers.FULL, readers.LOW
    readers.FULL, readers.LOW = 24, 12  # scenes are short; a consumer that lags must matter in them
    try:
        trio.run(_play, record, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        readers.FULL, readers.LOW = full, low
    return record


async def _play(record: Record) -> None:
    scene = record.scene
    record.agent = Agent(model=Model(record), tools=TOOLS, limits=scene.limits)
    async with open_runtime(rng=random.Random(0)) as runtime:
        actor = await open_from(runtime, record.agent, record.start, Commits(record, scene.commit))
        session = SessionHandle(actor)
        actor.hub.join(Recorder(record, lambda order: give(session, order)))
        async with trio.open_nursery() as nursery:
            for command in scene.commands:
                if command.at is not None:
                    nursery.start_soon(_give_later, session, command)
            with trio.fail_after(10_000):  # noqa: ASYNC912  # each prompt is waited for
                for prompt in scene.prompts:
                    await consume(session, prompt, record)
            nursery.cancel_scope.cancel()
        await session.close()
        record.end = actor.hub.state


async def _give_later(session: SessionHandle, command: Command) -> None:
    assert command.at is not None
    await trio.sleep(command.at)
    give(session, command.order)


def give(session: SessionHandle, order: Order) -> None:
    """Carry out an order, whatever the session is doing."""
    match order:
        case "stop":
            session.stop(reason="ordered")
        case "after_round":
            session.stop(when="after_round")
        case "steer":
            session.steer("wait")
        case "interrupt":
            session.steer("stop that", "interrupt")
        case "follow_up":
            session.follow_up("and then?")
        case "unqueue":
            for item in session.value.queue[:1]:
                session.unqueue(item.message.id)


async def consume(session: SessionHandle, prompt: str, record: Record) -> None:
    """Run a prompt and read its events at the scene's pace."""
    pace, reads = record.scene.pace, record.scene.reads
    async with session.run(prompt) as run:
        seen = record.streams[run.id] = []
        async for event in run:
            seen.append(event)
            if pace == "slow":
                await trio.sleep(0.05)
            elif pace == "stalled" and len(seen) == reads:
                await trio.sleep(30)
            elif pace == "leaving" and len(seen) == reads:
                break
    record.results[run.id] = run.result
