"""The wires that the server speaks, by the path of the request. A new wire is a `Wire` and a line in `WIRES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from agentrio.testing.loopback import chat_wire, messages_wire, responses_wire
from agentrio.testing.loopback.script import ModelReply, Received

__all__ = ["WIRES", "Wire"]


@attrs.frozen
class Wire:
    """How one API puts a reply into bytes. All pure.

    Attributes:
        frames: The frames of a stream, up to its terminal one.
        endless: The frames of a stream that never ends.
        body: The whole answer to a request that did not ask for a stream.
        error_body: The body of an error status; the type may be left to the wire.
        error_frame: An error within a stream.
        request_id: The header that names the request.
    """

    frames: Callable[[ModelReply, Received], Sequence[bytes]]
    endless: Callable[[ModelReply, Received], Iterator[bytes]]
    body: Callable[[ModelReply, Received], bytes]
    error_body: Callable[[int, str | None, str], bytes]
    error_frame: Callable[[str, str], bytes]
    request_id: str = "request-id"


MESSAGES = Wire(
    frames=messages_wire.frames,
    endless=messages_wire.endless,
    body=messages_wire.body,
    error_body=messages_wire.error_body,
    error_frame=messages_wire.error_frame,
)

CHAT = Wire(
    frames=chat_wire.frames,
    endless=chat_wire.endless,
    body=chat_wire.body,
    error_body=chat_wire.error_body,
    error_frame=chat_wire.error_frame,
    request_id="x-request-id",
)

RESPONSES = Wire(
    frames=responses_wire.frames,
    endless=responses_wire.endless,
    body=responses_wire.body,
    error_body=responses_wire.error_body,
    error_frame=responses_wire.error_frame,
    request_id="x-request-id",
)

WIRES: dict[str, Wire] = {"/v1/messages": MESSAGES, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}
