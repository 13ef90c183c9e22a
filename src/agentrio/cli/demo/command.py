"""The command ``demo``: its options, and which view shows it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..command import Command, Refusal

if TYPE_CHECKING:
    from .view import View


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print each event, and at last the server's record, as JSON"
    )
    parser.add_argument(
        "--local-model",
        nargs="?",
        const=Path(".local-model"),
        type=Path,
        metavar="FOLDER",
        help="a real model on this machine, in place of the recorded one: the folder that `make local-model` sets up "
        "(default .local-model)",
    )
    parser.add_argument("--fast", action="store_true", help="do not wait between tokens, nor for the reader")


def _run(options: Namespace) -> int:
    view = _view(json=options.json)

    import trio

    from .perform import perform
    from .tempo import FAST, NORMAL

    play = None
    if options.local_model is not None:
        from .local_model import play_with

        play = play_with(options.local_model)
    return trio.run(perform, view, FAST if options.fast else NORMAL, play)


def _view(*, json: bool) -> View:
    if json:
        from .json_view import JsonView

        return JsonView()
    try:
        from .picture import Picture
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "rich":
            raise
        raise Refusal(
            "the demo draws with rich, which is not installed: pip install 'agentrio[cli]' (or use --json, which needs "
            "nothing more)"
        ) from missing
    return Picture()


DEMO = Command(
    name="demo",
    summary="watch an agent stream, call tools and be stopped; no key, no network",
    description=(
        "An agent talks to a model server on this machine's loopback, which replays recorded streams of a real model. "
        "It calls tools in parallel, is steered while they run, is stopped in mid-stream, and goes on. "
        "Ctrl-C stops the run that is open; a second Ctrl-C leaves."
    ),
    configure=_configure,
    run=_run,
)
