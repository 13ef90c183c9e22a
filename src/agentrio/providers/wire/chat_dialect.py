"""What servers of the Chat Completions wire differ in, as values. Which server has which: ``presets.toml``."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

EmptyContent: TypeAlias = Literal["null", "omit", "empty"]
IdRule: TypeAlias = Literal["openai", "any", "nine"]
ThinkingStyle: TypeAlias = Literal[
    "none",
    "openai",
    "effort",
    "effort_or_none",
    "deepseek",
    "gemini",
    "groq",
    "mistral",
    "openrouter",
    "template",
    "type",
    "xai",
]


@attrs.frozen(kw_only=True)
class Dialect:
    """How a request must look.

    Attributes:
        images: Whether users may send images, as data URLs.
        files: Whether users may send PDF files.
        tools: Whether tools can be offered.
        thinking: How reasoning is asked for (``chat_thinking``).
        max_tokens: The name of the field that limits the answer.
        usage_option: Whether usage has to be asked for, by ``stream_options``.
        developer_role: Whether reasoning models are given the prompt as ``developer``.
        empty_content: The content of an assistant message that holds calls alone.
        ids: What an id of a call may look like.
        tool_name: Whether results name their tool.
        prefix_last: Whether an assistant message at the end, marked as the beginning of the answer, is gone on with.
        answer_before_user: Whether an assistant message must stand between results and a user message.
        reasoning_required: The field that each assistant message with calls must have, if only empty.
        thought_signatures: Whether an answer's first call must have a thought signature (Gemini's from 3 on).
        cache_marks: The models (by the beginning of their names) whose prompt cache must be marked.
        cache_key: Whether requests say by a key which of them begin alike.
    """

    images: bool = True
    files: bool = False
    tools: bool = True
    thinking: ThinkingStyle = "effort"
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    usage_option: bool = True
    developer_role: bool = False
    empty_content: EmptyContent = "null"
    ids: IdRule = "any"
    tool_name: bool = False
    prefix_last: bool = False
    answer_before_user: bool = False
    reasoning_required: Literal["", "reasoning_content", "reasoning"] = ""
    thought_signatures: bool = False
    cache_marks: str = ""
    cache_key: bool = False
