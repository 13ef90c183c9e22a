"""What all tests of the command line stand on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_signal_ignored() -> Iterator[None]:
    """Programs inherit what is ignored: started behind ``nohup``, the tests would start all others so, too."""
    ignored = {number for number in (signal.SIGHUP, signal.SIGINT) if signal.getsignal(number) == signal.SIG_IGN}
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
