"""JSON as servers really write it, and JSON that every server takes."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.domain.messages import Message
from agentrio.domain.parts import ToolCall
from agentrio.domain.plain import unicode_text
from agentrio.domain.session import Session
from agentrio.providers.base import ProviderError
from agentrio.providers.wire.json import (
    decode,
    decode_kept,
    decode_unmended,
    encode,
    encode_text,
    parse_arguments,
)

TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(["\ud83d", "\ude00\ud83d", "a\0b", "\\u0000"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d"', "\ufffd"),
        ('"\\ud83d\\ude00"', "😀"),
        ('{"a\\udc00": ["\\ud800"]}', {"a\ufffd": ["\ufffd"]}),
        ('"a\nb\tc"', "a\nb\tc"),
        (b'"\xff"', "\ufffd"),
        ("1", 1),
        ('["\\ud83d", true, null, 1.5]', ["\ufffd", True, None, 1.5]),
    ],
)
def test_what_msgspec_refuses_and_servers_send_is_read_all_the_same(text: str | bytes, value: Any) -> None:
    """Lone surrogates, raw control characters, bytes that are no UTF-8."""
    assert decode(text) == value


@pytest.mark.parametrize("text", ["", "{", "[DONE]", "'a'", "nan", "[1e]"])
def test_what_is_no_json_stays_none(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match=r"Expecting|enclosed"):
        decode(text)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 5_000])
def test_numbers_that_are_none_are_null_and_take_nothing_with_them(number: str) -> None:
    """Servers in Python write ``NaN`` among the log probabilities of a token: the token was lost without a word."""
    frame = f'{{"delta": "token", "odd": [{number}, 1e3, 7]}}'
    assert decode(frame) == decode_unmended(frame.encode()) == {"delta": "token", "odd": [None, 1000.0, 7]}
    with pytest.raises(ValueError, match=r"is no JSON|out of range|digits"):
        decode(frame, strict=True)
    assert parse_arguments(frame) is None


@pytest.mark.parametrize("text", ['"', '"\\"', '"\\', "\\", '"\\"\\'])
def test_strings_without_an_end_are_looked_through_once(text: str) -> None:
    """Looking for their end from each of their quotes took hours for a megabyte, and nothing else ran meanwhile."""
    with pytest.raises((ProviderError, ValueError)):
        decode("[" * 101 + text + '\\"' * 1_000_000)
    with pytest.raises((ProviderError, ValueError)):
        decode("[" * 101 + text + '"\\' * 1_000_000)


def test_what_is_kept_of_a_part_can_be_read_again() -> None:
    """The very bytes, where they are good; what was read by the slow path alone would break whoever reads it later."""
    assert decode_kept(b'{"a" : 1}') == ({"a": 1}, b'{"a" : 1}')
    assert decode_kept(b'{"a":1e999,"b":"\xff"}') == (
        {"a": None, "b": "\ufffd"},
        '{"a":null,"b":"\ufffd"}'.encode(),
    )


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000])
def test_depth_that_exhausts_the_stack_is_a_typed_error(text: str) -> None:
    """A hostile server must not bring a RecursionError into the loop."""
    for read in (decode, lambda text: decode_unmended(text.encode())):
        with pytest.raises((ProviderError, ValueError)):
            read(text)
    with pytest.raises(ProviderError, match="nested too deeply"):
        decode("[" * 100_000 + "]" * 100_000)
    assert parse_arguments(text) is None


@given(VALUES)
def test_whatever_is_encoded_can_be_decoded_anywhere(value: Any) -> None:
    """No lone surrogate and no NUL goes out; encoding again changes nothing."""
    data = encode(value)
    assert encode(decode(data)) == data
    assert "\\u0000" not in encode_text(value).replace("\\\\", "")


class Marked(str):
    """A text of another class, as template engines and settings have them."""


def test_encoding_mends_text_and_takes_any_mapping() -> None:
    """What a store or a user handed in may be no plain dict, and may hold half a character."""
    assert encode(MappingProxyType({"a": ("x\0y", "\ud83d")})) == '{"a":["xy","\ufffd"]}'.encode()
    assert encode({"a": "\0", "b": MappingProxyType({})}) == b'{"a":"","b":{}}'
    assert encode("\\u0000") == b'"\\\\u0000"'
    assert encode([Marked("a"), Marked("\0b\ud83d")]) == '["a","b\ufffd"]'.encode()
    with pytest.raises(TypeError, match="object is no JSON value"):
        encode(object())


@given(st.text(st.characters(exclude_categories=())))
def test_mended_text_is_always_encodable(text: str) -> None:
    """And right text stays as it is."""
    assert unicode_text(text).encode().decode() == unicode_text(text)
    assert unicode_text("a😀\ufffd") == "a😀\ufffd"


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a":"x\ny"}', {"a": "x\ny"}),
        ('{"a":"x\ny","b":[1.5,7]}', {"a": "x\ny", "b": [1.5, 7]}),
        ("null", None),
        ("[]", None),
        ('"x"', None),
        ("3", None),
        ('{"a":1}}', None),
        ('{"a":', None),
    ],
)
def test_arguments_are_an_object_or_none(text: str, arguments: object) -> None:
    """Nothing at all is no arguments; raw control characters pass; nothing is repaired."""
    assert parse_arguments(text) == arguments


@pytest.mark.parametrize("digits", [3_913, 3_914, 4_300, 4_301])
@pytest.mark.parametrize("sign", ["", "-"])
def test_arguments_that_are_read_can_be_stored(digits: int, sign: str) -> None:
    """Python reads integers of 4300 digits; a session with one of a few less could not be saved any more."""
    text = f'{{"a": {sign}{"9" * digits}}}'
    found = parse_arguments(text)
    assert (found is None) is (digits > 4_300)
    session = Session("s", messages=(Message("a", "assistant", (ToolCall("c", "p", "look", text, found),)),))
    assert Session.from_json(session.to_json()) == session
