"""The command line: ``agentrio --help``."""

from .entry import main as main

__all__ = ["main"]
