"""The door: options, exit codes, and errors as a Unix tool tells them.

Exit codes: 0 all went well, 1 it did not, 2 wrong usage, 69 something it needs can't be had (a key, a server), 129 the
terminal was closed, 130 left by Ctrl-C, 141 nobody reads the output any more, 143 told to end by SIGTERM.
"""

from __future__ import annotations

import errno
import os
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from .chat.command import CHAT
from .command import BROKEN_PIPE, FAILED, INTERRUPTED, Command, Refusal
from .demo.command import DEMO
from .models import MODELS

COMMANDS: tuple[Command, ...] = (DEMO, CHAT, MODELS)
UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})  # what a write fails with


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code.

    Raises:
        SystemExit: after ``--help`` and ``--version`` (0), and on wrong usage (2).
    """
    _open_what_is_closed()
    _replace_what_cannot_be_encoded()
    try:
        try:
            options = _parser().parse_args(arguments)
            code: int = options.command.run(options)
            return code
        finally:
            sys.stdout.flush()  # here, where a broken pipe is caught, and not when the interpreter ends
    except Refusal as refusal:
        print(f"agentrio: {refusal}", file=sys.stderr)
        return refusal.code
    except (OSError, KeyboardInterrupt, BaseExceptionGroup) as error:
        ended = _ended_by(tuple(_leaves(error)))
        if ended is None:
            raise
        return ended


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _ended_by(errors: Sequence[BaseException]) -> int | None:
    """The exit code where Ctrl-C came, or the output can't be written; None where anything else happened, too."""
    failed = [error for error in errors if isinstance(error, OSError)]
    if any(not isinstance(error, OSError | KeyboardInterrupt) for error in errors):
        return None
    if any(isinstance(error, BrokenPipeError) for error in failed):
        _discard_output()
        return BROKEN_PIPE
    if any(error.errno not in UNWRITTEN for error in failed):
        return None
    if not failed:
        return INTERRUPTED
    _discard_output()
    print(f"agentrio: the output can't be written: {failed[0].strerror}", file=sys.stderr)
    return FAILED


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="agentrio",
        description="An actor-based agent runtime on Trio.",
        epilog="`agentrio COMMAND --help` tells more of a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, default=SUPPRESS, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name, help=command.summary, description=command.description, allow_abbrev=False
        )
        command.configure(sub)
        sub.set_defaults(command=command)
    return parser


class _Version(Action):
    """Finds the version when it is asked for: the lookup reads files."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None
    ) -> NoReturn:
        print(f"agentrio {_version()}")
        parser.exit()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("agentrio")
    except PackageNotFoundError:
        return "(not installed: it runs from its source folder)"


def _open_what_is_closed() -> None:
    # A stream that was closed (`>&-`) is None here: who wanted no output gets none.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open as long as the process


def _replace_what_cannot_be_encoded() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # missing where a program has put its own stream there
        if reconfigure is not None:
            reconfigure(errors="replace")


def _discard_output() -> None:
    # The interpreter flushes once more when it ends, and would complain; what is left goes nowhere.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
