"""What a tool may remember."""

from __future__ import annotations

import enum
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.agent.memory import check_patch
from agentrio.domain.errors import MemoryPatchError
from agentrio.domain.plain import MAX_DEPTH

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


class Colour(str, enum.Enum):  # noqa: UP042  # a StrEnum has another str()
    RED = "red"


class Whole(int):
    pass


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.text(), plain))
def test_plain_json_is_copied_as_it_is(patch: dict[str, Any]) -> None:
    """What is remembered is what was written."""
    assert check_patch(patch) == patch


def test_a_later_change_of_the_patch_does_not_reach_the_copy() -> None:
    """The tool keeps its objects; memory must not change behind the session's back."""
    patch: dict[str, Any] = {"a": {"items": [1]}}
    copy = check_patch(patch)
    patch["a"]["items"].append(2)
    assert copy == {"a": {"items": [1]}}


@pytest.mark.parametrize(
    "value",
    [
        (1,),
        {1},
        b"x",
        Decimal(1),
        float("nan"),
        float("-inf"),
        Colour.RED,
        Whole(1),
        OrderedDict(),
        object(),
        1 << 20_000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_exactly_json_is_refused_by_its_path(value: object) -> None:
    """The mistake must be found where it is written, not when the session is stored."""
    with pytest.raises(MemoryPatchError, match=r"^patch\.a\.items\[2\] is (an? |-?(nan|inf);)"):
        check_patch({"a": {"items": [0, 1, value]}})


def test_odd_keys_are_quoted_in_the_path() -> None:
    """A path must be readable whatever the keys are."""
    with pytest.raises(MemoryPatchError, match=r"^patch\['two words'\]\[0\] is a set"):
        check_patch({"two words": [set()]})


def test_a_key_that_is_no_string_is_refused() -> None:
    """JSON would turn 1 into "1", and the session would no longer be what the tool wrote."""
    with pytest.raises(MemoryPatchError, match=r"^patch\.a has a key that is an int; keys must be strings"):
        check_patch({"a": {1: "x"}})


@pytest.mark.parametrize("patch", [{"a": "\ud800"}, {"\ud800": "a"}])
def test_half_of_a_surrogate_pair_is_refused(patch: dict[str, Any]) -> None:
    """It can't be encoded, so it would break the journal long after the tool has returned."""
    with pytest.raises(MemoryPatchError, match="half of a surrogate pair"):
        check_patch(patch)


def test_a_patch_that_contains_itself_is_refused() -> None:
    """A cycle has no JSON form."""
    patch: dict[str, Any] = {"a": []}
    patch["a"].append(patch)
    with pytest.raises(MemoryPatchError, match=r"^patch\.a\[0\] contains itself"):
        check_patch(patch)


def test_one_object_in_two_places_is_no_cycle() -> None:
    """Only a tree can be stored, but sharing is how Python writes trees."""
    shared = [1]
    assert check_patch({"a": shared, "b": shared}) == {"a": [1], "b": [1]}


def test_bottomless_nesting_is_refused_rather_than_crashing() -> None:
    """Whoever copies or encodes the memory later must not run out of stack."""
    deep: Any = 0
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(MemoryPatchError, match="nested deeper than 100 levels"):
        check_patch({"a": deep})


@pytest.mark.parametrize("patch", [None, [], OrderedDict(a=1)])
def test_the_patch_itself_must_be_a_dict(patch: object) -> None:
    """Patches are merged key by key."""
    with pytest.raises(MemoryPatchError, match="it must be a dict"):
        check_patch(patch)
