"""Running the command line as a process, with and without a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from agentrio.testing import Reply, Script, script_to_json

# A shell's job in the background ignores it, and so would all that is run here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PATIENCE = 60  # seconds; a watchdog for a hung process, far above what one needs
AGENTRIO = (sys.executable, "-m", "agentrio.cli")


def run(
    *arguments: str, env: Mapping[str, str] | None = None, said: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The finished process of one command; ``said`` comes to it through a pipe."""
    return subprocess.run(
        [*AGENTRIO, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **(env or {})},
        input=said,
        cwd=cwd,
    )


class Terminal:
    """A process whose output is a pseudo-terminal."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self.shown = ""
        self._at = 0

    def read_until(self, text: str) -> None:
        """Read until the text is shown; fails where the process ends first."""
        while text not in self.shown:
            assert self._read(), f"the process ended without showing {text!r}: {self.shown}"

    def read_next(self, text: str) -> str:
        """Read until the text is shown behind what was last read so; what stood before it."""
        while (found := self.shown.find(text, self._at)) < 0:
            assert self._read(), f"the process ended without showing {text!r}: {self.shown}"
        before, self._at = self.shown[self._at : found], found + len(text)
        return before

    def type(self, text: str) -> None:
        """Press keys. A byte that is no UTF-8 is written as ``surrogateescape`` has it."""
        os.write(self._master, text.encode(errors="surrogateescape"))

    def interrupt(self) -> None:
        """What the terminal sends when Ctrl-C is pressed."""
        self.signal(signal.SIGINT)

    def signal(self, number: int) -> None:
        """What `kill` sends."""
        self._process.send_signal(number)

    def resize(self, columns: int) -> None:
        """Make the window as wide as that."""
        termios.tcsetwinsize(self._master, (40, columns))

    def settings(self) -> list[Any]:
        """How the terminal is set, as `termios` has it."""
        return termios.tcgetattr(self._master)

    def wait(self) -> int:
        """The exit code, with all that was shown read."""
        while self._read():
            pass
        return self._process.wait(PATIENCE)

    def leave(self) -> int:
        """Press Ctrl-D at the next prompt; the exit code."""
        self.read_next("> ")
        self.type("\x04")
        return self.wait()

    def press_until_gone(self, key: str) -> int:
        """Press a key, again and again, until the process has ended; its exit code."""
        return self._until_gone(lambda: self.type(key))

    def signal_until_gone(self, number: int) -> int:
        """As `press_until_gone`, with what `kill` sends."""
        return self._until_gone(lambda: self.signal(number))

    def _until_gone(self, act: Callable[[], None]) -> int:
        while self._process.poll() is None:
            act()
            self._read(within=0.1)
        return self.wait()

    def _read(self, within: float = PATIENCE) -> bool:
        ready, _, _ = select.select([self._master], [], [], within)
        if not ready:
            assert within < PATIENCE, f"the process shows nothing more: {self.shown}"
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux tells that the other end is closed
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


@contextmanager
def terminal(command: Sequence[str], *, redirect: str = "", cwd: Path | None = None, **env: str) -> Iterator[Terminal]:
    """A process in a terminal of 100 columns, which is its own; killed when the block is left.

    ``redirect`` is what a shell would be told, such as ``2>&1`` or ``>file``.
    """
    master, slave = pty.openpty()
    full = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **env}
    # The first terminal that the leader of a session opens becomes its own: Ctrl-C is sent there.
    adopted = ["sh", "-c", f'exec "$@" <"$0" >"$0" 2>&1 {redirect}', os.ttyname(slave), *command]
    try:
        with subprocess.Popen(
            adopted, stdin=slave, stdout=slave, stderr=slave, env=full, cwd=cwd, start_new_session=True
        ) as process:
            os.close(slave)
            try:
                yield Terminal(process, master)
            finally:
                process.kill()
    finally:
        os.close(master)


@attrs.frozen
class Server:
    """A model server in a process of its own."""

    base_url: str

    def record(self, query: str = "") -> list[dict[str, Any]]:
        """What it saw; ``disconnect=1`` and the like wait for that first."""
        with urllib.request.urlopen(f"{self.base_url}/__record?{query}", timeout=PATIENCE) as answer:
            exchanges: list[dict[str, Any]] = json.load(answer)
        return exchanges


@contextmanager
def model_server(folder: Path, *replies: Reply, repeat: bool = False) -> Iterator[Server]:
    """A server that answers from a script."""
    script = folder / "script.json"
    script.write_text(script_to_json(Script(replies, repeat=repeat)), encoding="utf-8")
    command = [sys.executable, "-m", "agentrio.testing.loopback", "--script", str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip())
        finally:
            process.terminate()
