"""What a person types: a line at a time, read in a thread so that the loop goes on meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from functools import partial
from io import TextIOWrapper
from types import ModuleType
from typing import Any, Protocol, TextIO, TypeAlias

import attrs
import trio

from .history import History, history_file

PROMPT = "> "
INTERRUPT, SUSPEND = "\x03", "\x1a"  # what the keys Ctrl-C and Ctrl-Z send
PASTES_UNMARKED = "\x1b[?2004l"  # to the terminal: mark what is pasted no more


class Left(Enum):
    """No line came: the input has ended, or Ctrl-C was pressed at an empty prompt."""

    END = "end"
    INTERRUPTED = "interrupted"


Line: TypeAlias = str | Left


class Lines(Protocol):
    """Where lines come from."""

    async def read(self) -> Line:
        """The next line. A cancelled read leaves its thread behind, and nothing may be read after it."""
        ...


@contextmanager
def open_lines(*, history: bool, edited: bool) -> Generator[Lines]:
    """Lines of the terminal. The terminal is left as it was found.

    ``edited`` asks for readline's keys, where it can be had; stdout must be the terminal. ``history`` says whether
    lines typed earlier are read from a file, and new ones added to it.
    """
    readline = _readline() if edited else None
    file = history_file() if history else None
    with _terminal_as_found():
        yield PlainLines() if readline is None else EditedLines(readline, None if file is None else History(file))


@contextmanager
def _terminal_as_found() -> Generator[None]:
    import termios

    found = _settings()
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal has gone away
            termios.tcsetattr(0, termios.TCSANOW, found)


def _settings() -> list[Any]:
    import termios

    try:
        return termios.tcgetattr(0)
    except termios.error as gone:  # which is no OSError
        raise OSError(*gone.args) from gone


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:
        return None
    return readline


class EditedLines:
    """Lines edited with readline.

    While a line is edited the terminal hands Ctrl-C on as a key, which ends the line there and marks it: as in a shell,
    a line that has something in it is dropped, and only at an empty prompt Ctrl-C leaves. So it is with Ctrl-Z, or the
    terminal would come back without the keys of readline; the line is begun again with what was in it.
    """

    def __init__(self, readline: Any, history: History | None) -> None:
        self._readline = readline
        self._history = history
        self._reads = False
        self._marks_pastes = os.environ.get("TERM", "") not in ("", "dumb")
        self._own_keys = getattr(readline, "backend", "readline") == "readline" and "libedit" not in readline.__doc__
        readline.set_auto_history(False)
        if self._marks_pastes:  # Python turns it off for its own prompt
            readline.parse_and_bind("set enable-bracketed-paste on")
        if self._own_keys:
            self._bind()
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")  # a byte that is no character must not end the chat
        for line in () if history is None else history.read():
            self._recall(line)

    async def read(self) -> Line:
        """The next line; also after a line was dropped."""
        with _terminal_as_found():  # a read that is left behind has its own settings
            try:
                return await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
            finally:
                if self._reads:
                    _end_line(sys.stdout, PASTES_UNMARKED if self._marks_pastes else "")

    def _read(self) -> Line:
        text = ""
        while True:
            try:
                line = self._edit(text)
            except EOFError:
                print()  # behind the prompt
                return Left.END
            text = ""
            if SUSPEND in line:
                text = line.replace(SUSPEND, "")
                _suspend()
            elif INTERRUPT not in line:
                self._remember(line)
                return line
            elif line.strip() == INTERRUPT:
                return Left.INTERRUPTED

    def _edit(self, text: str) -> str:
        self._readline.set_pre_input_hook(partial(self._begin_with, text) if text else None)
        self._reads = True
        try:
            with _signals_are_keys() if self._own_keys else nullcontext():
                return input(PROMPT)
        finally:
            self._reads = False

    def _begin_with(self, text: str) -> None:
        self._readline.insert_text(text)
        self._readline.redisplay()

    def _bind(self) -> None:
        for keymap in ("vi-insert", "vi-command", "emacs"):  # the last one stays, where nobody has asked for vi
            self._readline.parse_and_bind(f"set keymap {keymap}")
            for key in ("c", "z"):  # quoted insert, the key itself, enter; it is drawn as ^C
                self._readline.parse_and_bind(rf'"\C-{key}": "\C-v\C-{key}\C-m"')

    def _remember(self, line: str) -> None:
        if line.strip():
            self._recall(line)
            if self._history is not None:
                self._history.add(line)

    def _recall(self, line: str) -> None:
        with suppress(ValueError):  # in a locale without these characters no arrow brings them back
            self._readline.add_history(line)


@contextmanager
def _signals_are_keys() -> Generator[None]:
    """Ctrl-C and Ctrl-Z are keys and no signals. The rest stays what it is."""
    import termios

    found, changed = _settings(), _settings()
    changed[6][termios.VINTR] = changed[6][termios.VSUSP] = os.fpathconf(0, "PC_VDISABLE").to_bytes()
    termios.tcsetattr(0, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, found)


def _suspend() -> None:
    """Stop until the shell says to go on, as Ctrl-Z does: all that runs in front of the terminal.

    The signal to the process may reach its main thread first, while this one goes on for a moment. So this thread has
    one of its own, which waits until both are sent; to go on takes back what has not been delivered by then.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
    signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
    os.kill(0, signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})


@attrs.define(eq=False)
class PlainLines:
    """Lines with no more keys than the terminal itself has; the prompt goes to stderr."""

    _reads: bool = False

    async def read(self) -> Line:
        """The next line."""
        try:
            return await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        finally:
            if self._reads:
                _end_line(sys.stderr)

    def _read(self) -> Line:
        # os.read, not sys.stdin: a thread left behind inside sys.stdin would hold its lock, and the exit would hang.
        self._reads = True  # before there is a prompt to see: who sees it may end the chat at once
        print(PROMPT, end="", file=sys.stderr, flush=True)
        line = bytearray()
        while not line.endswith(b"\n"):
            data = os.read(0, 65536)  # a terminal hands over one line, or the piece of it before a Ctrl-D
            if not data:
                print(file=sys.stderr, flush=True)  # behind the prompt
                break
            line += data
        self._reads = False
        return line.decode(errors="replace").rstrip("\n") if line else Left.END


def _end_line(stream: TextIO, told: str = "") -> None:
    """What comes next in the terminal, such as the prompt of a shell, begins a line of its own."""
    with suppress(OSError):  # the terminal has gone away
        print(told, file=stream, flush=True)


async def read_all() -> str:
    """All of stdin, when it ends."""
    return await trio.to_thread.run_sync(_read_all, abandon_on_cancel=True)


def _read_all() -> str:
    whole = bytearray()
    while data := os.read(0, 65536):
        whole += data
    return whole.decode(errors="replace")
