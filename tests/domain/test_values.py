"""Parts, messages, usage, limits, ids, identity, statuses: what a value promises by itself."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.domain import ids
from agentrio.domain.codec import loads
from agentrio.domain.errors import CodecError, DeclarationError, RunFailed
from agentrio.domain.identity import Identity
from agentrio.domain.limits import Limits
from agentrio.domain.messages import Message, ModelTag, memoised, user_message
from agentrio.domain.parts import File, Image, Text, Thinking, ToolCall
from agentrio.domain.status import Failure, RunResult
from agentrio.domain.usage import NO_USAGE, Prices, Usage

from . import values

CALL = ToolCall("c_r_1_0", "toolu_1", "look", "{}", {})


# Messages


def test_the_text_of_a_message_is_its_text_parts_joined() -> None:
    """Reasoning is not the answer."""
    message = Message("m", "assistant", (Thinking("hm"), Text("It "), CALL, Text("rains.")))

    assert message.text == "It rains."
    assert message.calls == (CALL,)


def test_a_user_message_is_made_of_text_a_part_or_parts() -> None:
    """All three are what ``run()`` takes."""
    image = Image("aGk=", "image/png")

    assert user_message("m", "hi").parts == (Text("hi"),)
    assert user_message("m", image).parts == (image,)
    assert user_message("m", (Text("see"), image)).parts == (Text("see"), image)
    assert user_message("m", "hi").role == "user"


def test_what_is_derived_from_a_message_is_worked_out_once_and_dies_with_it() -> None:
    """No round walks the whole history again; a changed message is another one."""
    made: list[str] = []
    message = user_message("m", "hi")

    def length(of: Message) -> int:
        made.append(of.id)
        return len(of.text)

    assert [memoised(message, "length", length) for _ in range(3)] == [2, 2, 2]
    assert memoised(message, ("other", 1), lambda of: of.role) == "user"
    assert made == ["m"]
    assert memoised(attrs.evolve(message, parts=(Text("hello"),)), "length", length) == 5


def test_a_memo_changes_neither_equality_nor_repr() -> None:
    """Values that are equal stay equal, whoever has looked at one of them."""
    looked_at, fresh = user_message("m", "hi"), user_message("m", "hi")
    memoised(looked_at, "length", lambda of: len(of.text))

    assert looked_at == fresh
    assert hash(looked_at) == hash(fresh)
    assert repr(looked_at) == repr(fresh)


def test_a_failed_derivation_is_not_kept() -> None:
    """The next one who asks tries again."""
    message = user_message("m", "hi")
    with pytest.raises(ZeroDivisionError):
        memoised(message, "k", lambda _: 1 // 0)
    assert memoised(message, "k", lambda _: 1) == 1


def test_values_are_immutable_and_hide_bulk_in_their_repr() -> None:
    """A log line with a value must not carry megabytes of base64."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        CALL.name = "x"  # type: ignore[misc]  # that is the mistake
    assert "aGk=" not in repr(Image("aGk=", "image/png")) + repr(File("aGk=", "text/plain", "a.txt"))
    assert ModelTag("p", "a", "m") == ModelTag("p", "a", "m")
    assert Identity("u").permissions == frozenset()


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        (Text, (None,), "must be a str, not a NoneType"),
        (Thinking, (b"hm",), "must be a str, not a bytes"),
        (Text, ("a", 5), r"Text\.raw must be a str, not an int"),
        (Image, (b"\x89PNG", "image/png"), r"Image\.data .* a bytes; encode it: base64\.b64encode"),
        (Image, ("aGk=", None), r"Image\.media_type must"),
        (File, ("aGk=", "text/plain", 5), r"File\.name must be"),
    ],
)
def test_a_part_with_a_field_of_another_type_is_refused_where_it_is_made(kind: Any, fields: Any, words: str) -> None:
    """Bytes are the likeliest slip; stored, they would be found when the conversation is saved."""
    with pytest.raises(TypeError, match=words):
        kind(*fields)
    assert File("aGk=", "text/plain").name is None


def test_the_text_of_a_part_is_always_unicode() -> None:
    """Two halves of a character that meet would come back from JSON as one: so they are one from the start."""
    assert Text("\ud83d\ude00").text == "\U0001f600"
    assert (Text("so \ud83d").text, Thinking("\ude00").text) == ("so \ufffd", "\ufffd")
    assert Text("für").text == "für"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.one_of(values.messages, values.parts, values.sessions, values.states, values.results, values.events))
def test_every_value_but_a_delta_can_be_hashed(value: Any) -> None:
    """What can't change can be in a set, whatever JSON it carries; equal ones are one."""
    if type(value).__name__.endswith("Delta"):  # as cheap as it gets, so immutable by agreement only
        with pytest.raises(TypeError, match="unhashable type"):
            hash(value)
    else:
        assert {value: 1}[attrs.evolve(value)] == 1


# Usage


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values.usages, values.usages, values.usages)
def test_usage_adds_up_in_any_grouping_and_order(a: Usage, b: Usage, c: Usage) -> None:
    """A run's usage is the sum of its rounds', a conversation's that of its runs'."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + NO_USAGE == NO_USAGE + a == a
    assert (a + b).total == a.total + b.total


def test_reasoning_is_counted_within_output_and_a_missing_price_is_not_zero() -> None:
    """Counting it twice would bill twice. A cost of nothing used is no gap; one of tokens is, and the sum shows it."""
    assert Usage(input=1, output=5, cache_read=10, cache_write=100, reasoning=3).total == 116
    assert (Usage(cost=None) + Usage(cost=None)).cost is None
    assert (Usage(cost=Decimal("0.1")) + Usage(cost=None)).cost == Decimal("0.1")
    assert (Usage(cost=None) + Usage(cost=Decimal("0.2"))).cost == Decimal("0.2")
    assert (Usage(cost=Decimal("0.1")) + Usage(cost=Decimal("0.2"))).cost == Decimal("0.3")
    assert (Usage(1, cost=Decimal("0.1")) + Usage(2)).cost is None
    assert (Usage(2) + Usage(1, cost=Decimal("0.1"))).cost is None
    assert (Usage(1, cost=Decimal("0.1")) + Usage(2) + Usage(1, cost=Decimal("0.1"))).cost is None


def test_prices_are_dollars_for_a_million_tokens() -> None:
    """Reasoning is output; what a cache was read for costs as other input unless its own price is known."""
    usage = Usage(input=1_000_000, output=500_000, cache_read=100_000, cache_write=10_000, reasoning=400_000)

    assert Prices(input=2, output="10.5").cost(usage) == Decimal("7.47")
    own = Prices(input=2, output="10.5", cache_read=Decimal("0.2"), cache_write="2.5")
    assert own.cost(usage) == Decimal("7.295")
    assert Prices(input=0, output=0).cost(usage) == 0
    assert own == Prices(input=Decimal(2), output="10.50", cache_read="0.2", cache_write="2.5")


@pytest.mark.parametrize("field", ["input", "output", "cache_read", "cache_write"])
@pytest.mark.parametrize(
    "value", [-1, "-0.1", "NaN", "inf", "", "cheap", True, [], Decimal("inf"), float("nan")], ids=repr
)
def test_what_is_no_price_is_refused_by_name(field: str, value: Any) -> None:
    """A wrong price would show on the bill only."""
    with pytest.raises(DeclarationError, match=rf"Prices\.{field} is .*; it must be US dollars .* not negative\.$"):
        Prices(**{"input": 1, "output": 1, field: value})


def test_a_price_must_be_given_and_a_float_is_told_how_to_be_one() -> None:
    """0.1 is not a tenth."""
    with pytest.raises(DeclarationError, match=r"Prices\.input is 0\.1; .*; write '0\.1'\."):
        Prices(input=cast(Any, 0.1), output=1)
    with pytest.raises(DeclarationError, match=r"Prices\.output is None"):
        Prices(input=1, output=cast(Any, None))


@pytest.mark.parametrize("cost", ["NaN", "sNaN", "Infinity", "1e999999999", "-1e15"])
def test_a_cost_that_can_not_be_added_up_is_refused(cost: str) -> None:
    """Found in a sum, it would end the run, or be compared with a limit and raise."""
    with pytest.raises(ValueError, match=r"Usage\.cost is .*; it must be a Decimal that is an amount"):
        Usage(cost=Decimal(cost))
    with pytest.raises(CodecError, match=r"@ \$|This is no Usage: .*cost"):
        loads(f'{{"cost":"{cost}"}}', Usage)


def test_a_cost_in_binary_is_refused() -> None:
    """It could not be added to the others."""
    binary: Any = 0.1
    with pytest.raises(ValueError, match=r"Usage\.cost is 0\.1; it must be a Decimal"):
        Usage(cost=binary)


def test_adding_to_a_total_leaves_its_parts_alone() -> None:
    """O07: usage objects are shared by events, rounds and results, so none may change."""
    first, second = Usage(input=1), Usage(input=2)
    total = first + second
    total = total + second

    assert (first.input, second.input, total.input) == (1, 2, 5)
    assert Usage() == NO_USAGE


# Limits

WHOLE = [name for name in dir(Limits()) if name.startswith("max_") and name != "max_cost"]
SECONDS = ["call_timeout", "mcp_timeout", "connect_timeout", "idle_timeout", "stop_grace", "unwind_grace", "deadline"]
NEVER_VALID: list[Any] = [-1, "3", True, float("nan"), [], object()]


@pytest.mark.parametrize("field", WHOLE)
@pytest.mark.parametrize("value", [*NEVER_VALID, 1.5], ids=repr)
def test_a_count_out_of_range_is_refused_by_name(field: str, value: Any) -> None:
    """A wrong limit must fail where it is written, saying which one."""
    with pytest.raises(DeclarationError, match=rf"Limits\.{field} is .*; it must be a whole number of at least \d"):
        Limits(**{field: value})


@pytest.mark.parametrize("field", SECONDS)
@pytest.mark.parametrize("value", NEVER_VALID, ids=repr)
def test_a_time_out_of_range_is_refused_by_name(field: str, value: Any) -> None:
    """A negative or unreadable timeout would show only when it is too late."""
    with pytest.raises(DeclarationError, match=rf"Limits\.{field} is .*; it must be a number of at least"):
        Limits(**{field: value})


@pytest.mark.parametrize(
    "value",
    [-1, "3", True, float("nan"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal(-1)],
    ids=repr,
)
def test_a_cost_out_of_range_is_refused_by_name(value: Any) -> None:
    """Money is checked like the rest."""
    with pytest.raises(DeclarationError, match=r"Limits\.max_cost is"):
        Limits(max_cost=value)


@pytest.mark.parametrize("field", ["stop_grace", "unwind_grace"])
@pytest.mark.parametrize("value", [float("inf"), 86_401])
def test_a_grace_has_an_end(field: str, value: float) -> None:
    """It is the deadline of a shield, and a shield without one could hold its program for ever."""
    with pytest.raises(DeclarationError, match=rf"Limits\.{field} is .*; it must be a number of at most 86400"):
        Limits(**{field: value})  # type: ignore[arg-type]  # mypy takes the field for any of them


@pytest.mark.parametrize("value", [10**400, -(10**5000), 2**53 + 1], ids=["large", "huge", "just too large"])
@pytest.mark.parametrize("field", ["max_rounds", "idle_timeout"])
def test_a_number_that_is_absurd_is_refused_in_few_words(field: str, value: int) -> None:
    """No float holds it, and Python itself refuses to write the longest ones down."""
    with pytest.raises(DeclarationError, match=rf"Limits\.{field} is") as caught:
        Limits(**{field: value})  # type: ignore[arg-type]  # as above
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("field", ["length_policy", "on_failed_write"])
@pytest.mark.parametrize("value", ["always", None, 3])
def test_a_policy_that_does_not_exist_is_refused_with_those_that_do(field: str, value: Any) -> None:
    """The message is the documentation of who got it wrong."""
    with pytest.raises(DeclarationError, match=rf"Limits\.{field} is .*; it must be one of \w+, \w+, \w+\."):
        Limits(**{field: value})


@pytest.mark.parametrize("field", ["mcp_timeout", "max_calls", "length_policy", "stop_grace"])
def test_none_is_no_limit_only_where_the_default_says_so(field: str) -> None:
    """None where a number is needed is a mistake; call_timeout, deadline, max_total_tokens and max_cost may be None."""
    nothing: dict[str, Any] = {field: None}
    with pytest.raises(DeclarationError, match=rf"Limits\.{field}"):
        Limits(**nothing)
    assert Limits(call_timeout=None, deadline=None, max_total_tokens=None, max_cost=None) == Limits()


def test_the_edges_of_the_ranges_are_allowed() -> None:
    """0 rounds and 0 calls are useful; infinity is no limit; a price is taken by its digits."""
    limits = Limits(max_rounds=0, max_calls=0, idle_timeout=float("inf"), max_cost=0.1, unwind_grace=0)

    assert limits.max_cost == Decimal("0.1")
    assert Limits(max_cost=3).max_cost == Decimal(3)


# Identity


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subject": 5}, "Identity.subject is 5; it must be a text"),
        ({"subject": ""}, "Identity.subject is ''"),
        ({"subject": "u1", "tenant": None}, "Identity.tenant is None"),
        ({"subject": "u1", "permissions": "admin"}, "Identity.permissions is the text 'admin'; give a list or a set"),
        ({"subject": "u1", "permissions": None}, "Identity.permissions is None; give a list or a set"),
        ({"subject": "u1", "permissions": [[]]}, r"Identity.permissions is \[\[\]\]"),
        ({"subject": "u1", "permissions": [5]}, "Identity.permissions holds 5; give texts"),
    ],
)
def test_an_identity_that_is_none_is_refused(options: dict[str, Any], words: str) -> None:
    """A permission is asked for by its name: the letters of a text would grant what nobody meant, or nothing."""
    with pytest.raises(DeclarationError, match=words):
        Identity(**options)


def test_permissions_are_a_set_however_they_are_given() -> None:
    """Two identities that may do the same are equal."""
    assert Identity("u1", permissions=["a", "b"]) == Identity("u1", permissions=frozenset({"b", "a"}))


# Ids


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 99), st.integers(1, 99), st.integers(0, 99))
def test_ids_follow_from_their_place_and_differ_from_each_other(run: int, round: int, index: int) -> None:
    """A resumed run makes the ids that it made before, and no two things of a session share one."""
    r = ids.run_id("s", run)
    made = [
        r,
        ids.call_id(r, round, index),
        ids.prompt_id(r),
        ids.queued_id("s", run),
        ids.assistant_id(r, round, index + 1),
        ids.results_id(r, round),
    ]

    assert len(set(made)) == len(made)
    assert ids.call_id(r, round, index) == ids.call_id(ids.run_id("s", run), round, index)
    assert ids.call_id(r, round, index) != ids.call_id(r, round, index + 1)


# Results


def test_only_a_run_that_did_not_succeed_raises() -> None:
    """Results are data; who wants an exception asks for it."""
    failure = Failure("error", "The run reached its 8 rounds.", "max_rounds")

    RunResult("r", "succeeded").raise_for_status()
    with pytest.raises(RunFailed, match="reached its 8 rounds") as caught:
        RunResult("r", "error", failure=failure).raise_for_status()
    assert (caught.value.status, caught.value.failure) == ("error", failure)
    with pytest.raises(RunFailed, match="the run ended cancelled"):
        RunResult("r", "cancelled").raise_for_status()
