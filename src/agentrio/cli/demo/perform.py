"""The play: three scenes in one session, and what Ctrl-C does meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs
import trio

from agentrio.actors.handle import SessionHandle
from agentrio.actors.runtime import open_runtime
from agentrio.domain.events import CallProgress, TextDelta
from agentrio.testing.loopback import Exchange, ModelServer, open_model_server

from ..command import BY_SIGNAL
from .cast import KEEPER, STEERING, STORY, WEATHER, read_recording, recorded, recording_for, weather_agent
from .tempo import Tempo
from .view import Scene, Stop, View

HEARD = 250  # characters of the story after which it is stopped
PATIENCE = 2.0  # seconds that the server may take to see its client leave; it takes milliseconds

SIDE_BY_SIDE = Scene(
    "Tools run side by side, and the agent is steered",
    "The model asks for three calls in one answer. They are reads, so they run together. While they run, the user adds "
    "a wish: it waits until the calls are done, and goes to the model with their results.",
    'async with session.run("What is the weather ...?") as run:\n'
    "    async for event in run:\n"
    f'        ...  # somewhere in here: session.steer("{STEERING}")',
    "examples/parallel_tools.py, examples/steering.py",
)
STOPPED = Scene(
    "A run is stopped in mid-stream",
    "The model begins a long story. After a few lines the user has heard enough. The stop closes the connection, so "
    "the model's server sees its client leave; what was said so far is kept.",
    'async with session.run("Tell me a long story ...") as run:\n'
    "    async for event in run:\n"
    f"        if ...: run.stop()  # here: after {HEARD} characters",
    "examples/stopping.py",
)
GOES_ON = Scene(
    "The next run works",
    "The same session asks something else. The interrupted story is part of the conversation that is sent.",
    'result = await session.ask("What does a lighthouse keeper do? ...")',
    "examples/first_agent.py",
)


@attrs.define(eq=False)
class Stage:
    """What the scenes share. How a server is told of that saw its client leave, depends on the server."""

    session: SessionHandle
    view: View
    tempo: Tempo
    stops: list[Stop] = attrs.field(factory=list)
    _stopped_at: tuple[int, str] | None = None

    async def begin(self, scene: Scene) -> None:
        """Announce a scene, and give the reader time."""
        self.view.scene(scene)
        await trio.sleep(self.tempo.pause)

    def stop(self, reason: str) -> bool:
        """Stop the open run, if there is one, and take the time."""
        now = time.perf_counter_ns()
        hit = self.session.stop(reason=reason)
        if hit and self._stopped_at is None:
            self._stopped_at = (now, reason)
        return hit

    async def end(self) -> None:
        """End a scene: where its run was stopped, tell what the server saw."""
        if self._stopped_at is not None:
            (at, reason), self._stopped_at = self._stopped_at, None
            self.view.note(await self.seen(at, reason))
        await trio.sleep(self.tempo.pause)

    async def seen(self, at: int, reason: str) -> str:
        """What the server saw of the stop at that time (``perf_counter_ns``)."""
        raise NotImplementedError


@attrs.define(eq=False)
class ServedStage(Stage):
    """Before the loopback server, which keeps a record."""

    server: ModelServer = attrs.field(kw_only=True)

    async def seen(self, at: int, reason: str) -> str:
        """When the server saw its client leave, and how much it had sent."""
        exchange = self.server.record[-1] if self.server.record else None
        stop = Stop(0, reason, None) if exchange is None else await self._seen(exchange, at, reason)
        self.stops.append(stop)
        return _told(stop, exchange)

    async def _seen(self, exchange: Exchange, at: int, reason: str) -> Stop:
        if exchange.ended == "sent":
            return Stop(0, reason, None)
        with trio.move_on_after(PATIENCE):
            await self.server.wait_disconnect(exchange.number)
        gone = exchange.disconnected
        return Stop(exchange.number, reason, None if gone is None else (gone.ns - at) / 1e6)


def _told(stop: Stop, exchange: Exchange | None) -> str:
    if exchange is None or stop.exchange == 0:
        return "No request was open just then, so the model's server has not noticed."
    if stop.seen_after is None:
        return f"The server has not seen its client leave within {PATIENCE:g} s."
    whole = read_recording(recording_for(exchange.body)).count(b"\n\n")
    return (
        f"The server saw its client leave {stop.seen_after:.1f} ms after stop(). It had sent {exchange.frames_sent} of "
        f"{whole} frames."
    )


async def side_by_side(stage: Stage) -> None:
    """A scene."""
    await stage.begin(SIDE_BY_SIDE)
    steered = False
    async with stage.session.run(WEATHER) as run:
        async for event in run:
            stage.view.event(event)
            if isinstance(event, CallProgress) and event.done and not steered:
                steered = True
                stage.session.steer(STEERING)
    await stage.end()


async def stopped(stage: Stage) -> None:
    """A scene."""
    await stage.begin(STOPPED)
    async with stage.session.run(STORY) as run:
        async for event in run:
            stage.view.event(event)
            if isinstance(event, TextDelta) and event.offset > HEARD:
                stage.stop("heard enough")
    await stage.end()


async def goes_on(stage: Stage) -> None:
    """A scene."""
    await stage.begin(GOES_ON)
    async with stage.session.run(KEEPER) as run:
        async for event in run:
            stage.view.event(event)
    await stage.end()


SCENES: tuple[Callable[[Stage], Awaitable[None]], ...] = (side_by_side, stopped, goes_on)


class Interrupts:
    """Ctrl-C: the first stops the open run, the second leaves. SIGTERM and a closed terminal leave at once."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.stage: Stage | None = None
        self.left: int | None = None
        """By which signal, if any."""

    async def run(
        self, play: trio.CancelScope, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Until cancelled, or the play is."""
        others = (signal.SIGTERM, signal.SIGHUP)
        taken = [number for number in others if signal.getsignal(number) != signal.SIG_IGN]  # nohup ignores one
        with trio.open_signal_receiver(signal.SIGINT, *taken) as signals:
            task_status.started()
            number = await anext(signals)
            if number == signal.SIGINT:
                hit = self.stage is not None and self.stage.stop("Ctrl-C")
                what = "Ctrl-C stops the open run" if hit else "Ctrl-C: no run was open"
                self._view.note(f"{what}; the demo goes on. Once more leaves it.")
                number = await anext(signals)
            self.left = number
            play.cancel()


Play: TypeAlias = "Callable[[View, Tempo, Interrupts], Awaitable[None]]"


async def perform(view: View, tempo: Tempo, play: Play | None = None) -> int:
    """Play all scenes, or another play; the exit code."""
    interrupts = Interrupts(view)
    with view:
        async with trio.open_nursery() as nursery:
            await nursery.start(interrupts.run, nursery.cancel_scope)
            await (play or _play)(view, tempo, interrupts)
            nursery.cancel_scope.cancel()
    return 0 if interrupts.left is None else BY_SIGNAL + interrupts.left


async def _play(view: View, tempo: Tempo, interrupts: Interrupts) -> None:
    view.note("Starting a model server on this machine, and loading the client that talks to it.")
    async with (
        open_model_server(recorded(tempo)) as server,
        open_runtime() as runtime,
        runtime.open_session(weather_agent(server.base_url, tempo), id="demo") as session,
    ):
        stage = interrupts.stage = ServedStage(session, view, tempo, server=server)
        for scene in SCENES:
            await scene(stage)
        view.close(server.record, stage.stops)
