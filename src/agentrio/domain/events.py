"""What a session tells.

Structural events have a ``seq`` of their own: gapless, journaled, the cursor of a reader. The others carry the ``seq``
they follow. Deltas are told per token, so they are plain slotted classes: immutable by agreement, not by the frozen
``__init__`` that would cost five times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from .limits import Limits
from .messages import Message
from .parts import CallError, CallStatus, Part, ToolCall, ToolResult
from .status import Failure, RunResult, StopReason, SuspendReason
from .usage import NO_USAGE, Usage

CallKind: TypeAlias = Literal["read", "write"]
Queue: TypeAlias = Literal["steering", "follow_up"]
SteerMode: TypeAlias = Literal["after_calls", "interrupt"]
Source: TypeAlias = Literal["prompt", "steering", "follow_up"]


@attrs.frozen
class Origin:
    """Whose event it is. ``run`` is empty between runs; ``parent_call`` is set where a call of another run hosts it."""

    session: str
    agent: str = ""
    run: str = ""
    parent_call: str | None = None


@attrs.frozen
class RunStarted:
    structural: ClassVar[bool] = True
    origin: Origin
    model: str
    provider: str
    thinking: str | None
    limits: Limits
    seq: int = 0


@attrs.frozen
class RoundStarted:
    structural: ClassVar[bool] = True
    origin: Origin
    round: int
    seq: int = 0


@attrs.frozen
class RoundEnded:
    """A round is over. ``usage`` is of the kept response, ``discarded`` of the attempts before it."""

    structural: ClassVar[bool] = True
    origin: Origin
    round: int
    usage: Usage = NO_USAGE
    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    discarded: Usage = NO_USAGE
    failure: Failure | None = None
    stop_detail: str | None = None
    seq: int = 0


@attrs.frozen
class RunSuspended:
    structural: ClassVar[bool] = True
    origin: Origin
    reason: SuspendReason
    pending: tuple[str, ...] = ()
    seq: int = 0


@attrs.frozen
class RunEnded:
    """The last event of a run."""

    structural: ClassVar[bool] = True
    origin: Origin
    result: RunResult[Any]
    seq: int = 0


@attrs.frozen
class MessageAdded:
    """A user message has joined the conversation."""

    structural: ClassVar[bool] = True
    origin: Origin
    message: Message
    source: Source = "prompt"
    seq: int = 0


@attrs.frozen
class MessageQueued:
    """A message waits for its turn: steering for the next round, a follow-up for the end of the run."""

    structural: ClassVar[bool] = True
    origin: Origin
    message: Message
    queue: Queue
    mode: SteerMode = "after_calls"
    seq: int = 0


@attrs.frozen
class MessageUnqueued:
    """A queued message was taken back before it was sent."""

    structural: ClassVar[bool] = True
    origin: Origin
    message_id: str
    seq: int = 0


@attrs.frozen
class MessageCompleted:
    """A response as it stands in the conversation; it supersedes its deltas."""

    structural: ClassVar[bool] = True
    origin: Origin
    message: Message
    usage: Usage = NO_USAGE
    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    discarded: Usage = NO_USAGE
    stop_detail: str | None = None
    seq: int = 0


@attrs.frozen
class CallProposed:
    """A call was parsed and checked. With a ``problem`` it will not run; its result follows in call order."""

    structural: ClassVar[bool] = True
    origin: Origin
    call: ToolCall
    kind: CallKind
    fingerprint: str
    problem: CallError | None = None
    seq: int = 0


@attrs.frozen
class CallStarted:
    structural: ClassVar[bool] = True
    origin: Origin
    call_id: str
    name: str
    seq: int = 0


@attrs.frozen
class CallFinished:
    """A call has its result. Results come in call order, whatever finished first."""

    structural: ClassVar[bool] = True
    origin: Origin
    result: ToolResult
    seq: int = 0


@attrs.frozen
class MemoryPatched:
    """Keys of the session's memory were set, or deleted where the patch says None."""

    structural: ClassVar[bool] = True
    origin: Origin
    patch: Mapping[str, Any] = attrs.field(hash=False)
    call_id: str | None = None
    seq: int = 0


@attrs.frozen
class Compacted:
    """The request had outgrown its limit: tool results in the first ``messages`` messages go out as their size alone.

    Where that was not enough, the messages whose ids are ``shortened``, each of them larger than a quarter of the
    limit, go out as their beginning. The conversation keeps it all. ``chars`` is by how much the request shrank.
    """

    structural: ClassVar[bool] = True
    origin: Origin
    messages: int
    chars: int
    shortened: tuple[str, ...] = ()
    seq: int = 0


@attrs.frozen
class Retrying:
    """A model call will be made again after ``delay`` seconds: attempt ``attempt`` of ``most`` retries of its kind.

    Of kind ``fallback`` it goes to the agent's next model.
    """

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    kind: Literal["request", "stream", "length", "response", "fallback"]
    attempt: int
    most: int
    delay: float
    message: str


@attrs.frozen
class MessageStarted:
    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    message_id: str
    round: int


@attrs.frozen
class MessageDiscarded:
    """What was streamed of a message that will never be completed is void."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    message_id: str
    why: str


@attrs.define
class TextDelta:
    """More text of part ``part`` of an open message, from character ``offset`` on."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    message_id: str
    part: int
    offset: int
    text: str


@attrs.define
class ThinkingDelta:
    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    message_id: str
    part: int
    offset: int
    text: str


@attrs.define
class ToolInputDelta:
    """More of a call's raw arguments; ``name`` is the tool's. The first one of a call may be empty."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    message_id: str
    part: int
    offset: int
    text: str
    name: str


@attrs.frozen
class CallProgress:
    """What a running tool reports of itself. ``total`` and ``done`` are in the tool's own units."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    call_id: str
    text: str = ""
    done: float | None = None
    total: float | None = None


@attrs.frozen
class CallReturned:
    """A call has returned; its result is told in call order, by ``CallFinished``."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    call_id: str
    status: CallStatus


@attrs.frozen
class Notice:
    """Something worth knowing that changes nothing; ``text`` is safe to show. Nothing tells one yet."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    code: str
    text: str


@attrs.frozen
class DraftSnapshot:
    """What an open message holds so far, for a reader that comes late; its deltas follow."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    message_id: str
    parts: tuple[Part, ...]


@attrs.frozen
class Resync:
    """Events of a session were dropped because their reader lagged: read ``session.value`` and go on from ``seq``."""

    structural: ClassVar[bool] = False
    origin: Origin
    seq: int
    dropped: int = 0

    @property
    def session(self) -> str:
        """The session whose events were dropped."""
        return self.origin.session


StructuralEvent: TypeAlias = (
    RunStarted
    | RoundStarted
    | RoundEnded
    | RunSuspended
    | RunEnded
    | MessageAdded
    | MessageQueued
    | MessageUnqueued
    | MessageCompleted
    | CallProposed
    | CallStarted
    | CallFinished
    | MemoryPatched
    | Compacted
)
Delta: TypeAlias = TextDelta | ThinkingDelta | ToolInputDelta
TransientEvent: TypeAlias = (
    Retrying | MessageStarted | MessageDiscarded | Delta | CallProgress | CallReturned | Notice | DraftSnapshot | Resync
)
Event: TypeAlias = StructuralEvent | TransientEvent
