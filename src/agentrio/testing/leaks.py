"""Leak check: what a block of code left behind, each thing by name and with where it came from.

Four counters, each usable alone: Trio tasks, threads, descriptors (sockets among them), child processes. `LeakCheck`
takes a baseline of them and compares; `no_leaks` does so around a block.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import AsyncGenerator, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol

import attrs
import trio

from agentrio.providers._opening import begins

__all__ = [
    "DescriptorCounter",
    "Leak",
    "LeakCheck",
    "LeakError",
    "ProcessCounter",
    "TaskCounter",
    "ThreadCounter",
    "no_leaks",
]

SETTLE_ROUNDS = 50  # checkpoints at least: a closed connection needs a few to be seen by its other end
SETTLE_SECONDS = 0.5  # real seconds at most: a thread needs the interpreter, a child the kernel, before it is gone


class LeakError(AssertionError):
    """Something outlived the block. The text names each thing; `leaks` has them as values."""

    def __init__(self, leaks: Sequence[Leak], skipped: Sequence[str] = ()) -> None:
        self.leaks: tuple[Leak, ...] = tuple(leaks)
        lines = [f"{len(self.leaks)} leaked:"]
        lines += [f"- {leak.kind}: {leak.name}\n{_indent(leak.origin)}".rstrip() for leak in self.leaks]
        lines += [f"(not checked: {reason})" for reason in skipped]
        super().__init__("\n".join(lines))


@attrs.frozen
class Leak:
    """One thing that was not there at the baseline: its kind, its name, and where it came from (may be empty)."""

    kind: str
    name: str
    origin: str = ""


class Counter(Protocol):
    """Counts one kind of thing. `snapshot` is cheap; `describe` is asked only for what leaked."""

    def snapshot(self) -> Mapping[Hashable, object]:
        """Return what is there now, by identity."""
        ...

    def describe(self, thing: object) -> Leak:
        """Say what a thing of a snapshot is, and where it came from."""
        ...

    def unavailable(self) -> str | None:
        """Return why this cannot be counted on this system, or None."""
        ...


class TaskCounter:
    """Trio tasks below the root task, or below one nursery. Call it inside a Trio run."""

    def __init__(self, nursery: trio.Nursery | None = None) -> None:
        self._nursery = nursery

    def snapshot(self) -> Mapping[Hashable, object]:
        """Return the tasks that exist now; the task that asks is one of them, if it is below."""
        if self._nursery is not None:
            return {task: task for task in _below_nursery(self._nursery)}
        root = trio.lowlevel.current_root_task()
        return {task: task for task in _below(root)} if root is not None else {}

    def describe(self, thing: object) -> Leak:
        """Name the task and give the stack it waits at."""
        assert isinstance(thing, trio.lowlevel.Task)
        frames = traceback.StackSummary.extract(iter(list(thing.iter_await_frames())))
        return Leak("task", thing.name, "".join(frames.format()))

    def unavailable(self) -> str | None:
        """Tasks can be counted everywhere."""
        return None


class ThreadCounter:
    """Threads, except Trio's worker threads that wait for work, which Trio keeps for ten seconds.

    One that still imports a model's SDK, since a cancel does not wait for it, is no leak either: it ends with that.
    """

    def snapshot(self) -> Mapping[Hashable, object]:
        """Return the threads of this process that are alive and not an idle Trio worker."""
        named = {thread.ident: thread for thread in threading.enumerate()}
        there = {ident: frame for ident, frame in sys._current_frames().items() if not _is_idle_worker(frame)}
        return {named.get(ident, ident): ident for ident in there}

    def describe(self, thing: object) -> Leak:
        """Name the thread and give its stack; one that was started below `threading` has its number for a name."""
        assert isinstance(thing, int)
        names = (thread.name for thread in threading.enumerate() if thread.ident == thing)
        frame = sys._current_frames().get(thing)
        return Leak("thread", next(names, f"number {thing}"), "".join(traceback.format_stack(frame)) if frame else "")

    def unavailable(self) -> str | None:
        """Threads can be counted everywhere."""
        return None


class DescriptorCounter:
    """Open descriptors of this process; a socket is named with both its addresses. Needs ``/proc/self/fd``."""

    folder: Path = Path("/proc/self/fd")

    def snapshot(self) -> Mapping[Hashable, object]:
        """Return the open descriptors, each by number and by what it points to."""
        return {pair: pair for pair in self._pairs()}

    def _pairs(self) -> Iterator[tuple[int, str]]:
        for name in os.listdir(self.folder):
            try:
                yield int(name), os.readlink(self.folder / name)
            except OSError:
                continue  # the descriptor of the listing itself, closed since

    def describe(self, thing: object) -> Leak:
        """Name the file, pipe or socket."""
        assert isinstance(thing, tuple)
        number, target = thing
        kind = "socket" if target.startswith("socket:") else "descriptor"
        return Leak(kind, f"{number} -> {target}{_addresses(number) if kind == 'socket' else ''}")

    def unavailable(self) -> str | None:
        """Say so where the system has no ``/proc/self/fd``."""
        return None if self.folder.is_dir() else f"descriptors, since there is no {self.folder}"


class ProcessCounter:
    """Child processes, those included that ended and were never waited for. Needs ``/proc``."""

    folder: Path = Path("/proc")
    lists = "self/task/*/children"  # not in every kernel; spares a walk over all processes

    def snapshot(self) -> Mapping[Hashable, object]:
        """Return the children of this process, each by pid and start time."""
        children = (_child(self.folder / name) for name in self._candidates())
        return {child: child for child in children if child is not None}

    def _candidates(self) -> Iterator[str]:
        lists = list(self.folder.glob(self.lists))
        if not lists:
            yield from (entry.name for entry in self.folder.iterdir() if entry.name.isdigit())
        for path in lists:
            try:
                yield from path.read_text().split()
            except OSError:
                continue  # that thread ended since

    def describe(self, thing: object) -> Leak:
        """Name the child's command, or say that it is a zombie."""
        assert isinstance(thing, tuple)
        pid, _ = thing
        try:
            command = (self.folder / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            command = ""
        return Leak("process", f"pid {pid}: {command.strip() or 'ended, but nobody waited for it'}")

    def unavailable(self) -> str | None:
        """Say so where the system has no ``/proc``."""
        return None if (self.folder / "self" / "stat").exists() else f"child processes, since there is no {self.folder}"


class LeakCheck:
    """A baseline, and comparisons with it.

    Made inside a Trio run, it takes its baseline at once. What was there then never counts; what came later counts
    for as long as it is there.
    """

    def __init__(self, *counters: Counter, nursery: trio.Nursery | None = None) -> None:
        """Take the baseline.

        Args:
            counters: What to count; by default all four.
            nursery: Count only the tasks below this nursery (with the default counters).
        """
        chosen = counters or (TaskCounter(nursery), ThreadCounter(), DescriptorCounter(), ProcessCounter())
        reasons = [(counter, counter.unavailable()) for counter in chosen]
        self.skipped: tuple[str, ...] = tuple(reason for _, reason in reasons if reason)
        self._counters = tuple(counter for counter, reason in reasons if not reason)
        self._baseline: list[Mapping[Hashable, object]] = []
        self.rebase()

    def rebase(self) -> None:
        """Take the baseline again: what is there now is all right."""
        self._baseline = [counter.snapshot() for counter in self._counters]

    def leaks(self) -> tuple[Leak, ...]:
        """Return what is there now and was not at the baseline. Does not wait."""
        return tuple(
            counter.describe(thing)
            for counter, before in zip(self._counters, self._baseline, strict=True)
            for key, thing in counter.snapshot().items()
            if key not in before
        )

    async def check(self) -> None:
        """Let things settle, then raise `LeakError` if anything is left.

        Settling is a bounded number of checkpoints, which also end as soon as nothing is left: virtual time does
        not move, and no timeout is needed to get through.
        """
        give_up = time.perf_counter() + SETTLE_SECONDS
        rounds = 0
        while self._any():
            if rounds >= SETTLE_ROUNDS and time.perf_counter() > give_up:
                raise LeakError(self.leaks(), self.skipped)
            rounds += 1
            _let_threads_run()
            await trio.lowlevel.checkpoint()

    def _any(self) -> bool:
        pairs = zip(self._counters, self._baseline, strict=True)
        return any(counter.snapshot().keys() - before.keys() for counter, before in pairs)


@asynccontextmanager
async def no_leaks(*counters: Counter, nursery: trio.Nursery | None = None) -> AsyncGenerator[LeakCheck]:
    """Check that the block leaves nothing behind; arguments as for `LeakCheck`.

    Raises `LeakError` when the block ended well and something is left. The block's own exception passes as it is,
    unchecked: it is the better news.
    """
    check = LeakCheck(*counters, nursery=nursery)
    yield check
    await check.check()


def _below(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    for nursery in task.child_nurseries:
        yield from _below_nursery(nursery)


def _below_nursery(nursery: trio.Nursery) -> Iterator[trio.lowlevel.Task]:
    for task in nursery.child_tasks:
        yield task
        yield from _below(task)


def _is_idle_worker(frame: FrameType | None) -> bool:
    # An idle worker waits in its own loop; one at work has the job's frames on top. Trio has no public list of them.
    # One that imports a model's SDK can't be stopped, holds nothing, and ends by itself: it is idle in a moment.
    code = getattr(frame, "f_code", None)
    idle = code is not None and code.co_name == "_work" and code.co_filename.endswith("_thread_cache.py")
    return idle or begins(frame)


def _let_threads_run() -> None:
    time.sleep(0)  # gives up the interpreter lock, not the time: a thread that is ending needs it


def _addresses(number: int) -> str:
    try:
        with socket.socket(fileno=os.dup(number)) as twin:
            here, there = twin.getsockname(), _peer(twin)
    except OSError:
        return ""  # closed since
    return f" {here} to {there}" if there else f" {here}"


def _peer(twin: socket.socket) -> object:
    try:
        return twin.getpeername()
    except OSError:
        return None  # listening, or the other end is gone


def _child(entry: Path) -> tuple[int, str] | None:
    try:
        line = (entry / "stat").read_text(errors="replace")
    except OSError:
        return None  # ended since
    fields = line.rpartition(")")[2].split()  # after the name, which may hold anything: state, parent, ...
    return (int(entry.name), fields[19]) if int(fields[1]) == os.getpid() else None


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
