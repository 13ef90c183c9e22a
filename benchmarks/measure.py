"""Clocks and counters of one process."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

cpu = time.process_time  # user and system time of all threads, in seconds
now = time.monotonic_ns  # one clock for all processes of a machine


def settled() -> float:
    """``cpu()``, once the collection that imports and warming up have left due is done."""
    gc.collect()
    return cpu()


def pin(core: int | None) -> None:
    """Keep this process on one core, where the system can."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def cores() -> tuple[int | None, int | None]:
    """A core for the server and another one for the client; None where there is no choice."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)


def rss() -> int:
    """Resident memory of this process in bytes; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def quantile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
