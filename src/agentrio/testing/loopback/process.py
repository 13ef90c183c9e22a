"""The loopback model server as a process of its own, for benchmarks and for tests across a process border."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio
import trio.testing

from agentrio.testing import child
from agentrio.testing.loopback.record import Exchange
from agentrio.testing.loopback.script import Reply, Script
from agentrio.testing.loopback.script_json import script_to_json

__all__ = ["ProcessModelServer", "open_model_server_process"]

LAST_WORDS = 2.0  # seconds for the process to end after its stdin did; then it is killed
READ_SIZE = 65536  # bytes


class ProcessModelServer:
    """Handle of a server process. Its record is fetched; the waits return an exchange as it was at that moment.

    Attributes:
        base_url: Where it listens, without a slash at the end.
        pid: Of the process.
    """

    def __init__(self, base_url: str, pid: int) -> None:
        self.base_url = base_url
        self.pid = pid

    async def record(self) -> list[Exchange]:
        """Fetch what the server saw so far. An `OSError` means that it has ended."""
        return await self._fetch("")

    async def wait_request(self, number: int = 1) -> Exchange:
        """Wait until request ``number`` (from 1) has arrived."""
        return (await self._fetch(f"?request={number}"))[number - 1]

    async def wait_headers(self, number: int = 1) -> Exchange:
        """Wait until the headers of the reply to request ``number`` were sent."""
        return (await self._fetch(f"?headers={number}"))[number - 1]

    async def wait_ended(self, number: int = 1) -> Exchange:
        """Wait until the exchange is over, however it ended."""
        return (await self._fetch(f"?ended={number}"))[number - 1]

    async def wait_disconnect(self, number: int = 1) -> Exchange:
        """Wait until the client was seen to close the connection of request ``number``."""
        return (await self._fetch(f"?disconnect={number}"))[number - 1]

    async def _fetch(self, query: str) -> list[Exchange]:
        # By hand: a client of httpx2 costs tens of milliseconds for certificates that nobody needs here.
        host, _, port = self.base_url.removeprefix("http://").partition(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(
                f"GET /__record{query} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode()
            )
            answer = bytearray()
            while data := await stream.receive_some(READ_SIZE):
                answer += data
        _, _, body = answer.partition(b"\r\n\r\n")
        return [Exchange.from_json(each) for each in json.loads(body)]


@asynccontextmanager
async def open_model_server_process(
    script: Script | Sequence[Reply] = (),
    *,
    replay: Sequence[Path] = (),
    repeat: bool = False,
    validate: bool = True,
) -> AsyncGenerator[ProcessModelServer]:
    """Serve a script, or recorded files, from another process for the length of the block.

    Args:
        script: Replies in the order of the requests. A function cannot cross to the process.
        replay: Recorded files or folders of them, in place of a script.
        repeat: Begin again after the last reply.
        validate: Answer 400 to a request that the wire's provider would refuse.

    The process ends with the block. It also ends by itself when this process does.

    Raises:
        RuntimeError: The process ended before it said where it listens; its words are on stderr.
    """
    with tempfile.TemporaryDirectory(prefix="agentrio-loopback-") as folder:
        more = [] if validate else ["--no-validate"]
        process = await _start([*_arguments(Path(folder), script, replay, repeat), *more])
        try:
            base_url = await child.first_line(process)
            if base_url is None:
                raise RuntimeError("the model server process ended before it listened; its words are on stderr")
            yield ProcessModelServer(base_url, process.pid)
        finally:
            await child.end(process, LAST_WORDS)  # noqa: ASYNC102  # it shields itself, and has its deadline


def _arguments(folder: Path, script: Script | Sequence[Reply], replay: Sequence[Path], repeat: bool) -> list[str]:
    if replay:
        return ["--replay", *map(str, replay), *(["--repeat"] if repeat else [])]
    whole = script if isinstance(script, Script) else Script(script, repeat=repeat)
    path = folder / "script.json"
    path.write_text(script_to_json(whole), encoding="utf-8")
    return ["--script", str(path)]


async def _start(arguments: Sequence[str]) -> trio.Process:
    command = [sys.executable, "-m", "agentrio.testing.loopback", "--port", "0", *arguments]
    paths = os.pathsep.join(path for path in sys.path if path)  # so that it finds what this process found
    environment = {**os.environ, "PYTHONPATH": paths}
    return await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
