"""The Messages encoder against rules of the wire, and recorded streams through the server."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.testing import CallsReply, ModelServer, Pace, Received, TextReply, load_recordings, open_model_server
from agentrio.testing.loopback.wires import WIRES

OpenClient = Callable[[ModelServer], AbstractAsyncContextManager[httpx2.AsyncClient]]
STREAM = {"model": "m", "max_tokens": 100, "stream": True, "messages": []}
REQUEST = Received(1, 1, "POST", "/v1/messages", {}, STREAM)
CORPUS = Path(__file__).parents[3] / "shared" / "wire"
RECORDED = [CORPUS / name for name in ("anthropic", "anthropic-llamacpp") if (CORPUS / name).is_dir()]
MESSAGES = WIRES["/v1/messages"]

texts = st.text(st.characters(exclude_categories=["Cs"]))
arguments = st.dictionaries(texts, st.none() | st.booleans() | st.integers(-9, 9) | texts | st.lists(texts))
calls = st.lists(st.builds(lambda name, given: {"name": name, "arguments": given}, texts, arguments), max_size=3)
replies = st.builds(TextReply, texts, thinking=st.none() | texts) | st.builds(
    CallsReply, calls, text=texts, thinking=st.none() | texts
)


def _events(frames: list[bytes]) -> list[dict[str, Any]]:
    events = []
    for frame in frames:
        name, data, *rest = frame.split(b"\n")
        assert rest == [b"", b""]
        event = json.loads(data.removeprefix(b"data: "))
        assert name.decode() == f"event: {event['type']}"
        events.append(event)
    return events


def _assemble(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks of a stream by the published rules, and nothing else."""
    blocks: list[dict[str, Any]] = []
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append(event["content_block"])
            case "content_block_delta":
                (key,) = event["delta"].keys() - {"type"}
                blocks[event["index"]][key] = blocks[event["index"]].get(key, "") + event["delta"][key]
    for block in blocks:
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json") or "{}")
    return blocks


@given(replies)
def test_a_stream_and_a_whole_answer_say_the_same(reply: TextReply | CallsReply) -> None:
    """Whatever the reply holds, the two forms of the wire agree, and the frames come in their order."""
    events = _events(list(MESSAGES.frames(reply, REQUEST)))
    whole = json.loads(MESSAGES.body(reply, REQUEST))

    assert _assemble(events) == whole["content"]
    assert [event["type"] for event in events[:2]] == ["message_start", events[1]["type"]]
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == whole["stop_reason"]
    assert events[-2]["usage"] == whole["usage"]


def test_calls_without_ids_get_other_ids_in_another_request() -> None:
    """A repeated script must not look like one call that was asked for twice."""
    reply = CallsReply([{"name": "f"}, {"name": "g"}])
    ids = [
        block["id"]
        for number in (1, 2)
        for block in _assemble(_events(list(MESSAGES.frames(reply, attrs.evolve(REQUEST, number=number)))))
    ]

    assert len(set(ids)) == 4


def test_raw_arguments_are_sent_as_they_are() -> None:
    """Cut or broken arguments are what a loop must refuse, so they must arrive broken."""
    reply = CallsReply([{"name": "f", "arguments": '{"city": "Os'}], stop_reason="max_tokens")
    deltas = [e["delta"] for e in _events(list(MESSAGES.frames(reply, REQUEST))) if "index" in e and "delta" in e]

    assert deltas[0]["partial_json"] == "", "the API's first fragment is empty"
    assert "".join(delta["partial_json"] for delta in deltas) == '{"city": "Os'
    assert json.loads(MESSAGES.body(reply, REQUEST))["content"][0]["input"] == '{"city": "Os'


def test_a_long_reply_is_encoded_once() -> None:
    """A load of many requests for one reply must cost the server little."""
    reply = TextReply(["x"] * 1000)
    first, second = (MESSAGES.frames(reply, attrs.evolve(REQUEST, number=number)) for number in (1, 2))

    assert first[0] != second[0]
    assert all(one is other for one, other in zip(first[1:], second[1:], strict=True))


@pytest.mark.skipif(not RECORDED, reason="the corpus of recorded wires is not beside the repository")
@pytest.mark.parametrize("seed", [None, 7])
async def test_recorded_bodies_come_out_as_they_were_recorded(seed: int | None, open_client: OpenClient) -> None:
    """Whole or in random pieces, a replay is byte for byte what a real server once said."""
    recordings = [attrs.evolve(reply, pace=Pace(pieces=seed)) for reply in load_recordings(*RECORDED)]
    async with open_model_server(recordings, validate=False) as server, open_client(server) as client:
        for reply in recordings:
            answer = await client.post("/v1/messages", json=STREAM)
            assert (answer.status_code, answer.content) == (reply.status, reply.body)

    assert len(recordings) > 50
