"""The root: who outlives whom, and in which order everything ends.

Outside lies the infrastructure, shielded in a task of its own until the sessions have left; inside it the sessions;
inside them the block of the user. A cancel from outside reaches the sessions first, and the pool and the models only
when nobody relies on them any more.
"""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import trio

from agentrio.agent.agent import Agent
from agentrio.domain.errors import DeclarationError, SessionClosed
from agentrio.domain.identity import Identity
from agentrio.domain.keywords import keywords_told
from agentrio.domain.session import Session
from agentrio.providers.base import PricedClient
from agentrio.stores.base import NullJournal

from .checks import agents_by_name, check_agent, check_opening, check_options, check_reading
from .handle import ReaderBlock, SessionHandle
from .models import Lease, Models
from .readers import Dropping, Lossless, Merging, Reader
from .session import SessionActor, Surroundings
from .supervise import crashed, log, only_cancels, refuse_other_thread, shielded
from .tool_pool import ToolPool

OnLag: TypeAlias = Literal["merge", "drop", "wait"]

LEAVING = 5.0  # seconds that models may take to close once the sessions have left
LONGEST_GRACE = 10.0  # seconds added to the longest stop grace before a shutdown waits no longer


class _Infrastructure:
    """What sessions rely on while they end."""

    def __init__(self, pool: ToolPool, models: Models) -> None:
        self._pool = pool
        self._models = models
        self._left = trio.Event()
        self._shield = trio.CancelScope(shield=True)  # its deadline is set when the sessions have left
        self.ready = trio.Event()

    async def serve(self) -> None:
        """Be there from ``ready`` until ``leave()``, which may come first.

        Not for ``nursery.start``: that would wait for this shielded task when it is cancelled, and never get to leave.
        """
        with self._shield:
            async with trio.open_nursery() as outer:
                await outer.start(self._models.run)
                async with trio.open_nursery() as inner:
                    await inner.start(self._pool.run, self._left)
                    self.ready.set()
                self._models.close()

    def leave(self) -> None:
        """The sessions have left: end, from the inside out."""
        self._shield.deadline = trio.current_time() + LEAVING
        self._left.set()


class Runtime:
    """Where sessions live. Made by ``open_runtime``."""

    def __init__(self, agents: Sequence[Agent[Any]], threads: int, rng: random.Random) -> None:
        self._agents = agents_by_name(agents)
        self._thread = threading.get_ident()
        self._pool = ToolPool(threads, self._exit)
        self._models = Models()
        self._rng = rng
        self._taps: list[Reader] = []
        self._actors: dict[str, SessionActor] = {}
        self._nursery: trio.Nursery | None = None
        self.closing: bool = False
        self._over = False
        self._exits: list[BaseException] = []

    def __repr__(self) -> str:
        return f"<Runtime {'closing' if self.closing else 'open'} with {len(self._actors)} sessions>"

    @asynccontextmanager
    @keywords_told
    async def open_session(
        self,
        agent: Agent[Any] | str,
        *,
        id: str | None = None,
        value: Session | None = None,
        identity: Identity | None = None,
        services: Any = None,
    ) -> AsyncGenerator[SessionHandle]:
        """A session for the time of a block: leaving it stops an open run and closes the session.

        ``value`` continues an earlier conversation. Arguments and errors are those of ``start_session``.
        """
        handle = await self.start_session(agent, id=id, value=value, identity=identity, services=services)
        try:
            yield handle
        finally:
            await handle.close_quietly()  # noqa: ASYNC102  # it shields itself

    @keywords_told
    async def start_session(
        self,
        agent: Agent[Any] | str,
        *,
        id: str | None = None,
        value: Session | None = None,
        identity: Identity | None = None,
        services: Any = None,
    ) -> SessionHandle:
        """A session that the runtime owns: it lives until ``close()``, or until the runtime ends.

        The agent's model and its fallbacks are opened here; slow imports that they need happen in a thread.

        Raises:
            DeclarationError: no agent of that name was given to ``open_runtime``; or it has a ``max_cost``, and one of
                its models a price that can't be known.
            SessionClosed: the runtime is closing.
            ValueError, TypeError: the id is taken by a session that is open, differs from the value's, or is no text;
                the value is no Session, or could not be stored (a ``CodecError`` that says where); the identity is no
                Identity.
            RuntimeError: called from another thread.
            Exception: what opening one of the agent's models raised; the next use of the model tries again.
        """
        self._check_thread()
        declared = check_agent(agent, self._agents)
        check_opening(id, value, identity)
        session = self._value(declared, id, value)
        self._check_free(session.id)
        lease = await self._lease(declared, session.id)
        around = Surroundings(self._pool, lease.client, self._rng, self._taps, NullJournal())
        actor = SessionActor(around, declared, session, identity, services)
        assert self._nursery is not None
        self._actors[session.id] = actor
        self._nursery.start_soon(self._host, actor, lease, name=f"session {session.id}")
        try:
            await actor.ready.wait()
        except BaseException:  # nobody will have a handle to close it with
            actor.close()
            raise
        return SessionHandle(actor)

    async def _lease(self, agent: Agent[Any], id: str) -> Lease:
        """The agent's models, open, for a session whose id is still free by then."""
        lease = self._models.lease()
        try:
            await self._open_models(agent, lease)
            self._check_free(id)
        except BaseException:
            lease.release()
            raise
        return lease

    async def _open_models(self, agent: Agent[Any], lease: Lease) -> None:
        """The agent's models; with a limit of money, each must be able to keep it."""
        limited = agent.limits.max_cost is not None
        for model in agent.models:
            client = await lease.client(model)
            if limited and isinstance(client, PricedClient) and client.unpriced is not None:
                raise DeclarationError(
                    f"Agent {agent.name!r}: Limits.max_cost can't be held, as what {model.tag.model} costs is not "
                    f"known: {client.unpriced}. Or leave max_cost out."
                )

    async def _host(self, actor: SessionActor, lease: Lease) -> None:
        try:
            await actor.run()
        finally:
            del self._actors[actor.value.id]
            lease.release()

    def _value(self, agent: Agent[Any], id: str | None, value: Session | None) -> Session:
        if value is None:
            return Session(f"s_{secrets.token_hex(6)}" if id is None else id, agent.name)
        if value.agent not in ("", agent.name):
            log.warning("session %s was begun by agent %r and goes on with %r", value.id, value.agent, agent.name)
        return value

    def _check_thread(self) -> None:
        refuse_other_thread(self._thread, "the runtime")

    def _check_free(self, id: str) -> None:
        if self.closing or self._nursery is None:
            raise SessionClosed("the runtime is closing: it opens no more sessions")
        if id in self._actors:
            raise ValueError(f"a session with id {id!r} is open already; close it first, or choose another id")

    def session(self, id: str) -> SessionHandle:
        """The open session of that id.

        Raises:
            KeyError: there is none.
            RuntimeError: called from another thread.
        """
        self._check_thread()
        if id not in self._actors:
            raise KeyError(f"no session {id!r} is open")
        return SessionHandle(self._actors[id])

    @keywords_told
    def subscribe(self, *, session: str | None = None, on_lag: OnLag = "merge", max_pending: int = 1024) -> ReaderBlock:
        """A block that reads the events of every session, or of one, from now on.

        ``on_lag`` says what becomes of a reader that is slow: ``merge`` melts deltas together and over
        ``max_pending`` events puts a ``Resync`` in their place; ``drop`` drops deltas and counts them as ``dropped``,
        with a ``Resync`` where the other events alone are over ``max_pending``; ``wait`` slows the run down, and needs
        a ``session``. The stream ends when the runtime, or that session, does.

        Raises:
            KeyError: no such session is open.
            TypeError, ValueError: an option is wrong; the message says which.
            RuntimeError: called from another thread.
        """
        self._check_thread()
        check_reading(session, on_lag, max_pending)
        if session is None:
            return ReaderBlock(lambda: self._tap(on_lag, max_pending))
        hub = self._actors[self.session(session).id].hub
        return ReaderBlock(lambda: hub.join(_reader(on_lag, max_pending, hub.forget, hub.make_room)))

    def _tap(self, on_lag: OnLag, max_pending: int) -> Reader:
        reader = _reader(on_lag, max_pending, self._taps.remove, lambda: None)
        self._taps.append(reader)
        if self._over:
            reader.end()
        return reader

    def _exit(self, error: BaseException) -> None:
        """A tool ends the program: everything ends in order, then the block raises what the tool raised."""
        self._exits.append(error)
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel()

    def _end_taps(self) -> None:
        """The last session has ended: readers come to their end behind what they have."""
        self._over = True
        for tap in tuple(self._taps):
            tap.end()

    @property
    def orphans(self) -> int:
        """Tool calls that still run although nobody waits for them."""
        return self._pool.orphans

    @property
    def orphaned_threads(self) -> int:
        """Those of the orphans that are threads of plain ``def`` tools, which nobody can cancel."""
        return self._pool.orphaned_threads

    def describe_orphans(self) -> list[str]:
        """Each orphan that is no thread, in words: its tool, its session, and the stack it waits at."""
        return self._pool.describe_orphans()

    async def wait_quiet(self) -> None:
        """Wait until no run is open and no tool runs, waited for or not."""
        self._check_thread()
        for actor in tuple(self._actors.values()):
            await SessionHandle(actor).wait_idle()
        await self._pool.wait_quiet()

    async def close(self) -> None:
        """Take nothing more, stop every run, end every session. Closing twice is fine.

        The block of ``open_runtime`` goes on; leaving it ends the pool and the models.
        """
        self._check_thread()
        self.closing = True
        actors = tuple(self._actors.values())
        for actor in actors:
            actor.close()
        self._models.give_up_opening()  # for sessions that will not be
        grace = max((actor.agent.limits.stop_grace for actor in actors), default=0.0)
        with shielded(grace + LONGEST_GRACE):
            for actor in actors:
                await actor.ended.wait()


def _reader(on_lag: OnLag, max_pending: int, forget: Any, room: Any) -> Reader:
    if on_lag == "merge":
        return Merging(forget, max_pending=max_pending)
    if on_lag == "drop":
        return Dropping(forget, max_pending=max_pending)
    return Lossless(forget, room)


@asynccontextmanager
async def open_runtime(
    agents: Sequence[Agent[Any]] = (),
    *,
    threads: int = 40,
    rng: random.Random | None = None,
    **later: Any,
) -> AsyncGenerator[Runtime]:
    """A runtime for the time of a block.

    ``agents`` can be opened by name. ``threads`` bounds how many plain ``def`` tools run at once; those that were
    stopped and work on in their threads are not counted, up to 32 of them. ``rng`` gives the jitter of retries. Leaving
    the block stops every run, ends the sessions, then the pool, then the models' connections. An async tool that does
    not end when it is cancelled holds the block open, and is named in a warning after a second. Threads are left
    behind, and named; those that were stopped just now are given a tenth of a second.

    Raises:
        DeclarationError: two agents have one name, or an option is wrong, unknown or not supported yet.
        RuntimeError: no Trio loop runs here.
        RuntimeCrashed: a fault of the runtime itself; what the body raised comes unwrapped.
    """
    check_options(threads, rng, later)
    runtime = Runtime(agents, threads, random.Random() if rng is None else rng)
    body: list[BaseException] = []
    group: BaseExceptionGroup[BaseException] | None = None
    try:
        async with _surrounded(runtime):
            try:
                yield runtime
            except BaseException as error:  # noqa: ASYNC103  # raised below, outside of the nurseries
                if only_cancels(error):
                    raise
                body.append(error)
    except BaseExceptionGroup as raised:  # not except*, which would wrap what we raise once more
        group = raised
    ending = crashed(group, body.pop() if body else None, runtime._exits)
    try:
        if ending is not None:
            raise ending
    finally:
        del ending, group  # their tracebacks hold this frame


@asynccontextmanager
async def _surrounded(runtime: Runtime) -> AsyncGenerator[None]:
    """The nurseries round the user's block, which raises nothing but cancels here."""
    async with trio.open_nursery() as outer:
        infrastructure = _Infrastructure(runtime._pool, runtime._models)
        outer.start_soon(infrastructure.serve)  # noqa: ASYNC113  # start() could not be cancelled, see serve
        try:
            await infrastructure.ready.wait()
            async with trio.open_nursery() as sessions:
                runtime._nursery = sessions
                try:
                    yield
                finally:
                    await runtime.close()  # noqa: ASYNC102  # it shields itself
        finally:
            runtime._end_taps()
            infrastructure.leave()
