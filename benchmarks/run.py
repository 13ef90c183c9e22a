"""Runs everything: a server, then each scenario of each contender in turn, several rounds, each in a new process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .measure import cores
from .own import OWN
from .scenarios import NAMES, Numbers
from .targets import Table

CONTENDERS = ("L", "SDK", "agentrio")
ALL: dict[str, Sequence[str]] = {
    **dict.fromkeys(NAMES, CONTENDERS),
    "S7-import": CONTENDERS,
    **{name: CONTENDERS if name.startswith("S5a") else ("agentrio",) for name in OWN},
}
ONCE = frozenset(("S5b-ignores", "S6-1000"))  # long ones: two rounds are enough for what they are held against
LONGEST = 120  # seconds of one measurement


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


def chosen(only: str | None) -> list[str]:
    """The scenarios that a comma-separated list names: whole names, or what stands before the dash.

    Raises:
        ValueError: it names one that there is not.
    """
    if only is None:
        return list(ALL)
    wanted = only.split(",")
    known = {*ALL, *(name.partition("-")[0] for name in ALL)}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no scenario {', '.join(unknown)}; there is {', '.join(ALL)}")
    return [name for name in ALL if name in wanted or name.partition("-")[0] in wanted]


def measure(names: Sequence[str], rounds: int) -> Table:
    """All numbers: the least of each over the rounds, the worst of what is called worst."""
    found: dict[tuple[str, str], list[Numbers]] = {}
    server_core, client_core = cores()
    with serving(server_core) as url:
        for number in range(rounds):
            for name in names:
                for contender in ALL[name]:
                    if number < 2 or name not in ONCE:
                        numbers = _undisturbed(contender, name, url, client_core)
                        if numbers:
                            found.setdefault((name, contender), []).append(numbers)
                        print(f"{number + 1}/{rounds} {name:20} {contender:9}", _brief(numbers), flush=True)
    return {key: _best(runs) for key, runs in found.items()}


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
