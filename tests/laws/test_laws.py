"""The laws of the event stream, held for whatever a model says, a user does and a consumer reads."""

from __future__ import annotations

from hypothesis import given

from . import checks
from .scenes import LAWS, scenes
from .stage import Scene, play


@LAWS
@given(scenes())
def test_every_accepted_run_has_one_ending_and_it_is_its_last_event(scene: Scene) -> None:
    """Law 1: whoever waits for the end gets it, once, and may forget the run then."""
    checks.one_ending_and_last(play(scene))


@LAWS
@given(scenes())
def test_what_was_opened_is_closed_innermost_first(scene: Scene) -> None:
    """Law 2: a view that opens a box for each opening has none open at the end, stopped runs included."""
    checks.closed_innermost_first(play(scene))


@LAWS
@given(scenes())
def test_a_message_is_complete_before_its_calls_and_equals_its_deltas(scene: Scene) -> None:
    """Law 3: what was streamed is what is stored, unless it was discarded; calls come behind it."""
    record = play(scene)
    checks.messages_precede_their_calls(record)
    checks.deltas_are_contiguous_and_add_up(record)


@LAWS
@given(scenes())
def test_results_and_memory_come_in_call_order(scene: Scene) -> None:
    """Law 4: the order of results is the order of calls, whatever finished, failed or was refused first."""
    record = play(scene)
    checks.results_in_call_order(record)
    checks.failures_are_counted_in_call_order(record)


@LAWS
@given(scenes())
def test_the_fold_of_the_events_is_the_state_and_the_next_request(scene: Scene) -> None:
    """Law 5: a journal is enough to go on, and a view that folds is never wrong."""
    record = play(scene)
    checks.fold_is_state(record)
    checks.requests_are_rendered_folds(record)


@LAWS
@given(scenes())
def test_seq_is_gapless_and_transient_events_name_what_they_follow(scene: Scene) -> None:
    """``seq`` is a reader's cursor: a gap would be a loss, a wrong one a repeat."""
    record = play(scene)
    checks.seq_is_gapless(record)
    checks.commits_precede_events(record)


@LAWS
@given(scenes())
def test_usage_adds_up_to_what_the_provider_delivered(scene: Scene) -> None:
    """Tokens are paid for whether a response was kept, discarded or stopped."""
    checks.usage_adds_up(play(scene))
