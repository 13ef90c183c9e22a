"""Hypothesis strategies for scenes: what a model may say, what a user may do, how a consumer may read."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from agentrio.domain.limits import Limits
from agentrio.domain.usage import Usage
from agentrio.providers.scripted import Reply, ScriptedCall

from .stage import Command, Said, Scene

FULL = os.environ.get("AGENTRIO_FULL") == "1"
LAWS = settings(
    max_examples=5_000 if FULL else 200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

_numbers = st.integers(0, 9)
_short = st.sampled_from([0.0, 0.01, 0.5, 2.3])  # never as long as a timeout and a grace together: either could win


def _call(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[ScriptedCall]:
    return st.fixed_dictionaries(arguments).map(lambda given: ScriptedCall(name, given))


reads = st.one_of(
    _call("look", n=_numbers),
    _call("dig", chars=st.sampled_from([300, 900])),
    _call("wait", seconds=_short),
    _call("hang"),
    _call("fail", n=_numbers),
    _call("explain", n=_numbers),
    _call("remember", key=st.sampled_from("ab"), seconds=_short),
    _call("report", times=st.integers(0, 3)),
    _call("stubborn", seconds=st.sampled_from([0.1, 3.0])),
)
rejected = st.one_of(
    _call("nothing_of_that_name", n=_numbers),
    _call("look", n=st.just("not a number")),
    st.sampled_from(["{", "[]", '{"n": 1} and more']).map(lambda text: ScriptedCall("look", text)),
)
writes = st.one_of(
    _call("write", n=_numbers, seconds=_short),
    _call("hang_writing", n=_numbers),
    _call("fail_writing", n=_numbers),
    _call("finish_writing", seconds=_short),
)
calls = st.one_of(reads, reads, reads, writes, rejected)
long = "It rains and rains. " * 50  # more than a quarter of the least limit
texts = st.sampled_from(["", "ok", "It rains in Oslo tomorrow, so take a coat and good shoes.", long])
usages = st.builds(Usage, st.integers(0, 9), st.integers(0, 9))
stop_reasons = st.sampled_from(
    ["max_tokens", "pause", "refusal", "content_filter", "unknown", "tool_calls", "stop_sequence", "error"]
)
thinking = st.sampled_from(["", "", "Let me think about it."])
working = st.builds(Reply, texts, st.lists(calls, min_size=1, max_size=5), thinking, usage=usages)
answering = st.builds(Reply, st.just("It rains."), thinking=thinking, usage=usages)
odd = st.builds(Reply, texts, st.lists(calls, max_size=3), thinking, stop_reasons, usages)
replies = st.one_of(working, working, answering, odd)
doubled = st.just(Reply("twice", [ScriptedCall("look", {"n": 1}, "same"), ScriptedCall("look", {"n": 2}, "same")]))
errors = st.sampled_from(
    [("overloaded", "request"), ("stream_dropped", "stream"), ("unauthorized", None), ("not_provisioned", None)]
)
said = st.one_of(
    *[st.builds(Said, working)] * 6,
    *[st.builds(Said, answering)] * 2,
    st.builds(Said, odd),
    st.builds(Said, replies, cut=st.integers(0, 6)),
    st.builds(Said, replies, pause=st.tuples(st.integers(0, 4), st.sampled_from([0.3, 20.0]))),
    st.builds(Said, st.none(), errors),
    st.builds(Said, doubled),
)
limits = st.builds(
    Limits,
    max_rounds=st.sampled_from([8, 8, 8, 2]),
    max_calls=st.sampled_from([16, 16, 16, 4]),
    max_consecutive_failures=st.sampled_from([4, 3, 2]),
    max_parallel_calls=st.sampled_from([4, 2, 1]),
    call_timeout=st.sampled_from([None, None, 1.0]),
    deadline=st.sampled_from([None, None, None, None, 3.0]),
    max_context_chars=st.sampled_from([256_000, 256_000, 256_000, 3_600]),  # the tools take half of it
    length_policy=st.sampled_from(["same", "escalate", "off"]),
    on_failed_write=st.sampled_from(["skip", "continue", "end"]),
)
orders = st.sampled_from(["stop", "after_round", "steer", "interrupt", "follow_up", "unqueue"])
commands = st.lists(
    st.one_of(
        st.builds(Command, orders, at=st.sampled_from([0.0, 0.2, 0.5, 1.0, 1.1, 4.0])),
        st.builds(Command, orders, event=st.integers(1, 40)),
    ),
    max_size=4,
).map(tuple)


def scenes(**fixed: Any) -> st.SearchStrategy[Scene]:
    """Scenes with everything in them."""
    parts: dict[str, Any] = {
        "script": st.lists(said, min_size=1, max_size=6).map(lambda script: (*script, *[Said(Reply("Done."))] * 4)),
        "prompts": st.lists(st.sampled_from(["hi", "more"]), min_size=1, max_size=3).map(tuple),
        "limits": limits,
        "commands": commands,
        "pace": st.sampled_from(["fast", "fast", "slow", "stalled", "leaving"]),
        "reads": st.integers(1, 12),
        "commit": st.sampled_from([0.0, 0.0, 0.02]),
    }
    return st.builds(Scene, **{**parts, **fixed})
