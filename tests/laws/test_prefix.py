"""A run goes on from any commit: the plan asks the restored state the same question.

A journal commits whole batches, so its prefixes end at commits: a result and the memory it set are one batch, and so
are the start of a run and its prompt.
"""

from __future__ import annotations

import random
from typing import Any

import attrs
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.actors.handle import SessionHandle
from agentrio.actors.runtime import open_runtime
from agentrio.agent.agent import Agent
from agentrio.domain.events import CallFinished, CallStarted, RoundStarted, RunEnded, StructuralEvent
from agentrio.domain.messages import Message, user_message
from agentrio.domain.plan import Reconcile, plan
from agentrio.domain.session import Queued, Session
from agentrio.domain.state import SessionState, reduce
from agentrio.domain.status import RunResult
from agentrio.providers.scripted import Reply, ScriptedCall

from .scenes import LAWS, scenes
from .stage import Commits, Model, Record, Recorder, Said, Scene, consume, open_from
from .tools import TOOLS

QUEUES = st.lists(
    st.sampled_from(
        [
            Queued(user_message("s-q1", "wait"), "steering"),
            Queued(user_message("s-q2", "stop that"), "steering", "interrupt"),
            Queued(user_message("s-q3", "and then?"), "follow_up"),
        ]
    ),
    unique_by=lambda item: item.message.id,
    max_size=3,
).map(tuple)

# No orders from outside, which a journal does not repeat, and no deadline, which a new process starts anew.
UNDISTURBED = scenes(prompts=st.just(("hi",)), commands=st.just(()), pace=st.just("fast"), commit=st.just(0.0)).map(
    lambda scene: attrs.evolve(scene, limits=attrs.evolve(scene.limits, deadline=None))
)


def first_time(scene: Scene, queue: tuple[Queued, ...]) -> Record:
    """The whole run, from its prompt."""
    record = Record(scene, SessionState(Session("s", "agent", queue=queue, queued_total=3)))
    trio.run(_run, record, 0, clock=trio.testing.MockClock(autojump_threshold=0))
    return record


def again(whole: Record, state: SessionState, answered: int) -> Record:
    """The run from a state on, with the replies that the model has not given yet."""
    record = Record(whole.scene, state)
    trio.run(_run, record, answered, clock=trio.testing.MockClock(autojump_threshold=0))
    return record


async def _run(record: Record, answered: int) -> None:
    agent: Agent[Any] = Agent(model=Model(record, answered), tools=TOOLS, limits=record.scene.limits)
    async with open_runtime(rng=random.Random(0)) as runtime:
        actor = await open_from(runtime, agent, record.start, Commits(record, 0.0))
        actor.hub.join(Recorder(record, lambda order: None))
        if record.start.open_run is None:
            await consume(SessionHandle(actor), record.scene.prompts[0], record)
        else:
            run = actor.resume(record.start.open_run)
            with trio.fail_after(10_000):
                await run.done.wait()
        record.end = actor.hub.state


def prefixes(record: Record) -> list[tuple[SessionState, int]]:
    """The state at each commit before the end, with the replies that were given to what is in it."""
    state, found = record.start, []
    round_began = 0
    for batch, requests in zip(record.commits, record.requests_at_commit, strict=True):
        for event in batch:
            state = reduce(state, event)
            if isinstance(event, RoundStarted):
                round_began = requests
        run = state.open_run
        if run is not None:
            found.append((state, round_began if run.round_open and not run.responded else requests))
    return found


def outcome(state: SessionState | None) -> tuple[RunResult[Any], list[Message], Any]:
    """What a run came to: its result, its messages without their ids, and the memory."""
    assert state is not None
    assert state.run is not None
    assert state.run.result is not None
    messages = [attrs.evolve(message, id="") for message in state.session.messages]
    return state.run.result, messages, dict(state.session.memory)


def is_write_under_way(state: SessionState) -> bool:
    """Whether a write was started and has no result."""
    assert state.run is not None
    return any(call.started and call.result is None and call.kind == "write" for call in state.run.calls)


@settings(LAWS, max_examples=LAWS.max_examples // 2)
@given(UNDISTURBED, QUEUES)
def test_any_prefix_goes_on_to_the_same_end(scene: Scene, queue: tuple[Queued, ...]) -> None:
    """What a durable run promises: a crash costs time, and nothing else. Only an open write is not run again."""
    whole = first_time(scene, queue)
    for state, answered in prefixes(whole):
        if is_write_under_way(state):
            step = plan(state)
            assert isinstance(step, Reconcile)
            assert [call.kind for call in step.calls] == ["write"]
        else:
            assert outcome(again(whole, state, answered).end) == outcome(whole.end)


def test_a_read_that_was_under_way_runs_again_and_a_write_does_not() -> None:
    """The difference between the two kinds, seen at the one place where it decides."""
    calls = [ScriptedCall("look", {"n": 1}), ScriptedCall("write", {"n": 2})]
    whole = first_time(Scene((Said(Reply("", calls)), Said(Reply("Done.")))), ())
    states = {_last(state, whole): (state, answered) for state, answered in prefixes(whole)}
    read, answered = states[CallStarted, "look"]
    write, _ = states[CallStarted, "write"]

    resumed = again(whole, read, answered)
    started = [event.name for event in resumed.structural if isinstance(event, CallStarted)]
    assert started == ["look", "write"]
    assert outcome(resumed.end) == outcome(whole.end)
    assert isinstance(plan(write), Reconcile)
    assert [type(event) for event in whole.structural if isinstance(event, (CallFinished, RunEnded))] == [
        CallFinished,
        CallFinished,
        RunEnded,
    ]


def test_a_round_that_was_begun_is_not_begun_again() -> None:
    """Its model is asked again, for the answer is lost; its event stands in the journal."""
    whole = first_time(Scene((Said(Reply("Done.")),)), ())
    ((state, answered),) = [
        it for it in prefixes(whole) if type(whole.structural[it[0].session.seq - 1]) is RoundStarted
    ]
    resumed = again(whole, state, answered)
    assert not any(isinstance(event, RoundStarted) for event in resumed.structural)
    assert outcome(resumed.end) == outcome(whole.end)


def _last(state: SessionState, record: Record) -> tuple[type[StructuralEvent], str]:
    event = record.structural[state.session.seq - 1]
    return type(event), event.name if isinstance(event, CallStarted) else ""
