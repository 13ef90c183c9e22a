"""What a command of the command line is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

import attrs

FAILED = 1
USAGE = 2  # what argparse exits with
UNAVAILABLE = 69  # EX_UNAVAILABLE of sysexits.h: something that the work needs can't be had
BY_SIGNAL = 128  # as a shell counts: this, and the number of the signal
INTERRUPTED = BY_SIGNAL + 2  # SIGINT
BROKEN_PIPE = BY_SIGNAL + 13  # SIGPIPE


@attrs.frozen
class Command:
    """One command. ``configure`` declares its options; ``run`` does the work and returns the exit code.

    The module that holds a command is loaded for every ``--help``, so ``run`` imports what it needs itself.
    """

    name: str
    summary: str
    description: str
    configure: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


class Refusal(Exception):
    """A command can't do what it was asked to. The message says why and what helps; it is shown without a traceback."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code
