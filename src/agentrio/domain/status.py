"""How calls of the model and runs end."""

from __future__ import annotations

from typing import Generic, Literal, TypeAlias, TypeVar

import attrs

from .errors import RunFailed
from .usage import NO_USAGE, Usage

Status: TypeAlias = Literal["succeeded", "blocked", "refused", "error", "not_provisioned", "cancelled"]

Code: TypeAlias = Literal[
    "limit",
    "max_rounds",
    "truncated",
    "stream_dropped",
    "context_overflow",
    "rate_limited",
    "overloaded",
    "unauthorized",
    "invalid_request",
    "invalid_response",
    "dependency_failed",
    "tool_denied",
    "unsupported",
    "guardrail_denied",
    "content_filter",
    "not_provisioned",
    "deadline",
    "crashed",
]

StopReason: TypeAlias = Literal[
    "end", "tool_calls", "max_tokens", "stop_sequence", "refusal", "content_filter", "pause", "error", "unknown"
]

Out = TypeVar("Out", covariant=True)


@attrs.frozen
class Failure:
    """Why a run did not succeed; ``message`` is safe to show to a user. ``retry_after`` is in seconds."""

    status: Status
    message: str
    code: Code | None = None
    recoverable: bool = False
    retry_after: float | None = None
    correlation_id: str | None = None


@attrs.frozen
class RunResult(Generic[Out]):
    """The end of a run: data, whatever happened.

    ``text`` is the final answer, or for a stopped run what had arrived of it. ``usage`` counts every kept response;
    ``discarded`` counts what retried attempts had cost. ``queued`` messages wait for the next run. ``guarded`` is kept
    for guardrails, and always false yet.
    """

    run_id: str
    status: Status
    text: str = ""
    output: Out | None = attrs.field(default=None, hash=False)
    usage: Usage = NO_USAGE
    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    failure: Failure | None = None
    model: str = ""
    provider: str = ""
    rounds: int = 0
    guarded: bool = False
    discarded: Usage = NO_USAGE
    reason: str | None = None
    queued: int = 0

    def raise_for_status(self) -> None:
        """Raise ``RunFailed`` unless the run succeeded."""
        if self.status != "succeeded":
            raise RunFailed(self.status, self.failure)


SuspendReason: TypeAlias = Literal["awaiting_approval", "reconciling", "detached", "lease_lost", "store_unavailable"]


@attrs.frozen
class Suspension:
    """Why a run rests, and which calls it waits for."""

    run_id: str
    reason: SuspendReason
    pending: tuple[str, ...] = ()
