"""What ``agentrio models`` says is what the registry knows, and what it shows can be used."""

from __future__ import annotations

import json

import pytest

from agentrio.cli import main
from agentrio.providers.registry import providers, resolve
from tests.cli.support import run


def test_every_provider_has_an_example_that_resolves() -> None:
    """Whoever copies it gets a model; a new provider brings its example."""
    for provided in providers():
        provider, _, model = provided.example.partition(":")
        assert provider == provided.name
        assert model, f"{provider} has no example in presets.toml"
        assert resolve(provided.example).tag.model == model


def test_it_tells_what_is_needed_and_whether_it_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never the key itself."""
    monkeypatch.setenv("GROQ_API_KEY", "a-secret")
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    assert main(["models"]) == 0
    said = capsys.readouterr().out
    assert "needs  GROQ_API_KEY (is set)" in said
    assert "needs  MISTRAL_API_KEY (missing)" in said
    assert "needs  no key" in said
    assert "write  ollama:" in said
    assert "(an address of your own)" in said
    assert "a-secret" not in said


def test_programs_get_json() -> None:
    """One line for each provider."""
    done = run("models", "--json", env={"GROQ_API_KEY": "a-secret", "MISTRAL_API_KEY": ""})
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["groq"] == {
        "name": "groq",
        "title": "Groq",
        "base_url": "https://api.groq.com/openai/v1",
        "needs": ["GROQ_API_KEY"],
        "missing": [],
        "ready": True,
        "example": "groq:openai/gpt-oss-120b",
    }
    assert rows["mistral"]["missing"] == ["MISTRAL_API_KEY"]
    assert rows["mistral"]["ready"] is False
    assert rows["ollama"]["needs"] == []
    assert "a-secret" not in done.stdout
