"""What is raised, rather than told as data: mistakes of the program, and our own faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .status import Failure


class AgentrioError(Exception):
    """Whatever this library raises on purpose."""


class DeclarationError(AgentrioError, ValueError):
    """A declaration is wrong: the message says what, where and how to mend it."""


class SessionBusy(AgentrioError):
    """The session has a run already, or too many messages wait.

    Steer the run, queue a follow-up, or wait for its end, also where it is stopping.
    """


class SessionClosed(AgentrioError):
    """The session, or the runtime it lives in, has been closed."""


class SessionCrashed(AgentrioError):
    """A fault inside the session ended its run; the cause is chained. Open a new session from its last value."""


class NothingToProceed(AgentrioError):
    """The conversation ends with a finished answer and nothing is queued: there is nothing to go on from."""


class WouldDeadlock(AgentrioError):
    """The wait could never end: the task that would wait is the one that has to read the run's events."""


class RunNotEnded(AgentrioError):
    """The run has no result yet."""


class RunSuspendedError(AgentrioError):
    """The run is suspended, so it has no result yet."""


class RunFailed(AgentrioError):
    """Raised by ``result.raise_for_status()`` for a run that did not succeed."""

    def __init__(self, status: str, failure: Failure | None) -> None:
        self.status = status
        self.failure = failure
        super().__init__(failure.message if failure is not None else f"the run ended {status}")


class RuntimeCrashed(AgentrioError):
    """A fault of the runtime itself; its cause, perhaps a group, is chained."""


class MemoryPatchError(AgentrioError, TypeError):
    """A memory patch holds something that is not JSON; the message names its path."""


class CodecError(AgentrioError, ValueError):
    """A stored value can't be read; the message says where and what was found."""
