"""The file of presets, and models by their presets' names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import ModelTag
from agentrio.providers import registry
from agentrio.providers.presets import FILE, preset, presets, read_presets
from agentrio.providers.registry import resolve

ASKED_FOR = (
    *("openai", "azure", "gemini", "deepseek", "ollama", "llamacpp", "vllm"),
    *("openrouter", "groq", "mistral", "xai", "together", "fireworks", "zai"),
)
LOCAL = {"ollama", "llamacpp", "vllm"}


def test_the_servers_that_are_promised_are_there() -> None:
    """Local ones need no key; of the others each has its own variable."""
    assert set(ASKED_FOR) <= presets().keys()
    for name in ASKED_FOR:
        assert bool(preset(name).key) == (name not in LOCAL)


def test_each_fact_has_a_source() -> None:
    """An address, or what was recorded."""
    for found in presets().values():
        for fact, source in found.sources.items():
            assert source.startswith(("https://", "recorded: ")), (found.name, fact)
        assert (found.base_url is None) == ("base_url" not in found.sources)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ('colour = { is = "red", from = "x" }', r"a\.colour is no known fact"),
        ('key = "KEY"', r"a\.key must have a value and"),
        ('key = { is = "KEY", from = "y" }', r"a\.key must have a value and"),
        ('key = { is = "KEY", from = "x", at = 1 }', r"a\.key must have a value and"),
        ('images = { is = "yes", from = "x" }', r"a\.images can't be 'yes'"),
        ('ids = { is = "ten", from = "x" }', r"a\.ids can't be 'ten'"),
        ("key = { is = 3, from = 'x' }", r"a\.key can't be 3"),
        ('key = { is = "KEY", from = "x", unconfirmed = false }', r"a\.key is unconfirmed = true, or"),
        ('title = "B"', "Cannot overwrite a value"),
        ('reading = { is = "x", from = "x" }', r"a\.reading is no known fact"),
        ("", "cites for nothing: x"),
    ],
)
def test_a_wrong_file_is_refused(facts: str, words: str) -> None:
    """With the name of the fact."""
    text = f'[a]\ntitle = "A"\nsources.x = "https://example.org"\n{facts}\n'
    with pytest.raises(ValueError, match=words):
        read_presets(text.encode())


def test_a_fact_that_nothing_confirms_says_so() -> None:
    """In the file, where code and the page of servers can read it."""
    facts = 'key = { is = "KEY", from = "x", unconfirmed = true }\nfiles = { is = true, from = "x" }'
    text = f'[a]\ntitle = "A"\nsources.x = "https://example.org"\n{facts}\n'
    found = read_presets(text.encode())["a"]
    assert (found.key, found.dialect.files, found.unconfirmed) == ("KEY", True, frozenset({"key"}))
    for known in presets().values():
        assert known.unconfirmed <= known.sources.keys()


def test_an_unknown_preset_is_refused_with_those_that_there_are() -> None:
    """At the declaration."""
    with pytest.raises(DeclarationError, match=r"no preset 'gorq'; there are azure, compatible, .*groq"):
        preset("gorq")


def test_models_are_named_by_their_presets() -> None:
    """What stands behind the first colon is the server's name for it."""
    assert resolve("openai-chat:gpt-5.2").tag == ModelTag("openai", "chat", "gpt-5.2")
    assert resolve("groq:openai/gpt-oss-120b").tag == ModelTag("groq", "chat", "openai/gpt-oss-120b")
    assert resolve("ollama:qwen3:8b").tag == ModelTag("ollama", "chat", "qwen3:8b")
    with pytest.raises(DeclarationError, match=r"azure, deepseek, .*zai"):
        resolve("gorq:x")
    with pytest.raises(DeclarationError, match="no name behind"):
        resolve("groq: ")


def test_servers_without_an_address_of_their_own_have_no_name() -> None:
    """A name alone could not say where they are."""
    for name in ("compatible", "snowflake", "databricks"):
        with pytest.raises(DeclarationError, match="names no known provider"):
            resolve(f"{name}:x")


def test_providers_are_listed_with_what_each_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what of it is not set; no key is told."""
    monkeypatch.setenv("GROQ_API_KEY", "secret")
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    found = {each.name: each for each in registry.providers()}
    assert list(found)[:3] == ["anthropic", "openai", "openai-chat"]
    assert (found["groq"].needs, found["groq"].missing) == (("GROQ_API_KEY",), ())
    assert found["azure"].missing == ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT")
    assert found["ollama"].needs == ()
    assert "secret" not in repr(found)
    for name in found:
        assert resolve(f"{name}:m").tag.model == "m" if name != "openai" else True


def test_presets_are_read_when_they_are_needed() -> None:
    """Importing the registry reads no file and imports no HTTP client; the file is part of the package."""
    code = (
        "import sys; from agentrio.providers.registry import resolve; resolve('anthropic:x'); "
        "assert 'agentrio.providers.presets' not in sys.modules; resolve('groq:x'); assert 'openai' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert FILE.is_file()
