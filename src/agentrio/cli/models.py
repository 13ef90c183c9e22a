"""The command ``models``: who can be named as ``provider:model``, and what each needs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from .command import Command

if TYPE_CHECKING:
    from agentrio.providers.registry import Provided

# One model of each, to show how it is written. Names come and go; the provider's own pages list them.
EXAMPLES = {
    "anthropic": "claude-sonnet-5",
    "openai": "gpt-5.2",
    "openai-chat": "gpt-5.2",
    "azure": "name-of-your-deployment",
    "gemini": "gemini-2.5-flash",
    "deepseek": "deepseek-v4-flash",
    "ollama": "qwen3",
    "llamacpp": "any-name",
    "vllm": "Qwen/Qwen3-8B",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "groq": "openai/gpt-oss-120b",
    "mistral": "mistral-large-latest",
    "xai": "grok-4.3",
    "together": "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    "fireworks": "accounts/fireworks/models/gpt-oss-120b",
    "zai": "glm-4.7-flash",
    "huggingface": "openai/gpt-oss-120b",
    "vercel": "anthropic/claude-sonnet-4.5",
    "perplexity": "sonar",
}


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON line for each provider")


def _run(options: Namespace) -> int:
    from agentrio.providers.registry import providers

    for provided in providers():
        print(_json(provided) if options.json else _told(provided), flush=True)
    return 0


def example(name: str) -> str:
    """A model of that provider as it is written."""
    return f"{name}:{EXAMPLES.get(name, 'name-of-a-model')}"


def _told(provided: Provided) -> str:
    lines = [f"{provided.name}: {provided.title}", f"    at     {provided.base_url or '(an address of your own)'}"]
    for variable in provided.needs:
        lines.append(f"    needs  {variable} ({'missing' if variable in provided.missing else 'is set'})")
    if not provided.needs:
        lines.append("    needs  no key")
    return "\n".join([*lines, f"    write  {example(provided.name)}"])


def _json(provided: Provided) -> str:
    import json

    return json.dumps(
        {
            "name": provided.name,
            "title": provided.title,
            "base_url": provided.base_url,
            "needs": provided.needs,
            "missing": provided.missing,
            "ready": not provided.missing,
            "example": example(provided.name),
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )


MODELS = Command(
    name="models",
    summary="list the providers that a model can be named of, and what each needs",
    description=(
        "Each provider with its address, the variables that it needs and whether they are set, and a model as it is "
        "written after --model. No key is printed."
    ),
    configure=_configure,
    run=_run,
)
