"""What each known server is sent, and how its answers are read: a lost fact of ``presets.toml`` is found here."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import attrs
import pytest

from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import File, ToolCall, ToolResult
from agentrio.domain.render import ModelRequest, SystemBlock, ThinkingLevel, ToolSpec
from agentrio.providers.base import ProviderError
from agentrio.providers.presets import Preset, presets
from agentrio.providers.wire.billing import told_cost
from agentrio.providers.wire.chat_assembler import ChatAssembler, usage_of
from agentrio.providers.wire.chat_request import ChatOptions, encode_request

HI = user_message("u", "Hi.")
TEMPLATE = {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}
NO_TEMPLATE = {"enable_thinking": False, "thinking": False}


@attrs.frozen
class Asked:
    """The body's fields at two levels of thinking, beside those that say what is sent to whom."""

    model: str = "m"
    high: dict[str, Any] = attrs.field(factory=lambda: {"reasoning_effort": "high"})
    off: dict[str, Any] = attrs.field(factory=dict)
    limit: str = "max_tokens"
    usage: bool = True


ASKED = {
    "openai": Asked("gpt-5.2", off={"reasoning_effort": "none"}, limit="max_completion_tokens"),
    "azure": Asked("gpt-5.2", off={"reasoning_effort": "none"}, limit="max_completion_tokens"),
    "gemini": Asked("gemini-3.5-flash", off={"reasoning_effort": "minimal"}),
    "deepseek": Asked(
        high={"thinking": {"type": "enabled"}, "reasoning_effort": "high"}, off={"thinking": {"type": "disabled"}}
    ),
    "ollama": Asked(off={"reasoning_effort": "none"}),
    "llamacpp": Asked(high={"chat_template_kwargs": TEMPLATE}, off={"chat_template_kwargs": NO_TEMPLATE}),
    "vllm": Asked(high={"chat_template_kwargs": TEMPLATE}, off={"chat_template_kwargs": NO_TEMPLATE}),
    "openrouter": Asked(high={"reasoning": {"effort": "high"}}, off={"reasoning": {"effort": "none"}}),
    "groq": Asked(
        "qwen/qwen3-32b", {"reasoning_effort": "default"}, {"reasoning_effort": "none"}, "max_completion_tokens"
    ),
    "mistral": Asked("magistral-medium-latest", {"prompt_mode": "reasoning"}, usage=False),
    "xai": Asked("grok-4.3", off={"reasoning_effort": "none"}, limit="max_completion_tokens"),
    "together": Asked(),
    "fireworks": Asked(),
    "zai": Asked(high={"thinking": {"type": "enabled"}}, off={"thinking": {"type": "disabled"}}, usage=False),
    "huggingface": Asked(),
    "vercel": Asked(high={"reasoning": {"effort": "high"}}, off={"reasoning": {"effort": "none"}}),
    "perplexity": Asked(usage=False),
    "snowflake": Asked(),
    "databricks": Asked(),
    "compatible": Asked(),
}
KEYS = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "xai": "XAI_API_KEY",
    "together": "TOGETHER_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "zai": "ZAI_API_KEY",
    "huggingface": "HF_TOKEN",
    "vercel": "AI_GATEWAY_API_KEY",
    "perplexity": "PERPLEXITY_API_KEY",
    "snowflake": "SNOWFLAKE_PAT",
    "databricks": "DATABRICKS_TOKEN",
}


def body(found: Preset, *messages: Message, model: str = "m", **more: Any) -> dict[str, Any]:
    """The request that a model of that server is sent."""
    options = ChatOptions(ModelTag(found.name, "chat", model), found.dialect)
    told: dict[str, Any] = json.loads(encode_request(ModelRequest("s", messages or (HI,), **more), options))
    return told


def those(holds: Callable[[Preset], bool]) -> set[str]:
    """The names of the servers of which that is true."""
    return {found.name for found in presets().values() if holds(found)}


@pytest.mark.parametrize("name", presets())
@pytest.mark.parametrize("level", ["high", "off"])
def test_each_server_is_asked_in_its_own_fields(name: str, level: ThinkingLevel) -> None:
    """For thinking, for a limit and for usage; a new preset brings its row."""
    asked = ASKED[name]
    told = body(presets()[name], model=asked.model, thinking=level, max_tokens=9)
    wanted = {asked.limit: 9} | (asked.high if level == "high" else asked.off)
    if name == "openai":
        wanted["prompt_cache_key"] = "s"
    if asked.usage:
        wanted["stream_options"] = {"include_usage": True}
    assert {key: told[key] for key in told if key not in ("model", "messages", "stream")} == wanted


def test_each_key_has_its_variable() -> None:
    """As the server's own documentation names it; those on this machine have none."""
    assert {name: found.key for name, found in presets().items() if found.key} == KEYS


def test_what_only_some_servers_take() -> None:
    """PDF files, the role ``developer``, tools; and ids of calls in their own forms."""

    def sends(found: Preset, part: File) -> bool:
        return "application/pdf" in json.dumps(body(found, user_message("u", (part,))))

    def refuses_tools(found: Preset) -> bool:
        try:
            body(found, tools=(ToolSpec("f", "", {}),))
        except ProviderError as refused:
            return refused.code == "unsupported"
        return False

    def longest(found: Preset) -> int:
        call = ToolCall("c" * 90, "x" * 60, "f", "{}", {})
        asked = Message("a", "assistant", (call,), ModelTag(found.name, "chat", "m"))
        done = Message("t", "tool", (ToolResult(call.id, "f", "succeeded"),))
        return len(body(found, HI, asked, done)["messages"][1]["tool_calls"][0]["id"])

    assert those(lambda found: sends(found, File("QQ==", "application/pdf", "a.pdf"))) == {"openai", "openrouter"}
    assert those(refuses_tools) == {"perplexity"}
    assert {name: longest(presets()[name]) for name in ("openai", "azure", "mistral", "gemini", "compatible")} == {
        "openai": 40, "azure": 40, "mistral": 9, "gemini": 60, "compatible": 60,
    }  # fmt: skip
    prompt = (SystemBlock("You are."),)
    assert those(lambda found: body(found, model="o3", system=prompt)["messages"][0]["role"] == "developer") == {
        "openai",
        "azure",
    }


def test_how_answers_of_some_servers_are_read() -> None:
    """A ``[DONE]`` for the end, reasoning that is counted beside the completion, and what an answer cost."""

    def ends(found: Preset) -> bool:
        assembler = ChatAssembler(found.reading)
        assembler.feed(b'data: {"choices":[{"delta":{"content":"Hi."}}]}\n\ndata: [DONE]\n\n')
        return assembler.finished

    def output(found: Preset, total: int) -> int:
        told = {"prompt_tokens": 10, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 3}}
        return usage_of(told | {"total_tokens": total}, found.reading).output

    def cost(found: Preset, told: Any) -> Decimal | None:
        return told_cost(told, found.reading.cost)

    assert those(ends) == {"openrouter", "snowflake"}
    assert those(lambda found: output(found, 20) == 10) == {"gemini", "xai"}
    assert those(lambda found: output(found, 14) == 7) == {"vercel"}
    assert those(lambda found: cost(found, {"cost": 2}) == 2) == {"openrouter", "vercel"}
    assert those(lambda found: cost(found, {"cost": {"total_cost": 2}}) == 2) == {"perplexity"}
    assert those(lambda found: cost(found, {"cost_in_usd_ticks": 10**10}) == 1) == {"xai"}
