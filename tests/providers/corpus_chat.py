"""Recorded Chat Completions answers: which preset each folder goes through, and the outcome in the corpus's terms."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from agentrio.domain.parts import Text, Thinking, ToolCall
from agentrio.providers.base import ModelResponse, ProviderError
from agentrio.providers.wire.chat_parts import REFUSAL
from tests.providers.corpus import WIRE, Case

PRESETS = {
    "openai-chat": "openai",
    "compat-avian": "compatible",
    "compat-azure": "azure",
    "compat-cloudflare": "compatible",
    "compat-crusoe-vllm": "vllm",
    "compat-databricks": "databricks",
    "compat-deepseek": "deepseek",
    "compat-gemini-compat": "gemini",
    "compat-gpustack": "compatible",
    "compat-groq": "groq",
    "compat-huggingface": "huggingface",
    "compat-litellm-proxy": "compatible",
    "compat-llamacpp": "llamacpp",
    "compat-llamacpp-local": "llamacpp",
    "compat-mistral": "mistral",
    "compat-ollama": "ollama",
    "compat-openrouter": "openrouter",
    "compat-perplexity": "perplexity",
    "compat-snowflake": "snowflake",
    "compat-together": "together",
    "compat-vercel-gateway": "vercel",
    "compat-vllm": "vllm",
    "compat-xai": "xai",
    "compat-zai": "zai",
}
STOPS = {"tool_calls": "tool"}
MAX_QUOTE = 500


def unmapped() -> set[str]:
    """Folders of compatible servers that go through no preset."""
    return {folder.name for folder in WIRE.glob("compat-*")} - PRESETS.keys()


def chat_outcome(response: ModelResponse, error: ProviderError | None) -> dict[str, Any]:
    """A response in the corpus's terms. A drop is no error there: the stream is not complete."""
    parts, usage = response.parts, response.usage
    dropped = error is not None and error.code == "stream_dropped"
    told = None if error is None or dropped else (error.type, error.message.partition(": ")[2])
    stop = response.stop_reason or ""
    return {
        "id": response.response_id or None,
        "model": response.model or None,
        "text": "".join(part.text for part in parts if isinstance(part, Text) and part.raw != REFUSAL),
        "refusal": "".join(part.text for part in parts if isinstance(part, Text) and part.raw == REFUSAL) or None,
        "thinking": "".join(part.text for part in parts if isinstance(part, Thinking)),
        "tool_calls": [_call(part) for part in parts if isinstance(part, ToolCall)],
        "stop_reason": response.raw_stop_reason,
        "stop": "error" if told else STOPS.get(stop, stop) or None,
        "usage": {key: getattr(usage, key) for key in ("input", "output", "cache_read", "cache_write", "reasoning")},
        "error": told,
    }


def expected_chat_outcome(case: Case) -> dict[str, Any]:
    """The case's expectation in the same shape: the uncached part of the input, absent counts 0."""
    told, error = case.expected, case.expected["error"]
    usage = {key: (told["usage_norm"] or {}).get(key) or 0 for key in ("output", "cache_read", "cache_write")}
    usage["reasoning"] = min(usage["output"], (told["usage_norm"] or {}).get("reasoning") or 0)
    prompt = (told["usage_norm"] or {}).get("input") or 0
    return {
        **{key: told[key] or None for key in ("id", "model", "refusal", "stop_reason", "stop")},
        "text": told["text"],
        "thinking": "".join(item["text"] for item in told["thinking"]),
        "tool_calls": [
            {"id": item["id"] or "", "name": item["name"], "input": item["input"]} for item in told["tool_calls"]
        ],
        "usage": usage | {"input": prompt - usage["cache_read"] - usage["cache_write"]},
        "error": None if error is None else (_type(error), _quote(error)),
    }


def digest(value: object) -> str:
    """What stands for recorded words in the file of differences."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _call(part: ToolCall) -> dict[str, Any]:
    return {"id": part.provider_id, "name": part.name, "input": part.arguments}


def _type(error: Any) -> str | None:
    if not isinstance(error, dict):
        return None
    return next((error[key] for key in ("type", "code") if isinstance(error.get(key), str) and error[key]), None)


def _quote(error: Any) -> str:
    text = error.get("message") if isinstance(error, dict) else error
    words = " ".join(str(text).split())
    return words if len(words) <= MAX_QUOTE else words[: MAX_QUOTE - 1] + "…"
