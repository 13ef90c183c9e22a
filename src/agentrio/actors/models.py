"""The models that a runtime has open: one client each, held by a task that enters and leaves it."""

from __future__ import annotations

import attrs
import trio

from agentrio.domain.errors import SessionClosed
from agentrio.providers.base import Model, ModelClient


@attrs.define(eq=False)
class _Entry:
    model: Model
    ready: trio.Event = attrs.field(factory=trio.Event)
    client: ModelClient | None = None
    error: Exception | None = None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)


class Models:
    """Opens a model at its first use and holds it until the runtime leaves."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
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
                entry.scope.cancel()

    async def client(self, model: Model) -> ModelClient:
        """The model's client; without a checkpoint once it is open.

        Raises:
            SessionClosed: the runtime has ended.
            Exception: what opening it raised. The next use tries again.
        """
        if self._closing.is_set():
            raise _ended()
        entry = self._entries.get(id(model))
        if entry is None:
            assert self._nursery is not None
            entry = self._entries[id(model)] = _Entry(model)
            self._nursery.start_soon(self._hold, entry)
        if not entry.ready.is_set():
            await entry.ready.wait()
        if entry.client is None:
            assert entry.error is not None
            raise entry.error
        return entry.client

    async def _hold(self, entry: _Entry) -> None:
        try:
            with entry.scope:
                async with entry.model.open() as client:
                    entry.client = client
                    entry.ready.set()
                    await self._closing.wait()
        except Exception as error:
            if entry.client is not None:
                raise
            entry.error = error
            del self._entries[id(entry.model)]
        finally:
            entry.error = entry.error or _ended()
            entry.ready.set()


def _ended() -> SessionClosed:
    return SessionClosed("the runtime has ended: it opens no more models")
