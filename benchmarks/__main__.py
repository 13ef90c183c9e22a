"""``python -m benchmarks``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import report
from .peers import missing, with_peers
from .run import ALL, WIRES, chosen, measure

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"

DESCRIPTION = """\
Measures agentrio beside L, a bare loop on httpx2 and msgspec, and SDK, a bare loop on the stream of the wire's own SDK.
The model server is a process of its own. Each measurement is a new process; rounds are interleaved and the least
counts."""


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=DESCRIPTION,
        epilog=f"Scenarios: {', '.join(name for name in ALL if '/' not in name)}.",
    )
    parser.add_argument("--only", metavar="S1,S2", help="these scenarios alone")
    parser.add_argument("--wire", metavar="WIRE,WIRE", help=f"these wires alone, of {', '.join(WIRES)}")
    parser.add_argument("--peers", action="store_true", help="measure beside other libraries, those that are installed")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default: 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    parser.add_argument("--write-docs", action="store_true", help="write docs/benchmarks.md; needs all of them")
    options = parser.parse_args()
    if options.write_docs and (options.only or options.wire or options.peers):
        parser.error("--write-docs needs all scenarios on all wires; leave --only, --wire and --peers out")
    try:
        plan = chosen(options.only, options.wire)
    except ValueError as wrong:
        parser.error(str(wrong))
    if options.peers:
        plan = with_peers(plan)
        print("\n".join(missing()))
    table = measure(plan, max(1, options.rounds))
    print()
    print(report.beside_peers(table) if options.peers else report.text(table))
    if options.json:
        rows = {f"{scenario}/{contender}": numbers for (scenario, contender), numbers in table.items()}
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.write_docs:
        DOCS.write_text(report.page(table, options.rounds))
        print(f"wrote {DOCS.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
