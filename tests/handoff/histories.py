"""Random histories, broken in every way that a stop, a crash or a cut can break one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st

from agentrio.domain.history import answerable, normalise_history
from agentrio.domain.messages import Message, ModelTag, user_message
from agentrio.domain.parts import (
    CallError,
    File,
    Image,
    Part,
    RawBlock,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from agentrio.providers.wire.chat_assembler import MESSAGE_FIELDS
from agentrio.providers.wire.chat_parts import REFUSAL
from tests.handoff.targets import OWN_FIELDS_ALONE

Draw = Callable[[st.SearchStrategy[Any]], Any]

words = st.text(st.characters(codec=None), max_size=6) | st.sampled_from(["word", " ", "\n\n", "end \n", "", "\0"])
odd_ids = st.sampled_from(
    ["", "0", "call_1", "call_1", "toolu_01", "functions.now:0", "é", "x" * 64, "x" * 90, "abcdefghi"]
)
result_parts: st.SearchStrategy[ResultPart] = st.one_of(
    st.builds(Text, words),
    st.just(Image("aGk=", "image/png")),
    st.just(File("aGk=", "application/pdf", "a.pdf")),
    st.sampled_from([File("aGk=", "text/plain"), File("aGk=", "application/zip", "a.zip")]),
)
arguments = st.sampled_from(
    [("{}", {}), ('{"a": 1.50}', {"a": 1.5}), ("", {}), ('{"a": ', None), ("[]", None), ('{"a":"\n"}', {"a": "\n"})]
)


@attrs.define
class Numbers:
    """Ids that are unique in a history, as those of sessions and servers are."""

    last: int = 0

    def next(self) -> int:
        self.last += 1
        return self.last


def anthropic_parts(draw: Draw, number: int, tag: ModelTag) -> list[Part]:
    """What Claude may answer with: thinking signed, hidden or cut, and tools of the server."""
    use = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": use["id"], "content": []}
    text = draw(words)
    cited = json.dumps({"type": "text", "text": text, "citations": []})
    pieces: list[list[Part]] = [
        [Thinking("hm", "c2ln")],
        [Thinking("", "c2ln")],
        [Thinking("", "b3BhcXVl", redacted=True)],
        [Thinking("cut off")],
        [Text(text)],
        [Text(text, cited)],
        [RawBlock("server_tool_use", json.dumps(use)), RawBlock("web_search_tool_result", json.dumps(found))],
        [RawBlock("server_tool_use", json.dumps(use))],
    ]
    drawn: list[Part] = draw(st.sampled_from(pieces))
    return drawn


def responses_parts(draw: Draw, number: int, tag: ModelTag) -> list[Part]:
    """What the Responses API may: reasoning that can go back or not, messages in their items, searches."""
    text = draw(words)
    reasoning: dict[str, Any] = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
    content = {"type": "output_text", "annotations": []}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [content]}
    refused = said | {"content": [{"type": "refusal"}]}
    search = {"type": "web_search_call", "id": f"ws_{number}", "status": "completed"}
    pieces: list[list[Part]] = [
        [Thinking("", raw=json.dumps(reasoning | {"encrypted_content": "x"}))],
        [Thinking("hm", raw=json.dumps(reasoning))],
        [Thinking("cut off")],
        [Text(text, json.dumps(said))],
        [Text(text or "no", json.dumps(refused))],
        [Text(text)],
        [RawBlock("web_search_call", json.dumps(search))],
    ]
    drawn: list[Part] = draw(st.sampled_from(pieces))
    return drawn


def chat_parts(draw: Draw, number: int, tag: ModelTag) -> list[Part]:
    """What Chat Completions servers may: reasoning in their fields, details, refusals, fields of their own."""
    text = draw(words)
    detail = {"type": "reasoning.encrypted", "data": "x", "id": f"rd_{number}"}
    pieces: list[list[Part]] = [
        [Thinking("cut off")],
        [Text(text)],
        [Text(text or "no", REFUSAL)],
    ]
    if tag.provider not in OWN_FIELDS_ALONE:
        pieces += [
            [Thinking("hm", raw='{"field":"reasoning_content"}')],
            [Thinking("hm", raw='{"field":"content"}'), Text(text)],
            [Thinking("", "x", redacted=True, raw=json.dumps({"field": "", "details": [detail]}))],
            [Text(text), RawBlock(MESSAGE_FIELDS, '{"extra_content":{"google":{}}}')],
        ]
    drawn: list[Part] = draw(st.sampled_from(pieces))
    return drawn


PARTS = {"messages": anthropic_parts, "responses": responses_parts, "chat": chat_parts}
CALL_RAWS = {
    "messages": '{"type":"tool_use","caller":{"type":"direct"}}',
    "responses": '{"type":"function_call","status":"completed"}',
    "chat": '{"extra_content":{}}',
}


def call(draw: Draw, tag: ModelTag, numbers: Numbers) -> ToolCall:
    """A call with an odd id, and arguments whole, cut or none at all."""
    text, parsed = draw(arguments)
    raw = (
        None
        if tag.provider in OWN_FIELDS_ALONE and tag.api == "chat"
        else draw(st.none() | st.just(CALL_RAWS[tag.api]))
    )
    return ToolCall(
        f"run/1/{numbers.next()}",
        draw(odd_ids),
        draw(st.sampled_from(["now", "look", "look at", ""])),
        text,
        parsed,
        raw,
    )


def result(draw: Draw, call: ToolCall) -> ToolResult:
    """What became of a call."""
    if draw(st.booleans()):
        return ToolResult(call.id, call.name, "succeeded", tuple(draw(st.lists(result_parts, max_size=2))))
    return ToolResult(call.id, call.name, "cancelled", error=CallError("cancelled", draw(words)), uncertain=True)


def answer(draw: Draw, tag: ModelTag, numbers: Numbers) -> list[Message]:
    """An answer of a model, perhaps stopped, and the results of its calls: some lost, strayed or told twice."""
    parts = [part for _ in range(draw(st.integers(0, 3))) for part in PARTS[tag.api](draw, numbers.next(), tag)]
    calls = [call(draw, tag, numbers) for _ in range(draw(st.sampled_from([0, 0, 1, 2])))]
    every = (*parts, *calls)
    interrupted = draw(st.booleans())
    if interrupted:
        every = every[: draw(st.integers(0, len(every)))]
    message = Message(f"m{numbers.next()}", "assistant", every, tag, interrupted)
    results = [result(draw, it) for it in calls]
    fate = draw(st.sampled_from(["whole", "whole", "lost", "shuffled", "doubled", "split"]))
    if fate == "lost" or not results:
        return [message]
    if fate == "shuffled":
        results = draw(st.permutations(results))
    if fate == "doubled":
        results = results * 2
    if fate == "split":
        return [message, *(Message(f"m{numbers.next()}", "tool", (it,)) for it in results)]
    return [message, Message(f"m{numbers.next()}", "tool", tuple(results))]


def question(draw: Draw, numbers: Numbers) -> Message:
    """What the user says, sees or attaches."""
    return user_message(f"u{numbers.next()}", tuple(draw(st.lists(result_parts, max_size=2))))


@st.composite
def histories(draw: Draw, tags: list[ModelTag]) -> list[Message]:
    """A history of several models, cut anywhere. Its end can be answered."""
    numbers = Numbers()
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 5))):
        if draw(st.integers(0, 3)):
            messages += answer(draw, draw(st.sampled_from(tags)), numbers)
        else:
            messages.append(question(draw, numbers))
    messages = messages[draw(st.integers(0, 2)) :]
    if messages and draw(st.booleans()):
        messages.pop()
    if draw(st.booleans()) or not answerable(normalise_history(messages)):
        messages.append(user_message("last", "Go on."))
    return [user_message("first", "Hi."), *messages] if draw(st.booleans()) or not messages else messages
