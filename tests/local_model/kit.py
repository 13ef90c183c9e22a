"""A real model on this machine, where one is served: its address is in AGENTRIO_LOCAL_MODEL_URL (``make model-test``).

llama.cpp's server speaks all three wires, and tells at ``/slots`` which generations run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from agentrio.providers.anthropic import Anthropic
from agentrio.providers.openai_chat import OpenAIChat
from agentrio.providers.openai_responses import OpenAIResponses

URL = os.environ.get("AGENTRIO_LOCAL_MODEL_URL", "").rstrip("/")
NAME = "smollm2-135m"
SLOTS = 4
CONTEXT = 2048  # tokens

MODELS: dict[str, Callable[[], Any]] = {
    "messages": lambda: Anthropic(NAME, api_key="none", base_url=URL),
    "chat": lambda: OpenAIChat(NAME, preset="llamacpp", api_key="none", base_url=f"{URL}/v1"),
    "responses": lambda: OpenAIResponses(NAME, preset="llamacpp", api_key="none", base_url=f"{URL}/v1"),
}

local_model = [
    pytest.mark.local_model,
    pytest.mark.skipif(not URL, reason="no local model: AGENTRIO_LOCAL_MODEL_URL is not set (make model-test sets it)"),
]
each_wire = pytest.mark.parametrize("wire", MODELS)


async def busy_slots() -> int:
    """How many generations run."""
    async with httpx2.AsyncClient(verify=False, trust_env=False) as client:
        slots = (await client.get(f"{URL}/slots")).json()
    return sum(slot["is_processing"] for slot in slots)
