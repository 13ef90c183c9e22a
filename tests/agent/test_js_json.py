"""JSON as JavaScript writes it."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.agent.js_json import MAX_DEPTH, NotJSON, js_json


class Level(enum.IntEnum):
    LOW = 1


class Pair(enum.Enum):
    A = ("x", 1)


@attrs.frozen
class Point:
    x: float
    tags: set[str] = attrs.field(factory=set)
    unset: int = attrs.field(init=False)


@dataclasses.dataclass
class Box:
    """A dataclass beside an attrs class."""

    point: Point | None


class Cat(msgspec.Struct, tag=True, rename="camel"):
    full_name: str
    age: int | msgspec.UnsetType = msgspec.UNSET


class Dog(msgspec.Struct):
    age: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (2.0, "2"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (123.456, "123.456"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-7, "1.25e-7"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (float("nan"), "null"),
        (float("-inf"), "null"),
    ],
)
def test_numbers_are_written_as_javascript_does(value: float, text: str) -> None:
    """The texts are what ``JSON.stringify`` gives; a model sees the same number from either runtime."""
    assert js_json(value) == text


@settings(deadline=None, derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_as_themselves(value: float) -> None:
    """Another form of a number is not another number."""
    assert float(js_json(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "é"]}, '{"b":1,"a":[true,null,"é"]}'),
        ({}, "{}"),
        ([], "[]"),
        ((1, (2,)), "[1,[2]]"),
        (2**60, "1152921504606846976"),
        ('\b\t\n\f\r\x01\x7f"\\/', '"\\b\\t\\n\\f\\r\\u0001\x7f\\"\\\\/"'),
        ("a\ud800é", '"a\\ud800é"'),
        ({2: "a", None: "b", True: "c"}, '{"2":"a","null":"b","true":"c"}'),
        ({Level.LOW: Level.LOW, uuid.UUID(int=1): 1}, '{"1":1,"00000000-0000-0000-0000-000000000001":1}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        ({"b", "a"}, '["a","b"]'),
        ({10, 9.5}, "[9.5,10]"),
        (frozenset({"a", 1}), '["a",1]'),
        (Box(Point(1.0, {"b", "a"})), '{"point":{"x":1,"tags":["a","b"]}}'),
        (Cat("Tom"), '{"type":"Cat","fullName":"Tom"}'),
        (Dog(3), '{"age":3}'),
        (datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.UTC), '"2024-01-02T03:00:00Z"'),
        (datetime.date(2024, 1, 2), '"2024-01-02"'),
        (datetime.timedelta(days=1), '"P1D"'),
        (Decimal("1.50"), '"1.50"'),
        (Pair.A, '["x",1]'),
    ],
)
def test_values_are_written_compactly_in_their_own_order(value: object, text: str) -> None:
    """No spaces, text as it is, keys as they came: the same bytes on each run, so that prompts stay cached."""
    assert js_json(value) == text


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None, derandomize=True)
@given(plain)
def test_what_has_no_floats_is_what_python_writes(value: Any) -> None:
    """Only numbers differ between the two languages."""
    assert js_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bottomless() -> object:
    inside: list[Any] = []
    inside.append(inside)
    return inside


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: b"x", "a value of type bytes"),
        (lambda: iter(()), "a value of type tuple_iterator"),
        (lambda: {(1, 2): 3}, "a key is of type tuple"),
        (lambda: {1.5: 3}, "a key is of type float"),
        (lambda: {Pair.A: 3}, "a key is of type Pair"),
        (lambda: 1 << 20_000, "an integer is too long"),
        (_bottomless, f"nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_has_no_json_form_is_refused_by_its_type(make: Callable[[], object], reason: str) -> None:
    """The reason names the type and never the content, which may be secret."""
    with pytest.raises(NotJSON, match=reason):
        js_json(make())


@settings(deadline=None, derandomize=True)
@given(st.floats() | st.text() | st.integers(-(2**60), 2**60), st.sets(st.text(alphabet="abc")))
def test_classes_are_written_with_the_fields_that_msgspec_sees(x: Any, tags: set[str]) -> None:
    """Two ways to write one class would be one too many."""
    written = json.loads(js_json(Box(Point(x, tags))))
    expected = msgspec.to_builtins(Box(Point(x, tags)))
    assert written.keys() == expected.keys()
    assert written["point"].keys() == expected["point"].keys()
