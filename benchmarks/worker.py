"""One scenario of one contender in a process of its own: ``python -m benchmarks.worker CONTENDER SCENARIO URL [CORE]``.

It prints what it measured as one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import sys

import trio

from .contender import Open
from .measure import pin
from .own import OWN, floor_stop, imports
from .scenarios import FOR_ALL, Numbers

CONTENDERS = {"L": "lean", "SDK": "sdk", "agentrio": "ours"}


def measure(contender: str, scenario: str, url: str) -> Numbers:
    """Run it here."""
    if scenario == "S7-import":
        return imports(contender)
    if scenario in OWN and contender == "agentrio":
        return trio.run(OWN[scenario], url)
    open: Open = importlib.import_module(f"benchmarks.{CONTENDERS[contender]}").open_client
    if scenario.startswith("S5a-"):
        return trio.run(floor_stop, scenario.removeprefix("S5a-"), open, url)
    return trio.run(FOR_ALL[scenario], open, url)


def main() -> None:
    """Run what the command line names."""
    contender, scenario, url, *core = sys.argv[1:]
    pin(int(core[0]) if core else None)
    print(json.dumps(measure(contender, scenario, url)))


if __name__ == "__main__":
    main()
