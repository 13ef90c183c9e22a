"""``python -m agentrio.testing.loopback``: the loopback model server as a process."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import trio
import trio.testing

from agentrio.testing.loopback.script import Script
from agentrio.testing.loopback.script_json import load_recordings, load_script
from agentrio.testing.loopback.server import ModelServer, open_model_server

DESCRIPTION = """\
A model server for tests, on 127.0.0.1: it speaks the wires of Anthropic and OpenAI, answers from a script or from
recorded files, fails as it is told, and keeps a record of what it saw. It prints its URL as the first line, and ends
with its stdin, or at SIGTERM."""

EPILOG = """\
The record is at GET /__record; /__record?request=3 waits for request 3 first (also headers=, ended=, disconnect=).
A script is a JSON list of replies, e.g. [{"type": "text", "text": "Hello", "fault": {"stall_after": 3}}]."""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; exits with a message on a wrong one."""
    parser = argparse.ArgumentParser(
        prog="python -m agentrio.testing.loopback",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (the default) takes a free one")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--script", type=Path, metavar="FILE.json", help="replies, in the order of the requests")
    source.add_argument(
        "--replay", type=Path, nargs="+", metavar="PATH", help="recorded .sse or .json files, or folders"
    )
    parser.add_argument("--repeat", action="store_true", help="begin again after the last reply")
    parser.add_argument(
        "--no-validate", dest="validate", action="store_false", help="answer requests that a provider would refuse, too"
    )
    parser.add_argument("--ignore-stdin", action="store_true", help="do not end when stdin does")
    return parser.parse_args(arguments)


def main() -> None:
    """Serve until told to end. A script or recording that cannot be read ends the process with the reason."""
    options = parse()
    try:
        script = load_script(options.script) if options.script else Script(load_recordings(*options.replay))
    except (OSError, ValueError) as error:
        sys.exit(f"cannot read the replies: {error}")
    script = Script(script.replies, repeat=script.repeat or options.repeat)
    open_server = partial(open_model_server, script, port=options.port, validate=options.validate)
    trio.run(partial(_serve, open_server, watch_stdin=not options.ignore_stdin))


OpenServer = Callable[[], AbstractAsyncContextManager[ModelServer]]


async def _serve(open_server: OpenServer, *, watch_stdin: bool) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery, open_server() as server:
            print(server.base_url, flush=True)
            if watch_stdin:
                nursery.start_soon(_watch_stdin, nursery.cancel_scope)
            async for _ in signals:
                break
            nursery.cancel_scope.cancel()


async def _watch_stdin(scope: trio.CancelScope) -> None:
    # os.read, not sys.stdin: a thread that is abandoned inside sys.stdin holds its lock, and breaks the exit.
    while await trio.to_thread.run_sync(os.read, 0, 4096, abandon_on_cancel=True):
        pass
    scope.cancel()


if __name__ == "__main__":
    main()
