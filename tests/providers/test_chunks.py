"""Chunks are merged before h11 sees them; h11 is asked whether that is the same response."""

from __future__ import annotations

from itertools import pairwise

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentrio.providers.wire.chunks import MAX_HELD, ChunkMerger

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(*pieces: bytes, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    """A chunked body."""
    framed = [b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces]
    return b"".join(framed) + b"0\r\n" + trailers + b"\r\n"


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in pieces, cut there."""
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in pairwise(edges) if start < end]


def read(reads: list[bytes]) -> tuple[list[object], bytes, str]:
    """What h11 makes of a response: its heads, its body, and how it ended."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    heads: list[object] = []
    body = b""
    for data in [*reads, b""]:
        try:
            connection.receive_data(data)
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                match event:
                    case h11.Response() | h11.InformationalResponse():
                        heads.append((event.status_code, list(event.headers)))
                    case h11.Data():
                        body += bytes(event.data)
                    case h11.EndOfMessage():
                        return heads, body, f"whole {list(event.headers)}"
                    case h11.ConnectionClosed():
                        break
        except h11.RemoteProtocolError:
            return heads, body, "refused"
    return heads, body, "cut"


def merged(reads: list[bytes]) -> list[bytes]:
    """The same reads behind a merger."""
    merger = ChunkMerger()
    return [out for out in map(merger.feed, [*reads, b""]) if out]


RESPONSES = {
    "chunks": HEAD + chunked(b"a", b"bc" * 40, b"\r\n", b"0\r\n\r\n", b"x"),
    "extensions and trailers": HEAD + chunked(b"ab", b"c", extension=b";a=b", trailers=b"x-checksum: 1\r\n"),
    "continued": b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + chunked(b"ab", b"c"),
    "a length": b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n3\r\nabc\r\n0",
    "until the end": b"HTTP/1.1 200 OK\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "compressed too": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n" + chunked(b"ab", b"c"),
    "no size": HEAD + b"2\r\nab\r\nxyz\r\nc\r\n0\r\n\r\n",
    "a size too small": HEAD + b"2\r\nabc\r\n1\r\nc\r\n0\r\n\r\n",
    "a size too large": HEAD + b"2\r\nab\r\n9\r\nc\r\n0\r\n\r\n",
    "a size that Python reads and HTTP does not": HEAD + b"2\r\nab\r\n+1\r\nc\r\n0\r\n\r\n",
    "spaces behind the size": HEAD + b"2 \r\nab\r\n1\r\nc\r\n0\r\n\r\n",
    "bare line feeds": HEAD.replace(b"\r\n", b"\n") + b"2\nab\n0\n\n",
    "no HTTP": b"\x16\x03\x01 what is this\r\n\r\n",
}


@pytest.mark.parametrize("name", RESPONSES)
@settings(max_examples=60, deadline=None)
@given(places=st.lists(st.integers(0, 500), max_size=30), end=st.integers(0, 500))
@example(places=[], end=500)
@example(places=list(range(500)), end=500)
def test_h11_reads_the_same_response_wherever_the_bytes_are_cut(name: str, places: list[int], end: int) -> None:
    """Also one that ends too early, and one that h11 refuses: heads, body and how it ends."""
    reads = cut(RESPONSES[name][:end], places)
    plain, behind = read(reads), read(merged(reads))
    assert behind[0] == plain[0]
    assert behind[2] == plain[2]
    assert behind[1] == plain[1]


@pytest.mark.parametrize("name", RESPONSES)
@settings(max_examples=60, deadline=None)
@given(places=st.lists(st.integers(0, 500), max_size=30), end=st.integers(0, 500))
@example(places=[], end=500)
@example(places=list(range(500)), end=500)
def test_what_chunks_carry_can_be_taken_and_h11_sees_the_rest(name: str, places: list[int], end: int) -> None:
    """Together it is the same response, and h11 comes to the same end of it: the connection can be used again."""
    reads = cut(RESPONSES[name][:end], places)
    merger = ChunkMerger()
    passed_on: list[bytes] = []
    taken = b""
    for data in [*reads, b""]:
        if merger.in_chunks:
            carried, rest = merger.take(data)
            taken += carried
        else:
            rest = merger.feed(data)
        passed_on.append(rest)
    heads, body, ending = read([data for data in passed_on if data])
    assert (heads, body + taken, ending) == read(reads)


def test_the_chunks_of_one_read_are_one_chunk() -> None:
    """That is what it is for; the part of a chunk that is here does not wait for the rest."""
    merger = ChunkMerger()
    assert merger.feed(HEAD + b"1\r\na\r\n2\r\nbc\r\n5\r\nde") == HEAD + b"5\r\nabcde\r\n"
    assert merger.feed(b"fgh\r\n1\r\ni\r\n0\r\n\r\n") == b"4\r\nfghi\r\n0\r\n\r\n"


def test_the_next_response_of_a_connection_is_merged_too() -> None:
    """A request between them says where one ends and the other begins."""
    merger = ChunkMerger()
    response = HEAD + chunked(b"a", b"b")
    for _ in range(2):
        merger.start()
        assert merger.feed(response) == HEAD + b"2\r\nab\r\n0\r\n\r\n"


def test_a_head_or_a_size_without_an_end_is_not_held_for_ever() -> None:
    """h11 has a limit of its own, and an error for it."""
    assert ChunkMerger().feed(b"x" * (MAX_HELD + 1)) == b"x" * (MAX_HELD + 1)
    merger = ChunkMerger()
    merger.feed(HEAD)
    assert merger.feed(b"1" * (MAX_HELD + 1)) == b"1" * (MAX_HELD + 1)
    assert merger.feed(b"1") == b"1"


PLAIN = b"HTTP/1.1 429 No\r\nContent-Length: 3\r\n\r\n{}\n"
STRAY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@pytest.mark.parametrize(
    "response", [HEAD + chunked(b"one", b"two"), HEAD + chunked(b"x", trailers=b"a: b\r\n"), PLAIN]
)
@given(places=st.lists(st.integers(0, 500), max_size=6))
def test_what_stands_behind_a_response_is_noticed_however_it_is_cut(response: bytes, places: list[int]) -> None:
    """h11 would keep it for the next request on that connection, which may be another user's."""
    alone, followed = ChunkMerger(), ChunkMerger()
    for data in cut(response, places):
        alone.feed(data)
    for data in cut(response + STRAY, places):
        followed.feed(data)
    assert (alone.surplus, followed.surplus) == (False, True)


def test_a_connection_is_clean_as_long_as_each_request_gets_one_response() -> None:
    """Else no connection would ever be used again."""
    merger = ChunkMerger()
    for response in (HEAD + chunked(b"one"), PLAIN, HEAD + chunked()):
        merger.start()
        merger.feed(response)
    assert not merger.surplus


def test_trailers_without_end_are_not_kept() -> None:
    """Nothing grows here meanwhile; where they end is not known any more, should h11 take them."""
    merger = ChunkMerger()
    merger.feed(HEAD + b"0\r\n")
    assert not merger.surplus
    for _ in range(3):
        merger.feed(b"x" * MAX_HELD)
    assert merger.surplus


LEFT_TO_H11 = {
    "a length told twice in one": b"HTTP/1.1 200 OK\r\ncontent-length: 3, 3\r\n\r\n{}\n",
    "a length on a line of its own": b"HTTP/1.1 200 OK\r\ncontent-length:\r\n 3\r\n\r\n{}\n",
    "a length where there is no body": b"HTTP/1.1 204 No Content\r\ncontent-length: 300\r\n\r\n",
    "chunked where there is no body": HEAD.replace(b"200 OK", b"204 No Content"),
    "no length where there is no body": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "chunked on a line of its own": HEAD.replace(b"g: ", b"g:\r\n ") + chunked(b"ab"),
    "spaces behind a size": HEAD + b"2 \r\nab\r\n0\r\n\r\n",
    "long trailers": HEAD + chunked(b"ab", trailers=b"x: %b\r\n" % (b"y" * MAX_HELD)),
    "trailers that end in a bare line feed": HEAD + b"2\r\nab\r\n0\r\n\n",
    "a head of bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 3\n\n{}\n",
}


@pytest.mark.parametrize("name", LEFT_TO_H11)
@settings(max_examples=30, deadline=None)
@given(places=st.lists(st.integers(0, 500), max_size=6))
def test_behind_an_end_that_h11_alone_knows_nothing_is_taken_for_the_next_response(
    name: str, places: list[int]
) -> None:
    """h11 would answer the connection's next request with what stands there."""
    response = LEFT_TO_H11[name]
    reads = cut(response + STRAY, places)
    merger = ChunkMerger()
    passed_on = [out for out in map(merger.feed, reads) if out]
    assert read([response])[2].startswith("whole")
    assert read(passed_on) == read([response])
    assert merger.surplus


@pytest.mark.parametrize("size", [b"content-length: 3\n", b"transfer-encoding: chunked\n"])
def test_a_head_of_bare_line_feeds_is_not_waited_for(size: bytes) -> None:
    """h11 knows its end; held back, the answer came with the connection's own, or too late."""
    head = b"HTTP/1.1 200 OK\n" + size + b"\n"
    merger = ChunkMerger()
    assert merger.feed(head) == head
    assert not merger.surplus
