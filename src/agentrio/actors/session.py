"""The session actor: single writer of one conversation, host of one run at a time."""

from __future__ import annotations

import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias, assert_never

import attrs
import trio

from agentrio.agent.agent import Agent
from agentrio.agent.results import ResultError, check_images
from agentrio.domain import ids
from agentrio.domain.errors import NothingToProceed, SessionBusy, SessionClosed, SessionCrashed
from agentrio.domain.events import MessageQueued, MessageUnqueued, Origin, Queue, SteerMode
from agentrio.domain.history import answerable
from agentrio.domain.identity import Identity
from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import File, Image, Part, Text
from agentrio.domain.plain import article
from agentrio.domain.render import RenderMemo
from agentrio.domain.session import Session
from agentrio.domain.state import RunState, SessionState
from agentrio.providers.base import ModelClient
from agentrio.stores.base import Journal

from .bench import Bench
from .cell import RunCell, current_run
from .checks import check_fits, fixed_chars
from .emit import Emitter
from .hub import Hub
from .loop import Loop
from .readers import Reader
from .supervise import log, only_cancels, refuse_other_thread, shielded
from .tool_pool import ToolPool
from .waiting import Waiting

MAILBOX = 64  # commands that may wait; they are taken at once, so more is a runaway caller
MOST_QUEUED = 1000  # messages that may wait; no run answers as many, and every new one copies the queue

Content: TypeAlias = str | Part | tuple[Part, ...]


@attrs.frozen
class Receipt:
    """A queued message: its id, by which it can be taken back, and the run that was open when it was accepted."""

    message_id: str
    queue: Queue
    run_id: str | None


@attrs.frozen
class _Queue:
    """Command: a message waits from now on."""

    message: Message
    queue: Queue
    mode: SteerMode


@attrs.frozen
class _Unqueue:
    """Command: take a queued message back."""

    message_id: str


@attrs.define(eq=False)
class Surroundings:
    """What a session uses of the runtime it lives in."""

    pool: ToolPool
    client: Callable[[Any], Awaitable[ModelClient]]
    rng: random.Random
    taps: Sequence[Reader]
    journal: Journal


class SessionActor:
    """Owns a conversation's state. Its mailbox never waits for slow work, so a stop always gets through."""

    def __init__(
        self,
        around: Surroundings,
        agent: Agent[Any],
        value: Session | SessionState,
        identity: Identity | None,
        services: Any,
    ) -> None:
        state = value if isinstance(value, SessionState) else SessionState(value)
        self._around = around
        self.agent = agent
        self.identity = identity
        self.services = services
        self.hub: Hub = Hub(state, around.taps)
        self.emitter: Emitter = Emitter(self.hub, around.journal)
        self.current: RunCell | None = None
        self.loop: Loop | None = None
        self.crash: Exception | None = None
        self.closing: bool = False
        self._thread = threading.get_ident()
        self.ready: trio.Event = trio.Event()
        self.ended: trio.Event = trio.Event()
        self._memo = RenderMemo()
        self._queued = state.session.queued_total
        self._fixed_chars = fixed_chars(agent)
        self._nursery: trio.Nursery | None = None
        self._shield = trio.CancelScope(shield=True)  # its deadline is set when the session closes
        self._waiting = Waiting()
        self._owed = 0  # commands accepted and not carried out yet
        self._carried_out = trio.lowlevel.ParkingLot()
        self._send, self._inbox = trio.open_memory_channel[_Queue | _Unqueue](MAILBOX)

    @property
    def value(self) -> Session:
        """The conversation as of the last published event."""
        return self.hub.state.session

    def origin(self, run: str = "") -> Origin:
        """Whose events these are."""
        return Origin(self.value.id, self.agent.name, run)

    async def run(self) -> None:
        """Be the session until it is closed; an open run has ended before this returns or raises.

        A cancel from outside reaches the runs, but not the mailbox: the user's block is being cancelled too, and until
        it has unwound and closes the session, it must not find the session gone.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.ready.set()
                with self._shield, self._inbox:
                    await self._serve()
        finally:
            self.closing = True
            self.hub.end()
            self.ready.set()
            self.ended.set()

    # Runs

    def accept(self, content: Content) -> RunCell:
        """Take on a run, at once: its ending is owed from here on.

        Raises:
            SessionBusy, SessionClosed, SessionCrashed, ValueError, TypeError: it can't be taken on; nothing has
                happened.
        """
        return self._accept((checked(content, self.agent.limits.max_image_bytes),))

    def _accept(self, prompt: tuple[Any, ...]) -> RunCell:
        self.check_usable()
        run = self.current
        if run is not None:
            raise SessionBusy(f"session {self.value.id} has a run already ({run.id}); {_instead(run)}")
        resting = self.hub.state.open_run
        if resting is not None:
            raise SessionBusy(f"session {self.value.id} has a run that rests ({resting.id}), and has not ended")
        id = ids.run_id(self.value.id, self.value.runs + 1)
        message = self._message(ids.prompt_id(id), *prompt) if prompt else None
        run = RunCell(id, self.value.id, copy_context())
        return self._begin(run, Loop(self._bench(run), message, self.agent.limits, self._drain))

    def _message(self, id: str, *content: Any) -> Message:
        message = user_message(id, *content)
        check_fits(message, self._fixed_chars, self.agent.limits)
        return message

    def resume(self, open_run: RunState) -> RunCell:
        """Go on with the open run of the state that this session started from: its events end where a process did."""
        self.check_usable()
        run = RunCell(open_run.id, self.value.id, copy_context())
        return self._begin(run, Loop(self._bench(run), None, open_run.limits, self._drain, resume=True))

    def _begin(self, run: RunCell, loop: Loop) -> RunCell:
        if loop.limits.deadline is not None:
            run.scope.deadline = trio.current_time() + loop.limits.deadline
        assert self._nursery is not None
        self.current, self.loop = run, loop
        run.refuse_reader = partial(self.hub.refuse_reader, run.id)
        self._nursery.start_soon(self._work, loop, name=f"run {run.id}")
        return run

    def proceed(self) -> RunCell:
        """Take on a run that answers the conversation as it stands.

        Raises:
            NothingToProceed: it ends with a finished answer, and nothing is queued.
        """
        self.check_usable()
        waiting = self._waiting.any(self._queue_ids())
        if self.current is None and not waiting and not answerable(self.value.messages):
            where = "ends with a finished answer" if self.value.messages else "has no message yet"
            raise NothingToProceed(f"session {self.value.id} {where}, and nothing is queued; ask() it something")
        return self._accept(())

    def _bench(self, run: RunCell) -> Bench:
        around = self._around
        return Bench(
            run,
            self.origin(run.id),
            self.agent,
            self.identity,
            self.services,
            self.hub,
            self.emitter,
            around.pool,
            around.client,
            around.rng,
            self._memo,
            self._waiting,
        )

    async def _work(self, loop: Loop) -> None:
        try:
            await loop.run()
        except BaseException as error:
            if not only_cancels(error):  # an exit, which the mailbox must not hold up
                self._shut()
            raise
        finally:
            self.crash = loop.crash or self.crash
            if loop.settled:
                self.current = self.loop = None
                self._memo.rest(self.value.messages)
            else:  # its end could not be told, so nothing may follow it: the session is over
                self._shut()

    def check_usable(self) -> None:
        """Raise where the session can't take anything on."""
        self.check_thread()
        if self.crash is not None:
            raise SessionCrashed(
                f"session {self.value.id} crashed; close() it, and open a new one from its value"
            ) from self.crash
        if self.closing or self._nursery is None:
            raise SessionClosed(f"session {self.value.id} is closed; its value can be opened again")

    def check_thread(self) -> None:
        """Raise ``RuntimeError`` in any thread but that of the runtime."""
        refuse_other_thread(self._thread, f"session {self.value.id}")

    # Commands

    def queue(self, content: Content, queue: Queue, mode: SteerMode = "after_calls") -> Receipt:
        """Accept a message that waits for its turn.

        Raises:
            SessionBusy: too many wait already.
            SessionClosed, SessionCrashed, ValueError, TypeError: it can't be taken on; nothing has happened.
        """
        self.check_usable()
        parts = checked(content, self.agent.limits.max_image_bytes)
        if len(self.value.queue) + len(self._waiting.underway) >= MOST_QUEUED:
            raise SessionBusy(
                f"session {self.value.id} has {MOST_QUEUED} messages queued; let runs answer them, or unqueue() some"
            )
        message = self._message(ids.queued_id(self.value.id, self._queued + 1), parts)
        self._mail(_Queue(message, queue, mode))
        self._queued += 1
        self._waiting.underway.add(message.id)
        return Receipt(message.id, queue, None if self.current is None else self.current.id)

    def unqueue(self, message_id: str) -> bool:
        """Take a waiting message back; whether it was still waiting."""
        self.check_usable()
        if not isinstance(message_id, str):
            raise TypeError(f"message_id is a {type(message_id).__name__}; give the one of a Receipt")
        if not self._waiting.may_take_back(message_id, self._queue_ids()):
            return False
        self._mail(_Unqueue(message_id))
        self._waiting.taken_back.add(message_id)
        return True

    def _queue_ids(self) -> list[str]:
        return [item.message.id for item in self.value.queue]

    def _mail(self, mail: _Queue | _Unqueue) -> None:
        try:
            self._send.send_nowait(mail)
            self._owed += 1
        except trio.WouldBlock:
            raise SessionBusy(f"session {self.value.id} has {MAILBOX} commands waiting; let it take them") from None

    async def _drain(self) -> None:
        """Wait until the commands that have come are carried out: the run's next step goes by all of them.

        The mailbox task alone takes them: a second taker would overtake the one it is about to carry out.
        """
        while self._owed:
            await self._carried_out.park()

    async def _serve(self) -> None:
        try:
            async for mail in self._inbox:
                await self._take(mail)
        finally:  # a cancel may have come between: what was accepted is carried out all the same
            self.closing = True
            if self._owed:  # pragma: no cover - only a fault of the runtime itself cancels a mailbox that has mail
                with shielded(self.agent.limits.stop_grace):
                    await self._serve_rest()  # noqa: ASYNC102  # shielded() is a shield with a deadline
            self._owed = 0
            self._carried_out.unpark_all()

    async def _serve_rest(self) -> None:  # pragma: no cover - as where it is called
        while True:
            try:
                mail = self._inbox.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel):
                return
            await self._take(mail)

    async def _take(self, mail: _Queue | _Unqueue) -> None:
        """Carry out a command. A fault of ours ends this session's run, not its neighbours."""
        try:
            await self._handle(mail)
        except Exception as fault:
            log.exception("session %s crashed", self.value.id)
            self.crash = fault
            if self.current is not None and self.loop is not None:
                self.loop.crash = fault
                self.current.scope.cancel()
        finally:
            self._owed -= 1
            self._carried_out.unpark_all()

    async def _handle(self, mail: _Queue | _Unqueue) -> None:
        match mail:
            case _Queue(message=message, queue=queue, mode=mode):
                await self.emitter.emit_when_due(lambda: [MessageQueued(self._origin_now(), message, queue, mode)])
                self._waiting.underway.discard(message.id)
                if mode == "interrupt" and self.loop is not None:
                    self.loop.calls.interrupt()
            case _Unqueue(message_id=message_id):
                await self.emitter.emit_when_due(lambda: self._unqueued(message_id))
                self._waiting.taken_back.discard(message_id)
            case _:
                assert_never(mail)

    def _unqueued(self, message_id: str) -> list[MessageUnqueued]:
        waiting = any(item.message.id == message_id for item in self.value.queue)
        return [MessageUnqueued(self._origin_now(), message_id)] if waiting else []

    def _origin_now(self) -> Origin:
        """Of the open run, if there is one: a run that has ended tells nothing more."""
        run = self.hub.state.open_run
        return self.origin("" if run is None else run.id)

    def close(self) -> None:
        """Take nothing more; stop the run. ``ended`` says when it is done."""
        if self.current is not None:
            self.current.stop("the session was closed")
        self._shut()

    def _shut(self) -> None:
        self.closing = True
        self._shield.deadline = min(self._shield.deadline, trio.current_time() + self.agent.limits.stop_grace)
        self._send.close()


def _instead(run: RunCell) -> str:
    """What can be done in place of a second run."""
    if current_run.get() is run:  # wait_idle() would be refused here
        return "a tool of that run can steer() it, or queue a follow_up()"
    if run.stopping:
        return f"it is stopping{run.held_up}: await its wait(), or the session's wait_idle(), and then begin the next"
    return "steer() it, queue a follow_up(), or wait_idle()"


def checked(content: object, max_bytes: int) -> Any:
    """The content of a user message. Images and files may have ``max_bytes`` each.

    Raises:
        ValueError, TypeError: it is empty, or nothing that a message can hold, or an image or file can't be sent.
    """
    if isinstance(content, str):
        content = Text(content)
    parts: tuple[Any, ...] = content if isinstance(content, tuple) else (content,)
    for part in parts:
        if type(part) not in (Text, Image, File):  # a class of the user's own could not be stored
            raise TypeError(
                f"a user message holds text, images and files, not {article(part)}; give a str, a Text, Image or File, "
                "or a tuple of them"
            )
    if all(isinstance(part, Text) and not part.text.replace("\0", "").strip() for part in parts):  # NUL is never sent
        raise ValueError("the message is empty; give it some text")
    try:
        check_images(parts, max_bytes=max_bytes, max_images=len(parts))
    except ResultError as wrong:
        raise ValueError(f"the message can't be sent: {wrong}") from None
    return parts
