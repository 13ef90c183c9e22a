"""The answer's own way to stdout: what tools print there would stand in the middle of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def open_answer(encoding: str | None = None) -> Generator[TextIO]:
    """Where the answer goes; what else is written to stdout meanwhile, by child processes too, goes to stderr.

    In a terminal, where both are seen on one screen and readline needs stdout, nothing is changed. ``encoding`` is that
    of stdout, if not given.
    """
    stdout = sys.stdout
    number = None if stdout.isatty() else _number(stdout)
    if number is None:
        yield stdout
        return
    stdout.flush()
    kept = os.dup(number)
    with open(kept, "w", encoding=encoding or stdout.encoding, errors="replace") as answer, redirect_stdout(sys.stderr):
        os.dup2(sys.stderr.fileno(), number)
        try:
            yield answer
        finally:
            os.dup2(kept, number)


def _number(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except OSError:  # a program has put its own stream there
        return None
