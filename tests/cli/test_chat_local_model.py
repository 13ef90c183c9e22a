"""The chat with a real model on this machine, where one has been set up: its address is in AGENTRIO_LOCAL_MODEL_URL.

It is llama.cpp's server, which speaks all three wires and tells at ``/slots`` whether it computes.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from pathlib import Path

import pytest

from agentrio.domain.session import Session
from tests.cli.support import AGENTRIO, PATIENCE, run, terminal

URL = os.environ.get("AGENTRIO_LOCAL_MODEL_URL", "").rstrip("/")
WIRES = {"anthropic": "anthropic:smollm2-135m", "chat": "llamacpp:smollm2-135m", "responses": "openai:smollm2-135m"}

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not URL, reason="no local model: AGENTRIO_LOCAL_MODEL_URL is not set"),
]


def chat(wire: str, *options: str) -> list[str]:
    """The chat's options for the local model on one of its wires."""
    return ["chat", "--model", WIRES[wire], "--base-url", URL if wire == "anthropic" else f"{URL}/v1", *options]


KEYS = {"ANTHROPIC_API_KEY": "not-a-key", "OPENAI_API_KEY": "not-a-key"}


def busy() -> bool:
    """Whether the server computes."""
    with urllib.request.urlopen(f"{URL}/slots", timeout=PATIENCE) as answer:
        return any(slot["is_processing"] for slot in json.load(answer))


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_a_story_is_stopped_and_the_next_prompt_is_answered(tmp_path: Path, wire: str) -> None:
    """Ctrl-C frees the server; the conversation goes on with the story as far as it was told."""
    command = [*AGENTRIO, *chat(wire, "--no-history", "--max-tokens", "2000")]
    with terminal(command, cwd=tmp_path, **KEYS) as shown:
        shown.read_next("> ")
        shown.type("Tell me a very long story about a lighthouse keeper and the sea.\n")
        shown.read_next("the sea.\r\n")  # the echo of what was typed
        shown.read_next(" the ")
        shown.type("\x03")
        shown.read_next("[stopped; what was said is kept]")
        began = time.monotonic()
        while busy():
            assert time.monotonic() - began < PATIENCE, "the server computes on"
        shown.read_next("> ")
        shown.type("/save talk.json\n")
        shown.read_next("2 messages are in talk.json")
        shown.read_next("> ")
        shown.type("What is the capital of France? One word.\n")
        shown.read_next(" tokens in, ")
        assert shown.leave() == 0
    saved = Session.from_json((tmp_path / "talk.json").read_bytes())
    assert saved.messages[-1].interrupted
    assert saved.messages[-1].text[:20] in shown.shown.replace("\r\n", "\n")


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_a_pipe_is_answered(wire: str) -> None:
    """One question, one answer, exit code 0."""
    done = run(*chat(wire, "--max-tokens", "200"), said="What is the capital of France? One word.", env=KEYS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert " tokens in, " in done.stderr
