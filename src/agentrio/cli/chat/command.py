"""The command ``chat``: its options, and who reads and who shows."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import closing
from typing import TextIO

from ..command import USAGE, Command, Refusal

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")  # a test holds them to domain.render's


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", required=True, metavar="PROVIDER:NAME", help="such as ollama:qwen3; `agentrio models` lists more")
    add(
        "--fallback",
        metavar="PROVIDER:NAME",
        action="append",
        default=[],
        help="a model that is asked when the one before it fails for good; may be given again",
    )
    add("--base-url", metavar="URL", help="where --model is served, if not at the provider's own address")
    add("--api-key-env", metavar="NAME", help="the variable that holds the key, if not the provider's own")
    add(
        "--tools",
        metavar="MODULE:NAME[,NAME]",
        action="append",
        default=[],
        type=_tools_option,
        help="tools of a module, found from the current folder too; may be given again",
    )
    add("--system", metavar="TEXT|@FILE", help="what the model is told of itself, or the file that says it")
    add("--thinking", metavar="LEVEL", choices=LEVELS, help=f"how much it thinks: {', '.join(LEVELS)}")
    add("--max-tokens", metavar="N", type=_count, help="the most tokens of one response")
    add("--max-context-chars", metavar="N", type=_count, help="the most characters of a request (256000)")
    add("--json", action="store_true", help="print each event as one JSON line")
    add("--show-thinking", action="store_true", help="print what the model thinks; else its length is told")
    add("--no-history", action="store_true", help="neither read nor write the file of lines typed earlier")


def _tools_option(text: str) -> tuple[str, tuple[str, ...]]:
    module, colon, names = text.partition(":")
    listed = tuple(name.strip() for name in names.split(","))
    if not colon or not module.strip() or not all(name.isidentifier() for name in listed):
        raise ArgumentTypeError(f"{text!r} is not MODULE:NAME[,NAME]")
    return module.strip(), listed


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _run(options: Namespace) -> int:
    from .answer import open_answer

    with open_answer(encoding="utf-8" if options.json else None) as answer:
        return _chat(options, answer)


def _chat(options: Namespace, answer: TextIO) -> int:
    from .declare import declare

    agent = declare(options)

    import trio

    from .lines import open_lines, read_all
    from .logs import log_to
    from .talk import converse, once
    from .view import JsonView, TextView

    view = JsonView(answer) if options.json else TextView(options.show_thinking, answer)
    if sys.stdin is None:
        raise Refusal("there is no input to read: stdin is closed", USAGE)
    with log_to(view), closing(view):
        if not os.isatty(0):
            return trio.run(once, agent, view, read_all)
        with open_lines(history=not options.no_history, edited=answer.isatty()) as lines:
            return trio.run(converse, agent, view, lines)


CHAT = Command(
    name="chat",
    summary="talk to a model in the terminal",
    description=(
        "What you type goes to the model, and its answer streams. Ctrl-C stops the answer, and what was said of it is "
        "kept; once more, at an empty prompt, or Ctrl-D leaves. /help lists small commands. Input from a pipe is one "
        "message: it is answered, and that is all. The answer goes to stdout, everything else to stderr."
    ),
    configure=_configure,
    run=_run,
)
