"""How actors end: the one shield, the orphan's warning, and faults told from failures."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from agentrio.domain.errors import RuntimeCrashed

log = logging.getLogger("agentrio")


@contextmanager
def shielded(seconds: float) -> Iterator[trio.CancelScope]:
    """A block that a cancel from outside can't interrupt, for so many seconds at most.

    Every shield of the library is opened here, so that none stands without a deadline.
    """
    with trio.move_on_after(seconds, shield=True) as scope:
        yield scope


def cancel_is_pending() -> bool:
    """Whether the next checkpoint of this task will raise ``trio.Cancelled``."""
    return trio.current_effective_deadline() == -float("inf")


def crashed(group: BaseExceptionGroup[BaseException], body: BaseException | None) -> BaseException:
    """What a runtime's block raises where its nurseries raised a group.

    A pending cancel and an exit stay what they are; our own faults become ``RuntimeCrashed``; what the body raised
    besides is put beside it.
    """
    _, faults = group.split((trio.Cancelled, KeyboardInterrupt, SystemExit))
    kept, _ = group.split((trio.Cancelled, KeyboardInterrupt, SystemExit))
    raised: list[BaseException] = [] if kept is None else list(kept.exceptions)
    if faults is not None:
        fault = RuntimeCrashed("the runtime failed; the cause is chained")
        fault.__cause__ = faults
        raised.append(fault)
    if body is not None:
        raised.append(body)
    if len(raised) == 1 and faults is not None:
        return raised[0]
    return BaseExceptionGroup("the runtime ended by more than its body", raised)
