"""The model server refuses what a provider would refuse, in that provider's words and shape."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from agentrio.testing import (
    ModelServer,
    RawReply,
    TextReply,
    open_model_server,
    open_model_server_process,
)
from agentrio.testing.validators import Demands

OpenClient = Callable[[Any], AbstractAsyncContextManager[httpx2.AsyncClient]]

CALL = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
BROKEN: dict[str, dict[str, Any]] = {
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": ""}]},
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "assistant", "tool_calls": [CALL]}]},
    "/v1/responses": {"model": "m", "input": [{"role": "user", "content": []}]},
}
REFUSALS: dict[str, dict[str, Any]] = {
    "/v1/messages": {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "messages.0.content: text content blocks must be non-empty",
        },
    },
    "/v1/chat/completions": {
        "error": {
            "message": "messages[0]: An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
            "type": "invalid_request_error",
            "param": "messages[0]",
            "code": None,
        }
    },
    "/v1/responses": {
        "error": {
            "message": "input[0].content: List should have at least 1 item(s).",
            "type": "invalid_request_error",
            "param": "input[0].content",
            "code": None,
        }
    },
}


@pytest.mark.parametrize("path", BROKEN)
async def test_a_broken_request_is_answered_400_and_takes_no_reply(path: str, open_client: OpenClient) -> None:
    """A test then fails where its request is wrong, as it would with the real server."""
    async with open_model_server([TextReply("Hi")]) as server, open_client(server) as client:
        answer = await client.post(path, json=BROKEN[path])
        assert answer.status_code == 400
        told = answer.json()
        told.pop("request_id", None)
        assert told == REFUSALS[path]
        whole = await client.post("/v1/responses", json={"model": "m", "input": "Hi"})
        assert whole.status_code == 200
    assert server.record[0].ended == "sent"


@pytest.mark.parametrize("path", BROKEN)
async def test_who_sends_broken_requests_on_purpose_can_switch_it_off(path: str, open_client: OpenClient) -> None:
    """Such as a test of the server itself."""
    script = [TextReply("Hi")]
    async with open_model_server(script, validate=False) as server, open_client(server) as client:
        assert (await client.post(path, json=BROKEN[path])).status_code == 200
    async with open_model_server_process(script, validate=False) as other, open_client(other) as client:
        assert (await client.post(path, json=BROKEN[path])).status_code == 200


async def test_a_body_that_is_no_json_is_refused(open_client: OpenClient) -> None:
    """It has no fields at all."""
    async with open_model_server([RawReply(b"x")]) as server, open_client(server) as client:
        assert (await client.post("/v1/messages", content=b"{not")).status_code == 400


async def test_the_demands_of_one_server_can_be_asked_for(open_client: OpenClient) -> None:
    """What a compatible server refuses is found here, too."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}, BROKEN_END]}

    async def ask(server: ModelServer) -> int:
        async with open_client(server) as client:
            return (await client.post("/v1/messages", json=body)).status_code

    async with open_model_server([TextReply("Hi")]) as server:
        assert await ask(server) == 200
    async with open_model_server([TextReply("Hi")], validate=Demands(prefill=False)) as server:
        assert await ask(server) == 400


BROKEN_END = {"role": "assistant", "content": "b"}
