"""How much a model behind the Chat Completions wire is asked to think: no two servers ask alike.

The styles, with the sources that ``presets.toml`` names for each server that has one:

- ``openai``: ``reasoning_effort``, to reasoning models alone; others refuse it. Those that can't be told not to think
  are told to think as little as they can: not asked, they would think as much as they do by default;
- ``effort``: ``reasoning_effort``, to all; off is not to ask;
- ``effort_or_none``: the same, and ``none`` for off;
- ``deepseek``: ``thinking.type`` and ``reasoning_effort`` of low, high or max;
- ``gemini``: ``reasoning_effort``; only the 2.5 Flash models can be told ``none``;
- ``groq``: as ``effort``; Qwen models know ``default`` and ``none`` alone;
- ``mistral``: ``prompt_mode`` to Magistral, ``reasoning_effort`` of high or none to others;
- ``openrouter``: ``reasoning.effort``;
- ``template``: ``chat_template_kwargs``, for open models that a chat template makes think; it is asked in both of the
  names that templates know (Granite's and DeepSeek's have ``thinking``), and leaves out what it does not know;
- ``type``: ``thinking.type`` of enabled or disabled;
- ``xai``: ``reasoning_effort`` from Grok 4.3 on, models before it refuse it; only 4.3 itself can be told ``none``;
- ``none``: nothing is sent.
"""

from __future__ import annotations

import re
from typing import Any, assert_never

from agentrio.domain.render import ThinkingLevel

from .chat_dialect import ThinkingStyle

_OPENAI_REASONING = re.compile(r"(?:^|/)(?:o\d|gpt-5(?!.*chat)|gpt-[6-9]|codex)")
_CAN_STOP = re.compile(r"gpt-(?:5\.[1-9]|[6-9])")
_GPT_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_NO_VERSION: tuple[int, int] = (0, 0)  # older than all

_GROK_EFFORT = re.compile(r"grok-(?:4\.[3-9]|[5-9]|latest)")

_DEEPSEEK: dict[ThinkingLevel, str] = {"minimal": "low", "low": "low", "max": "max"}
_THREE: dict[ThinkingLevel, str] = {"off": "none", "minimal": "low", "xhigh": "high", "max": "high"}


def is_reasoning(model: str) -> bool:
    """Whether a model of OpenAI's reasons; such a model takes no temperature while it does."""
    return bool(_OPENAI_REASONING.search(model))


def thinking_fields(style: ThinkingStyle, model: str, level: ThinkingLevel | None) -> dict[str, Any]:
    """What the body says of thinking; nothing where no level is asked for."""
    if level is None:
        return {}
    on = level != "off"
    match style:
        case "openai":
            return {"reasoning_effort": openai_effort(model, level)} if is_reasoning(model) else {}
        case "effort":
            return _effort(level) if on else {}
        case "effort_or_none":
            return _effort(level)
        case "xai":
            asked = xai_effort(model, level)
            return {} if asked is None else {"reasoning_effort": asked}
        case "deepseek":
            effort = {"reasoning_effort": _DEEPSEEK.get(level, "high")} if on else {}
            return {"thinking": {"type": "enabled" if on else "disabled"}} | effort
        case "gemini":
            return {"reasoning_effort": _gemini_effort(model, level)}
        case "groq" if "qwen" in model:
            return {"reasoning_effort": "default" if on else "none"}
        case "groq":
            return _effort(level) if on else {}
        case "mistral" if "magistral" in model:
            return {"prompt_mode": "reasoning"} if on else {}
        case "mistral":
            return {"reasoning_effort": "high" if on else "none"}
        case "openrouter":
            return {"reasoning": {"effort": {"off": "none", "max": "xhigh"}.get(level, level)}}
        case "template":
            return {"chat_template_kwargs": _template(level)}
        case "type":
            return {"thinking": {"type": "enabled" if on else "disabled"}}
        case "none":
            return {}
        case _:
            assert_never(style)


def _effort(level: ThinkingLevel) -> dict[str, Any]:
    return {"reasoning_effort": _THREE.get(level, level)}


def openai_effort(model: str, level: ThinkingLevel) -> str:
    """The effort that an OpenAI model knows for a level: ``minimal`` came with GPT-5 and left with 5.1, with which
    ``none`` came; ``xhigh`` came with 5.2, ``max`` with 5.6.
    """
    if level == "off":
        return "none" if _CAN_STOP.search(model) else openai_effort(model, "minimal")
    found = _GPT_VERSION.search(model)
    version = (int(found[1]), int(found[2] or 0)) if found else _NO_VERSION
    if level == "minimal":
        return "minimal" if version == (5, 0) else "low"
    if level == "max" and version >= (5, 6):
        return "max"
    if level in ("xhigh", "max"):
        return "xhigh" if version >= (5, 2) else "high"
    return level


def _gemini_effort(model: str, level: ThinkingLevel) -> str:
    if level == "off":
        return "none" if "2.5-flash" in model else "low" if "pro" in model else "minimal"
    return "low" if level == "minimal" and "pro" in model else {"xhigh": "high", "max": "high"}.get(level, level)


def xai_effort(model: str, level: ThinkingLevel) -> str | None:
    """The effort that a Grok knows for a level; None where it can't be asked. Those from 4.5 on can't be told not to
    think, and are told to think as little as they can.
    """
    if not _GROK_EFFORT.search(model):
        return None
    return "low" if level == "off" and "grok-4.3" not in model else _THREE.get(level, level)


def _template(level: ThinkingLevel) -> dict[str, Any]:
    if level == "off":
        return {"enable_thinking": False, "thinking": False}
    return {"enable_thinking": True, "thinking": True, "reasoning_effort": _THREE.get(level, level)}
