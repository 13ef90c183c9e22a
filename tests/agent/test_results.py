"""From what a tool returns, or raises, to what the model reads."""

from __future__ import annotations

import base64
import enum
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrio.agent.results import (
    GENERIC_FAILURE,
    ResultError,
    ToolError,
    check_images,
    failure,
    shorten,
    to_parts,
    truncate,
)
from agentrio.domain.parts import CallError, File, Image, ResultPart, Text

PICTURE = Image("aGVsbG8=", "image/png")
PAPER = File("aGVsbG8=", "application/pdf", "a.pdf")


class Colour(str, enum.Enum):  # noqa: UP042  # a StrEnum has another str()
    RED = "rouge"


class Moody(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise RuntimeError("secret")

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("Grüße", (Text("Grüße"),)),
        ("", (Text(""),)),
        (Colour.RED, (Text("rouge"),)),
        ("a\ud800b", (Text("a�b"),)),
        ("\ud83d\ude00", (Text("😀"),)),
        (None, (Text("null"),)),
        (5, (Text("5"),)),
        (2.0, (Text("2"),)),
        ({"a": [1, None]}, (Text('{"a":[1,null]}'),)),
        ([], (Text("[]"),)),
        (["a", "b"], (Text('["a","b"]'),)),
        (PICTURE, (PICTURE,)),
        (PAPER, (PAPER,)),
        (Text("\ud800", raw="{}"), (Text("�", raw="{}"),)),
        ([Text("see"), PICTURE], (Text("see"), PICTURE)),
        (("see", PICTURE), (Text("see"), PICTURE)),
    ],
)
def test_a_returned_value_becomes_parts(value: object, parts: tuple[ResultPart, ...]) -> None:
    """Text is sent as it is, parts too, and the rest as JSON that reads the same as from JavaScript."""
    assert to_parts(value) == parts


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"x", "result is not JSON-serialisable: it holds a value of type bytes"),
        (bytearray(b"x"), "result is not JSON-serialisable: it holds a value of type bytearray"),
        ({"a": b"x"}, "result is not JSON-serialisable: it holds a value of type bytes"),
        (lambda: 1, "result is not JSON-serialisable: it holds a value of type function"),
        ({"a": PICTURE}, "result is not JSON-serialisable: an image or file must stand alone, or in a list of parts"),
        ([PICTURE, 1], "the result mixes images, files or texts with other values"),
        (Moody(), "result is not JSON-serialisable"),
    ],
)
def test_what_no_model_could_read_is_refused(value: object, reason: str) -> None:
    """A wrong result is a result that says so, never a crash and never a dump of bytes."""
    with pytest.raises(ResultError) as caught:
        to_parts(value)
    assert str(caught.value) == reason


def malformed(part: Any, **fields: Any) -> Any:
    """A part that holds what its class does not allow, as a tool's own class or a careless one may."""
    copy = attrs.evolve(part)
    for name, value in fields.items():
        object.__setattr__(copy, name, value)
    return copy


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (malformed(PICTURE, data=b"raw"), "the data of an image is of type bytes; it must be base64 text"),
        (malformed(PICTURE, media_type=None), "the media type of an image is of type NoneType; it must be text"),
        (malformed(PAPER, data=None), "the data of a file is of type NoneType; it must be base64 text"),
        (malformed(PAPER, media_type=5), "the media type of a file is of type int; it must be text"),
        (malformed(PAPER, name=b"a"), "the name of a file is of type bytes; it must be text"),
        (malformed(Text("a"), text=None), "the text of a text is of type NoneType; it must be text"),
        (malformed(Text("a"), text=5), "the text of a text is of type int; it must be text"),
        (malformed(Text("a"), raw=5), "the raw block of a text is of type int; it must be text"),
    ],
)
@pytest.mark.parametrize("around", [lambda part: part, lambda part: ["see", part]])
def test_a_part_with_anything_but_text_in_it_is_refused(part: Any, reason: str, around: Any) -> None:
    """Raw bytes in an image are a likely mistake: they could be neither sent, nor stored, nor measured."""
    with pytest.raises(ResultError) as caught:
        to_parts(around(part))
    assert str(caught.value) == reason


class Kind(str, enum.Enum):  # noqa: UP042  # as above
    PNG = "image/png"


class Scan(Image):
    """An image of the tool's own."""


def test_parts_of_a_tools_own_classes_become_ours() -> None:
    """A conversation holds nothing that could not be written and read back."""
    parts = to_parts([Scan("aGVsbG8=", Kind.PNG), malformed(File("aGVsbG8=", "a/b"), media_type="a/b\ud800")])
    assert [type(part) for part in parts] == [Image, File]
    assert parts == (Image("aGVsbG8=", "image/png"), File("aGVsbG8=", "a/b\ufffd", None))
    assert isinstance(parts[0], Image)
    assert type(parts[0].media_type) is str


def test_text_is_cut_over_all_parts_and_says_how_much_is_missing() -> None:
    """The limit is for the call, however its text is cut into parts; images are bounded on their own."""
    parts = (Text("abc"), PICTURE, Text("def"), Text("gh"), PAPER)
    assert truncate(parts, 8) == parts
    assert truncate(parts, 4) == (Text("abc"), PICTURE, Text("d…[truncated 4 chars]"), PAPER)
    assert truncate(parts, 3) == (Text("abc…[truncated 5 chars]"), PICTURE, PAPER)
    assert truncate(parts, 0) == (Text("…[truncated 8 chars]"), PICTURE, PAPER)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.text().map(Text), st.just(PICTURE))), st.integers(0, 50))
def test_what_is_kept_and_what_is_missing_add_up(parts: list[Any], limit: int) -> None:
    """The number in the mark is what the model does not see."""
    whole = "".join(part.text for part in parts if isinstance(part, Text))
    cut = truncate(parts, limit)
    seen = "".join(part.text for part in cut if isinstance(part, Text))
    missing = max(0, len(whole) - limit)
    assert seen == (whole if not missing else f"{whole[:limit]}…[truncated {missing} chars]")
    assert sum(part is PICTURE for part in cut) == sum(part is PICTURE for part in parts)


def test_the_words_of_an_error_are_cut_as_a_text_is() -> None:
    """A tool that dumps a page into its error must not fill the conversation with it."""
    assert shorten(CallError("tool_failed", "abc"), 3) == CallError("tool_failed", "abc")
    assert shorten(CallError("timeout", "abcde"), 3) == CallError("timeout", "abc…[truncated 2 chars]")


def test_images_are_counted_and_bounded() -> None:
    """Providers refuse a whole request for one image that is too large."""
    assert check_images((Text("a"), PICTURE, PAPER, PICTURE), max_bytes=5, max_images=2) == 2
    with pytest.raises(ResultError, match=r"^the result holds 2 images; at most 1 more may"):
        check_images((PICTURE, PICTURE), max_bytes=5, max_images=1)
    with pytest.raises(ResultError, match=r"^the image has 5 bytes; at most 4 are allowed"):
        check_images((PICTURE,), max_bytes=4, max_images=1)
    with pytest.raises(ResultError, match=r"^the file has 5 bytes; at most 4 are allowed"):
        check_images((PAPER,), max_bytes=4, max_images=1)


@settings(deadline=None, derandomize=True)
@given(st.binary(max_size=20))
def test_the_size_of_an_image_is_that_of_its_bytes(data: bytes) -> None:
    """The limit is in bytes, though the data is text."""
    picture = Image(base64.b64encode(data).decode(), "image/png")
    assert check_images((picture,), max_bytes=len(data), max_images=1) == 1
    if data:
        with pytest.raises(ResultError):
            check_images((picture,), max_bytes=len(data) - 1, max_images=1)


@pytest.mark.parametrize("data", ["a", "é===", "aGVs bG8="])
def test_data_that_is_no_base64_is_refused(data: str) -> None:
    """It would be the provider that refuses it, and with it the conversation."""
    with pytest.raises(ResultError, match=r"^the data of the image is not base64"):
        check_images((Image(data, "image/png"),), max_bytes=100, max_images=1)


def test_an_image_must_say_that_it_is_one() -> None:
    """An `Image` of another media type is a mistake for `File`."""
    with pytest.raises(ResultError, match=r"media type 'application/pdf'"):
        check_images((Image("aGVsbG8=", "application/pdf"),), max_bytes=100, max_images=1)


def test_only_a_tool_error_speaks_to_the_model() -> None:
    """Other exceptions were not written for it, and may carry what it must not know (a URL with a password)."""
    assert failure(ToolError("No such city.")) == CallError("tool_failed", "No such city.")
    assert failure(ValueError("https://user:secret@host")) == CallError("tool_failed", GENERIC_FAILURE)
    assert failure(ToolError("  ")) == CallError("tool_failed", GENERIC_FAILURE)
    assert failure(ResultError("the result holds 9 images")) == CallError(
        "tool_failed", "The tool returned what can't be sent: the result holds 9 images."
    )


def test_a_tool_error_is_understood_out_of_a_nursery() -> None:
    """Trio wraps whatever leaves a nursery in a group; that must not turn a tool's words into generic ones."""
    group = ExceptionGroup("", [ToolError("a"), ExceptionGroup("", [ToolError("b")])])
    assert failure(group).message == "a; b"
    assert failure(ExceptionGroup("", [ToolError("a"), ValueError("secret")])).message == GENERIC_FAILURE


class Speechless(ToolError):
    def __str__(self) -> str:
        raise RuntimeError("secret")


def test_an_error_that_can_not_say_its_text_is_told_as_any_other() -> None:
    """Its `__str__` is the tool's code, and runs where nobody awaits an exception."""
    assert failure(Speechless()).message == GENERIC_FAILURE
    assert failure(ExceptionGroup("", [ToolError("a"), Speechless()])).message == GENERIC_FAILURE
