"""What a tool is given beside its arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs

from ..domain.identity import Identity
from .memory import check_patch

ProgressCallback: TypeAlias = Callable[[str, float | None, float | None], Awaitable[None]]
"""Takes the text, what is done and the total of a progress report."""


async def _nobody_listens(text: str, done: float | None, total: float | None) -> None:
    pass


@attrs.define(eq=False, kw_only=True)
class ToolContext:
    """The call that a tool works for: a parameter annotated with this class is filled in, and the model never sees it.

    ``session_id``, ``run_id`` and ``call_id`` are ours; ``agent`` is the agent's name; ``identity`` is who the session
    acts for, if it was told; ``services`` is what the host passed when it opened the session.
    """

    session_id: str
    run_id: str
    call_id: str
    agent: str
    identity: Identity | None = None
    services: Any = attrs.field(factory=dict, repr=False)
    _memory: Mapping[str, Any] = attrs.field(factory=dict, repr=False, alias="memory")
    _report: ProgressCallback = attrs.field(default=_nobody_listens, repr=False, alias="report")
    _view: dict[str, Any] | None = attrs.field(default=None, init=False, repr=False)
    _patches: list[dict[str, Any]] = attrs.field(factory=list, init=False, repr=False)

    @classmethod
    def for_test(
        cls,
        *,
        session_id: str = "test",
        run_id: str = "test-r1",
        call_id: str = "c_test-r1_1_0",
        agent: str = "test",
        identity: Identity | None = None,
        services: Any = None,
        memory: Mapping[str, Any] | None = None,
        progress: ProgressCallback | None = None,
    ) -> ToolContext:
        """A context for a unit test, with no runtime behind it. ``patches`` shows what the tool remembered."""
        return cls(
            session_id=session_id,
            run_id=run_id,
            call_id=call_id,
            agent=agent,
            identity=identity,
            services={} if services is None else services,
            memory={} if memory is None else memory,
            report=_nobody_listens if progress is None else progress,
        )

    @property
    def memory(self) -> Mapping[str, Any]:
        """The session's memory as it was when this call's segment started, with the call's own patches.

        It is a copy: changing what is inside changes nothing. Write with ``remember``.
        """
        return MappingProxyType(self._own_view())

    @property
    def patches(self) -> tuple[dict[str, Any], ...]:
        """Copies of what the call has remembered, oldest first. It reaches the session unless the call is cancelled."""
        return tuple(check_patch(patch) for patch in self._patches)

    def remember(self, patch: Mapping[str, Any]) -> None:
        """Merges a patch into the session's memory, key by key; a key with None at the top is deleted.

        Raises:
            MemoryPatchError: the patch is not plain JSON; the message names the path, and nothing is remembered.
        """
        self._patches.append(check_patch(patch))
        view = self._own_view()
        for key, value in check_patch(patch).items():
            if value is None:
                view.pop(key, None)
            else:
                view[key] = value

    async def progress(self, text: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Tells whoever watches the run how far the call is. Waits while they are behind."""
        await self._report(text, done, total)

    def _own_view(self) -> dict[str, Any]:
        if self._view is None:
            self._view = {key: deepcopy(value) for key, value in self._memory.items()}
        return self._view
