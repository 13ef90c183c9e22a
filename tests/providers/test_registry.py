"""Models by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import ModelTag
from agentrio.providers.registry import resolve


def test_a_model_is_named_by_its_provider_and_its_own_name() -> None:
    """What stands behind the first colon is the model's, colons included."""
    assert resolve("anthropic:claude-sonnet-5").tag == ModelTag("anthropic", "messages", "claude-sonnet-5")
    assert resolve("anthropic:a:b").tag.model == "a:b"
    assert resolve("anthropic: a ").tag.model == "a"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude-sonnet-5", "anthropic, openai, openai-chat"),
        ("nobody:x", "names no known provider"),
        ("scripted:x", "Scripted"),
        ("", "provider:model"),
        ("anthropic:", "no name behind its provider"),
        ("anthropic: ", "no name behind its provider"),
        ("claude-sonnet-5", r"Did you mean anthropic:claude-sonnet-5\?"),
        ("antropic:claude-sonnet-5", r"Did you mean anthropic:claude-sonnet-5\?"),
        ("OpenAI/gpt-5.2", r"Did you mean openai:gpt-5\.2\?"),
        ("google:gemini-2.5-flash", r"Did you mean gemini:gemini-2\.5-flash\?"),
        ("ollama", r"Did you mean ollama:name-of-a-model\?"),
    ],
)
def test_a_wrong_name_is_refused_with_what_would_be_right(name: str, words: str) -> None:
    """Known providers are listed; a scripted model has no name, it is an object."""
    with pytest.raises(DeclarationError, match=words):
        resolve(name)


def test_naming_a_model_imports_no_sdk() -> None:
    """The SDK takes a second and more; it is imported in a thread when the model is opened."""
    code = (
        "import sys; from agentrio.providers.registry import resolve; "
        "assert not {'httpx2', 'anthropic', 'openai'} & set(sys.modules); "
        "resolve('anthropic:x'); assert not {'anthropic', 'openai'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
