"""The small commands of a chat: lines that begin with a slash.

They are functions of the conversation. Some read or write a file, so they are called in a thread.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import attrs

from agentrio.actors.checks import check_opening
from agentrio.domain.session import Session
from agentrio.domain.usage import Usage

from .view import told_usage

HELP = """\
/help        this list
/usage       the tokens of this chat so far, and their cost where it is known
/new         begin another conversation
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
    """What a command may look at: the conversation, and what the chat has used."""

    value: Session
    usage: Usage


@attrs.frozen
class Done:
    """What is said of a command, and how the chat goes on: as before, to an exit code, or with another conversation."""

    note: str = ""
    outcome: int | Session | None = None


def perform(command: Command, talked: Talked) -> Done:
    """Do what the command says."""
    function = SLASH.get(command.name)
    if function is None:
        return Done(f"there is no /{command.name}; /help lists what there is, a space in front sends the line")
    return function(talked, command.argument)


def _help(talked: Talked, argument: str) -> Done:
    return Done(HELP)


def _usage(talked: Talked, argument: str) -> Done:
    usage = talked.usage
    unknown = ", at a cost that is not known" if usage.total and usage.cost is None else ""
    return Done(told_usage(usage) + unknown)


def _quit(talked: Talked, argument: str) -> Done:
    return Done(outcome=0)


def _new(talked: Talked, argument: str) -> Done:
    return Done("a new conversation", Session(f"s_{secrets.token_hex(6)}", talked.value.agent))


def _save(talked: Talked, name: str) -> Done:
    if not name:
        return Done("/save needs the name of a file")
    try:
        _write(Path(name).expanduser(), talked.value.to_json())
    except (OSError, RuntimeError, ValueError) as wrong:  # no such user's home; a name that no file can have
        return Done(f"can't write {name}: {_why(wrong)}")
    return Done(f"{len(talked.value.messages)} messages are in {name}")


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all: on a full disk what it held before is worth more than half of the new text."""
    file = file.resolve()  # a link stays one
    if file.exists() and not file.is_file():  # a device, a pipe
        file.write_text(text, encoding="utf-8")
        return
    new = file.with_name(f".agentrio-{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        if file.exists():
            shutil.copymode(file, new)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _load(talked: Talked, name: str) -> Done:
    if not name:
        return Done("/load needs the name of a file")
    try:
        text = Path(name).expanduser().read_bytes()
    except (OSError, RuntimeError, ValueError) as wrong:
        return Done(f"can't read {name}: {_why(wrong)}")
    try:
        value = Session.from_json(text)
        check_opening(None, value, None)
    except ValueError as wrong:
        return Done(f"{name} holds no conversation: {wrong}")
    return Done(f"going on with {len(value.messages)} messages from {name}", value)


def _why(wrong: Exception) -> str:
    return (wrong.strerror if isinstance(wrong, OSError) else None) or str(wrong)


SlashCommand: TypeAlias = Callable[[Talked, str], Done]
SLASH: Mapping[str, SlashCommand] = {
    "help": _help,
    "usage": _usage,
    "new": _new,
    "save": _save,
    "load": _load,
    "quit": _quit,
}
