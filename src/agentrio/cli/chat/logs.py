"""What the library logs, shown in a chat: a line each, for whoever talks can do little with a traceback."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress

from .view import View


class _Lines(logging.Handler):
    def __init__(self, view: View) -> None:
        super().__init__(logging.WARNING)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage().partition("\n")[0].rstrip(":")
        error = record.exc_info[1] if record.exc_info else None
        why = "" if error is None else f" ({type(error).__name__}: {error})"
        with suppress(OSError):  # what is logged must not fail because nobody reads it
            self._view.note(f"[{line}{why}]")


@contextmanager
def log_to(view: View) -> Generator[None]:
    """Show warnings and worse, and nothing by another way, for the time of the block."""
    log = logging.getLogger("agentrio")
    handler, propagated = _Lines(view), log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagated
