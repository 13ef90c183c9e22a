"""The small commands of a chat: lines that begin with a slash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import attrs
import trio

from agentrio.domain.errors import CodecError
from agentrio.domain.state import Session
from agentrio.domain.usage import Usage

from .view import View, told_usage

HELP = """\
/help        this list
/usage       the tokens of this chat so far
/save FILE   write the conversation into a file
/load FILE   go on with a conversation from a file
/quit        leave, as Ctrl-D does
Everything else goes to the model; a space in front sends a line that begins with a slash."""


@attrs.frozen
class Command:
    """A line that is no message."""

    name: str
    argument: str


def parse(line: str) -> Command | None:
    """The command in a line, if it is one."""
    if not line.startswith("/"):
        return None
    name, _, argument = line[1:].partition(" ")
    return Command(name.strip(), argument.strip())


@attrs.frozen
class Talked:
    """What a command may look at: the conversation and what it has cost."""

    value: Session
    usage: Usage


async def _help(talked: Talked, view: View, argument: str) -> None:
    view.note(HELP)


async def _usage(talked: Talked, view: View, argument: str) -> None:
    view.note(told_usage(talked.usage))


async def _quit(talked: Talked, view: View, argument: str) -> int:
    return 0


async def _save(talked: Talked, view: View, argument: str) -> None:
    view.note(await trio.to_thread.run_sync(_write, talked.value, argument))


def _write(value: Session, name: str) -> str:
    if not name:
        return "/save needs the name of a file"
    try:
        Path(name).expanduser().write_text(value.to_json(), encoding="utf-8")
    except (OSError, RuntimeError) as wrong:  # RuntimeError: there is no such user's home
        return f"can't write {name}: {_why(wrong)}"
    return f"{len(value.messages)} messages are in {name}"


async def _load(talked: Talked, view: View, argument: str) -> Session | None:
    value = await trio.to_thread.run_sync(_read, argument)
    if isinstance(value, str):
        view.note(value)
        return None
    view.note(f"going on with {len(value.messages)} messages from {argument}")
    return value


def _read(name: str) -> Session | str:
    if not name:
        return "/load needs the name of a file"
    try:
        return Session.from_json(Path(name).expanduser().read_bytes())
    except (OSError, RuntimeError) as wrong:
        return f"can't read {name}: {_why(wrong)}"
    except CodecError as wrong:
        return f"{name} holds no conversation: {wrong}"


def _why(wrong: OSError | RuntimeError) -> str:
    return str(wrong) if isinstance(wrong, RuntimeError) else wrong.strerror or str(wrong)


SlashCommand: TypeAlias = Callable[[Talked, View, str], Awaitable[int | Session | None]]
SLASH: Mapping[str, SlashCommand] = {"help": _help, "usage": _usage, "save": _save, "load": _load, "quit": _quit}
"""Each gives an exit code, a conversation to go on with, or None to go on as it was."""
