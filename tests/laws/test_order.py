"""Scenes that once broke a law, each on one screen."""

from __future__ import annotations

from agentrio.domain.events import CallFinished, MessageCompleted, MessageQueued
from agentrio.domain.limits import Limits
from agentrio.providers.scripted import Reply, ScriptedCall

from . import checks
from .stage import Command, Said, Scene, play

DONE = Said(Reply("Done."))


def test_a_message_queued_while_the_run_ends_is_not_of_that_run() -> None:
    """A journal that takes its time lets a command wait behind ``RunEnded``: it must not name the run that is over."""
    queued = 0
    for hundredth in range(12):
        record = play(Scene((DONE,), commands=(Command("steer", at=hundredth / 100),), commit=0.02))
        queued += any(isinstance(event, MessageQueued) for event in record.events)
        checks.one_ending_and_last(record)
    assert queued > 5


def test_a_wrong_call_of_a_complete_response_is_kept_when_the_stop_comes_then() -> None:
    """Only a fragment is dropped: what was complete has its call, and the call its reason."""
    script = (Said(Reply("Look:", [ScriptedCall("look", "[]")])), DONE)
    completed = 0
    for event in range(1, 12):
        record = play(Scene(script, commands=(Command("stop", event=event),)))
        checks.deltas_are_contiguous_and_add_up(record)
        messages = [event for event in record.events if isinstance(event, MessageCompleted)]
        completed += any(message.message.calls for message in messages)
    assert completed > 3


def test_calls_that_are_skipped_for_one_reason_are_skipped_in_one_commit() -> None:
    """Rejected calls among them count as failures, and a run that went on from between would find another reason."""
    calls = [ScriptedCall("fail_writing", {"n": 1}), ScriptedCall("look", "["), ScriptedCall("look", {"n": 1})]
    record = play(Scene((Said(Reply("", calls)), DONE), limits=Limits(max_consecutive_failures=2)))

    batches = [[type(event) for event in batch] for batch in record.commits]
    assert [CallFinished] * 2 in batches
