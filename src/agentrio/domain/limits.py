"""The bounds of a run."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import attrs

from .errors import DeclarationError
from .keywords import tells_keywords

LengthPolicy: TypeAlias = Literal["same", "escalate", "off"]
OnFailedWrite: TypeAlias = Literal["skip", "continue", "end"]


LONGEST_GRACE = 86_400.0  # seconds: a day
MOST = 2**53  # of a whole number: those above are not the same in each JSON reader


def _at_least(lowest: float, *kinds: type, most: float = math.inf, what: str = "number") -> Any:
    kinds = kinds or (int, float)

    def check(owner: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        known = isinstance(value, kinds) and not isinstance(value, bool) and not _is_nan(value)
        top = min(most, MOST) if isinstance(value, int) else most
        if not (known and lowest <= value <= top) and not (value is None and attribute.default is None):
            bound = f"at most {top:.16g}" if known and value is not None and value > top else f"at least {lowest:g}"
            raise DeclarationError(f"Limits.{attribute.name} is {shown(value)}; it must be a {what} of {bound}.")

    return check


def _is_nan(value: Any) -> bool:
    return bool(value.is_nan() if isinstance(value, Decimal) else value != value)  # a signalling one compares to none


def _count(lowest: int) -> Any:
    return _at_least(lowest, int, most=MOST, what="whole number")


def _grace(lowest: float) -> Any:
    """A grace without an end would be none: what is cancelled must come to its end."""
    return _at_least(lowest, most=LONGEST_GRACE)


def shown(value: object) -> str:
    """A wrong value as an error shows it: in short, also where Python refuses to write it down."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more than 4300 digits
        return f"an {type(value).__name__} of thousands of digits"
    return text if len(text) <= 100 else text[:100] + "..."


def _dollars(value: Any) -> Any:
    """Money as Decimal; a float by the digits it is written with, not by its binary value."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Decimal(str(value))
    return value


def _one_of(*allowed: str) -> Any:
    def check(owner: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in allowed:
            raise DeclarationError(f"Limits.{attribute.name} is {value!r}; it must be one of {', '.join(allowed)}.")

    return check


@tells_keywords
@attrs.frozen(kw_only=True)
class Limits:
    """The bounds of a run. Times are in seconds, sizes in characters unless the name says bytes.

    A time may be ``math.inf``, except for the two graces: they are at most a day.

    Raises:
        DeclarationError: a value is out of range, or there is no such field; the message names it.
    """

    max_context_chars: int = attrs.field(default=256_000, validator=_count(1))
    """Size of a request: prompt, history and tools."""
    max_rounds: int = attrs.field(default=8, validator=_count(0))
    max_calls: int = attrs.field(default=16, validator=_count(0))
    """Tool calls a run may make. A response that would exceed it starts none of its calls."""
    max_consecutive_failures: int = attrs.field(default=3, validator=_count(1))
    max_parallel_calls: int = attrs.field(default=4, validator=_count(1))
    max_output_chars: int = attrs.field(default=32_000, validator=_count(1))
    """Text of one tool result; the rest is cut and counted."""
    max_image_bytes: int = attrs.field(default=5_000_000, validator=_count(1))
    """Each image and file that a tool returns or a user's message holds."""
    max_images: int = attrs.field(default=4, validator=_count(0))
    """Images that tools may return in one run."""
    max_mcp_tools: int = attrs.field(default=16, validator=_count(1))
    """Tools of one MCP server. Not used yet."""
    max_depth: int = attrs.field(default=2, validator=_count(0))
    """How deep agents may call agents. Not used yet."""
    call_timeout: float | None = attrs.field(default=None, validator=_at_least(0.001))
    """For tools that name no timeout of their own; None is no timeout."""
    mcp_timeout: float = attrs.field(default=60.0, validator=_at_least(0.001))
    """For calls of MCP tools. Not used yet."""
    connect_timeout: float = attrs.field(default=60.0, validator=_at_least(0.001))
    """Until the response's headers."""
    idle_timeout: float = attrs.field(default=120.0, validator=_at_least(0.001))
    """Longest silence within a response."""
    stop_grace: float = attrs.field(default=1.0, validator=_grace(0.001))
    """How long a stopped run may take to settle."""
    unwind_grace: float = attrs.field(default=0.003, validator=_grace(0))
    """How long a stopped read may take to return."""
    deadline: float | None = attrs.field(default=None, validator=_at_least(0.001))
    """For the whole run; passing it ends the run ``error``/``deadline``."""
    max_total_tokens: int | None = attrs.field(default=None, validator=_count(1))
    max_cost: Decimal | None = attrs.field(default=None, converter=_dollars, validator=_at_least(0, Decimal, most=MOST))
    """In US dollars, where the model's price is known."""
    length_policy: LengthPolicy = attrs.field(default="same", validator=_one_of("same", "escalate", "off"))
    """What a response cut at the token limit is retried with: the same limit, twice as much, or not at all."""
    on_failed_write: OnFailedWrite = attrs.field(default="skip", validator=_one_of("skip", "continue", "end"))
    """What becomes of the calls behind a failed write in the same response."""
