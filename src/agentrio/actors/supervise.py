"""How actors end: the one shield, the orphan's warning, and faults told from failures."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

import trio

from agentrio.domain.errors import RuntimeCrashed

log: logging.Logger = logging.getLogger("agentrio")

EXITS = (KeyboardInterrupt, SystemExit)
"""What ends the program, not a call or a run."""


@contextmanager
def shielded(seconds: float) -> Generator[trio.CancelScope]:
    """A block that a cancel from outside can't interrupt, for so many seconds at most.

    Every shield of the library is opened here, so that none stands without a deadline.
    """
    with trio.move_on_after(seconds, shield=True) as scope:
        yield scope


def refuse_other_thread(home: int, what: str) -> None:
    """Raise where this is not the thread whose Trio loop owns what is to be touched: it would corrupt the loop."""
    if threading.get_ident() != home:
        raise RuntimeError(
            f"{what} belongs to another thread; call trio.from_thread.run_sync(session.stop), or "
            "trio.from_thread.run(session.ask, text), and give trio_token= in a thread that Trio did not start"
        )


def cancel_is_pending() -> bool:
    """Whether the next checkpoint of this task will raise ``trio.Cancelled``."""
    return trio.current_effective_deadline() == -float("inf")


class ForeignError(RuntimeError):
    """Foreign code raised what is neither an error nor a cancel that was asked for; that is chained."""


class Foreign:
    """``with Foreign("a prompt layer"):`` round code that is not ours: what it raises comes out as an ``Exception``.

    An exit of the program passes as it is, and so does a cancel that was asked for of this task. All else that does
    not derive from ``Exception`` is a failure of that code: a cancel of another library, or one of Trio's that it let
    out of a scope of its own. Unconverted it would end the session, and its neighbours with it.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or isinstance(error, Exception):
            return
        raised = _passes_or_fails(self._what, error)
        if raised is not error:
            raise raised


def _passes_or_fails(what: str, error: BaseException) -> BaseException:
    exits, rest = split(error, EXITS)
    if exits is not None:
        return exits
    cancels = split(rest, trio.Cancelled)[0] if cancel_is_pending() else None
    if cancels is not None:  # nobody would look at a failure beside it
        return cancels
    made = ForeignError(f"{what} raised {type(error).__name__}, which is neither an error nor a cancel of its run")
    made.__cause__ = error
    return made


def kind_of(error: Exception) -> str:
    """The name of what foreign code raised."""
    return type(error.__cause__ if isinstance(error, ForeignError) else error).__name__


def split(
    error: BaseException | None, kinds: type[BaseException] | tuple[type[BaseException], ...]
) -> tuple[BaseException | None, BaseException | None]:
    """The part of an error that is of these kinds, and the rest."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(kinds)
    return (error, None) if isinstance(error, kinds) else (None, error)


def only_cancels(error: BaseException) -> bool:
    """Whether this is a cancel, or a group of nothing else."""
    return without(error, trio.Cancelled) is None


def without(error: BaseException | None, kinds: type[BaseException]) -> BaseException | None:
    """What is left of an error, or of a group, without these kinds."""
    return split(error, kinds)[1]


def crashed(
    group: BaseExceptionGroup[BaseException] | None, body: BaseException | None, exits: Sequence[BaseException] = ()
) -> BaseException | None:
    """What a runtime's block raises; None where it raises nothing.

    ``group`` is what its nurseries raised, ``exits`` what tools raised to end the program, ``body`` what the user's
    block raised. A body's exception, an exit and a cancel pass as they are. Faults of ours become one
    ``RuntimeCrashed``. A cancel beside another exception is left out, as in any cleanup that raises: its scope is still
    cancelled. What is left of two or more is one group.
    """
    raised = list(_leaves(exits))
    if group is not None:
        others = group.split(trio.Cancelled)[1]
        faults = None if others is None else others.split(EXITS)[1]
        raised += [] if others is None else [leaf for leaf in _leaves(others.exceptions) if isinstance(leaf, EXITS)]
        if faults is not None:
            raised.append(_crash(faults))
    if not raised:
        return body if body is not None else group
    rest = without(body, trio.Cancelled)
    if rest is not None:
        raised.append(rest)
    return raised[0] if len(raised) == 1 else BaseExceptionGroup("the runtime ended by more than one cause", raised)


def _crash(faults: BaseException) -> RuntimeCrashed:
    crash = RuntimeCrashed("the runtime failed; the cause is chained")
    crash.__cause__ = faults
    return crash


def _leaves(errors: Sequence[BaseException]) -> Iterator[BaseException]:
    for error in errors:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error.exceptions)
        else:
            yield error


def their_traceback(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """``exc_info=`` for an error of foreign code: what stands above its own first frame helps nobody."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_ABOVE):
        trace = trace.tb_next
    return type(error), error, trace


_ABOVE = ("agentrio.actors.", "agentrio.agent.", "trio.", "outcome.")
