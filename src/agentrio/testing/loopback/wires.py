"""The wires that the server speaks, by the path of the request. A new wire is a `Wire` and a line in `WIRES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from agentrio.testing.loopback import chat_wire, messages_wire, openai_wire, responses_wire
from agentrio.testing.loopback.script import ModelReply, RawReply, Received, Reply
from agentrio.testing.validators import Demands, Problem, WireName, validate

__all__ = ["WIRES", "Wire", "refusal"]


@attrs.frozen
class Wire:
    """How one API puts a reply into bytes. All pure.

    Attributes:
        name: What the validators call it.
        frames: The frames of a stream, up to its terminal one.
        endless: The frames of a stream that never ends.
        body: The whole answer to a request that did not ask for a stream.
        error_body: The body of an error status; the type may be left to the wire.
        error_frame: An error within a stream.
        refused_body: The body that refuses a request.
        request_id: The header that names the request.
    """

    name: WireName
    frames: Callable[[ModelReply, Received], Sequence[bytes]]
    endless: Callable[[ModelReply, Received], Iterator[bytes]]
    body: Callable[[ModelReply, Received], bytes]
    error_body: Callable[[int, str | None, str], bytes]
    error_frame: Callable[[str, str], bytes]
    refused_body: Callable[[Problem], bytes]
    request_id: str = "request-id"


MESSAGES = Wire(
    name="messages",
    frames=messages_wire.frames,
    endless=messages_wire.endless,
    body=messages_wire.body,
    error_body=messages_wire.error_body,
    error_frame=messages_wire.error_frame,
    refused_body=lambda problem: messages_wire.error_body(400, None, str(problem)),
)

CHAT = Wire(
    name="chat",
    frames=chat_wire.frames,
    endless=chat_wire.endless,
    body=chat_wire.body,
    error_body=chat_wire.error_body,
    error_frame=chat_wire.error_frame,
    refused_body=openai_wire.refused_body,
    request_id="x-request-id",
)

RESPONSES = Wire(
    name="responses",
    frames=responses_wire.frames,
    endless=responses_wire.endless,
    body=responses_wire.body,
    error_body=responses_wire.error_body,
    error_frame=responses_wire.error_frame,
    refused_body=openai_wire.refused_body,
    request_id="x-request-id",
)

WIRES: dict[str, Wire] = {"/v1/messages": MESSAGES, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}


def refusal(wire: Wire, request: Received, demands: Demands) -> Reply | None:
    """The error 400 that a provider answers to such a request, with the first problem; None where it takes it."""
    problems = validate(wire.name, request.body, demands)
    if not problems:
        return None
    return RawReply(wire.refused_body(problems[0]), status=400, content_type="application/json")
