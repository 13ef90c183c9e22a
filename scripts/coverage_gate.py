"""Combine what the test runs measured, and hold it against the bounds.

    python scripts/coverage_gate.py .tox/coverage

The rooms in which a missed branch is a bug somebody will meet (`domain`, `actors`, `providers/wire`) must be covered to
the last branch; the rest to 95 %. A line that cannot be reached says so where it stands, with its reason:
`# pragma: no cover - why`. The counts of such comments are printed too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import suppressions

PACKAGE = "src/agentrio/"
FULL = ("domain/", "actors/", "providers/wire/")
FULL_BOUND = 100.0
REST_BOUND = 95.0

Files = dict[str, dict[str, Any]]


def measure(folder: Path) -> Files:
    """The combined report of the data files in the folder: path below the package -> coverage.py's record of it."""
    data = sorted(str(path) for path in folder.glob(".coverage.*"))
    if not data:
        sys.exit(f"no measurements in {folder}: run the tests first")
    _coverage("combine", "--keep", "--quiet", *data)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        _coverage("json", "--quiet", "--fail-under=0", "-o", str(report))
        files: Files = json.loads(report.read_text(encoding="utf-8"))["files"]
    return {path.replace("\\", "/").removeprefix(PACKAGE): record for path, record in files.items()}


def _coverage(*args: str) -> None:
    subprocess.run([sys.executable, "-m", "coverage", *args], check=True)


def judge(name: str, files: Files, bound: float) -> bool:
    """Print a group's coverage, name what was missed, and tell whether it keeps its bound."""
    covered, total = (sum(_points(record)[i] for record in files.values()) for i in (0, 1))
    percent = 100.0 * covered / total if total else 0.0  # a group without files has been renamed away: a failure
    kept = bool(files) and (covered == total if bound == FULL_BOUND else percent >= bound)
    print(f"{'ok  ' if kept else 'FAIL'} {name:16} {percent:6.2f} % of {total} lines and branches, bound {bound:.0f} %")
    for path, record in files.items():
        if record["missing_lines"] or record["missing_branches"]:
            branches = [f"{start}->{'exit' if end < 0 else end}" for start, end in record["missing_branches"]]
            print(f"       {PACKAGE}{path}: lines {record['missing_lines']}, branches {branches}")
    return kept


def _points(record: dict[str, Any]) -> tuple[int, int]:
    summary = record["summary"]
    covered: int = summary["covered_lines"] + summary["covered_branches"]
    total: int = summary["num_statements"] + summary["num_branches"]
    return covered, total


def main() -> int:
    files = measure(Path(sys.argv[1]))
    verdicts = []
    for room in FULL:
        verdicts.append(judge(room, {p: r for p, r in files.items() if p.startswith(room)}, FULL_BOUND))
    rest = {path: record for path, record in files.items() if not path.startswith(FULL)}
    verdicts.append(judge("elsewhere", rest, REST_BOUND))
    verdicts.append(suppressions.main() == 0)
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
