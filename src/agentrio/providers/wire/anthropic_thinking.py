"""How much a Claude model is asked to think.

Claude Opus and Sonnet from 4.6, and all of the fifth generation, decide themselves and take an effort; older ones take
a budget of tokens that must lie below ``max_tokens``:
https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking and .../adaptive-thinking.
"""

from __future__ import annotations

import re
from typing import Any

from agentrio.domain.render import ThinkingLevel

BUDGETS: dict[ThinkingLevel, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 16_384,
    "max": 16_384,
}

LEAST_BUDGET = 1024  # tokens; the API takes no less
LEAST_TEXT = 4096  # tokens beside a budget, or a quarter of all: else an answer ends before it has begun

EFFORTS: dict[ThinkingLevel, str] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}

_NEW_NAME = re.compile(r"claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_OLD_NAME = re.compile(r"claude-(\d{1,2})(?:[-.](\d{1,2}))?-([a-z]+)")


def claude_version(model: str) -> tuple[str, int, int]:
    """Family, major and minor version in a model's name; dates are no versions. Empty and zero where there are none."""
    if found := _NEW_NAME.search(model):
        return found[1], int(found[2]), int(found[3] or 0)
    if found := _OLD_NAME.search(model):
        return found[3], int(found[1]), int(found[2] or 0)
    return "", 0, 0


def is_adaptive(model: str) -> bool:
    """Whether the model takes an effort where older ones take a budget."""
    family, major, minor = claude_version(model)
    return major >= 5 or (family in ("opus", "sonnet") and (major, minor) >= (4, 6))


def knows_max(model: str) -> bool:
    """Whether the model knows the effort above ``high``."""
    family, major, minor = claude_version(model)
    return (family == "opus" and (major, minor) >= (4, 6)) or (family in ("opus", "sonnet") and major >= 5)


def takes_beginning(model: str) -> bool:
    """Whether the model goes on with an answer that a request ends in (a "prefill").

    Claude from 4.6 on refuses it (https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6), and so
    do servers of other models where these think.
    """
    return bool(claude_version(model)[0]) and not is_adaptive(model)


def thinking_fields(model: str, level: ThinkingLevel | None, max_tokens: int) -> tuple[int, dict[str, Any]]:
    """``max_tokens``, raised where no budget would fit below it, and what else the body says of thinking."""
    if level is None:
        return max_tokens, {}
    if level == "off":
        return max_tokens, {"thinking": {"type": "disabled"}}
    if is_adaptive(model):
        effort = EFFORTS.get(level) or ("max" if knows_max(model) else "high")
        return max_tokens, {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    max_tokens, budget = _fitting(max_tokens, BUDGETS[level])
    return max_tokens, {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _fitting(max_tokens: int, budget: int) -> tuple[int, int]:
    """Both, so that the answer has room. A budget that leaves too little is made smaller; one that does not fit at all
    comes on top.
    """
    smaller = min(budget, max_tokens - max(LEAST_TEXT, max_tokens // 4))
    if max_tokens <= budget or smaller < LEAST_BUDGET:
        return max_tokens + budget, budget
    return max_tokens, smaller
