"""Tables of what was measured: for the terminal, and as the page of the documentation."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from .peers import PEERS
from .targets import TARGETS, Table, Target

PACKAGES = ("trio", "httpx2", "msgspec", "anthropic", "openai", "attrs")
MILLI, MICRO = 1e3, 1e6

WIRES = (("Messages (Anthropic)", ""), ("Chat Completions (OpenAI)", "chat/"), ("Responses (OpenAI)", "responses/"))

Row = tuple[str, str, str, float, str]
ROWS: tuple[Row, ...] = (
    ("S1: one-shot run of 20 deltas, new session", "S1", "cpu", MILLI, "ms"),
    ("S2: a delta in a stream of 20,000", "S2", "cpu", MICRO, "µs"),
    ("S2p: a delta that comes alone, one a millisecond", "S2p", "cpu", MICRO, "µs"),
    ("S3: a round with one trivial call", "S3", "cpu", MILLI, "ms"),
    ("S3: of rounds 1-10", "S3", "early", MILLI, "ms"),
    ("S3: of rounds 41-50", "S3", "late", MILLI, "ms"),
    ("S3h: a round, no old messages", "S3h-0", "cpu", MILLI, "ms"),
    ("S3h: a round on 500 old messages", "S3h-500", "cpu", MILLI, "ms"),
    ("S3h: a round on 1,000", "S3h-1000", "cpu", MILLI, "ms"),
    ("S3h: a round on 2,000", "S3h-2000", "cpu", MILLI, "ms"),
    ("S3h: the whole first run on 2,000, which encodes them", "S3h-2000", "first", MILLI, "ms"),
    ("S4: 64 calls of 40 and 50 ms", "S4", "cpu", MILLI, "ms"),
    ("S4: wall time of the calls", "S4", "wall", MILLI, "ms wall"),
    ("S6: 200 sessions at once, a delta", "S6-200", "cpu", MICRO, "µs"),
    ("S6: memory of a live session", "S6-200", "rss", 1 / 1024, "KB"),
    ("S6: delay of a delta, 99 of 100 below", "S6-200", "p99", MILLI, "ms wall"),
    ("S6: 1,000 sessions at once, a delta", "S6-1000", "cpu", MICRO, "µs"),
    ("S6: memory of a live session", "S6-1000", "rss", 1 / 1024, "KB"),
    ("S6: delay of a delta, 99 of 100 below", "S6-1000", "p99", MILLI, "ms wall"),
    ("S7: import of what an application with tools uses", "S7-import", "cpu", MILLI, "ms"),
    ("S7: import of all that is public, providers included", "S7-import", "everything", MILLI, "ms"),
    ("S7: memory of an idle session of 50 messages", "S7-idle", "rss", 1 / 1024, "KB"),
    ("S8: growth of memory beside a slow reader", "S8", "growth", 1 / 1024 / 1024, "MB"),
    ("S8: deltas read ahead of it", "S8", "ahead", 1.0, "deltas"),
)

Stop = tuple[str, str]
STOPS: tuple[Stop, ...] = (
    ("in mid-stream", "S5a-stream"),
    ("on a silent stream", "S5a-silent"),
    ("before headers", "S5a-before-headers"),
    ("inside a tool that honours it", "S5b-honours"),
    ("inside a read tool that ignores it for 10 s", "S5b-ignores"),
)


def text(table: Table) -> str:
    """What is printed at the end: numbers, stops, targets."""
    numbers = [_titled(title, _numbers(table, prefix)) for title, prefix in WIRES]
    return "\n\n".join("\n".join(lines) for lines in (*numbers, _stops(table), _targets(table)) if lines)


def beside_peers(table: Table) -> str:
    """What is printed of a run with other libraries: their numbers, and how many times agentrio's they are."""
    parts = [_titled(title, _peer_numbers(table, prefix)) for title, prefix in WIRES]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _titled(title: str, lines: list[str]) -> list[str]:
    return [f"### {title}", "", *lines] if lines else []


def _peer_numbers(table: Table, prefix: str) -> list[str]:
    found = [who for who in PEERS if any((prefix + row[1], who) in table for row in ROWS)]
    lines = [f"| | agentrio | {' | '.join(found)} |", "|---|---|" + "---|" * len(found)]
    for what, scenario, key, scale, unit in ROWS:
        ours = table.get((prefix + scenario, "agentrio"), {}).get(key)
        if ours is not None:
            theirs = [table.get((prefix + scenario, who), {}).get(key) for who in found]
            cells = ["" if value is None else f"{_number(value, scale)} ({value / ours:.1f})" for value in theirs]
            lines.append(f"| {what}, {unit} | {_number(ours, scale)} | {' | '.join(cells)} |")
    return lines if len(lines) > 2 else []


def _numbers(table: Table, prefix: str = "") -> list[str]:
    lines = ["| | L | SDK | agentrio | / L | / SDK |", "|---|---|---|---|---|---|"]
    for what, scenario, key, scale, unit in ROWS:
        cells = [table.get((prefix + scenario, who), {}).get(key) for who in ("L", "SDK", "agentrio")]
        if any(cell is not None for cell in cells):
            lean, sdk, ours = cells
            shown = [_number(cell, scale) for cell in cells]
            lines.append(f"| {what}, {unit} | {' | '.join(shown)} | {_ratio(ours, lean)} | {_ratio(ours, sdk)} |")
    return lines if len(lines) > 2 else []


def _stops(table: Table) -> list[str]:
    lines = [
        "| stop, ms: median (worst of 30 a round) | control | server sees it | tool sees it | of L: control | server |",
        "|---|---|---|---|---|---|",
    ]
    for what, scenario in STOPS:
        if (scenario, "agentrio") in table:
            ours = [_both(table, scenario, "agentrio", key) for key in ("control", "server", "tool")]
            floor = [_both(table, scenario, "L", key) for key in ("control", "server")]
            lines.append(f"| {what} | {' | '.join(ours + floor)} |")
    return lines if len(lines) > 2 else []


def _both(table: Table, scenario: str, who: str, key: str) -> str:
    numbers = table.get((scenario, who), {})
    return f"{numbers[key]:.1f} ({numbers[f'{key}_worst']:.1f})" if key in numbers else ""


def _targets(table: Table) -> list[str]:
    lines = ["| target | at most | measured | |", "|---|---|---|---|"]
    for target in TARGETS:
        measured = target.measured(table)
        if measured is not None:
            unit = f" {target.unit}" if target.unit else ""
            verdict = "kept" if measured <= target.limit else "**missed**"
            lines.append(f"| {target.what} | {target.limit:g}{unit} | {measured:.2f}{unit} | {verdict} |")
    return lines if len(lines) > 2 else []


def missed(table: Table) -> list[tuple[Target, float]]:
    """Targets that were not kept, with what was measured."""
    found = [(target, target.measured(table)) for target in TARGETS]
    return [(target, value) for target, value in found if value is not None and value > target.limit]


def _number(value: float | None, scale: float) -> str:
    return "" if value is None else f"{value * scale:.3g}" if value * scale < 1000 else f"{value * scale:.0f}"


def _ratio(one: float | None, other: float | None) -> str:
    return f"{one / other:.2f}" if one is not None and other else ""


def page(table: Table, rounds: int) -> str:
    """The page of the documentation."""
    parts: list[Iterable[str]] = [
        [INTRODUCTION.format(rounds=rounds, machine=_machine(), versions=_versions())],
        ["## Numbers", "", "CPU of the client process (user and system), unless it says wall."],
        *(_titled(title, _numbers(table, prefix)) for title, prefix in WIRES),
        ["## Stops", "", *_stops(table)],
        ["## Targets", "", *_targets(table)],
        ["## What was missed", "", *_missed_lines(table)],
    ]
    return "\n\n".join("\n".join(part).strip() for part in parts) + "\n"


def _missed_lines(table: Table) -> Sequence[str]:
    found = missed(table)
    if not found:
        return ["Nothing."]
    return [_missed_line(target, value) for target, value in found]


def _missed_line(target: Target, value: float) -> str:
    unit = f" {target.unit}" if target.unit else ""
    line = f"- {target.what}: {value:.2f}{unit}; the target is {target.limit:g}{unit}."
    return f"{line} {target.why}".replace("\n", " ").rstrip()


def _machine() -> str:
    system = f"{platform.system()} on {platform.machine()}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{cores} cores{_model()}, {system}"


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


def _versions() -> str:
    named = [f"{name} {version(name)}" for name in PACKAGES]
    return ", ".join([f"{platform.python_implementation()} {platform.python_version()}", *named])


INTRODUCTION = """\
# Benchmarks

Written by `make bench`. What agentrio costs, beside two floors that do the same work on the same server:

- **L**: a bare loop on httpx2 and msgspec. It splits the stream's bytes, decodes typed frames, calls the tools, and
  does nothing else: no events, no retries, no checks, nothing that survives a stop.
- **SDK**: a bare loop on `create(stream=True)` of the wire's own SDK: of `AsyncAnthropic().messages`, of
  `AsyncOpenAI().chat.completions` and of `AsyncOpenAI().responses`, with retries off.

The model server is a process of its own on one core, the client on another one. Each measurement is a new process;
{rounds} rounds of all contenders are interleaved, and the least of each number counts (the greatest of memory, of
worst cases and of the longest gap). The machine is shared with other work, so ratios are worth more than the numbers.
`make bench-peers` measures other libraries on the same server, beside agentrio in the same run, and prints the ratios.

Machine: {machine}. Versions: {versions}."""
