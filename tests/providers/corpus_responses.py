"""Recorded Responses answers: which preset each folder goes through, and the outcome in the corpus's terms."""

from __future__ import annotations

import json
from typing import Any

from agentrio.domain.parts import Part, RawBlock, Text, Thinking, ToolCall
from agentrio.providers.base import ModelResponse, ProviderError
from tests.providers.corpus import WIRE, Case

PRESETS = {
    "openai-responses": "openai",
    "responses-azure": "azure",
    "responses-bedrock-mantle": "compatible",
    "responses-deepseek": "deepseek",
    "responses-llamacpp": "llamacpp",
    "responses-lmstudio": "compatible",
    "responses-openrouter": "openrouter",
    "responses-xai": "xai",
}
SERVER = ("id", "status", "name", "call_id")


def unmapped() -> set[str]:
    """Folders of Responses answers that go through no preset."""
    return {folder.name for folder in WIRE.glob("responses-*")} - PRESETS.keys()


def responses_outcome(response: ModelResponse, error: ProviderError | None) -> dict[str, Any]:
    """A response in the corpus's terms."""
    parts, usage = response.parts, response.usage
    raws = [(part, _raw(part)) for part in parts]
    texts = [(part, raw["content"][0]) for part, raw in raws if isinstance(part, Text)]
    stop = response.stop_reason
    return {
        "id": response.response_id or None,
        "model": response.model or None,
        "text": "".join(part.text for part, content in texts if content["type"] == "output_text"),
        "refusal": "".join(part.text for part, content in texts if content["type"] == "refusal") or None,
        "citations": sum(len(content.get("annotations") or ()) for _, content in texts),
        "phases": [raw["phase"] for part, raw in raws if isinstance(part, Text) and raw.get("phase")],
        "thinking": [_thinking(part, raw) for part, raw in raws if isinstance(part, Thinking)],
        "tool_calls": [_call(part, raw) for part, raw in raws if isinstance(part, ToolCall)],
        "server_blocks": [_server(part, raw) for part, raw in raws if isinstance(part, RawBlock)],
        "item_types": [raw["type"] for _, raw in raws],
        "stop_reason": response.raw_stop_reason,
        "stop": "error" if error else {"tool_calls": "tool"}.get(stop or "", stop),
        "usage": {key: getattr(usage, key) for key in ("input", "output", "cache_read", "cache_write", "reasoning")},
        "error": None if error is None else error.message.partition(": ")[2],
    }


def _raw(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(getattr(part, "json", "") or getattr(part, "raw", "") or "{}")
    return found


def _thinking(part: Thinking, raw: dict[str, Any]) -> dict[str, Any]:
    summary = [piece["text"] for piece in raw.get("summary") or ()]
    text = "".join(piece["text"] for piece in raw.get("content") or ())
    assert part.text == "\n\n".join(filter(None, [*summary, text]))
    return {"id": raw["id"], "summary": summary, "text": text, "encrypted": raw.get("encrypted_content")}


def _call(part: ToolCall, raw: dict[str, Any]) -> dict[str, Any]:
    return {"id": part.provider_id, "item_id": raw.get("id"), "name": part.name, "input": part.arguments}


def _server(part: RawBlock, raw: dict[str, Any]) -> dict[str, Any]:
    assert raw["type"] == part.kind
    return {"type": part.kind} | {key: raw[key] for key in SERVER if key in raw}


def expected_responses_outcome(case: Case) -> dict[str, Any]:
    """The case's expectation in the same shape: the uncached part of the input, absent counts 0."""
    told, error = case.expected, case.expected["error"]
    counts = told["usage_norm"] or {}
    usage = {key: counts.get(key) or 0 for key in ("output", "cache_read", "cache_write", "reasoning")}
    prompt = counts.get("input") or 0
    message = error.get("message") if isinstance(error, dict) else error
    kept = ("id", "model", "text", "refusal", "citations", "thinking", "tool_calls", "server_blocks")
    return {
        **{key: told[key] for key in (*kept, "stop_reason", "stop")},
        "phases": told.get("phases", []),
        "item_types": told.get("item_types", []),
        "usage": usage | {"input": prompt - usage["cache_read"] - usage["cache_write"]},
        "error": None if message is None else " ".join(message.split()),
    }
