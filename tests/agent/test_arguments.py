"""From the text that a model wrote to the values that a tool is called with."""

from __future__ import annotations

import datetime
import enum
import json
from typing import Annotated, Any

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.agent.arguments import MAX_BYTES, MAX_DEPTH, MAX_REASON, Arguments, check
from agentrio.agent.tool import Tool, read_tool, tool_from_schema

SECRET = "hunter2"


class Unit(enum.Enum):
    """How temperatures are written."""

    C = "c"
    F = "f"


@attrs.define
class Place:
    """A place.

    Attributes:
        name: What people call it.
    """

    name: str
    height: Annotated[float, msgspec.Meta(le=9000)] = 0
    unit: Unit = Unit.C
    near: list[Place] = attrs.field(factory=list)


class Circle(msgspec.Struct, tag=True):
    radius: float


class Square(msgspec.Struct, tag=True):
    side: float


@attrs.define
class Even:
    number: int = attrs.field()

    @number.validator
    def _check(self, attribute: object, value: int) -> None:
        if value % 2:
            raise ValueError(f"{value} is odd, and {SECRET}")


@read_tool
def nothing() -> None: ...


@read_tool
def optional(a: int = 1, b: str | None = None) -> None: ...


@read_tool
def greet(name: str, times: Annotated[int, msgspec.Meta(ge=1)] = 1) -> None: ...


@read_tool
def visit(place: Place, when: datetime.date | None = None) -> None: ...


@read_tool
def draw(shape: Circle | Square | None, even: Even | None = None) -> None: ...


@read_tool
def tree(value: Any, number: float = 0, by_number: dict[int, str] | None = None, data: bytes = b"") -> None: ...


def values(tool: Tool[..., Any], text: str) -> dict[str, Any]:
    checked = check(tool, text)
    assert isinstance(checked, Arguments), checked
    return checked.values


def reason(tool: Tool[..., Any], text: str) -> str:
    checked = check(tool, text)
    assert not isinstance(checked, Arguments), checked
    assert checked.category == "invalid_arguments"
    return checked.message


@pytest.mark.parametrize("text", ["", "  \n", "null", " null ", "{}"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    """Models write nothing, or null, for a tool that takes nothing; that is no mistake of theirs."""
    assert check(nothing, text) == Arguments({}, {})
    assert check(optional, text) == Arguments({}, {})


@pytest.mark.parametrize("text", ["", " ", "null"])
def test_no_arguments_are_a_mistake_where_some_are_needed(text: str) -> None:
    """Nothing is made up for a required one."""
    assert reason(greet, text) == 'arguments: "name" is a required property'


@pytest.mark.parametrize("text", ["[]", '"x"', "3", "true", "1.5"])
def test_what_is_no_object_is_refused(text: str) -> None:
    """Some models wrap arguments; guessing what they meant would run a call that nobody asked for."""
    assert reason(optional, text) == "the arguments must be a JSON object"


def test_raw_control_characters_in_strings_are_let_through() -> None:
    """Models write line breaks into strings; the meaning is plain."""
    assert values(greet, '{"name": "a\nb\tc"}') == {"name": "a\nb\tc"}


@pytest.mark.parametrize("text", ['{"name": "a"}}', '{"name": "a"', "{'name': 'a'}", '{"name": "a",}', "{} {}", "12"])
def test_nothing_else_is_repaired(text: str) -> None:
    """A repaired call is a guess, and guesses have effects."""
    assert "the arguments" in reason(greet, text)


def test_the_last_of_equal_keys_wins() -> None:
    """As in every JSON parser that models have seen the results of."""
    assert values(greet, '{"name": "a", "name": "b"}') == {"name": "b"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000])
def test_numbers_that_are_not_finite_json_are_refused(number: str) -> None:
    """They would poison whatever stores or compares them."""
    words = reason(tree, f'{{"value": {number}}}')
    assert words in (
        f"{number} is not JSON",
        "a number is too large",
        "a number has too many digits",
    )


def test_half_of_a_surrogate_pair_is_refused() -> None:
    """It is no Unicode text: the first encoder on its way would crash."""
    assert "surrogate" in reason(tree, '{"value": ["\\ud800"]}')
    assert "surrogate" in reason(tree, '{"value": {"\\udfff": 1}}')
    assert reason(tree, '{"value": "\ud800"}') == "the arguments are not valid Unicode"
    assert values(tree, '{"value": "\\ud83d\\ude00"}') == {"value": "😀"}


@pytest.mark.parametrize("depth", [MAX_DEPTH, 3_000, 200_000])
def test_bottomless_nesting_is_refused_rather_than_crashing(depth: int) -> None:
    """A stack that overflows would end the session, not the call."""
    text = f'{{"value": {"[" * depth}{"]" * depth}}}'
    assert reason(tree, text) == f"the arguments are nested deeper than {MAX_DEPTH} levels"


def test_what_is_wide_but_not_deep_is_accepted() -> None:
    """The bound is on nesting."""
    text = json.dumps({"value": [[{}] for _ in range(500)]})
    assert len(values(tree, text)["value"]) == 500
    deepest = f'{{"value": {"[" * (MAX_DEPTH - 1)}{"]" * (MAX_DEPTH - 1)}}}'
    assert isinstance(check(tree, deepest), Arguments)


def test_a_recursive_type_is_structured_down_to_the_bound() -> None:
    """What the parser lets through must not exhaust the stack of what comes after."""
    nested: dict[str, Any] = {"name": "x"}
    for _ in range(MAX_DEPTH // 2 - 1):
        nested = {"name": "x", "near": [nested]}
    assert isinstance(check(visit, json.dumps({"place": nested})), Arguments)


def test_huge_arguments_are_refused() -> None:
    """A runaway call must not stay in the conversation for ever."""
    text = json.dumps({"name": "é" * MAX_BYTES}, ensure_ascii=False)
    assert reason(greet, text) == f"the arguments have {len(text.encode())} bytes; at most {MAX_BYTES} are allowed"


@pytest.mark.parametrize(
    ("tool", "text", "words"),
    [
        (greet, '{"name": 1}', 'name: value is not of type "string"'),
        (greet, '{"name": "a", "times": 0}', "times: value is less than the minimum of 1"),
        (greet, '{"name": "a", "nmae": 1}', "arguments: Additional properties are not allowed ('nmae' was unexpected)"),
        (visit, '{"place": {}}', 'place: "name" is a required property'),
        (
            visit,
            '{"place": {"name": "a", "near": [{"name": "b"}, {"name": 1, "unit": "k"}]}}',
            'place.near[1].name: value is not of type "string"; place.near[1].unit: value is not one of "c" or "f"',
        ),
        (visit, '{"place": {"name": "a"}, "when": "2024-02-30"}', 'when: value is not a "date"'),
        (draw, '{"shape": {"type": "Circle"}}', 'shape: "radius" is a required property'),
        (
            draw,
            '{"shape": {"type": "Line"}}',
            "shape: value is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (draw, '{"shape": null, "even": {"number": 3}}', "even: the value does not fit"),
        (tree, '{"value": 1, "data": "a"}', "data: value is not base64"),
        (tree, f'{{"value": 1, "number": {10**400}}}', "number: the value does not fit"),
    ],
)
def test_the_model_is_told_where_and_why(tool: Tool[..., Any], text: str, words: str) -> None:
    """Paths and reasons are enough for it to write a better call."""
    assert reason(tool, text) == words


def test_only_the_first_reasons_are_told() -> None:
    """A list of hundreds helps nobody, and costs tokens in each round to come."""

    @read_tool
    def many(items: list[int], choice: Unit) -> None: ...

    words = reason(many, json.dumps({"items": ["x"] * 50, "choice": "c"})).split("; ")
    assert words[:2] == [f'items[{index}]: value is not of type "integer"' for index in range(2)]
    assert (len(words), words[-1]) == (11, "and more")


def test_a_reason_is_bounded() -> None:
    """A schema may have patterns, and a model may write a key of any length."""
    schema = {"type": "object", "properties": {"a": {"pattern": "a" * 999}}}
    assert len(reason(tool_from_schema("a", "", schema, _takes, "read"), '{"a": ""}')) == MAX_REASON
    assert len(reason(greet, json.dumps({"name": "a", "x" * 9999: 1}))) == MAX_REASON


def _takes(arguments: dict[str, Any]) -> None: ...


STRICT = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "pattern": "^x", "maxLength": 3, "format": "email"},
        "b": {"enum": [1, 2]},
        "c": {"const": 4},
        "d": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "contains": {"const": 1}},
        "e": {"oneOf": [{"type": "integer"}, {"minimum": 3}], "not": {"type": "string"}},
        "f": {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "pattern": "^y"}]},
        "g": {"type": "object", "required": ["h"], "propertyNames": {"maxLength": 9}},
        "i": {"if": {"type": "string"}, "then": {"type": "integer"}},
    },
}
strict = tool_from_schema("strict", "", STRICT, _takes, "read")


@settings(deadline=None, derandomize=True)
@given(
    st.dictionaries(
        st.sampled_from("abcdefghi"),
        st.recursive(
            st.sampled_from([SECRET, 5_318_008]),
            lambda inner: st.lists(inner) | st.dictionaries(st.just("k"), inner),
        ),
    )
)
def test_a_value_is_never_repeated_to_the_model(data: dict[str, Any]) -> None:
    """It may be a secret, and messages travel to logs and traces."""
    checked = check(strict, json.dumps(data))
    if not isinstance(checked, Arguments):
        assert SECRET not in checked.message
        assert "5318008" not in checked.message


def test_what_a_class_refuses_is_told_by_its_path_only() -> None:
    """The texts of validators were written for programmers, and repeat values."""
    words = reason(draw, '{"shape": {"type": "Square", "side": 1}, "even": {"number": 7}}')
    assert words == "even: the value does not fit"


@settings(deadline=None, derandomize=True)
@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_no_text_can_crash_the_check(text: str) -> None:
    """Models write anything."""
    for tool in (nothing, visit, tree, strict):
        checked = check(tool, text)
        assert isinstance(checked, Arguments) or checked.category == "invalid_arguments"


def anything(a: Any, b: dict[str, list[Any]], c: list[int]) -> None: ...
def whole(a: dict[str, Any]) -> None: ...


@pytest.mark.parametrize(
    "tool", [read_tool(anything), tool_from_schema("whole", "", {"type": "object"}, whole, "read")]
)
def test_what_a_tool_does_to_its_arguments_changes_nothing_that_was_told(tool: Tool[..., Any]) -> None:
    """The arguments are in an event by then, which is published, and may be in a journal."""
    written = {"a": {"n": [1]}, "b": {"m": [{}]}, "c": [1]}
    checked = check(tool, json.dumps(written))
    assert isinstance(checked, Arguments)
    values = checked.values.get("a", {}) if len(checked.values) == 1 else checked.values
    assert values == written
    values["a"]["n"].append(2)
    values["b"]["m"][0]["x"] = 1
    values["b"].clear()
    values["c"].clear()
    values["more"] = 1
    assert checked.data == written


def test_a_reason_for_a_value_that_does_not_fit_is_bounded() -> None:
    """A key may be as long as the arguments, and its path would be told whole."""
    key = "k" * 10_000

    def take(a: dict[str, Even]) -> None: ...

    error = check(read_tool(take), json.dumps({"a": {key: {"number": 1}}}))
    assert not isinstance(error, Arguments)
    assert len(error.message) == MAX_REASON
