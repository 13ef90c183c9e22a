"""Generated tools fail by the thousand; their log lines would drown the falsifying example."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """No log lines of the library while laws are tested; crashes show in the events."""
    log = logging.getLogger("agentrio")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    yield
    log.setLevel(level)
