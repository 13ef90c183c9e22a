"""Runs everything: a server, then each scenario of each contender in turn, several rounds, each in a new process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from .measure import cores
from .own import OWN
from .peers import PEERS
from .scenarios import NAMES, STREAMING, Numbers, split
from .targets import Table

CONTENDERS = ("L", "SDK", "agentrio")
ALL: dict[str, Sequence[str]] = {
    **dict.fromkeys(NAMES, CONTENDERS),
    "S7-import": CONTENDERS,
    **{name: CONTENDERS if name.startswith("S5a") else ("agentrio",) for name in OWN},
    **{f"{wire}/{name}": CONTENDERS for wire in ("chat", "responses") for name in STREAMING},
}
WIRES = ("messages", "chat", "responses")
ONCE = frozenset(("S5b-ignores", "S6-1000"))  # long ones: two rounds are enough for what they are held against
LONGEST = 600  # seconds of one measurement


@contextmanager
def serving(core: int | None) -> Iterator[str]:
    """The server's URL, for as long as it is needed."""
    command = [sys.executable, "-m", "benchmarks.server", *([] if core is None else [str(core)])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.stdin.close()


def chosen(only: str | None, wires: str | None = None) -> dict[str, Sequence[str]]:
    """The scenarios, with their contenders, that two comma-separated lists name: of scenarios, and of wires.

    A scenario is named as a whole, or by what stands before the dash; the wire is not part of its name here.

    Raises:
        ValueError: one names what there is not.
    """
    names = {split(name)[1] for name in ALL}
    spoken = _checked("wire", wires, WIRES, WIRES)
    wanted = _checked("scenario", only, sorted(names), sorted({*names, *(name.partition("-")[0] for name in names)}))
    plan: dict[str, Sequence[str]] = {}
    for name, contenders in ALL.items():
        wire, scenario = split(name)
        if wire in spoken and (scenario in wanted or scenario.partition("-")[0] in wanted):
            plan[name] = contenders
    return plan


def _checked(what: str, given: str | None, listed: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    wanted = listed if given is None else given.split(",")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no {what} {', '.join(unknown)}; there is {', '.join(listed)}")
    return wanted


def measure(plan: Mapping[str, Sequence[str]], rounds: int) -> Table:
    """All numbers: the least of each over the rounds, the worst of what is called worst."""
    found: dict[tuple[str, str], list[Numbers]] = {}
    server_core, client_core = cores()
    with serving(server_core) as url:
        for number in range(rounds):
            for name, contenders in plan.items():
                for contender in contenders:
                    if number < 2 or not _long(name, contender):
                        numbers = _undisturbed(contender, name, url, client_core)
                        if numbers:
                            found.setdefault((name, contender), []).append(numbers)
                        print(f"{number + 1}/{rounds} {name:20} {contender:13}", _brief(numbers), flush=True)
    return {key: _best(runs) for key, runs in found.items()}


def _long(name: str, contender: str) -> bool:
    """Whether two rounds are enough: a minute each, of what is far from what it is held against."""
    old = name.endswith(("S3h-1000", "S3h-2000"))
    return name in ONCE or (old and (contender in PEERS or (contender == "SDK" and "/" in name)))


def _undisturbed(contender: str, name: str, url: str, core: int | None) -> Numbers:
    """One measurement, made again where other programs were in its way; empty where it failed each time."""
    numbers: Numbers = {}
    for _ in range(3):
        try:
            numbers = _worker(contender, name, url, core)
        except (RuntimeError, subprocess.TimeoutExpired) as failure:
            print(failure, file=sys.stderr, flush=True)
            continue
        if not numbers.pop("disturbed", 0.0):
            break
    return numbers


def _worker(contender: str, name: str, url: str, core: int | None) -> Numbers:
    command = [sys.executable, "-m", "benchmarks.worker", contender, name, url, *([] if core is None else [str(core)])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    if done.returncode:
        raise RuntimeError(f"{name} of {contender} failed:\n{done.stderr}")
    numbers: Numbers = json.loads(done.stdout)
    return numbers


def _best(runs: Sequence[Numbers]) -> Numbers:
    """CPU and delays: the least, which is the one that others disturbed least. Counts and worsts: the greatest."""
    made: Numbers = {}
    for key in runs[0]:
        values = [run[key] for run in runs]
        made[key] = max(values) if key in GREATEST or key.endswith("_worst") else min(values)
    return made


GREATEST = frozenset(("rss", "gap", "growth", "invalid", "lost", "unfinished"))


def _brief(numbers: Numbers) -> str:
    return " ".join(f"{key}={value:.4g}" for key, value in numbers.items())
