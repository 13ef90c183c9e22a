"""Hypothesis strategies for every value of the domain."""

from __future__ import annotations

from typing import Any, get_args

import attrs
from hypothesis import strategies as st

from agentrio.domain import events as ev
from agentrio.domain.identity import Identity
from agentrio.domain.limits import LengthPolicy, Limits, OnFailedWrite
from agentrio.domain.messages import Message, ModelTag
from agentrio.domain.parts import (
    CallCategory,
    CallError,
    CallStatus,
    File,
    Image,
    RawBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from agentrio.domain.session import Queued, Session
from agentrio.domain.state import CallState, RunState, SessionState
from agentrio.domain.status import Code, Failure, RunResult, Status, StopReason, SuspendReason, Suspension
from agentrio.domain.usage import Usage

texts = st.text(max_size=8)
any_texts = st.text(st.characters(codec=None), max_size=8)  # half surrogate pairs too: a stream may be cut there
ids = st.text("abc_-01", min_size=1, max_size=6)
optional_texts = st.none() | texts
counts = st.integers(0, 1000)
seconds = st.floats(0, 1e6) | st.sampled_from([0, 3, float("inf")])
money = st.none() | st.decimals(0, 10, places=4)
json_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values = st.recursive(
    json_scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
json_objects = st.dictionaries(texts, json_values, max_size=3)


def one_of(literal: Any) -> st.SearchStrategy[Any]:
    """One of the strings of a ``Literal``."""
    return st.sampled_from(get_args(literal))


identities = st.builds(Identity, st.text(min_size=1, max_size=8), texts, st.frozensets(texts, max_size=3))
usages = st.builds(Usage, counts, counts, counts, counts, counts, money)
call_errors = st.builds(CallError, one_of(CallCategory), texts)
text_parts = st.builds(Text, any_texts, optional_texts)
thinkings = st.builds(Thinking, any_texts, optional_texts, st.booleans(), optional_texts)
tool_calls = st.builds(ToolCall, ids, texts, ids, texts, st.none() | json_objects, optional_texts)
images = st.builds(Image, st.just("aGk="), st.just("image/png"))
files = st.builds(File, st.just("aGk="), st.just("text/plain"), optional_texts)
raw_blocks = st.builds(RawBlock, ids, texts)
result_parts = st.lists(text_parts | images | files, max_size=2).map(tuple)
tool_results = st.builds(
    ToolResult, ids, ids, one_of(CallStatus), result_parts, st.none() | call_errors, st.booleans(), json_values
)
parts = text_parts | thinkings | tool_calls | tool_results | images | files | raw_blocks
part_tuples = st.lists(parts, max_size=3).map(tuple)
tags = st.builds(ModelTag, ids, ids, ids)
messages = st.builds(
    Message, ids, st.sampled_from(["user", "assistant", "tool"]), part_tuples, st.none() | tags, st.booleans()
)
limits = st.builds(
    Limits,
    max_rounds=counts,
    call_timeout=st.none() | st.floats(0.001, 100),
    idle_timeout=st.floats(0.001, 100) | st.just(float("inf")),
    max_total_tokens=st.none() | st.integers(1, 10**9),
    max_cost=st.none() | st.decimals(0, 10, places=3) | st.floats(0, 10),
    length_policy=one_of(LengthPolicy),
    on_failed_write=one_of(OnFailedWrite),
)
stop_reasons = st.none() | one_of(StopReason)
failures = st.builds(
    Failure, one_of(Status), texts, st.none() | one_of(Code), st.booleans(), st.none() | seconds, optional_texts
)
results: st.SearchStrategy[RunResult[Any]] = st.builds(
    RunResult,
    run_id=ids,
    status=one_of(Status),
    text=any_texts,
    output=json_values,
    usage=usages,
    stop_reason=stop_reasons,
    raw_stop_reason=optional_texts,
    failure=st.none() | failures,
    rounds=counts,
    discarded=usages,
    reason=optional_texts,
    queued=counts,
)
suspensions = st.builds(Suspension, ids, one_of(SuspendReason), st.lists(ids, max_size=2).map(tuple))
queued = st.builds(Queued, messages, one_of(ev.Queue), one_of(ev.SteerMode))
sessions = st.builds(
    Session,
    ids,
    texts,
    st.lists(messages, max_size=3).map(tuple),
    json_objects,
    st.lists(queued, max_size=2).map(tuple),
    counts,
    counts,
    counts,
    counts,
)
call_states = st.builds(
    CallState,
    tool_calls,
    st.none() | one_of(ev.CallKind),
    st.none() | call_errors,
    st.booleans(),
    st.none() | tool_results,
)
runs = st.builds(
    RunState,
    ids,
    limits,
    rounds=counts,
    calls=st.lists(call_states, max_size=2).map(tuple),
    failure=st.none() | failures,
    usage=usages,
    suspension=st.none() | suspensions,
    result=st.none() | results,
)
states = st.builds(SessionState, sessions, st.none() | runs)
origins = st.builds(ev.Origin, ids, texts, texts, st.none() | ids)

_BY_FIELD: dict[str, st.SearchStrategy[Any]] = {
    "origin": origins,
    "thinking": optional_texts,
    "limits": limits,
    "usage": usages,
    "discarded": usages,
    "stop_reason": stop_reasons,
    "raw_stop_reason": optional_texts,
    "failure": st.none() | failures,
    "result": results,
    "reason": one_of(SuspendReason),
    "pending": st.lists(ids, max_size=2).map(tuple),
    "shortened": st.lists(ids, max_size=2).map(tuple),
    "message": messages,
    "source": one_of(ev.Source),
    "queue": one_of(ev.Queue),
    "mode": one_of(ev.SteerMode),
    "call": tool_calls,
    "problem": st.none() | call_errors,
    "patch": json_objects,
    "parts": part_tuples,
    "delay": seconds,
    "done": st.none() | seconds,
    "total": st.none() | seconds,
    "status": one_of(CallStatus),
    "seq": counts,
    "round": counts,
    "attempt": counts,
    "most": counts,
    "part": counts,
    "offset": counts,
    "dropped": counts,
    "messages": counts,
    "chars": counts,
}
_KINDS: dict[type, st.SearchStrategy[Any]] = {
    ev.CallProposed: one_of(ev.CallKind),
    ev.Retrying: st.sampled_from(["request", "stream", "length"]),
}
_OWN: dict[type, dict[str, st.SearchStrategy[Any]]] = {
    ev.CallFinished: {"result": tool_results},
    ev.Retrying: {"message": texts},
}


def events_of(kind: type) -> st.SearchStrategy[Any]:
    """Events of one class, with each field filled by its name."""
    fill = {**_BY_FIELD, "kind": _KINDS.get(kind, texts), **_OWN.get(kind, {})}
    return st.builds(kind, **{field.name: fill.get(field.name, texts) for field in attrs.fields(kind)})


events = st.one_of([events_of(kind) for kind in get_args(ev.Event)])
