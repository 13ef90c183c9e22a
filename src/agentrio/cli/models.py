"""The command ``models``: who can be named as ``provider:model``, and what each needs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from .command import Command

if TYPE_CHECKING:
    from agentrio.providers.registry import Provided


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON line for each provider")


def _run(options: Namespace) -> int:
    from agentrio.providers.registry import providers

    for provided in providers():
        print(_json(provided) if options.json else _told(provided), flush=True)
    return 0


def _told(provided: Provided) -> str:
    lines = [f"{provided.name}: {provided.title}", f"    at     {provided.base_url or '(an address of your own)'}"]
    for variable in provided.needs:
        lines.append(f"    needs  {variable} ({'missing' if variable in provided.missing else 'is set'})")
    if not provided.needs:
        lines.append("    needs  no key")
    return "\n".join([*lines, f"    write  {provided.example}"])


def _json(provided: Provided) -> str:
    import json

    return json.dumps(
        {
            "name": provided.name,
            "title": provided.title,
            "base_url": provided.base_url,
            "needs": provided.needs,
            "missing": provided.missing,
            "ready": not provided.missing,
            "example": provided.example,
        },
        separators=(",", ":"),
    )


MODELS = Command(
    name="models",
    summary="list the providers that a model can be named of, and what each needs",
    description=(
        "Each provider with its address, the variables that it needs and whether they are set, and a model as it is "
        "written after --model. No key is printed."
    ),
    configure=_configure,
    run=_run,
)
