"""What the parts of a run share: the session's hub and emitter, the agent, the runtime's services."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from agentrio.agent.agent import Agent
from agentrio.domain.events import Origin
from agentrio.domain.identity import Identity
from agentrio.domain.limits import Limits
from agentrio.domain.render import RenderMemo
from agentrio.domain.state import RunState, SessionState
from agentrio.providers.base import ModelClient

from .cell import RunCell
from .emit import Emitter
from .hub import Hub
from .tool_pool import ToolPool
from .waiting import Waiting


@attrs.define(eq=False)
class Bench:
    """The workplace of one run."""

    run: RunCell
    origin: Origin
    agent: Agent[Any]
    identity: Identity | None
    services: Any
    hub: Hub
    emitter: Emitter
    pool: ToolPool
    client: Callable[[Any], Awaitable[ModelClient]]
    rng: random.Random
    memo: RenderMemo
    waiting: Waiting

    @property
    def limits(self) -> Limits:
        """The bounds that the run started with."""
        return self.state.limits

    @property
    def session_state(self) -> SessionState:
        """The session's state as of the last published event."""
        return self.hub.state

    @property
    def state(self) -> RunState:
        """The run's state as of the last published event."""
        run = self.hub.state.run
        assert run is not None
        assert run.id == self.run.id
        return run

    @property
    def seq(self) -> int:
        """The number of the last structural event."""
        return self.hub.state.session.seq
