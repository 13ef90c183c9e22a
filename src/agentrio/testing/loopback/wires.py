"""The wires that the server speaks, by the path of the request. A new wire is a `Wire` and a line in `WIRES`.

Vertex has Anthropic's wire under another path, which names the model, and with another first field in the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote, urlsplit

import attrs

from agentrio.testing.loopback import chat_wire, messages_wire, openai_wire, responses_wire
from agentrio.testing.loopback.script import ModelReply, RawReply, Received, Reply
from agentrio.testing.validators import Demands, Problem, WireName, validate

__all__ = ["WIRES", "Wire", "refusal", "wire_of"]


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

VERTEX = re.compile(r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/([^/]+):(?:stream)?[rR]awPredict")
VERTEX_VERSIONS = ("vertex-2023-10-16", "2026-10-21")  # the documented one, and the one that the SDK 2.14 sends


def wire_of(request: Received) -> tuple[Wire | None, Received]:
    """The wire at a request's path, and the request as it would be at that wire's own path."""
    path = urlsplit(request.path).path
    if found := VERTEX.fullmatch(path):
        return MESSAGES, attrs.evolve(request, body=_of_vertex(request.body, unquote(found[1])))
    return WIRES.get(path), request


def _of_vertex(body: object, model: str) -> object:
    """The body as Anthropic's own API takes it. One that Vertex would refuse is none to that API either."""
    if not isinstance(body, dict):
        return body
    version = body.get("anthropic_version")
    if version not in VERTEX_VERSIONS or "model" in body:
        return body | {"anthropic_version": version}
    return {"model": model} | {key: value for key, value in body.items() if key != "anthropic_version"}


def refusal(wire: Wire, request: Received, demands: Demands) -> Reply | None:
    """The error 400 that a provider answers to such a request, with the first problem; None where it takes it."""
    problems = validate(wire.name, request.body, demands)
    if not problems:
        return None
    return RawReply(wire.refused_body(problems[0]), status=400, content_type="application/json")
