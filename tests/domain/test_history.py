"""A history that every provider takes, repaired block by block and only where it grew."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.history import Normaliser, answerable, normalise_history
from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import Image, Part, RawBlock, Text, Thinking, ToolCall, ToolResult

CHECKED = settings(max_examples=300, deadline=None, derandomize=True)


def call(id: str) -> ToolCall:
    """A call by its id."""
    return ToolCall(id, f"p-{id}", "look", "{}", {})


def result(id: str, text: str = "seen") -> ToolResult:
    """A result of a call."""
    return ToolResult(id, "look", "succeeded", (Text(text),))


def said(id: str, *parts: Part) -> Message:
    """What the model said."""
    return Message(id, "assistant", parts)


def told(id: str, *results: ToolResult) -> Message:
    """Results in one message."""
    return Message(id, "tool", results)


ASK = user_message("u", "hi")


def test_every_call_has_one_result_directly_behind_it_in_call_order() -> None:
    """Providers refuse a request with a call that has no result, or has it in the wrong place."""
    history = (ASK, said("a", call("1"), call("2"), call("3")), told("t", result("3"), result("1")))

    _, _, results = normalise_history(history)

    assert [part.call_id for part in results.parts if isinstance(part, ToolResult)] == ["1", "2", "3"]
    missing = results.parts[1]
    assert isinstance(missing, ToolResult)
    assert missing.status == "cancelled"
    assert missing.error is not None
    assert missing.error.message == "No result was recorded for this call."


def test_a_call_at_the_end_of_the_list_gets_its_result_too() -> None:
    """Repairing only when the next message comes leaves the last request incomplete."""
    history = (ASK, said("a", Text("I look."), call("1")))

    assert [message.role for message in normalise_history(history)] == ["user", "assistant", "tool"]


def test_repeats_keep_the_first_and_strays_are_dropped() -> None:
    """Two results for a call, or one that nobody asked for, make a conversation that no wire takes."""
    history = (
        told("t0", result("0")),
        ASK,
        said("a", call("1")),
        told("t1", result("1", "first"), result("9")),
        told("t2", result("1", "second")),
    )

    _, _, results = normalise_history(history)

    assert results.parts == (result("1", "first"),)
    assert results.id == "t1"


def test_a_late_result_behind_a_user_message_is_a_stray() -> None:
    """The made-up result and the late one must not both be sent."""
    history = (said("a", call("1")), user_message("u2", "and?"), told("t", result("1")))

    assert [message.id for message in normalise_history(history)] == ["a", "a-results", "u2"]


def test_results_behind_a_message_without_calls_are_dropped() -> None:
    """They belong to nothing."""
    assert normalise_history((said("a", Text("hi")), told("t", result("1")))) == (said("a", Text("hi")),)


@pytest.mark.parametrize(
    "message",
    [user_message("u", Text("")), said("a"), said("a", Text("")), said("a", Thinking("hm")), Message("u", "user", ())],
    ids=["empty user text", "nothing", "empty answer", "reasoning only", "user without parts"],
)
def test_a_message_with_nothing_to_say_is_left_out(message: Message) -> None:
    """Providers refuse empty messages; the stored history keeps them."""
    assert normalise_history((message, said("b", Text("x")))) == (said("b", Text("x")),)


@pytest.mark.parametrize(
    "message",
    [said("a", RawBlock("web", "{}")), said("a", Thinking("hm"), call("1")), user_message("u", Image("aGk=", "a/b"))],
    ids=["raw block", "reasoning and a call", "image"],
)
def test_a_message_without_text_may_still_say_something(message: Message) -> None:
    """A provider's own block, a call and a picture are content."""
    assert normalise_history((message,))[0] is message


def test_empty_texts_go_and_the_rest_of_their_message_stays() -> None:
    """An empty text block is refused even beside others."""
    assert normalise_history((said("a", Text(""), Text("x")),)) == (said("a", Text("x")),)


# Properties

_parts = st.sampled_from(
    [Text("x"), Text(""), Thinking("hm"), call("1"), call("2"), result("1"), result("2"), RawBlock("web", "{}")]
)
_messages = st.builds(
    Message,
    st.sampled_from(["m1", "m2", "m3"]),
    st.sampled_from(["user", "assistant", "tool", "tool"]),
    st.lists(_parts, max_size=3).map(tuple),
)
histories = st.lists(_messages, max_size=8).map(tuple)


@CHECKED
@given(histories)
def test_normalising_twice_is_normalising_once(history: tuple[Message, ...]) -> None:
    """A request may be rendered from what was rendered."""
    once = normalise_history(history)

    assert normalise_history(once) == once


@CHECKED
@given(histories)
def test_what_is_normalised_is_what_a_provider_takes(history: tuple[Message, ...]) -> None:
    """Whatever was stored, whatever was cut: calls are answered at once, each once, and nothing is empty."""
    out = normalise_history(history)

    for index, message in enumerate(out):
        assert message.parts
        assert Text("") not in message.parts
        if message.role == "tool":
            asked = [part.id for part in out[index - 1].calls] if index else []
            assert [part.call_id for part in message.parts if isinstance(part, ToolResult)] == asked
        elif message.calls and message.role == "assistant":
            assert out[index + 1].role == "tool"


@CHECKED
@given(st.lists(histories, min_size=1, max_size=4), st.data())
def test_feeding_a_growing_or_replaced_history_equals_the_full_pass(
    growth: list[tuple[Message, ...]], data: st.DataObject
) -> None:
    """No round walks the whole history, and nobody can tell."""
    normaliser = Normaliser()
    history: tuple[Message, ...] = ()
    for more in growth:
        kept = data.draw(st.integers(0, len(history)))
        history = (*history[:kept], *more) if data.draw(st.booleans()) else (*history, *more)
        assert normaliser.feed(history) == normalise_history(history)


def test_results_in_the_place_of_a_later_message_belong_to_the_call_before() -> None:
    """The call's block was final by then, with a result that was made up."""
    asked = (ASK, said("a", call("1")))
    normaliser = Normaliser()
    normaliser.feed((*asked, user_message("later", "and?")))
    history = (*asked, told("t", result("1")))

    assert normaliser.feed(history) == normalise_history(history) == history


@CHECKED
@given(histories, st.data())
def test_feeding_message_by_message_with_results_that_grow_equals_the_full_pass(
    history: tuple[Message, ...], data: st.DataObject
) -> None:
    """So a run grows: a message, then its results, one more in the same message each time."""
    normaliser = Normaliser()
    for end in range(len(history) + 1):
        grown = history[:end]
        if grown and grown[-1].role == "tool":
            for count in range(len(grown[-1].parts) + 1):
                partial = (*grown[:-1], attrs.evolve(grown[-1], parts=grown[-1].parts[:count]))
                assert normaliser.feed(partial) == normalise_history(partial)
        assert normaliser.feed(grown) == normalise_history(grown)


def test_another_history_is_normalised_anew() -> None:
    """Whoever goes on with another conversation gets nothing of the first."""
    normaliser = Normaliser()
    normaliser.feed((ASK, said("a", Text("One.")), user_message("u2", "more")))
    other = (user_message("v", "hey"), said("b", Text("Two.")))
    assert normaliser.feed(other) == other


def test_what_is_no_result_does_not_pass_in_a_message_of_results() -> None:
    """Such a message answers calls, and no provider takes anything else in it."""
    stray = Message("t", "tool", (Text("by the way"), result("1")))
    assert normalise_history((ASK, said("a", call("1")), stray))[2].parts == (result("1"),)


# Questions about a history


def test_a_model_has_something_to_answer_unless_its_own_answer_is_last() -> None:
    """``proceed()`` asks this."""
    assert not answerable(())
    assert answerable((ASK,))
    assert answerable((ASK, said("a", call("1"))))
    assert answerable((ASK, attrs.evolve(said("a", Text("It ra")), interrupted=True)))
    assert not answerable((ASK, said("a", Text("It rains."))))
