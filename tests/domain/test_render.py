"""From state to request; a memo makes it faster and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.history import normalise_history
from agentrio.domain.messages import Message, ModelTag, memoised, user_message
from agentrio.domain.parts import CallError, File, Image, RawBlock, Text, Thinking, ToolCall, ToolResult
from agentrio.domain.render import (
    SHORT,
    Compaction,
    ModelRequest,
    RenderMemo,
    RequestInputs,
    SystemBlock,
    ToolSpec,
    compaction,
    message_chars,
    render,
    request_chars,
    shorten,
)
from agentrio.domain.session import Session
from agentrio.domain.state import SessionState

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


def a_round(number: int, *texts: str) -> tuple[Message, ...]:
    """A response that asks for calls, and a result of each text."""
    calls = [ToolCall(f"c{number}{place}", "", "look", "{}") for place in range(len(texts))]
    found = [ToolResult(item.id, "look", "succeeded", (Text(text),)) for item, text in zip(calls, texts, strict=True)]
    return (Message(f"a{number}", "assistant", tuple(calls)), Message(f"t{number}", "tool", tuple(found)))


WORK = (user_message("p", "Look."), *a_round(1, "x" * 500, "short"), *a_round(2, "y" * 300), *a_round(3, "z" * 900))


def found(request: ModelRequest) -> list[str]:
    """What the results of a request say."""
    results = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    return ["".join(part.text for part in result.parts if isinstance(part, Text)) for result in results]


def test_compacted_results_are_sent_as_their_size() -> None:
    """The model sees that there was something, and how much; what is shorter than that stays. The session keeps all."""
    memo = RenderMemo()
    for count in (0, 3, 5, 5):
        session = Session("s", messages=WORK, compacted=count)
        request = render(SessionState(session), INPUTS, memo)
        assert request == render(SessionState(session), INPUTS)
        first = "[compacted: 500 chars]" if count >= 3 else "x" * 500
        second = "[compacted: 300 chars]" if count >= 5 else "y" * 300
        assert found(request) == [first, "short", second, "z" * 900]


def test_a_compacted_error_is_still_an_error_and_images_of_old_results_go() -> None:
    """What went wrong is short, and worth knowing; an image is what costs most."""
    error = CallError("tool_failed", "The disk is full.")
    parts = (
        ToolResult("c10", "look", "failed", (Text("x" * 99), Image("aGk=", "image/png")), error),
        ToolResult("c11", "look", "succeeded", (Text("short"),)),
        Text("odd"),
    )
    messages = (WORK[0], WORK[1], Message("t1", "tool", parts), WORK[5])
    sent = render(SessionState(Session("s", messages=messages, compacted=3)), INPUTS).messages[2]
    assert sent.parts[0] == ToolResult("c10", "look", "failed", (Text("[compacted: 99 chars]"),), error)
    assert sent.parts[1] == parts[1]


@pytest.mark.parametrize(
    ("compacted", "excess", "expected"),
    [(0, 1, (3, 478)), (0, 478, (3, 478)), (0, 479, (5, 756)), (3, 1, (5, 278)), (0, 757, None), (5, 1, None)],
)
def test_as_few_results_as_must_are_compacted_and_never_those_of_the_latest_round(
    compacted: int, excess: int, expected: tuple[int, int] | None
) -> None:
    """The latest ones are what the model is to answer. Where it would not help, nothing is taken from the model."""
    short = compaction(Session("s", messages=WORK, compacted=compacted), excess)
    assert (short and (short.messages, short.chars)) == expected
    assert short is None or short.shortened == ()


@pytest.mark.parametrize(("spare", "expected"), [(0, (3, 478)), (478, (5, 756)), (9_999, (5, 756))])
def test_a_compaction_makes_room_for_some_rounds_where_there_is_some(spare: int, expected: tuple[int, int]) -> None:
    """Each one makes the server's cache of the prompt void."""
    short = compaction(Session("s", messages=WORK), 1, spare)
    assert short is not None
    assert (short.messages, short.chars) == expected


def test_a_conversation_without_results_has_nothing_to_compact() -> None:
    """The limit is the limit."""
    assert compaction(Session("s", messages=WORK[:1]), 1) is None
    assert compaction(Session("s"), 1) is None


LONG = Message(
    "a0",
    "assistant",
    (
        Thinking("h" * 400, signature="proof"),
        Text("w" * 900, raw="{}"),
        Text("brief"),
        RawBlock("search", "{}"),
        ToolCall("c0", "p0", "look", '{"a": "' + "v" * 600 + '"}', {"a": "v" * 600}, "{}"),
        ToolCall("c1", "p1", "look", "{}", {}, "{}"),
    ),
    ModelTag("anthropic", "messages", "claude"),
)


def test_an_answer_too_large_for_any_request_is_sent_as_its_beginning() -> None:
    """Cut, it is no model's own: nothing that was signed goes out with it. The session keeps the answer."""
    memo = RenderMemo()
    history = (user_message("p", "Look."), LONG, *a_round(1, "x" * 500))
    for shortened in ((), ("a0",), ("a0",), ("a0", "t1")):
        session = Session("s", messages=history, shortened=shortened)
        request = render(SessionState(session), INPUTS, memo)
        assert request == render(SessionState(session), INPUTS)
        if shortened:
            assert request.messages[1].parts == (
                Text("w" * 200 + " [compacted: 900 chars]"),
                Text("brief"),
                ToolCall("c0", "p0", "look", '{"compacted": "609 chars"}', {"compacted": "609 chars"}),
                ToolCall("c1", "p1", "look", "{}", {}),
            )
        assert (request.messages[1].model is None) is bool(shortened)
        assert found(request)[-1] == ("[compacted: 500 chars]" if "t1" in shortened else "x" * 500)


def test_an_answer_of_reasoning_alone_is_sent_as_its_size() -> None:
    """An empty message is taken by no server."""
    short = shorten(Message("a", "assistant", (Thinking("h" * 400), RawBlock("search", "{}"), Text(""))))
    assert short.parts == (Text(""), Text("[compacted: 402 chars]"))


@pytest.mark.parametrize(
    ("tail", "excess", "spare", "expected"),
    [
        ((), 100, 300, Compaction(0, ("a0",), 1662)),
        ((), 100, 5_000, None),  # no message of it is so large that it must be in the way
        ((), 1_663, 300, None),
        (a_round(1, "x" * 5_000), 2_000, 300, None),  # the model is to answer it
        ((*a_round(1, "x" * 5_000), user_message("q", "Go on.")), 2_000, 300, Compaction(0, ("a0", "t1"), 6639)),
        ((*a_round(1, "x" * 5_000), *a_round(2, "y")), 6_000, 300, Compaction(4, ("a0",), 6639)),
    ],
)
def test_what_alone_is_too_large_is_shortened_where_results_do_not_suffice(
    tail: tuple[Message, ...], excess: int, spare: int, expected: Compaction | None
) -> None:
    """Or one answer would end the session: no request could ever hold it."""
    session = Session("s", messages=(user_message("p", "Look."), LONG, *tail))
    assert compaction(session, excess, spare) == expected
    if expected is not None:
        again = attrs.evolve(session, compacted=expected.messages, shortened=expected.shortened)
        saved = request_chars(render(SessionState(session), INPUTS)) - request_chars(
            render(SessionState(again), INPUTS)
        )
        assert saved == expected.chars
        assert compaction(again, excess, spare) is None


THOUGHT = Message("th", "assistant", (Thinking("h" * 900),))  # all that came before a stop


def test_what_no_request_holds_saves_nothing() -> None:
    """Reasoning alone is not sent, and as its size it would be: a compaction that made the request longer."""
    assert compaction(Session("s", messages=(WORK[0], THOUGHT, WORK[0])), 100, 300) is None
    strays = (WORK[0], Message("t", "tool", WORK[2].parts), WORK[0], Message("a", "assistant", (Text("Well."),)))
    assert compaction(Session("s", messages=strays), 100) is None


def test_what_is_sent_short_already_saves_nothing_more() -> None:
    """Results that were shortened behind a compaction are met again by the next one."""
    history = (user_message("p", "Look."), *a_round(1, "x" * 5_000), user_message("q", "Go on."), *a_round(2, "z" * 50))
    session = Session("s", messages=history, shortened=("t1",))
    assert compaction(session, 1) is None
    more = attrs.evolve(session, messages=(*history, *a_round(3, "x")))
    assert compaction(more, 1) == Compaction(6, (), 50 - len("[compacted: 50 chars]"))


_wide = st.sampled_from([0, 1, 90, 300, 2_000]).map(lambda size: "x" * size)
_says = st.one_of(
    st.builds(Text, _wide, st.none() | st.just("{}")),
    st.builds(Thinking, _wide, st.none() | st.just("proof")),
    st.builds(RawBlock, st.just("search"), _wide),
)
_shown = st.builds(Text, _wide) | st.just(Image("aGk=", "image/png"))


@st.composite
def sessions(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Session:
    """A conversation of short and long messages; some results lost, strayed or told twice."""
    messages: list[Message] = []
    for number in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            messages.append(user_message(f"u{number}", (Text("Go on."), *draw(st.lists(_shown, max_size=1)))))
            continue
        calls = [
            ToolCall(f"c{number}{place}", "", "look", text, None, draw(st.none() | st.just("{}")))
            for place, text in enumerate(draw(st.lists(_wide, max_size=2)))
        ]
        tag = ModelTag("anthropic", "messages", "claude")
        messages.append(Message(f"a{number}", "assistant", (*draw(st.lists(_says, max_size=2)), *calls), tag))
        results = [
            ToolResult(call.id, "look", "succeeded", tuple(draw(st.lists(_shown, max_size=2)))) for call in calls
        ]
        for part, times in enumerate(draw(st.sampled_from([(1,), (1,), (1,), (0,), (2,), (1, 1)]))):
            messages.append(Message(f"t{number}{part}", "tool", tuple(results * times)))
    return Session("s", messages=tuple(messages))


@settings(max_examples=5_000 if os.environ.get("AGENTRIO_FULL") == "1" else 300, deadline=None, derandomize=True)
@given(sessions(), st.sampled_from([100, 400, 1_000, 3_000]))
def test_a_compaction_saves_what_it_says_and_the_request_fits(session: Session, limit: int) -> None:
    """Each is enough by itself; what is sent is the same after storing, and nothing signed stands beside a cut text."""
    memo = RenderMemo()
    while (size := request_chars(request := render(SessionState(session), INPUTS, memo))) > limit:
        short = compaction(session, size - limit, limit // 4)
        if short is None:
            return
        shortened = (*session.shortened, *short.shortened)
        session = attrs.evolve(session, compacted=short.messages, shortened=shortened)
        request = render(SessionState(session), INPUTS, memo)
        assert size - request_chars(request) == short.chars
        assert request_chars(request) <= limit
    assert render(SessionState(Session.from_json(session.to_json())), INPUTS) == request
    for message in request.messages:
        if message.id in session.shortened:
            assert message.model is None
            assert not any(
                isinstance(part, Thinking | RawBlock) or getattr(part, "raw", None) for part in message.parts
            )


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
