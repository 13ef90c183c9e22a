"""The models that a runtime has open: one client each, held by a task that enters and leaves it."""

from __future__ import annotations

from contextvars import Context

import attrs
import trio

from agentrio.domain.errors import SessionClosed
from agentrio.providers.base import Model, ModelClient

from .supervise import Foreign, log

LINGER = 30.0  # seconds that a model stays open behind its last session: the next one finds its connections warm
MOST_IDLE = 8  # models that may linger at once; the one that was left first goes first


@attrs.define(eq=False)
class _Entry:
    """An open model. ``opening`` is cancelled while nobody waits for it, ``staying`` once nobody has used it long."""

    model: Model
    users: int = 0
    ready: trio.Event = attrs.field(factory=trio.Event)
    client: ModelClient | None = None
    error: Exception | None = None
    opening: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    staying: trio.CancelScope = attrs.field(factory=trio.CancelScope)


class Models:
    """Opens a model at its first use, and holds it until nobody has used it for a while or the runtime leaves.

    A model is told from others by its identity: two declarations may be equal and yet not share a credential.
    """

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._idle: dict[int, _Entry] = {}  # those of them without a user, the one that was left first in front
        self._nursery: trio.Nursery | None = None
        self._closing = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be the owner of every client until ``close()``."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started()
                await self._closing.wait()
        finally:
            self.close()

    def close(self) -> None:
        """Let every client go, and open no more; ``run`` returns when they are closed."""
        self._closing.set()
        self.give_up_opening()

    def give_up_opening(self) -> None:
        """Whoever waits for a model to open is told that the runtime has ended."""
        for entry in self._entries.values():
            if entry.client is None:
                entry.opening.cancel()

    def lease(self) -> Lease:
        """The use of some models, to be released."""
        return Lease(self)

    def _take(self, model: Model) -> _Entry:
        """One use more of a model, which is opened unless it is."""
        if self._closing.is_set():
            raise _ended()
        entry = self._entries.get(id(model))
        if entry is None or entry.staying.cancel_called:  # it is closing: its time has just run out
            entry = self._entries[id(model)] = _Entry(model)
            assert self._nursery is not None
            # in a context of its own: it would keep what its first user has in his for as long as it is open
            Context().run(self._nursery.start_soon, self._hold, entry)
        self._idle.pop(id(model), None)
        entry.staying.deadline = float("inf")
        entry.users += 1
        return entry

    def _give_back(self, entry: _Entry) -> None:
        entry.users -= 1
        if entry.users or self._entries.get(id(entry.model)) is not entry:
            return
        if entry.client is None:
            self._drop(entry, entry.opening)
            return
        self._idle[id(entry.model)] = entry
        entry.staying.deadline = trio.current_time() + LINGER
        if len(self._idle) > MOST_IDLE:
            oldest = next(iter(self._idle.values()))
            self._drop(oldest, oldest.staying)

    def _drop(self, entry: _Entry, scope: trio.CancelScope) -> None:
        scope.cancel()
        self._forget(entry)

    def _forget(self, entry: _Entry) -> None:
        for entries in (self._entries, self._idle):
            if entries.get(id(entry.model)) is entry:
                del entries[id(entry.model)]

    async def _hold(self, entry: _Entry) -> None:
        try:
            with entry.opening, Foreign("a model"):
                async with entry.model.open() as client:
                    entry.client = client
                    entry.ready.set()
                    with entry.staying:
                        await self._closing.wait()
        except Exception as error:
            if entry.client is not None:
                if self._closing.is_set():
                    raise
                log.warning("the model %s failed, and is closed", entry.model.tag, exc_info=error)
            entry.error = error
        finally:
            self._forget(entry)
            entry.error = entry.error or _ended()
            entry.ready.set()


class Lease:
    """What one session uses of the models."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._entries: dict[int, _Entry] = {}

    async def client(self, model: Model) -> ModelClient:
        """The model's client; without a checkpoint once it is open.

        Raises:
            SessionClosed: the runtime has ended.
            Exception: what opening it raised. The next use tries again.
        """
        entry = self._entries.get(id(model))
        if entry is None:
            entry = self._entries[id(model)] = self._models._take(model)
        if not entry.ready.is_set():
            await entry.ready.wait()
        if entry.client is None:
            self._give_back(entry)
            assert entry.error is not None
            raise entry.error
        return entry.client

    def _give_back(self, entry: _Entry) -> None:
        if self._entries.pop(id(entry.model), None) is not None:
            self._models._give_back(entry)

    def release(self) -> None:
        """Use none of them any more."""
        for entry in tuple(self._entries.values()):
            self._give_back(entry)


def _ended() -> SessionClosed:
    return SessionClosed("the runtime has ended: it opens no more models")
