"""The loopback server as a process, its command line, and script files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx2
import pytest
import trio
import trio.testing

from agentrio.testing import (
    CallsReply,
    ErrorReply,
    Fault,
    Pace,
    ProcessModelServer,
    RawReply,
    Script,
    TextReply,
    load_recordings,
    load_script,
    no_leaks,
    open_model_server_process,
    script_from_json,
    script_to_json,
)

OpenClient = Callable[[ProcessModelServer], AbstractAsyncContextManager[httpx2.AsyncClient]]
STREAM = {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
MODULE = [sys.executable, "-m", "agentrio.testing.loopback"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


async def test_a_server_process_answers_and_tells_its_record_on_a_common_clock(open_client: OpenClient) -> None:
    """Latencies across the process border are differences of one clock."""
    before = time.perf_counter_ns()
    async with no_leaks():
        async with open_model_server_process([TextReply("Hello"), ErrorReply(529)]) as server:
            async with open_client(server) as client:
                answers = [await client.post("/v1/messages", json=STREAM, headers={"x-api-key": "k"}) for _ in range(2)]
                first, second = await server.record()
                assert (await server.wait_headers(2)).number == 2
            gone = await server.wait_disconnect(2)

    assert [answer.status_code for answer in answers] == [200, 529]
    assert (first.ended, second.ended, first.body) == ("sent", "sent", STREAM)
    assert first.headers["x-api-key"].startswith("sha256:")
    assert gone.disconnected is not None
    assert before < first.arrived.ns < second.arrived.ns < gone.disconnected.ns < time.perf_counter_ns()


async def test_a_server_process_sees_a_stop_on_a_silent_stream(open_client: OpenClient) -> None:
    """The record of another process is the proof that the socket was really closed."""
    async with open_model_server_process([TextReply("x", fault=Fault(stall_after=2))]) as server:
        async with open_client(server) as client, trio.open_nursery() as nursery:
            nursery.start_soon(lambda: client.post("/v1/messages", json=STREAM))
            await server.wait_headers(1)
            assert (await server.wait_request(1)).disconnected is None
            nursery.cancel_scope.cancel()
        exchange = await server.wait_ended(1)

    assert (exchange.ended, exchange.frames_sent) == ("client_closed", 2)


async def test_recorded_files_are_replayed_in_the_order_of_their_names(tmp_path: Path, open_client: OpenClient) -> None:
    """A folder of recordings is a scene; notes beside them are not part of it."""
    (tmp_path / "b.json").write_bytes(b'{"second": true}')
    (tmp_path / "b.meta.json").write_text('{"http_status": 429, "response_headers": {"retry-after": "1", "date": "x"}}')
    (tmp_path / "b.expected.json").write_text("{}")
    (tmp_path / "a.sse").write_bytes(b"data: first\n\n")
    async with open_model_server_process(replay=[tmp_path], repeat=True) as server, open_client(server) as client:
        first, second, again = [await client.post("/v1/messages", json=STREAM) for _ in range(3)]

    assert (first.content, second.content, again.content) == (b"data: first\n\n", b'{"second": true}', first.content)
    assert (second.status_code, second.headers["retry-after"]) == (429, "1")
    assert "date" not in second.headers


@pytest.mark.parametrize("way", ["stdin", "sigterm"])
async def test_the_process_ends_with_its_stdin_and_at_sigterm(way: str, tmp_path: Path) -> None:
    """A benchmark that dies must leave no server behind."""
    (tmp_path / "script.json").write_text("[]")
    command = [*MODULE, "--script", str(tmp_path / "script.json")]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stdin is not None
    assert process.stdout is not None
    assert (await process.stdout.receive_some()).startswith(b"http://127.0.0.1:")
    if way == "stdin":
        await process.stdin.aclose()
    else:
        process.send_signal(signal.SIGTERM)

    assert await process.wait() == 0
    await process.stdin.aclose()
    await process.stdout.aclose()


async def test_a_process_that_cannot_read_its_replies_says_which(tmp_path: Path) -> None:
    """A mistake in a script is found before anybody connects."""
    path = tmp_path / "script.json"
    path.write_text('[{"type": "text"}, {"type": "text", "fault": {"stal_after": 3}}]')
    done = await trio.run_process(
        [*MODULE, "--script", str(path)], env=ENVIRONMENT, check=False, capture_stderr=True, capture_stdout=True
    )

    assert done.returncode == 1
    assert b"reply 2" in done.stderr
    assert b"stal_after" in done.stderr
    assert b"Traceback" not in done.stderr


async def test_a_process_that_never_listens_is_an_error(tmp_path: Path) -> None:
    """The block is not entered, and what the process said is on stderr."""
    with pytest.raises(RuntimeError, match="ended before it listened"):
        async with open_model_server_process(replay=[tmp_path / "absent.sse"]):
            pytest.fail("never entered")


async def test_help_tells_the_record_and_the_script() -> None:
    """Whoever runs it by hand reads no source."""
    done = await trio.run_process([*MODULE, "--help"], env=ENVIRONMENT, capture_stdout=True)

    assert b"--replay" in done.stdout
    assert b"/__record" in done.stdout


def test_a_script_survives_json_byte_for_byte() -> None:
    """What a test scripts in its own loop, a benchmark can send to a process."""
    script = Script(
        [
            TextReply(["a", "bc"], thinking="hm", pace=Pace(pieces=3)),
            CallsReply([{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": '{"cut', "id": "toolu_1"}]),
            RawReply(b"\xff\xfe data", status=203),
            ErrorReply(429, headers={"retry-after": "3"}, fault=Fault(close_after=True)),
        ],
        repeat=True,
    )
    again = script_from_json(script_to_json(script))
    text, calls, raw, error = again.replies

    assert again.repeat
    assert isinstance(text, TextReply)
    assert (text.text, text.thinking) == (("a", "bc"), ("hm",))
    assert isinstance(calls, CallsReply)
    assert [call.arguments for call in calls.calls] == [{"x": 1}, '{"cut']
    assert isinstance(raw, RawReply)
    assert (raw.body, raw.status) == (b"\xff\xfe data", 203)
    assert isinstance(error, ErrorReply)
    assert (error.status, error.fault.close_after) == (429, True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "a script is"),
        ('{"replies": [], "repeats": true}', "a script is"),
        ('[{"type": "txt"}]', "reply 1: its type must be one of text, calls, raw, error"),
        ('[{"type": "text", "text": 3}]', "reply 1: .*a string or a list of strings"),
        ('[{"type": "calls", "calls": [{"name": "f", "arguments": 3}]}]', "reply 1: .*arguments are an object"),
        ('[{"type": "text", "pace": {"chunks": "lines"}}]', "reply 1: .*chunks is"),
        ('[{"type": "text", "fault": {"stal_after": 3}}]', "reply 1: .*stal_after"),
    ],
)
def test_a_mistake_in_a_script_is_told_with_its_place(text: str, reason: str, tmp_path: Path) -> None:
    """A misspelt fault that passed as no fault would make a test that proves nothing."""
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=reason):
        load_script(path)


def test_recordings_may_be_named_one_by_one(tmp_path: Path) -> None:
    """The order of a demonstration is its own."""
    for name in "ab":
        (tmp_path / f"{name}.sse").write_text(name)
    bodies = [reply.body for reply in load_recordings(tmp_path / "b.sse", tmp_path / "a.sse")]

    assert bodies == [b"b", b"a"]
