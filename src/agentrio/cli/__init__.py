"""The command line: ``agentrio --help``."""

from .main import main as main

__all__ = ["main"]
