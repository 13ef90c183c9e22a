"""The corpus of recorded streams, where it lies beside the repository, and the outcome in its terms."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from agentrio.domain.parts import RawBlock, Text, Thinking, ToolCall
from agentrio.providers.base import ModelResponse, ProviderError

HERE = Path(__file__).parent
WIRE = HERE.parents[1].parent / "shared" / "wire"
FOLDERS = ("anthropic", "anthropic-llamacpp")
STOPS = {"tool_calls": "tool", None: None}


@attrs.frozen
class Case:
    """One recorded answer and what an independent assembler made of it."""

    name: str
    body: bytes = attrs.field(repr=False)
    streamed: bool
    meta: dict[str, Any] = attrs.field(repr=False)
    expected: dict[str, Any] = attrs.field(repr=False)

    @property
    def status(self) -> int:
        status: int = self.expected["http_status"]
        return status


def cases(folders: Iterable[str] = FOLDERS) -> list[Case]:
    """Every case of these folders; empty where the corpus is absent."""
    return [case for folder in folders for case in _cases(WIRE / folder)]


def _cases(folder: Path) -> Iterable[Case]:
    for expected in sorted(folder.glob("*.expected.json")):
        stem = expected.name.removesuffix(".expected.json")
        stream = folder / f"{stem}.sse"
        body = stream if stream.exists() else folder / f"{stem}.json"
        meta = json.loads((folder / f"{stem}.meta.json").read_text())
        yield Case(f"{folder.name}/{stem}", body.read_bytes(), body is stream, meta, json.loads(expected.read_text()))


def outcome(response: ModelResponse, error: ProviderError | None) -> dict[str, Any]:
    """A response in the corpus's terms."""
    parts = response.parts
    usage = response.usage
    return {
        "id": response.response_id or None,
        "model": response.model or None,
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "thinking": [_thinking(part) for part in parts if isinstance(part, Thinking)],
        "tool_calls": [_call(part) for part in parts if isinstance(part, ToolCall)],
        "server_blocks": [_server(part) for part in parts if isinstance(part, RawBlock)],
        "citations": sum(map(_citations, parts)),
        "block_types": [_type(part) for part in parts],
        "stop_reason": response.raw_stop_reason,
        "stop": "error" if error else STOPS.get(response.stop_reason, response.stop_reason),
        "usage": {key: getattr(usage, key) for key in ("input", "output", "cache_read", "cache_write")},
        "error": None if error is None else (error.type, error.message.partition(": ")[2]),
    }


def expected_outcome(case: Case) -> dict[str, Any]:
    """The case's expectation in the same shape: absent counts are 0, the error is its type and message."""
    told = case.expected
    usage = told["usage_norm"] or {}
    error = told["error"]
    return {
        **{key: told[key] for key in ("id", "model", "text", "server_blocks", "citations", "stop_reason", "stop")},
        "thinking": [{key: item.get(key) for key in ("text", "signature", "data")} for item in told["thinking"]],
        "tool_calls": [
            {key: item.get(key) for key in ("id", "name", "input")} | _raw_input(item) for item in told["tool_calls"]
        ],
        "block_types": told.get("block_types", []),
        "usage": {key: usage.get(key) or 0 for key in ("input", "output", "cache_read", "cache_write")},
        "error": None if error is None else (error["type"], error["message"]),
    }


def _raw_input(item: dict[str, Any]) -> dict[str, Any]:
    return {"input_raw": item["input_raw"]} if item["input"] is None else {}


def _thinking(part: Thinking) -> dict[str, Any]:
    if part.redacted:
        return {"text": part.text, "signature": None, "data": part.signature}
    return {"text": part.text, "signature": part.signature, "data": None}


def _call(part: ToolCall) -> dict[str, Any]:
    told: dict[str, Any] = {"id": part.provider_id, "name": part.name, "input": part.arguments}
    return told | ({"input_raw": part.arguments_json} if part.arguments is None else {})


def _server(part: RawBlock) -> dict[str, Any]:
    block = json.loads(part.json)
    assert block["type"] == part.kind
    return {"type": part.kind} | {key: block[key] for key in ("id", "name", "tool_use_id", "input") if key in block}


def _citations(part: object) -> int:
    return len(json.loads(part.raw).get("citations") or ()) if isinstance(part, Text) and part.raw else 0


def _type(part: object) -> str:
    match part:
        case Text():
            return "text"
        case Thinking(redacted=True):
            return "redacted_thinking"
        case Thinking():
            return "thinking"
        case ToolCall():
            return "tool_use"
        case RawBlock(kind=kind):
            return kind
    raise AssertionError(part)


def argued(file: str = "corpus_differences.toml") -> dict[tuple[str, str], dict[str, Any]]:
    """Where our outcome differs from the corpus on purpose: case and field to the argued entry."""
    entries = tomllib.loads((HERE / file).read_text()).get("difference", [])
    return {(entry["case"], entry["field"]): entry for entry in entries}
