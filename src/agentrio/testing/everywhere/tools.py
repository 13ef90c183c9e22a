"""The tools of a scenario, watched: when each is entered and left, and whether it passes its cancel on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import trio

from agentrio.agent.tool import Tool

from .steps import Stepper

__all__ = ["ToolCancel", "Watch", "visited"]


@attrs.define(eq=False)
class ToolCancel:
    """Whether the cancel of a call has reached the code of its tool: it can only be passed on.

    Trio tells nobody what a task is woken with, nor which scope it is in; two private names do. Where a new Trio has
    others, nothing is found, and a test says so.
    """

    entered: Any
    felt: bool = False

    @classmethod
    def here(cls) -> ToolCancel:
        """For a tool that the current task is about to enter."""
        return cls(getattr(trio.lowlevel.current_task(), "_cancel_status", None))

    def step(self, task: trio.lowlevel.Task) -> None:
        """The task is about to go on."""
        woken = getattr(task, "_next_send", None)
        if isinstance(getattr(woken, "error", None), trio.Cancelled) and self._comes_from_outside(task):
            self.felt = True

    def _comes_from_outside(self, task: trio.lowlevel.Task) -> bool:
        status: Any = getattr(task, "_cancel_status", None)
        while status is not None and status is not self.entered:
            if status._scope.shield:  # a timeout of the tool's own
                return False
            status = status._parent
        return status is not None and bool(status.effectively_cancelled)


@attrs.define(eq=False)
class Watch:
    """Who is told of tools: ``visit`` that one was entered or left, ``swallowed`` that one kept its cancel."""

    visit: Callable[[], None]
    stepper: Stepper
    swallowed: Callable[[Tool[..., Any]], None]

    @contextmanager
    def tool(self, tool: Tool[..., Any]) -> Generator[None]:
        """In this block a read tool's own code runs: if it is cancelled, it has to raise.

        A write may catch its cancel, and come back within its grace to say what it did.
        """
        task = trio.lowlevel.current_task()
        cancel = ToolCancel.here()
        self.stepper.tools[task] = cancel.step
        try:
            yield
        finally:
            del self.stepper.tools[task]
        if cancel.felt and tool.kind == "read":
            self.swallowed(tool)


@contextmanager
def visited(tools: Sequence[Tool[..., Any]], watch: Watch) -> Generator[None]:
    """In this block each tool tells when it is entered and left.

    Tools do not change; these do, since the scenario's own agent holds them, and change back.
    """
    kept = [(tool, tool.fn) for tool in tools]
    for tool, fn in kept:
        telling = _telling_thread(fn, watch.visit) if tool.threaded else _telling(fn, tool, watch)
        object.__setattr__(tool, "fn", telling)
    try:
        yield
    finally:
        for tool, fn in kept:
            object.__setattr__(tool, "fn", fn)


def _telling(fn: Callable[..., Any], tool: Tool[..., Any], watch: Watch) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        watch.visit()
        with watch.tool(tool):
            value = await fn(*args, **kwargs)
        watch.visit()
        return value

    return call


def _telling_thread(fn: Callable[..., Any], visit: Callable[[], None]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        _tell_from_thread(visit)
        value = fn(*args, **kwargs)
        _tell_from_thread(visit)
        return value

    return call


def _tell_from_thread(visit: Callable[[], None]) -> None:
    try:
        trio.from_thread.run_sync(visit)
    except (trio.Cancelled, trio.RunFinishedError):  # noqa: ASYNC103  # of a thread that nobody waits for any more
        pass
