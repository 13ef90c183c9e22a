"""Other libraries that do the same, for ``make bench-peers``: which there are, and which are installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import attrs

from .scenarios import split


@attrs.frozen
class Peer:
    """A library: our module that drives it, the packages that it takes, and the wires that it speaks.

    The module has an ``open_messages``, ``open_chat`` and ``open_responses``, of those wires that are listed.
    """

    module: str
    packages: Sequence[str]
    wires: Sequence[str] = ("messages", "chat", "responses")

    def absent(self) -> list[str]:
        """Packages that are not installed."""
        return [name for name in self.packages if not _installed(name)]


PEERS = {
    "pydantic-ai": Peer("peer_pydantic_ai", ("pydantic-ai-slim",)),
    "openai-agents": Peer("peer_openai_agents", ("openai-agents",), ("chat", "responses")),
    "langchain": Peer("peer_langchain", ("langchain", "langchain-openai", "langchain-anthropic")),
}
PLAYED = ("S1", "S2", "S3", "S3h")


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def load(name: str) -> Any:
    """A module of a library, untyped: it need not be installed where types are checked."""
    return importlib.import_module(name)


def missing() -> list[str]:
    """Lines that say which libraries are left out, and which versions are measured."""
    lines = []
    for who, peer in PEERS.items():
        absent = peer.absent()
        if absent:
            lines.append(f"{who} is left out: not installed: {', '.join(absent)}")
        else:
            lines.append(f"{who}: {', '.join(f'{name} {version(name)}' for name in peer.packages)}")
    return lines


def with_peers(plan: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Of the plan what the peers play too, with agentrio and those of them that are installed."""
    here = {who: peer for who, peer in PEERS.items() if not peer.absent()}
    made: dict[str, Sequence[str]] = {}
    for name in plan:
        wire, scenario = split(name)
        speaking = [who for who, peer in here.items() if wire in peer.wires]
        if speaking and scenario.partition("-")[0] in PLAYED:
            made[name] = ("agentrio", *speaking)
    return made
