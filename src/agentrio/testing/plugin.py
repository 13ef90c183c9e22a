"""Fixtures of the testing kit. pytest finds them by itself where the package is installed.

Importing this brings in no server and no SDK: a fixture brings in what it needs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agentrio.testing.clock import HoldingClock
    from agentrio.testing.leaks import LeakCheck
    from agentrio.testing.loopback import ModelServer

    OpenServer = Callable[..., AbstractAsyncContextManager[ModelServer]]

__all__ = ["holding_clock", "leak_check", "model_server"]


@pytest.fixture
def model_server() -> OpenServer:
    """`open_model_server`, to be entered in the test: ``async with model_server([TextReply("Hi")]) as server:``."""
    from agentrio.testing.loopback import open_model_server

    return open_model_server


@pytest.fixture
def holding_clock() -> HoldingClock:
    """A `HoldingClock`. With pytest-trio it is the test's clock; else hand it to ``trio.run(main, clock=...)``."""
    from agentrio.testing.clock import HoldingClock

    return HoldingClock()


@pytest.fixture
def _trio_test(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("trio") is None:
        pytest.fail("leak_check spans a Trio test: install pytest-trio, and set trio_mode or mark the test `trio`")


@pytest.fixture
async def leak_check(_trio_test: None) -> AsyncGenerator[LeakCheck]:
    """A `LeakCheck` whose baseline is before the test and whose check is after it.

    Fixtures that the test also asks for come and go beside it. One that holds tasks or sockets asks for
    ``leak_check`` itself, and is then inside. Needs pytest-trio; without it, there is `no_leaks`.
    """
    from agentrio.testing.leaks import LeakCheck

    check = LeakCheck()
    yield check
    await check.check()
