"""The demo with a real model, where one is served: its address is in AGENTRIO_LOCAL_MODEL_URL (``make model-test``)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentrio.domain.codec import from_data
from agentrio.domain.events import Event, RunEnded
from tests.cli.support import run

URL = os.environ.get("AGENTRIO_LOCAL_MODEL_URL", "")


@pytest.mark.skipif(bool(URL), reason="there is a local model")
def test_without_a_local_model_the_demo_says_how_to_get_one(tmp_path: Path) -> None:
    """In words, not with a traceback, and before anything is drawn."""
    done = run("demo", "--local-model", str(tmp_path / "absent"))
    assert done.returncode == 69
    assert done.stdout == ""
    assert f"there is no local model in {tmp_path / 'absent'}" in done.stderr
    assert "make local-model" in done.stderr


@pytest.mark.local_model
@pytest.mark.skipif(not URL, reason="no local model: AGENTRIO_LOCAL_MODEL_URL is not set")
def test_the_demo_plays_with_a_real_model() -> None:
    """It calls, is stopped, and goes on; the server is told to compute no more, and does not."""
    done = run("demo", "--local-model", "--fast", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    kind: Any = Event
    events = [from_data(line, kind) for line in told[:-1]]
    assert [it.result.status for it in events if isinstance(it, RunEnded)] == ["succeeded", "cancelled", "succeeded"]
    (stop,) = told[-1]["stops"]
    assert stop["seen_after"] < 500  # milliseconds
