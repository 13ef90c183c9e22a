"""A server that is broken or means ill: over a real socket, through the public door."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio

from agentrio import Agent, Anthropic, OpenAIChat, OpenAIResponses, RunResult, open_runtime
from agentrio.providers.base import Model, ProviderError
from agentrio.providers.wire.anthropic_assembler import Assembler as Messages
from agentrio.providers.wire.assembling import EventAssembler
from agentrio.providers.wire.chat_assembler import ChatAssembler
from agentrio.providers.wire.responses_assembler import Assembler as Responses
from agentrio.testing import ModelServer, Pace, RawReply, open_model_server

KEY = "sk-hostile-0123456789"


def event(frame: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(frame)}\n\n".encode()


def start(block: object, index: object = 0) -> bytes:
    return event({"type": "content_block_start", "index": index, "content_block": block})


def delta(fields: object) -> bytes:
    return event({"type": "content_block_delta", "index": 0, "delta": fields})


def end(usage: object = None) -> bytes:
    return event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})


FINE = start({"type": "text", "text": "Fine."}) + end() + event({"type": "message_stop"})
NESTED: Any = json.loads("[" * 500 + "]" * 500)


def claude(server: ModelServer) -> Model:
    return Anthropic("claude-sonnet-5", api_key=KEY, base_url=server.base_url)


async def ask(*replies: RawReply) -> RunResult[Any]:
    """What the session answers; a good server behind a bad one must be understood."""
    async with open_model_server([*replies, RawReply(FINE)]) as server, open_runtime() as runtime:
        async with runtime.open_session(Agent(model=claude(server))) as session:
            result = await session.ask("Go on.")
            if result.text != "Fine.":
                assert (await session.ask("And now?")).text == "Fine."
            return result


@pytest.mark.parametrize(
    "frames",
    [
        start({"type": []}),
        start({"type": {"a": 1}}),
        event({"type": "message_start", "message": {"content": [{"type": []}]}}),
    ],
)
async def test_a_block_whose_type_is_no_text_is_no_crash(frames: bytes, autojump_clock: object) -> None:
    """A run ends with a failure or an answer, and its session lives on; a ``TypeError`` ended both."""
    result = await ask(RawReply(frames + FINE))
    assert result.status == "succeeded"


@pytest.mark.parametrize("tokens", [10**400, 1e308, 2**70, -5, "many", True])
async def test_usage_beyond_all_measure_is_no_crash(tokens: object, autojump_clock: object) -> None:
    """A count that no float holds raised ``OverflowError``; what is reported can be written as JSON by anybody."""
    result = await ask(RawReply(start({"type": "text", "text": "Fine."}) + end({"output_tokens": tokens})))
    assert result.status == "succeeded"
    assert 0 <= result.usage.output < 2**53


@pytest.mark.parametrize(
    "frames",
    [
        start({"type": "odd"}) + delta({"type": "odd_delta", "deep": NESTED}),
        start({"type": "text", "text": "x"}) + delta({"type": "citations_delta", "citation": NESTED}),
        start({"type": "tool_use", "id": "t", "name": "t", "input": {"deep": NESTED}}),
        start({"type": "text", "text": "x", "deep": NESTED}),
        event({"type": "error", "error": {"deep": NESTED}}),
    ],
)
async def test_json_nested_beyond_sense_is_a_typed_failure(frames: bytes, autojump_clock: object) -> None:
    """Wherever a value is walked, each level costs stack: what was read had to be refused when it was read."""
    result = await ask(RawReply(frames + end()))
    assert result.failure is not None
    assert result.failure.code == "invalid_response"
    assert "nested" in result.failure.message


async def test_what_is_no_json_is_passed_over_and_told_once(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is kept, and whoever runs the program learns that there was more. ``[DONE]`` ends many streams."""
    text, junk = {"type": "text_delta", "text": "Fine."}, b'data: {"type": "content_bl\n\n' + b"data: what?\n\n"
    frames = start({"type": "text", "text": ""}) + junk + delta(text) + junk + end() + b"data: [DONE]\n\n"
    unknown = event({"type": "something new"})
    assert (await ask(RawReply(frames + unknown))).text == "Fine."
    assert [record.getMessage() for record in caplog.records] == [
        "4 events of a response of 127.0.0.1 were no JSON, and were passed over"
    ]


@pytest.mark.parametrize("assembler", [Messages, ChatAssembler, Responses])
def test_on_each_wire_it_is_counted_what_was_no_json(assembler: Callable[[], EventAssembler]) -> None:
    """Frames that are JSON and say nothing known are another matter."""
    reading = assembler()
    reading.feed(b"data: {\n\ndata: [1]\n\ndata: null\n\ndata: [DONE] \n\ndata: }{\n\n" + event({"type": "x"}))
    assert reading.unread == 2


async def test_brackets_in_a_text_are_no_nesting(autojump_clock: object) -> None:
    """Code and drawings are full of them."""
    wide = event({"type": "of_no_meaning", "wide": [{}] * 500})
    result = await ask(RawReply(wide + start({"type": "text", "text": '{"[' * 500}) + end()))
    assert result.text == '{"[' * 500


async def test_a_server_that_goes_on_behind_its_last_frame_does_not_hold_the_run(autojump_clock: object) -> None:
    """The response is whole; each further ping granted the server half a second more, for ever."""
    begun = trio.current_time()
    result = await ask(RawReply(FINE + b": more\n\n" * 10_000, pace=Pace(delay=0.2)))
    assert result.text == "Fine."
    assert trio.current_time() - begun < 10  # on the clock that jumps; the pings take 2,000


@pytest.mark.parametrize("words", [f"key {KEY} is bad", "x" * 490 + KEY])
async def test_a_key_that_an_error_frame_quotes_is_not_told(words: str, autojump_clock: object) -> None:
    """As in an error's status; nor is the beginning of one that the end of the quote cuts."""
    frame = {"type": "error", "error": {"type": f"bad_{KEY}", "message": words}, "request_id": KEY}
    result = await ask(*[RawReply(event(frame))] * 4)
    assert result.status == "error"
    assert KEY[:8] not in repr(result)
    assert result.failure is not None
    assert "[key]" in result.failure.message


async def test_a_type_or_an_id_of_a_megabyte_is_cut(autojump_clock: object) -> None:
    """A failure is shown to people."""
    frame = {"type": "error", "error": {"type": "t" * 1_000_000}, "request_id": "r" * 1_000_000}
    result = await ask(*[RawReply(event(frame))] * 4)
    assert len(repr(result)) < 10_000


async def test_a_compressed_flood_is_taken_in_pieces(autojump_clock: object) -> None:
    """A read of 64 KB becomes as many megabytes: taken at once, nothing else ran meanwhile, a stop neither."""
    flood = gzip.compress(b"\n" * 5_000_000 + FINE)
    result = await ask(RawReply(flood, headers={"content-encoding": "gzip"}))
    assert result.text == "Fine."


async def test_millions_of_parts_are_refused(autojump_clock: object) -> None:
    """Each costs a hundred times the memory that it takes on the wire."""
    result = await ask(RawReply(b"".join(start({}, index) for index in range(10_001)) + end()))
    assert result.failure is not None
    assert result.failure.code == "invalid_response"


def chat_flood() -> bytes:
    calls = [{"index": index, "id": f"c{index}", "function": {"name": "t"}} for index in range(10_001)]
    return event({"choices": [{"delta": {"tool_calls": calls}}]})


def items_flood() -> bytes:
    item = {"type": "web_search_call", "id": ""}
    added = [{"type": "response.output_item.added", "output_index": index, "item": item} for index in range(10_001)]
    return b"".join(map(event, added))


def texts_flood() -> bytes:
    text = {"type": "response.output_text.delta", "output_index": 0, "delta": "x"}
    return b"".join(event({**text, "content_index": index}) for index in range(10_001))


@pytest.mark.parametrize("flood", [chat_flood, items_flood, texts_flood])
async def test_so_they_are_on_the_other_wires(flood: Any, autojump_clock: object) -> None:
    """The bound is that of the response, not of a wire."""
    model = OpenAIChat if flood is chat_flood else OpenAIResponses
    async with open_model_server([RawReply(flood())]) as server, open_runtime() as runtime:
        agent = Agent(model=model("m", api_key=KEY, base_url=f"{server.base_url}/v1"))
        async with runtime.open_session(agent) as session:
            result = await session.ask("Go on.")
    assert result.failure is not None
    assert result.failure.code == "invalid_response"


def test_a_response_without_an_end_is_refused_at_its_limit() -> None:
    """Comments count: they keep a stream alive, and only a stop, a deadline or this ends one that says nothing else."""
    assembler = EventAssembler(max_stream=10)
    assert assembler.feed(b": alive\n\n") == []
    with pytest.raises(ProviderError, match="that is the limit"):
        assembler.feed(b": alive\n\n")


def response(words: str) -> bytes:
    """A whole answer as a server writes it: head, one chunk, the end."""
    frames = start({"type": "text", "text": words}) + end() + event({"type": "message_stop"})
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(frames), frames)


async def test_a_second_response_behind_the_first_answers_nobody(autojump_clock: object) -> None:
    """A kept connection would hand it to the next request, which may be another user's: they read each other's mail."""
    connections = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal connections
        connections += 1
        answer = response("Mine.") + response("Another's.") if connections == 1 else response("Yours.")
        async for data in stream:
            if data.endswith(b"}"):  # the end of a request
                await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        host, port = listeners[0].socket.getsockname()
        model = Anthropic("claude-sonnet-5", api_key=KEY, base_url=f"http://{host}:{port}")
        async with open_runtime() as runtime:
            async with runtime.open_session(Agent(model=model)) as one, runtime.open_session(Agent(model=model)) as two:
                answers = [(await one.ask("Mine?")).text, (await two.ask("Mine?")).text]
        nursery.cancel_scope.cancel()
    assert (answers, connections) == (["Mine.", "Yours."], 2)


@pytest.mark.parametrize(
    "large",
    [
        start({"type": "text", "text": "word " * 60_000}),
        start({"type": "tool_use", "id": "t", "name": "t", "input": {"a": "word " * 60_000}}),
    ],
)
async def test_an_answer_larger_than_the_context_does_not_end_the_session(large: bytes, autojump_clock: object) -> None:
    """J12: whatever one answer was, the next prompt is sent; what is too large is shortened, and said to be."""
    async with open_model_server([RawReply(large + end()), *[RawReply(FINE)] * 2]) as server, open_runtime() as runtime:
        async with runtime.open_session(Agent(model=claude(server))) as session:
            first = await session.ask("Go on.")
            result = await session.ask("And now?")
    assert (first.status, first.failure) == ("succeeded", None)
    assert (result.status, result.failure) == ("succeeded", None)
    assert len(json.dumps(server.record[-1].body)) < 10_000
