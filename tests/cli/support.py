"""Running the command line as a process, with and without a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

PATIENCE = 120  # seconds; a watchdog for a hung process, far above what one needs
AGENTRIO = (sys.executable, "-m", "agentrio.cli")


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The finished process of one command."""
    return subprocess.run(
        [*AGENTRIO, *arguments], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **(env or {})}
    )


class Terminal:
    """A process whose output is a pseudo-terminal."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self.shown = ""

    def read_until(self, text: str) -> None:
        """Read until the text is shown; fails where the process ends first."""
        while text not in self.shown:
            assert self._read(), f"the process ended without showing {text!r}: {self.shown}"

    def interrupt(self) -> None:
        """What the terminal sends when Ctrl-C is pressed."""
        self._process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        """The exit code, with all that was shown read."""
        while self._read():
            pass
        return self._process.wait(PATIENCE)

    def _read(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux tells that the other end is closed
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


@contextmanager
def terminal(command: Sequence[str], **env: str) -> Iterator[Terminal]:
    """A process in a terminal of 100 columns; killed when the block is left."""
    master, slave = pty.openpty()
    full = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **env}
    try:
        with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=full) as process:
            os.close(slave)
            try:
                yield Terminal(process, master)
            finally:
                process.kill()
    finally:
        os.close(master)
