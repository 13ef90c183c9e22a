"""What servers of one wire differ in, as far as a request can break it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

__all__ = ["CallContent", "Demands", "IdRule"]

CallContent: TypeAlias = Literal["any", "null", "omit", "empty"]
IdRule: TypeAlias = Literal["openai", "any", "nine"]


@attrs.frozen(kw_only=True)
class Demands:
    """What a server asks beyond the published rules, or does not take.

    The defaults are those of the provider that made the wire, and of what all servers of it have in common.

    Attributes:
        alternation: Messages: neighbours of one role are refused. The API itself joins them, other servers do not.
        user_first: Messages: the first message must be the user's.
        prefill: Whether an assistant message may stand at the end, as the beginning of the answer.
        trimmed_end: Whether the text of such a message must not end in space.
        result_order: Whether results must come in the order of their calls.
        tools_for_calls: Whether tools must be offered where the history holds calls (Bedrock).
        thinking_first: Messages: with thinking on, the last answer with calls must begin with thinking.
        images: Whether images are taken.
        files: Whether files are taken.
        extensions: Chat: whether the fields that compatible servers know are taken too.
        ids: Chat: what an id of a call may look like: OpenAI's (40 characters), any (64), Mistral's nine.
        call_content: Chat: the content of an assistant message that holds calls alone.
        answer_before_user: Chat: a user message may not follow results (Mistral).
        reasoning_field: Chat: a field that each assistant message with calls must have (DeepSeek, Kimi).
        thought_signatures: Chat: an answer's first call must have a thought signature (Gemini from 3 on).
        prefix_last: Chat: an assistant message at the end must be marked ``prefix`` (DeepSeek, Mistral).
        system_first: Chat: the system's messages must stand before all others.
        item_ids: Responses: ids of items must begin as OpenAI's do (``rs_``, ``msg_``, ``fc_``).
        least_output: Responses: the lowest ``max_output_tokens``; OpenAI's is 16.
        largest: The largest body in bytes.
    """

    alternation: bool = True
    user_first: bool = True
    prefill: bool = True
    trimmed_end: bool = True
    result_order: bool = True
    tools_for_calls: bool = False
    thinking_first: bool = False
    images: bool = True
    files: bool = True
    extensions: bool = True
    ids: IdRule = "openai"
    call_content: CallContent = "any"
    answer_before_user: bool = False
    reasoning_field: str = ""
    thought_signatures: bool = False
    prefix_last: bool = False
    system_first: bool = True
    item_ids: bool = False
    least_output: int = 1
    largest: int = 32_000_000
