"""One scenario of one contender in a process of its own: ``python -m benchmarks.worker CONTENDER SCENARIO URL [CORE]``.

It prints what it measured as one line of JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys

import trio

from . import peers
from .contender import Open
from .measure import pin
from .own import OWN, floor_stop, imports
from .scenarios import FOR_ALL, Numbers, Scenario, split

OPENERS = {
    "messages": {"L": "lean.open_client", "SDK": "sdk.open_client", "agentrio": "ours.open_client"},
    "chat": {"L": "lean_chat.open_client", "SDK": "sdk_openai.open_chat", "agentrio": "ours.open_chat"},
    "responses": {
        "L": "lean_responses.open_client",
        "SDK": "sdk_openai.open_responses",
        "agentrio": "ours.open_responses",
    },
}


def opener(contender: str, wire: str) -> Open:
    """What opens the client of a contender on a wire."""
    peer = peers.PEERS.get(contender)
    where = f"{peer.module}.open_{wire}" if peer else OPENERS[wire][contender]
    module, _, name = where.partition(".")
    found: Open = getattr(importlib.import_module(f"benchmarks.{module}"), name)
    return found


def measure(contender: str, scenario: str, url: str) -> Numbers:
    """Run it here."""
    if scenario == "S7-import":
        return imports(contender)
    if scenario in OWN and contender == "agentrio":
        return trio.run(OWN[scenario], url)
    wire, scenario = split(scenario)
    open = opener(contender, wire)
    if contender in peers.PEERS:
        return asyncio.run(on_asyncio(FOR_ALL[scenario], open, url))
    if scenario.startswith("S5a-"):
        return trio.run(floor_stop, scenario.removeprefix("S5a-"), open, url)
    return trio.run(FOR_ALL[scenario], open, url)


async def on_asyncio(scenario: Scenario, open: Open, url: str) -> Numbers:
    """The scenario as a coroutine. Those that the peers play have nothing of trio in them."""
    return await scenario(open, url)


def main() -> None:
    """Run what the command line names."""
    contender, scenario, url, *core = sys.argv[1:]
    pin(int(core[0]) if core else None)
    print(json.dumps(measure(contender, scenario, url)))


if __name__ == "__main__":
    main()
