"""From state to request; a memo makes it faster and nothing else."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.history import normalise_history
from agentrio.domain.messages import Message, memoised, user_message
from agentrio.domain.parts import CallError, File, Image, RawBlock, Text, Thinking, ToolCall, ToolResult
from agentrio.domain.render import (
    SHORT,
    RenderMemo,
    RequestInputs,
    SystemBlock,
    ToolSpec,
    message_chars,
    render,
    request_chars,
)
from agentrio.domain.state import Session, SessionState

from .test_history import histories

INPUTS = RequestInputs(
    (SystemBlock("Be brief.", True),), (ToolSpec("look", "Looks.", {"type": "object"}),), 100, "low", 0.5
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(histories, min_size=1, max_size=4))
def test_a_memo_changes_nothing_of_a_request(growth: list[tuple[Message, ...]]) -> None:
    """The next request is ``render(state, inputs)``: who keeps a memo and who does not send the same."""
    memo = RenderMemo()
    history: tuple[Message, ...] = ()
    for more in growth:
        history += more
        state = SessionState(Session("s", messages=history))
        assert render(state, INPUTS, memo) == render(state, INPUTS)
        assert request_chars(render(state, INPUTS, memo)) == request_chars(render(state, INPUTS))


def test_a_request_is_the_normalised_history_and_the_inputs() -> None:
    """Nothing else reaches the wire."""
    state = SessionState(Session("s", messages=(user_message("p", "hi"), user_message("e", ""))))
    request = render(state, INPUTS)

    assert request.session_id == "s"
    assert request.messages == normalise_history(state.session.messages) == (user_message("p", "hi"),)
    assert attrs.asdict(INPUTS, recurse=False).items() <= attrs.asdict(request, recurse=False).items()


def test_a_provider_keeps_its_own_memo_from_round_to_round() -> None:
    """What it has encoded of earlier rounds lives as long as the session; without a memo, as long as the request."""
    memo = RenderMemo()
    state = SessionState(Session("s"))
    render(state, INPUTS, memo).memo["anthropic"] = "encoded"

    assert render(state, INPUTS, memo).memo == {"anthropic": "encoded"}
    assert render(state, INPUTS).memo == {}


@pytest.mark.parametrize(("messages", "kept"), [(SHORT, False), (SHORT + 1, True)])
def test_an_idle_session_keeps_what_takes_long_to_make_again(messages: int, kept: bool) -> None:
    """A short history's encoded form is a third of its memory, and made again in a moment."""
    memo = RenderMemo()
    history = tuple(user_message(f"m{number}", "hi") for number in range(messages))
    request = render(SessionState(Session("s", messages=history)), INPUTS, memo)
    request.memo["anthropic"] = "encoded"
    derived = [memoised(message, "size", lambda _: object()) for message in history]

    memo.rest(history)

    again = [memoised(message, "size", lambda _: object()) for message in history]
    assert ("anthropic" in memo.provider) is kept
    assert (derived == again) is kept
    assert render(SessionState(Session("s", messages=history)), INPUTS, memo) == request


def test_the_size_of_a_request_counts_what_a_model_reads() -> None:
    """Pictures and files have a limit of their own."""
    parts = (
        Text("12"),
        Thinking("345"),
        ToolCall("c", "p", "look", '{"a":1}'),
        RawBlock("web", "{}"),
        Image("aGk=", "image/png"),
        File("aGk=", "text/plain"),
    )
    failed = ToolResult("c", "look", "failed", (Text("1"), Image("aGk=", "image/png")), CallError("timeout", "late"))
    messages = (Message("a", "assistant", parts), Message("t", "tool", (failed,)))
    request = attrs.evolve(render(SessionState(Session("s")), INPUTS), messages=messages)

    assert message_chars(messages[0]) == 2 + 3 + 4 + 7 + 2
    assert message_chars(messages[1]) == 1 + len("timeout") + len("late")
    assert message_chars(Message("t", "tool", (attrs.evolve(failed, error=None),))) == 1
    assert request_chars(request) == len("Be brief.") + len("look") + len("Looks.") + len('{"type":"object"}') + 18 + 12


def test_the_size_of_another_history_is_counted_anew() -> None:
    """A memo that has seen one conversation says nothing of another."""
    memo = RenderMemo()
    for text in ("a long question", "short"):
        state = SessionState(Session("s", messages=(user_message("p", text),)))
        assert request_chars(render(state, INPUTS, memo)) == request_chars(render(state, INPUTS))
