"""Types, their schemas and their values agree."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import json
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.agent.arguments import Arguments, check
from agentrio.agent.docs import document
from agentrio.agent.tool import Tool, read_tool
from agentrio.domain.errors import DeclarationError

T = TypeVar("T")
Metres = NewType("Metres", int)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Empty(enum.Enum): ...


@attrs.frozen
class Node:
    """A node of a tree.

    Attributes:
        value: What it holds.
    """

    value: int
    kids: list[Node] = attrs.field(factory=list)
    _mark: str = "m"
    later: Any = attrs.field(factory=object)


@dataclasses.dataclass(frozen=True)
class Pair:
    left: "list[Pair] | None"  # noqa: UP037  # a string within, as programs without the future import write it
    right: datetime.date


@attrs.frozen
class Boxed(Generic[T]):
    inside: T


class Options(TypedDict, total=False):
    depth: Required[int]
    name: NotRequired[str]


class Tagged(msgspec.Struct, tag="t", frozen=True, rename="camel", forbid_unknown_fields=True):
    some_value: int
    other: int | msgspec.UnsetType = msgspec.UNSET


class Other(msgspec.Struct, tag="o", frozen=True):
    some_value: tuple[int, ...] = ()


class Row(msgspec.Struct, array_like=True):
    a: int


@attrs.define
class Trip:
    took: datetime.timedelta


class Spot(NamedTuple):
    x: int


def declare(kind: Any, *default: Any) -> Tool[..., Any]:
    """A tool with one parameter of a type."""

    def take(x: Any) -> None: ...

    take.__annotations__ = {"x": kind}
    take.__defaults__ = default
    return read_tool(take)


def schema(kind: Any, *default: Any) -> dict[str, Any]:
    return dict(declare(kind, *default).spec.schema)


def structured(kind: Any, value: Any) -> Any:
    checked = check(declare(kind), json.dumps({"x": value}))
    assert isinstance(checked, Arguments), checked
    return checked.values["x"]


whole = st.integers(-(2**53), 2**53)
moments = st.datetimes(min_value=datetime.datetime(1, 1, 3)).map(lambda when: when.replace(tzinfo=datetime.UTC))
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)
nodes: Any = st.recursive(
    st.builds(Node, whole, st.just([]), st.text(), later=st.none()),
    lambda inner: st.builds(Node, whole, st.lists(inner, max_size=2), later=st.none()),
)
pairs: Any = st.recursive(
    st.builds(Pair, st.none(), st.dates()), lambda inner: st.builds(Pair, st.lists(inner, max_size=2), st.dates())
)
options: Any = st.fixed_dictionaries({"depth": whole}, optional={"name": st.text()})
tagged = st.builds(Tagged, whole, st.just(msgspec.UNSET) | whole)

CASES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (None, st.none()),
    (bool, st.booleans()),
    (int, whole),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, st.text()),
    (bytes, st.binary()),
    (datetime.datetime, moments),
    (datetime.date, st.dates()),
    (datetime.time, st.times()),
    (uuid.UUID, st.uuids()),
    (Decimal, decimals),
    (Metres, whole),
    (Any, st.none() | whole | st.text() | st.lists(whole)),
    (Level, st.sampled_from(Level)),
    (Colour, st.sampled_from(Colour)),
    (Literal["a", 2, None], st.sampled_from(["a", 2, None])),
    (int | str, whole | st.text()),
    (int | float | None, st.none() | whole | st.floats(allow_nan=False, allow_infinity=False)),
    (Literal[1] | float, st.just(1) | st.floats(5, 6)),
    (Level | float, st.sampled_from(Level) | st.floats(5, 6)),
    (Colour | bool | list[int], st.sampled_from(Colour) | st.booleans() | st.lists(whole)),
    (datetime.date | int, st.dates() | whole),
    (list[int], st.lists(whole)),
    (Sequence[str], st.lists(st.text())),
    (tuple[int, ...], st.lists(whole).map(tuple)),
    (tuple[int, Colour], st.tuples(whole, st.sampled_from(Colour))),
    (tuple[()], st.just(())),
    (set[int], st.sets(whole)),
    (set[Annotated[int, msgspec.Meta(ge=0, title="n")]], st.sets(st.integers(0, 99))),
    (frozenset[Colour], st.frozensets(st.sampled_from(Colour))),
    (dict[str, float], st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False))),
    (Mapping[Colour, int], st.dictionaries(st.sampled_from(Colour), whole)),
    (dict[int, bytes], st.dictionaries(whole, st.binary())),
    (dict[uuid.UUID, None], st.dictionaries(st.uuids(), st.none())),
    (dict[Any, Any], st.dictionaries(st.text(), whole)),
    (Node, nodes),
    (Pair | None, st.none() | pairs),
    (Boxed[int], st.builds(Boxed, whole)),
    (list[Boxed[Decimal]], st.lists(st.builds(Boxed, decimals))),
    (Options, options),
    (Tagged, tagged),
    (Tagged | Other | None, tagged | st.builds(Other, st.lists(whole).map(tuple)) | st.none()),
    (Annotated[int, msgspec.Meta(ge=1, description="d")], st.integers(1, 2**53)),
]


def on_the_wire(value: Any) -> Any:
    """A value as the JSON that a model would write."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {str(on_the_wire(key)): on_the_wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [on_the_wire(item) for item in value]
    if attrs.has(type(value)):
        return {field.name: on_the_wire(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if dataclasses.is_dataclass(value):
        return {field.name: on_the_wire(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return msgspec.to_builtins(value)


TOOLS = [declare(kind) for kind, _ in CASES]


@pytest.mark.parametrize("index", range(len(CASES)), ids=lambda index: str(CASES[index][0])[:40])
@settings(deadline=None, derandomize=True)
@given(data=st.data())
def test_a_value_of_a_declared_type_comes_back_from_the_wire(index: int, data: st.DataObject) -> None:
    """A tool gets what its signature says, whatever the JSON between it and the model looks like."""
    kind, strategy = CASES[index]
    value = data.draw(strategy)
    checked = check(TOOLS[index], json.dumps({"x": on_the_wire(value)}))
    assert isinstance(checked, Arguments), checked
    back = checked.values["x"]
    if kind == Sequence[str]:
        back = list(back)
    assert back == value
    assert type(back) is type(value) or isinstance(value, int | float)


words = (
    "|a|red|1|07|YQ==|YQ|t|o|2024-01-02|2024-02-30|2024-01-02T03:04:05Z|2024-01-02T03:04:05|23:59|24:00|1.50|1e5|NaN"
)
words += "|2024-01-02t03:04:05.123456789+05:30|00000000-0000-0000-0000-000000000001|{00000000000000000000000000000000}"
fragments = st.sampled_from([None, True, False, 0, 1, 2, 2.0, 2.5, -1, 1e300, *words.split("|")])
keys = st.sampled_from(["value", "kids", "_mark", "later", "left", "right", "inside", "depth", "name", "type"])
keys |= st.sampled_from(["someValue", "some_value", "other", "1", "01", "red", ""])
anything = st.recursive(
    fragments, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=8
)


@settings(deadline=None, derandomize=True)
@given(st.integers(0, len(CASES) - 1), anything)
def test_whatever_the_schema_accepts_becomes_a_value(index: int, value: Any) -> None:
    """The schema is a promise to the model: a call that keeps it is never refused for another reason."""
    tool = TOOLS[index]
    if tool.checker.validator.is_valid({"x": value}):
        checked = check(tool, json.dumps({"x": value}))
        assert isinstance(checked, Arguments), (CASES[index][0], checked)


@pytest.mark.parametrize("when", ["2016-12-31T23:59:60Z", "0000-01-01T00:00:00Z"])
def test_moments_that_python_does_not_know_are_the_exceptions(when: str) -> None:
    """Leap seconds and the year 0 are valid on the wire; the model is told, and nothing crashes."""
    checked = check(declare(datetime.datetime), json.dumps({"x": when}))
    assert not isinstance(checked, Arguments)
    assert checked.message == "x: the value does not fit"


def test_integral_floats_are_integers() -> None:
    """JSON has one kind of number, and models write 2.0."""
    assert repr(structured(int, 2.0)) == "2"
    assert repr(structured(float, 2)) == "2.0"
    assert repr(structured(int | float, 2.0)) == "2.0"
    assert repr(structured(Level | float, 7)) == "7.0"
    assert repr(structured(Literal[1] | float, 3)) == "3.0"
    assert repr(structured(Literal[2], 2.0)) == "2"
    assert structured(Level, 2.0) is Level.HIGH


class Modelled:
    """What pydantic's models look like from outside."""

    model_fields: ClassVar[dict[str, Any]] = {}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (datetime.timedelta, "use a number of seconds"),
        (Annotated[datetime.datetime, msgspec.Meta(tz=False)], "without an offset is ambiguous"),
        (Annotated[datetime.time, msgspec.Meta(tz=True)], "use a plain time"),
        (Annotated[bytes, msgspec.Meta(max_length=3)], "check it in the tool"),
        (bytearray, "ByteArray is not supported"),
        (Spot, "Spot is a named tuple"),
        (Row, "drop array_like"),
        (set[Any], "use a list"),
        (set[tuple[int, int]], "use a list"),
        (dict[float, int], "the keys of a dict must be strings"),
        (dict[Level, int], "the keys of a dict must be strings"),
        (dict[int | str, int], "the keys of a dict must be strings"),
        (Empty, "at least one item"),
        (object, "object is not supported; use a dataclass, an attrs class, or a type of JSON's: str, int"),
        (Modelled, "Modelled is a pydantic model; put its fields into a dataclass"),
        (list[Modelled], "Modelled is a pydantic model"),
        (str | bytes, "str-like"),
        (Colour | Literal["x"], "str-like"),
        (list[Trip], "Trip.took: timedelta has no form"),
        (list[Spot], "Spot is a named tuple"),
    ],
)
def test_types_that_could_break_the_promise_are_refused(kind: Any, words: str) -> None:
    """What can't be told apart or read back is refused when the tool is declared, not when it is called."""
    with pytest.raises(DeclarationError, match=words) as caught:
        declare(kind)
    assert "parameter 'x'" in str(caught.value)


def test_nested_classes_are_definitions_with_their_descriptions() -> None:
    """A recursive type has no other form, and each class is told once."""
    told = schema(list[Node] | Colour)
    assert told["$defs"] == {
        "Node": {
            "type": "object",
            "description": "A node of a tree.",
            "properties": {
                "value": {"type": "integer", "description": "What it holds."},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
                "_mark": {"type": "string", "default": "m"},
                "later": {},
            },
            "required": ["value"],
        },
        "Colour": {"description": "A colour.", "enum": ["red", "blue"]},
    }
    assert told["properties"]["x"] == {
        "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Node"}}, {"$ref": "#/$defs/Colour"}]
    }


def test_two_classes_of_one_name_are_told_apart() -> None:
    """Names in a schema are ours to choose."""

    @attrs.define
    class Node:
        other: str

    def take(a: Any, b: Any, c: Any) -> None: ...

    take.__annotations__ = {"a": globals()["Node"], "b": Node, "c": Boxed[Boxed[int]]}
    assert list(read_tool(take).spec.schema["$defs"]) == ["Node", "Node_2", "Boxed_Boxed", "Boxed_int"]


def test_constraints_become_keywords() -> None:
    """What msgspec's Meta says is checked, and told to the model."""
    told = schema(
        tuple[
            Annotated[int, msgspec.Meta(ge=1, multiple_of=2, title="n", examples=[2])],
            Annotated[float, msgspec.Meta(gt=0, lt=1)],
            Annotated[str, msgspec.Meta(min_length=1, max_length=9, pattern="^a")],
            Annotated[list[int], msgspec.Meta(min_length=1)],
            Annotated[dict[str, int], msgspec.Meta(max_length=3)],
        ]
    )
    assert told["properties"]["x"]["prefixItems"] == [
        {"type": "integer", "minimum": 1, "multipleOf": 2, "title": "n", "examples": [2]},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
        {"type": "array", "minItems": 1, "items": {"type": "integer"}},
        {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}},
    ]


@pytest.mark.parametrize(
    ("kind", "default", "told"),
    [
        (Colour, Colour.RED, "red"),
        (bytes, b"x", base64.b64encode(b"x").decode()),
        (Any, Node(1, later=None), {"value": 1, "kids": [], "later": None}),
        (int | None, None, None),
    ],
)
def test_a_default_is_told_as_json(kind: Any, default: Any, told: Any) -> None:
    """The model may leave a parameter out if it knows what happens then."""
    assert schema(kind, default)["properties"]["x"]["default"] == told
    assert schema(kind, default)["required"] == []


@pytest.mark.parametrize("default", [object(), float("nan")])
def test_a_default_that_is_no_json_is_not_told(default: Any) -> None:
    """It is the program's own mark for "not given"."""
    assert "default" not in schema(Any, default)["properties"]["x"]


def test_all_styles_of_docstrings_are_read() -> None:
    """The library prescribes none."""

    def numpy(a: int) -> None:
        """Numpy style.

        Parameters
        ----------
        a : int
            The first.
        """

    def rest(a: int) -> None:
        """Sphinx style.

        :param a: The first.
        :param b:
        """

    def unsaid(a: int) -> None: ...

    def broken(a: int) -> None:
        """Broken.

        Args:
            a (int: no end
            the rest
        """

    assert document(numpy) == ("Numpy style.", {"a": "The first."})
    assert document(rest) == ("Sphinx style.", {"a": "The first."})
    assert document(unsaid) == ("", {})
    assert document(broken)[0].startswith("Broken.")
    assert document(Pair) == ("", {})
    assert document(Level) == ("", {})


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(["Args:", "  a: b", "    c", "", ":param", ":x y z: w", "Returns:", "---", "a : int"])))
def test_no_docstring_can_break_a_declaration(lines: list[str]) -> None:
    """Words for people are no programs."""

    def fn() -> None: ...

    fn.__doc__ = "\n".join(lines)
    document(fn)
