"""Every value survives its JSON; what can't be read is refused by name and path."""

from __future__ import annotations

import json
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain.codec import converter, dumps, from_data, loads, to_data
from agentrio.domain.errors import CodecError
from agentrio.domain.events import CallFinished, Event, MessageAdded, Origin, RunEnded, RunStarted, StructuralEvent
from agentrio.domain.identity import Identity
from agentrio.domain.limits import Limits
from agentrio.domain.messages import Message
from agentrio.domain.parts import Part, ResultPart, Text, ToolCall, ToolResult
from agentrio.domain.session import Session
from agentrio.domain.state import RunState, SessionState
from agentrio.domain.status import RunResult

from . import values

ORIGIN = Origin("s", "a", "s-r1")


def again(value: Any, kind: Any) -> Any:
    """What is read back of a value that was written, as text and as bytes."""
    text = dumps(value, kind)
    assert loads(text.encode(), kind) == loads(text, kind)
    return loads(text, kind)


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_event_comes_back_equal(kind: type) -> None:
    """A journal is read by folding what was written: a lossy event would be another conversation."""

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(values.events_of(kind))
    def check(event: Any) -> None:
        back = again(event, Event)
        assert back == event
        assert type(back) is kind

    check()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(values.sessions)
def test_a_session_comes_back_equal_and_hashes_its_parts_the_same(session: Session) -> None:
    """``session.value`` may be stored and opened again, part kinds, memory and queue included (J10)."""
    back = Session.from_json(session.to_json())

    assert back == session
    assert back.to_json() == session.to_json()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.one_of(
        [
            values.states.map(lambda value: (value, SessionState)),
            values.runs.map(lambda value: (value, RunState)),
            values.results.map(lambda value: (value, RunResult)),
            values.limits.map(lambda value: (value, Limits)),
            values.messages.map(lambda value: (value, Message)),
            values.identities.map(lambda value: (value, Identity)),
            values.parts.map(lambda value: (value, Part)),
            (values.text_parts | values.images | values.files).map(lambda value: (value, ResultPart)),
        ]
    )
)
def test_every_other_value_comes_back_equal(pair: tuple[Any, Any]) -> None:
    """Data is JSON-safe without exception: what a user holds can be stored."""
    value, kind = pair
    assert again(value, kind) == value


def test_the_end_of_a_run_comes_back_with_its_result() -> None:
    """And the result alone does: its type is open in the output, and has a reader of its own."""
    result: RunResult[Any] = RunResult("r", "succeeded", "Done.", rounds=2)
    assert again(result, RunResult) == result
    assert again(RunEnded(ORIGIN, result), Event).result == result


def test_a_memo_is_not_written() -> None:
    """What was derived from a message is not part of it."""
    from agentrio.domain.messages import memoised

    message = Message("m", "user", (Text("hi"),))
    memoised(message, "chars", lambda _: 2)

    assert "memo" not in dumps(message)
    assert loads(dumps(message), Message) == message


def test_a_text_cut_within_a_character_can_still_be_written_as_unicode() -> None:
    """A stream may be cut between two halves of a surrogate pair; the journal must take the event all the same."""
    cut: RunResult[Any] = RunResult("r", "cancelled", "so \ud83d")

    assert loads(dumps(cut).encode(), RunResult) == cut
    assert "ü" in dumps(Text("ü"), Part)  # other text stays readable


def test_a_limit_without_end_is_written_although_json_has_no_infinity() -> None:
    """Who wants no idle timeout says ``math.inf``, as everywhere in Trio."""
    started = RunStarted(ORIGIN, "m", "p", None, Limits(idle_timeout=float("inf")))

    assert json.loads(dumps(started, Event))["limits"]["idle_timeout"] == "inf"
    assert again(started, Event) == started


SESSION = Session("s", messages=(Message("m", "user", (Text("hi"),)),))

REFUSED = [
    (
        "an unknown tag",
        '"type":"text"',
        '"type":"hologram"',
        "'hologram' is not known to Part",
        "$.messages[0].parts[0]",
    ),
    ("no tag", '"type":"text",', "", "it has no type, and Part needs one", "$.messages[0].parts[0]"),
    ("a tag that is no text", '"type":"text"', '"type":[]', "the type [] is not known", "$.messages[0].parts[0]"),
    (
        "a part that is no object",
        '{"type":"text","text":"hi","raw":null}',
        "7",
        "an int, not",
        "$.messages[0].parts[0]",
    ),
    ("an extra field", '"role":"user"', '"role":"user","mood":"fine"', "['mood'] are not known", "$.messages[0]"),
    ("an extra field on top", '"seq":0', '"seq":0,"mood":"fine"', "['mood'] are not known", "@ $."),
    ("a missing field", '"text":"hi",', "", "the field 'text' is missing", "$.messages[0].parts[0]"),
    ("null for a text", '"text":"hi"', '"text":null', "a NoneType, not a str", "$.messages[0].parts[0].text"),
    ("an unknown role", '"role":"user"', '"role":"ghost"', "ghost not in literal", "$.messages[0].role"),
    ("a text for a number", '"seq":0', '"seq":"0"', "a str, not an int", "$.seq"),
    (
        "a number for a flag",
        '"interrupted":false',
        '"interrupted":0',
        "an int, not a bool",
        "$.messages[0].interrupted",
    ),
    ("a list for an object", '"memory":{}', '"memory":[]', "a list, not an object", "$.memory"),
    (
        "a text for a list",
        '"parts":[{"type":"text","text":"hi","raw":null}]',
        '"parts":""',
        "a str, not a list",
        "].parts",
    ),
    ("an object for a list", '"queue":[]', '"queue":{}', "a dict, not a list", "$.queue"),
    ("a text for a message", '"messages":[', '"messages":["m",', "a str, not an object", "$.messages[0]"),
    ("infinity in memory", '"memory":{}', '"memory":{"a":[1e999]}', "$.a[0] is inf; a number must be", "@ $.memory"),
    ("half a character", '"memory":{}', '"memory":{"a":"\\ud83d"}', "$.a holds half of a surrogate pair", "@ $.memory"),
    ("depth", '"memory":{}', f'"memory":{{"a":{"[" * 200 + "]" * 200}}}', "deeper than 100 levels", "@ $.memory"),
    ("no list", '"messages":[', '"queue":0,"messages":[', "an int, not a list", "$.queue"),
]


@pytest.mark.parametrize(
    ("old", "new", "reason", "path"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_does_not_fit_is_refused_with_reason_and_path(old: str, new: str, reason: str, path: str) -> None:
    """A value of a newer version is a clear error: never a bare KeyError, and never another value by coercion."""
    text = SESSION.to_json()
    if old == '"messages":[':
        text = text.replace('"queue":[],', "")
    assert old in text

    with pytest.raises(CodecError) as caught:
        Session.from_json(text.replace(old, new, 1))

    assert "This is no Session" in str(caught.value)
    assert reason in str(caught.value)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        SESSION.to_json().replace('"messages":[', f'"messages":"{"x" * 200_000}","queue":['),
        SESSION.to_json().replace('"type":"text"', f'"type":"{"x" * 200_000}"'),
        SESSION.to_json().replace('"messages":[', f'"messages":[{"0," * 100_000}'),
        SESSION.to_json().replace('"role":', "".join(f'"f{i}":0,' for i in range(20_000)) + '"role":'),
        SESSION.to_json().replace('"memory":{}', '"memory":{"' + "x" * 200_000 + '":1e999}'),
    ],
    ids=["a text for a list", "tag", "items", "fields", "key"],
)
def test_an_error_of_a_large_text_is_short(text: str) -> None:
    """A log line must not carry the conversation that could not be read, let alone seventy times."""
    with pytest.raises(CodecError) as caught:
        Session.from_json(text)

    assert len(str(caught.value)) < 2500
    assert "This is no Session" in str(caught.value)


def test_of_many_faults_the_first_are_told_and_the_rest_counted() -> None:
    """Who mends the first ones sees the others next time."""
    with pytest.raises(CodecError, match=r"not an object @ \$\.messages\[4\]; and 2 more\.$"):
        Session.from_json('{"id":"s","messages":[0,1,2,3,4,5,6]}')


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_only_python_calls_json_are_refused(constant: str) -> None:
    """They would be read, and could never be written again."""
    with pytest.raises(CodecError, match=f"it is not JSON \\({constant} is none of its numbers\\)"):
        Session.from_json(f'{{"id":"s","memory":{{"a":{constant}}}}}')


@pytest.mark.parametrize("text", [None, 5, SESSION])
def test_what_is_no_text_is_refused(text: Any) -> None:
    """A file that was not read, a value that is one already."""
    with pytest.raises(CodecError, match=r"This is no Session: it is an? \w+, not JSON text"):
        Session.from_json(text)


def test_permissions_are_a_list_of_texts() -> None:
    """A text would be a set of its letters."""
    with pytest.raises(CodecError, match=r"a str, not a list @ \$\.permissions"):
        loads('{"subject":"u","permissions":"admin"}', Identity)


MANY: Any = [SESSION.messages[0]]


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (Session("s", memory={"a": (1, 2)}), r"\$\.a is a tuple"),
        (Session("s", memory={"a": {1: "x"}}), r"\$\.a has a key that is an int"),
        (Session("s", memory={"a": float("inf")}), r"\$\.a is inf"),
        (Session("s", memory={"a": "\ud83d\ude00"}), r"\$\.a holds half of a surrogate pair"),
        (
            Session("s", messages=(Message("m", "assistant", (ToolCall("c", "p", "n", "{}", {"a": {1, 2}}),)),)),
            r"\$\.a is a set",
        ),
        (Session("s", messages=MANY), "holds a list where a tuple belongs"),
        (Session("s", messages=(attrs.evolve(MANY[0], parts=[]),)), "holds a list where a tuple belongs"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused_when_written(session: Session, words: str) -> None:
    """A conversation that changes on its way through a file without a word is found much later."""
    with pytest.raises(CodecError, match=words):
        session.to_json()


def test_an_unknown_event_is_named() -> None:
    """A journal of a newer version says which event this one does not know."""
    with pytest.raises(CodecError, match=r"This is no Event: the type 'teleported' is not known to Event.*@ \$\."):
        from_data({"type": "teleported"}, Event)


def test_a_tag_three_levels_deep_is_named_with_its_path() -> None:
    """The path is what finds the record: results sit in events, parts sit in results."""
    data = to_data(CallFinished(ORIGIN, ToolResult("c", "look", "succeeded", (Text("seen"),))), StructuralEvent)
    data["result"]["parts"][0]["type"] = "smell"

    with pytest.raises(CodecError, match=r"'smell' is not known to ResultPart.*@ \$\.result\.parts\[0\]"):
        from_data(data, StructuralEvent)


@pytest.mark.parametrize("text", ["", "{", "[1, 2", "nope", b"\xff\xfe", "[" * 100_000])
def test_text_that_is_no_json_is_refused(text: str | bytes) -> None:
    """A torn record is an error that says so."""
    with pytest.raises(CodecError, match="This is no Session: it is not JSON"):
        Session.from_json(text)


@pytest.mark.parametrize("amount", [3, "a lot", "NaN", "sNaN", None])
def test_money_is_a_decimal_in_a_text(amount: object) -> None:
    """A float would lose cents."""
    data = to_data(Limits(max_cost=1.5))
    data["max_cost"] = amount
    if amount is None:
        assert from_data(data, Limits).max_cost is None
    else:
        with pytest.raises(CodecError, match="is no decimal number in a text"):
            from_data(data, Limits)


def test_a_number_is_refused_where_it_is_text_and_limits_keep_their_bounds() -> None:
    """What is read is checked like what is declared."""
    data = to_data(Limits())
    with pytest.raises(CodecError, match=r"a str, not a number @ \$\.idle_timeout"):
        from_data({**data, "idle_timeout": "soon"}, Limits)
    with pytest.raises(CodecError, match=r"Limits\.max_calls is -1"):
        from_data({**data, "max_calls": -1}, Limits)


def test_what_is_no_arm_of_the_named_union_is_refused_when_written() -> None:
    """Naming the wrong union would lose the tag."""
    with pytest.raises(CodecError, match="A Text is no Event"):
        dumps(Text("hi"), Event)


@pytest.mark.parametrize("details", [object(), float("nan"), {1: {2}}, [(1,)]])
def test_what_is_not_json_is_refused_when_written(details: object) -> None:
    """``details`` is a program's own; what can't be stored is said where it is stored."""
    with pytest.raises(CodecError, match="can't be written as JSON"):
        dumps(ToolResult("c", "look", "succeeded", details=details))
    with pytest.raises(CodecError, match="This RunResult can't be written as JSON: Object of type object"):
        dumps(RunResult("r", "succeeded", output=object()))


def test_every_event_has_a_tag_of_its_own() -> None:
    """Tags are names in a stored format: they don't follow from anything but the class."""
    tags = {
        type(event).__name__: to_data(event, Event)["type"] for event in (MessageAdded(ORIGIN, SESSION.messages[0]),)
    }
    assert tags == {"MessageAdded": "message_added"}
    assert len({dumps_tag(kind) for kind in get_args(Event)}) == len(get_args(Event))
    assert converter() is converter()


def dumps_tag(kind: type) -> str:
    """The name that the codec gives a class."""
    from agentrio.domain.codec import _tag

    assert attrs.has(kind)
    return _tag(kind)


@pytest.mark.parametrize(("text", "found"), [("[]", "list"), ("3", "int"), ("null", "NoneType"), ('"a"', "str")])
def test_what_is_no_object_at_all_is_named(text: str, found: str) -> None:
    """The wrong file was opened: the message says what was in it."""
    with pytest.raises(CodecError, match=f"This is no Session: it is an? {found}, not an object"):
        Session.from_json(text)
