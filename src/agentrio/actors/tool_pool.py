"""Where tools run: one pool for a runtime, whose nursery owns the task of every call.

The caller waits for the outcome, not for the task: a tool that does not end when it is cancelled becomes an orphan
of the pool and delays nobody.
"""

from __future__ import annotations

import functools
import inspect
import math
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, Literal, TypeAlias, cast

import attrs
import trio

from .from_thread import let_cancels_through
from .supervise import EXITS, cancel_is_pending, log, shielded, split

MOST_ORPHANED_THREADS = 32  # the thread limiter grows by one for each, up to here
PATIENCE = 1.0  # seconds; a tool that nobody waits for, or that a closing runtime waits for, is named after this
LAST_LOOK = 0.1  # seconds; a thread that asks now and then whether it was stopped has ended by then
MOST_WARNED = 1000  # tools of sessions that were named so and are not named again; some sessions live long

Why: TypeAlias = Literal["stop", "timeout", "interrupt"]


def _nothing(*_: object) -> None:
    pass


@attrs.define(eq=False)
class Work:
    """One call in the pool. The caller fills the first part, the pool the second.

    Exactly one of ``value`` and ``error`` is set where ``ended`` is "returned" or "raised".
    """

    name: str
    session: str
    threaded: bool
    invoke: Callable[[], Any]
    report: Callable[[Work], None]
    context: Context
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    why: Why | None = None
    lost: bool = False
    """Whether nobody asked for the cancel: the pool itself was cancelled, with all that was in it."""

    grace: float = 0.0
    """Seconds that a cancelled thread may still take for its result to count; an async tool sees to that itself."""

    begun: bool = False
    """Whether the tool's own code was entered; where not, the call has had no effect."""

    ended: Literal["returned", "raised", "cancelled"] | None = None
    value: Any = None
    error: Exception | None = None
    abandoned: bool = False
    task: trio.lowlevel.Task | None = None
    in_thread: bool = False
    late: Callable[[], Any] | None = None
    left: trio.Event | None = None
    """Set when a thread that is waited for in the grace has ended, or is waited for no longer."""

    def cancel(self, why: Why) -> None:
        """Stop the call; the first reason stays."""
        if self.why is None:
            self.why = why
        self.scope.cancel()

    def forget(self) -> None:
        """Let go of what it brought, and of whom it tells.

        A thread may outlive its session by hours, and the traceback of an error leads to all that was under way.
        """
        self.invoke = self.report = _nothing
        self.value = self.error = self.late = None

    def nobody_waits(self) -> None:
        """Wake who waits for the thread."""
        if self.left is not None:
            self.left.set()


class ToolPool:
    """Runs calls in tasks and threads of its own, and remembers those that nobody waits for any more."""

    def __init__(self, threads: int, leave: Callable[[BaseException], None]) -> None:
        """``leave`` is told when a tool raises what ends the program."""
        self._leave = leave
        self._threads = trio.CapacityLimiter(threads)
        self._nursery: trio.Nursery | None = None
        self._running: set[Work] = set()
        self._orphaned_threads: set[Work] = set()
        self._left: deque[tuple[float, Work]] = deque()
        """Calls that were abandoned of late, and when each is looked at again."""
        self._left_last = -math.inf
        self._some_left = trio.lowlevel.ParkingLot()
        self._warned: set[tuple[str, str]] = set()
        self._exiting = False  # a tool has raised an exit: no run is told of anything more, all are cancelled
        self._changed = trio.lowlevel.ParkingLot()

    async def run(self, closing: trio.Event, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be the pool until it is closing, then cancel what is left and wait for it."""
        async with trio.open_nursery() as watch:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._name_left)
                task_status.started()
                await closing.wait()
                watch.start_soon(self._name_stragglers)
                nursery.cancel_scope.cancel()
            watch.cancel_scope.cancel()
        await self._leave_threads()

    def start(self, work: Work) -> None:
        """Run a call; ``work.report`` is told, in the pool's task, when it has ended."""
        assert self._nursery is not None
        if self._exiting:
            return
        self._running.add(work)
        work.context.run(self._nursery.start_soon, self._work, work)

    def abandon(self, work: Work) -> None:
        """Nobody waits for this call any more: what it still brings is dropped."""
        if work.ended is not None or work.abandoned:
            return
        work.abandoned = True
        work.nobody_waits()
        if work in self._running:  # else it was never started
            self._look_later(work)

    @property
    def orphans(self) -> int:
        """Calls that run although nobody waits for them: tasks, and threads."""
        return sum(work.abandoned for work in self._running) + len(self._orphaned_threads)

    @property
    def orphaned_threads(self) -> int:
        """Threads that work although nobody waits for them."""
        return len(self._orphaned_threads)

    def describe_orphans(self) -> list[str]:
        """Each orphaned task in words: its tool, its session, and the stack it waits at."""
        left = (work for work in self._running if work.abandoned)
        return [f"tool {work.name!r} of session {work.session}, at\n{_stack(work)}" for work in left]

    async def wait_quiet(self) -> None:
        """Wait until no call runs, in a task or a thread."""
        while self._running or self._orphaned_threads:
            await self._changed.park()

    async def _work(self, work: Work) -> None:
        work.task = trio.lowlevel.current_task()
        theirs: BaseException | None = None
        try:
            with work.scope:
                work.value = await (self._in_thread(work) if work.threaded else self._in_task(work))
                work.ended = "returned"
        except BaseException as error:  # noqa: ASYNC103  # what is not the call's own is raised below
            theirs = self._take_error(work, error)
        if work.ended is None:
            work.ended = "cancelled"
        self._running.discard(work)
        self._changed.unpark_all()
        if not self._exiting:
            self._report(work)
        work.task = None
        if theirs is not None:
            raise theirs

    def _report(self, work: Work) -> None:
        """Tell whoever waits. A fault of theirs is not the pool's, which has calls of other sessions in it."""
        try:
            work.report(work)
        except EXITS as exits:  # what the tool returned may raise it where it is read
            self._exit(exits)
        except Exception:
            log.exception("the end of a call of tool %r of session %s could not be told", work.name, work.session)
        work.forget()

    def _take_error(self, work: Work, error: BaseException) -> BaseException | None:
        """Note what a call raised, pass an exit of the program on, and give back the pool's cancel.

        Everything else is a failure of the tool, also what does not derive from ``Exception``: a cancel of another
        library, or one of Trio's that the tool let out of a scope of its own.
        """
        exits, rest = split(error, EXITS)
        if exits is not None:
            self._exit(exits)
        ours = cancel_is_pending()  # the pool's own cancel
        if ours and work.why is None:
            work.why, work.lost = "stop", True
        cancels, own = split(rest, trio.Cancelled) if ours else (None, rest)
        if own is not None:
            work.error = own if isinstance(own, Exception) else _wrapped(own)
            work.ended = "raised"
        return cancels

    def _exit(self, exits: BaseException) -> None:
        self._exiting = True  # the runs are cancelled from here, and settle while the pool is still there
        self._leave(exits)

    async def _in_task(self, work: Work) -> Any:
        await trio.lowlevel.checkpoint_if_cancelled()
        work.begun = True
        made: Awaitable[Any] = work.invoke()
        return await made

    async def _in_thread(self, work: Work) -> Any:
        slot = cast("trio.CapacityLimiter", _ThreadSlot(self._threads, work, self._thread_back))
        try:
            return await trio.to_thread.run_sync(
                functools.partial(_noted, work), abandon_on_cancel=True, limiter=slot, thread_name=f"tool {work.name}"
            )
        except trio.Cancelled:  # noqa: ASYNC103  # the result that came in time stands for it
            if not work.grace:
                raise
            if work.in_thread:  # pragma: no branch - else it has ended since the cancel was asked for: a race
                work.left = trio.Event()
                with shielded(work.grace):
                    await work.left.wait()  # noqa: ASYNC102  # shielded, by our helper
            if work.late is None or work.abandoned:
                raise
            return work.late()  # noqa: ASYNC104  # as above
        finally:
            if work.in_thread:
                self._orphan_thread(work)

    def _orphan_thread(self, work: Work) -> None:
        self._orphaned_threads.add(work)
        self._look_later(work)
        if len(self._orphaned_threads) <= MOST_ORPHANED_THREADS:
            self._threads.total_tokens += 1

    def _thread_back(self, work: Work) -> None:
        if work in self._orphaned_threads:
            if len(self._orphaned_threads) <= MOST_ORPHANED_THREADS:
                self._threads.total_tokens -= 1
            self._orphaned_threads.discard(work)
            work.forget()
            self._changed.unpark_all()

    def _look_later(self, work: Work) -> None:
        self._left_last = trio.current_time()
        self._left.append((self._left_last + PATIENCE, work))
        self._some_left.unpark_all()

    async def _name_left(self) -> None:
        """Name the calls and threads that are still there some time after nobody waited for them any more."""
        while True:
            if not self._left:
                await self._some_left.park()
            due, work = self._left.popleft()
            await trio.sleep_until(due)
            if work in self._running or work in self._orphaned_threads:
                self._warn(work)

    def _warn(self, work: Work) -> None:
        key = (work.session, work.name)
        if key in self._warned:
            return
        if len(self._warned) >= MOST_WARNED:
            self._warned.clear()
        self._warned.add(key)
        log.warning(
            "tool %r of session %s has not ended within %g s of its cancel; nobody waits for it any more",
            work.name,
            work.session,
            PATIENCE,
        )

    async def _name_stragglers(self) -> None:
        await trio.sleep(PATIENCE)
        for work in self._running:
            log.warning(
                "closing waits for tool %r of session %s, which has not ended within %g s of its cancel:\n%s",
                work.name,
                work.session,
                PATIENCE,
                _stack(work),
            )

    async def _leave_threads(self) -> None:
        """Name the threads that stay behind, when those that were told just now have had a moment to end."""
        with trio.move_on_at(self._left_last + LAST_LOOK):  # noqa: ASYNC912  # where none is left there is no wait
            while self._orphaned_threads:
                await self._changed.park()
        left = sorted(work.name for work in self._orphaned_threads)
        if left:
            log.warning(
                "closing leaves %d thread%s of tools behind: %s", len(left), "s"[: len(left) - 1], ", ".join(left)
            )


@attrs.define(eq=False)
class _ThreadSlot:
    """A place in the thread limiter that tells when its thread has ended, waited for or not.

    Trio takes any object with these two methods for a limiter, and calls them in its own thread.
    """

    limiter: trio.CapacityLimiter
    work: Work
    back: Callable[[Work], None]

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        await self.limiter.acquire_on_behalf_of(borrower)
        self.work.in_thread = True

    def release_on_behalf_of(self, borrower: object) -> None:
        self.limiter.release_on_behalf_of(borrower)
        self.work.in_thread = False
        self.work.nobody_waits()
        self.back(self.work)


def _wrapped(error: BaseException) -> RuntimeError:
    made = RuntimeError(f"the tool raised {type(error).__name__}, which is neither an error nor a cancel of its run")
    made.__cause__ = error
    return made


def _noted(work: Work) -> Any:
    """In the thread: do the work, and keep its outcome where it is found though nobody waits for the thread."""
    work.begun = True
    if work.why is not None:  # asked behind the line above, as the loop asks behind its own
        work.begun = False
        return None
    let_cancels_through()
    try:
        value = work.invoke()
        if inspect.iscoroutine(value):
            value.close()
            raise TypeError(
                f"the tool {work.name!r} is a plain `def` and returned a coroutine; use `async def` and await"
            )
    except BaseException as error:
        work.late = functools.partial(_raise, error)
        raise
    work.late = lambda: value
    return value


def _raise(error: BaseException) -> Any:
    raise error


def _stack(work: Work) -> str:
    if work.task is None:
        return "(not started)"
    frames = ((frame, line) for frame, line in work.task.iter_await_frames())
    return "".join(traceback.StackSummary.extract(frames).format())
