"""The lines that were typed in earlier chats, in a file of the user's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import attrs

KEPT = 1000  # lines of the file that are read; it is cut to them when it has grown to twice as many


def history_file() -> Path | None:
    """Where the lines are kept; None where the user has no home, as in many containers."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    try:
        return Path(base, "agentrio", "chat_history").expanduser()
    except RuntimeError:
        return None


@attrs.frozen
class History:
    """Entries in a file, one a line. It is UTF-8 in every locale, and an entry of many lines comes back as one.

    What can't be read or written is left out: a chat without a history is better than none.
    """

    file: Path

    def read(self) -> list[str]:
        """The last entries, the oldest first."""
        with suppress(OSError):
            lines = self.file.read_bytes().decode("utf-8", "replace").split("\n")[:-1]
            if len(lines) > 2 * KEPT:
                self._cut(lines[-KEPT:])
            return [_entry(line) for line in lines[-KEPT:]]
        return []

    def add(self, entry: str) -> None:
        """Keep one more entry."""
        with suppress(OSError):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(self.file, [_line(entry)], os.O_APPEND)

    def _cut(self, lines: list[str]) -> None:
        short = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        _write(short, lines, os.O_TRUNC)
        short.replace(self.file)


def _write(file: Path, lines: list[str], how: int) -> None:
    number = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o600)
    with open(number, "w", encoding="utf-8", errors="replace", newline="") as opened:
        opened.writelines(f"{line}\n" for line in lines)


def _line(entry: str) -> str:
    return entry.replace("\\", "\\\\").replace("\n", "\\n")


def _entry(line: str) -> str:
    return "\\".join(part.replace("\\n", "\n") for part in line.split("\\\\"))
