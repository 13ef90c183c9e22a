"""List the Pythons on this machine that the tests must run on. Standard library only.

    python scripts/pythons.py                 one line each, oldest first
    python scripts/pythons.py --envs ends     tox names of the oldest and the newest: py311,py313
    python scripts/pythons.py --envs coverage the same, with coverage
    python scripts/pythons.py --envs full     tox names of the long sweeps on the newest, the usual run on others
    python scripts/pythons.py --path          their folders, in the form of PATH

Looked at are the folders of PATH and `~/.pyenv/versions/*/bin`. One CPython counts for each minor version from 3.11 on:
the final release with the highest patch level. Pre-releases and builds without a GIL are named on standard error and
left out, so that leaving them out is seen.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OLDEST = (3, 11)
NAME = re.compile(r"python3(\.\d+t?)?")
PROBE = (
    "import os, sys, sysconfig; v = sys.version_info; "
    "print(*v[:3], v.releaselevel, sys.implementation.name, "
    "int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), os.path.realpath(sys.executable))"
)


class Python(NamedTuple):
    version: tuple[int, int, int]
    path: Path

    @property
    def env(self) -> str:
        """The name that tox knows it by."""
        return f"py{self.version[0]}{self.version[1]}"


def candidates() -> list[Path]:
    """Each executable that may be a Python 3, in the order of PATH, then pyenv's."""
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    folders += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    found: dict[Path, None] = {}
    for folder in folders:
        if folder.is_dir() and folder.name != "shims":  # a shim only stands for one of pyenv's own
            found.update(dict.fromkeys(p for p in sorted(folder.iterdir()) if NAME.fullmatch(p.name)))
    return list(found)


def probe(path: Path) -> Python | None:
    """Ask an executable what it is; None if it does not run, or is no Python that counts."""
    try:
        done = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=60, check=True)
        major, minor, patch, level, implementation, no_gil, _ = done.stdout.split(maxsplit=6)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    version = (int(major), int(minor), int(patch))
    if version[:2] < OLDEST:
        return None
    if level != "final" or implementation != "cpython" or no_gil == "1":
        print(f"left out: {path} ({implementation} {version}, {level}, without GIL: {no_gil})", file=sys.stderr)
        return None
    return Python(version, path)


def installed() -> list[Python]:
    """One for each minor version, oldest first; of two equal ones, the first on PATH."""
    best: dict[tuple[int, ...], Python] = {}
    seen: set[Path] = set()
    for path in candidates():
        real = path.resolve()
        if real in seen or _is_virtual(path):
            continue
        seen.add(real)
        python = probe(path)
        if python and (python.version[:2] not in best or python.version > best[python.version[:2]].version):
            best[python.version[:2]] = python
    return [best[key] for key in sorted(best)]


def _is_virtual(path: Path) -> bool:
    return (path.parent.parent / "pyvenv.cfg").exists()


def main() -> int:
    parser = argparse.ArgumentParser(description="List the Pythons that the tests must run on.")
    parser.add_argument("--envs", choices=["ends", "coverage", "full"], help="print names for tox")
    parser.add_argument("--path", action="store_true", help="print their folders in the form of PATH")
    args = parser.parse_args()
    pythons = installed()
    if not pythons:
        print(f"no CPython >= {OLDEST[0]}.{OLDEST[1]} found", file=sys.stderr)
        return 1
    if args.path:
        print(os.pathsep.join(dict.fromkeys(str(python.path.parent) for python in reversed(pythons))))
    elif args.envs:
        names = [python.env for python in pythons]
        ends, sweeps = [names[0], names[-1]], [f"{names[-1]}-sweep", f"{names[-1]}-full"]
        chosen = {"ends": ends, "coverage": [f"{name}-cov" for name in ends], "full": sweeps + names[:-1]}[args.envs]
        print(",".join(dict.fromkeys(chosen)))
    else:
        for python in pythons:
            print(".".join(map(str, python.version)), python.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
