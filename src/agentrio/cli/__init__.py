"""The command line: ``agentrio --help``."""

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code.

    Raises:
        SystemExit: after ``--help`` and ``--version`` (0), and on wrong usage (2).
    """
    try:
        from .entry import main as run
    except KeyboardInterrupt:  # loading takes a tenth of a second and more, and who is impatient presses Ctrl-C in it
        return 130
    return run(arguments)
