"""Server-sent events: the same events however the bytes are cut and the lines are ended."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.providers.base import ProviderError
from agentrio.providers.wire.sse import Event, SSEDecoder

STREAM = (
    b"data: 0\n\n"  # first, so that a byte order mark before it would take it along
    b": hello\n\n"
    b"event: one\ndata: 1\n\n"
    b"data:x\n\n"
    b"event: two\ndata: a\ndata: b\nid: 7\nretry: 5\n\n"
    b"\n\n"
    b"event: empty\ndata: \n\n"
    b"event: no data\n\n"
    b"data\n\n"
    b"event:three\n: comment within\ndata:  two spaces\nunknown: field\n\n"
    + "event: utf\ndata: é€👌\n\n".encode()
    + b"event: late\ndata: unterminated\n"
)
EVENTS: list[Event] = [
    (b"", b"0"),
    (b"one", b"1"),
    (b"", b"x"),
    (b"two", b"a\nb"),
    (b"three", b" two spaces"),
    (b"utf", "é€👌".encode()),
    (b"late", b"unterminated"),
]


def _decode(pieces: list[bytes]) -> list[Event]:
    decoder = SSEDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close()


def _cut(body: bytes, places: set[int]) -> list[bytes]:
    at = sorted({0, len(body), *(place % (len(body) + 1) for place in places)})
    return [body[start:end] for start, end in itertools.pairwise(at)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_all_line_ends_and_a_byte_order_mark_give_the_same_events(end: bytes, bom: bytes) -> None:
    """WHATWG HTML §9.2.6."""
    body = bom + STREAM.replace(b"\n", end)
    assert _decode([body]) == EVENTS
    assert _decode([body[at : at + 1] for at in range(len(body))]) == EVENTS
    for at in range(len(body)):
        assert _decode([body[:at], body[at:]]) == EVENTS


@given(
    st.sets(st.integers(0, 2_000)), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.sampled_from([b"", b"\xef\xbb\xbf"])
)
def test_bytes_may_be_cut_anywhere(places: set[int], end: bytes, bom: bytes) -> None:
    """A read ends where the network pleases, also within a character or between CR and LF."""
    assert _decode(_cut(bom + STREAM.replace(b"\n", end), places)) == EVENTS


@given(st.lists(st.sampled_from([b"data: a", b"event: e", b":", b"\n", b"\n\n", b"\r", b"\r\n", b"x", b""])), st.data())
def test_any_mixture_of_lines_gives_the_same_events_however_it_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    """Line ends may be mixed within one stream."""
    body = b"".join(lines)
    places = data.draw(st.sets(st.integers(0, len(body))))
    assert _decode(_cut(body, places)) == _decode([body])


def test_a_byte_order_mark_that_is_cut_short_is_data() -> None:
    """Only the whole mark goes, and only at the start."""
    assert _decode([b"\xef", b"\xbb"]) == []
    assert _decode([b"\xef\xbbx: 1\ndata: y\n\n"]) == [(b"", b"y")]
    assert _decode([b"data: 1\r", b"", b"\n\r", b"", b"\ndata: 2\r\r"]) == [(b"", b"1"), (b"", b"2")]
    assert _decode([b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n"]) == [(b"", b"1")]


def test_an_event_may_be_as_large_as_the_limit_and_no_larger() -> None:
    """Above it there is a clear error, however the bytes are cut."""
    fits, over = b"data: " + b"x" * 94, b"data: " + b"x" * 95
    assert len(fits) == 100
    for size in (1, 7, 99, 100, 101, 1_000):
        for body, wanted in ((fits, True), (over, False)):
            body = b"data: 1\n\n" + body + b"\n\ndata: 2\n\n"
            decoder = SSEDecoder(max_event=100)
            pieces = [body[at : at + size] for at in range(0, len(body), size)]
            if wanted:
                assert sum(len(decoder.feed(piece)) for piece in pieces) == 3
                continue
            with pytest.raises(ProviderError, match="more than 100 bytes") as caught:
                for piece in pieces:
                    decoder.feed(piece)
            assert caught.value.code == "invalid_response"


def test_a_long_event_in_many_pieces_stays_whole() -> None:
    """Five megabytes with spaces at the borders of its pieces."""
    body = b"data: " + (b" " + b"y" * 65_535) * 80 + b"\n\n"
    pieces = [body[at : at + 65_536] for at in range(0, len(body), 65_536)]
    assert _decode(pieces) == [(b"", body[6:-2])]
