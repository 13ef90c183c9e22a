"""A conversation as it is kept: immutable, and the same in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .events import Queue, SteerMode
from .messages import Message


@attrs.frozen
class Queued:
    """A message that waits."""

    message: Message
    queue: Queue
    mode: SteerMode = "after_calls"


@attrs.frozen
class Session:
    """One conversation: immutable and JSON-safe. ``runs`` and ``queued_total`` number what comes next.

    Tool results in the first ``compacted`` messages are kept here, and sent to the model as their size alone. The
    messages whose ids are ``shortened`` were too large for a request to hold: of them the model sees the beginning.

    It can be hashed, as all values can; messages and memory have no part in that, so it costs the same however long
    the conversation is.
    """

    id: str
    agent: str = ""
    messages: tuple[Message, ...] = attrs.field(default=(), hash=False)
    memory: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    queue: tuple[Queued, ...] = ()
    runs: int = 0
    queued_total: int = 0
    seq: int = 0
    compacted: int = 0
    shortened: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The session as JSON text; ``from_json`` reads it back to an equal value."""
        from .codec import dumps

        return dumps(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Session:
        """The session that ``to_json`` wrote.

        Raises:
            CodecError: the text is no session, or was written by a version that knows more than this one.
        """
        from .codec import loads

        return loads(text, cls)
