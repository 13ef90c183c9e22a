"""Bodies that the server sends as they are."""

from __future__ import annotations

import httpx2

from agentrio.testing.loopback import RawReply, Script, TextReply, open_model_server


async def test_a_raw_reply_is_sent_whatever_the_path() -> None:
    """It needs no wire, so wires and paths that the server does not speak can be tested too."""
    script = Script((RawReply(b'{"a":1}', content_type="application/json"), TextReply("said")))
    async with open_model_server(script) as server, httpx2.AsyncClient() as client:
        first = await client.post(f"{server.base_url}/openai/deployments/x/chat/completions?api-version=1", json={})
        assert (first.status_code, first.json()) == (200, {"a": 1})
        second = await client.post(f"{server.base_url}/nowhere", json={})
        assert second.status_code == 404
