"""What real servers answered is taken by every other, and goes back to its own as it came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import RawBlock, Text, Thinking
from agentrio.providers.wire.chat_history import UNSIGNED
from agentrio.testing.validators import Problem
from tests.handoff.recorded import PROMPT, RECORDED, Recorded
from tests.handoff.targets import MAIN, MODELS
from tests.providers.corpus import Case

recorded = pytest.mark.parametrize("one", RECORDED, ids=lambda one: one.name)
OF_MESSAGES = [one for one in RECORDED if one.model.wire == "messages"]
OF_RESPONSES = [one for one in RECORDED if one.model.wire == "responses"]
OF_CHAT = [one for one in RECORDED if one.model.wire == "chat"]


def test_the_corpus_is_present() -> None:
    """Where it is not, the run says so."""
    if not RECORDED:
        pytest.skip("../shared/wire is absent")
    assert min(map(len, (OF_MESSAGES, OF_RESPONSES, OF_CHAT))) >= 40


@recorded
def test_a_recorded_answer_goes_to_every_model(one: Recorded) -> None:
    """Its own model among them: each server takes the request."""
    for name, model in MODELS.items():
        assert [it for it in model.problems(one.history()) if not excused(it)] == [], name


def excused(problem: Problem) -> bool:
    """Made fixtures in a provider's folder: an item that it has not yet, and a field that it does not send."""
    return "some_future_type" in problem.reason or problem.path.endswith(".reasoning_content")


ANSWERS = ("function_call_output", "custom_tool_call_output")
NOT_SIGNED = f',"extra_content":{{"google":{{"thought_signature":"{UNSIGNED}"}}}}'
SECRETS = ("signature", "encrypted_content", "redacted_thinking", "server_tool_use", "web_search_call", "extra_content")


@recorded
def test_another_model_is_shown_all_that_it_can_read_and_nothing_else(one: Recorded) -> None:
    """J06: the text, the readable reasoning and the calls; no signature, no encrypted reasoning, no server's item."""
    for name in MAIN:
        model = MODELS[name]
        if model.tag == one.model.tag:
            continue
        body = model.body(one.history())
        said = "\n".join(strings(body))
        for part in one.answer.parts:
            if isinstance(part, (Text, Thinking)):
                assert part.text.strip() in said
        data = model.data(one.history()).decode().replace(NOT_SIGNED, "")
        assert not any(f'"{word}":' in data for word in SECRETS)
        assert calls_in(body) == [call.name for call in one.answer.calls]


def strings(value: Any) -> Iterator[str]:
    """All texts in a body."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value if isinstance(value, list) else value.values():
            yield from strings(inner)


def calls_in(body: dict[str, Any]) -> list[str]:
    """The names of the calls in a body, whatever its wire."""
    items = [item for message in body.get("messages", ()) for item in _items_of(message)] + body.get("input", [])
    found = [item for item in items if item.get("type") in ("tool_use", "function", "function_call")]
    return [item["function"]["name"] if "function" in item else item["name"] for item in found]


def _items_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [*(content if isinstance(content, list) else []), *message.get("tool_calls", [])]


def answer_in(one: Recorded, *, last: bool = True) -> list[dict[str, Any]]:
    """What its own server is sent of the answer: at the end of a history, or with a question behind it."""
    body = one.model.body([PROMPT, *one.turn()] if last else one.history())
    items: list[dict[str, Any]] = body["messages"][1:] if "messages" in body else body["input"][1:]
    return [item for item in items if item.get("role") not in ("tool", "user") and item.get("type") not in ANSWERS]


@pytest.mark.parametrize("one", OF_MESSAGES, ids=lambda one: one.name)
def test_claude_is_given_its_blocks_back_as_they_came(one: Recorded) -> None:
    """Signed, hidden, cited, of the server's own: in their places, with nothing added."""
    came = [block for block in blocks_of(one.case) if block["type"] != "text" or block["text"].strip()]
    while came and came[-1]["type"] in ("thinking", "redacted_thinking"):
        came.pop()  # such an end is refused
    sent = one.model.body([PROMPT, *one.turn()])["messages"]
    content: list[dict[str, Any]] = next((message["content"] for message in sent if message["role"] == "assistant"), [])
    if came and came[-1]["type"] == "text":
        came[-1]["text"] = came[-1]["text"].rstrip()  # and so is space there
    assert [plain(block) for block in content] == [plain(block) for block in came]


def plain(block: dict[str, Any]) -> dict[str, Any]:
    """Without what says nothing."""
    return {key: value for key, value in block.items() if value is not None}


def blocks_of(case: Case) -> list[dict[str, Any]]:
    """The blocks of a recorded answer, put together by plain concatenation."""
    if not case.streamed:
        whole: list[dict[str, Any]] = json.loads(case.body)["content"]
        return whole
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    calls = iter(case.expected["tool_calls"])
    for event in events_of(case):
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif event.get("type") == "content_block_delta":
            add(blocks[event["index"]], inputs, event["index"], event["delta"])
    for index, block in blocks.items():
        if block["type"] == "tool_use":
            block["input"] = next(calls)["input"] or {}
        elif index in inputs:
            block["input"] = object_in(inputs[index])
    return list(blocks.values())


def object_in(text: str) -> dict[str, Any]:
    """Arguments as they go back: what is no object, or was cut, as an empty one."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def add(block: dict[str, Any], inputs: dict[int, str], index: int, delta: dict[str, Any]) -> None:
    """One delta."""
    match delta["type"]:
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case _:
            for key, value in delta.items():
                if key != "type":
                    block[key] = (block.get(key) or "") + value


def events_of(case: Case) -> list[dict[str, Any]]:
    """The data of a recorded stream."""
    lines = case.body.decode("utf-8", "replace").splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip() != "[DONE]"]


@pytest.mark.parametrize("one", OF_RESPONSES, ids=lambda one: one.name)
def test_a_responses_server_is_given_its_items_back_as_they_came(one: Recorded) -> None:
    """Reasoning and its own items to the byte, messages and calls with their ids and phases."""
    sent = answer_in(one)
    came = items_of(one.case)
    while came and came[-1]["type"] == "reasoning":
        came.pop()  # nothing came of it, so it is refused
    assert sent == [as_sent(item) for item in came if can_return(item)]
    data = one.model.data([PROMPT, one.answer]).decode()
    for part in one.answer.parts:
        raw = part.json if isinstance(part, RawBlock) else part.raw if isinstance(part, Thinking) else None
        if raw is not None and json.loads(raw) in sent:
            assert raw in data
            assert raw in one.case.body.decode() or not one.case.streamed


def as_sent(item: dict[str, Any]) -> dict[str, Any]:
    """Arguments that were cut, or are no object, as an empty one."""
    if item["type"] == "function_call" and not object_in(item["arguments"]):
        return item | {"arguments": "{}"}
    return item


def can_return(item: dict[str, Any]) -> bool:
    """Not reasoning that only the server's store would have, and no call that nobody answers."""
    if item["type"] == "apply_patch_call":
        return False
    return item["type"] != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def items_of(case: Case) -> list[dict[str, Any]]:
    """The items of a recorded answer, as the server gave them whole."""
    if not case.streamed:
        whole: list[dict[str, Any]] = json.loads(case.body)["output"]
        return whole
    return [event["item"] for event in events_of(case) if event.get("type") == "response.output_item.done"]


@pytest.mark.parametrize("one", OF_CHAT, ids=lambda one: one.name)
def test_a_chat_server_is_given_its_message_back_as_it_came(one: Recorded) -> None:
    """Text, calls and reasoning in its field; ids where the wire takes them."""
    (sent,) = answer_in(one) or [{}]
    expected = one.case.expected
    assert (content_of(sent) or "").rstrip() == expected["text"].rstrip()
    calls = [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in sent.get("tool_calls", ())
    ]
    assert calls == [(call["name"], call["input"] or {}) for call in expected["tool_calls"] or legacy(one)]
    assert sent.get("refusal") == (expected["refusal"] or None)
    ids = [
        (call["id"], ours["id"]) for call, ours in zip(expected["tool_calls"], sent.get("tool_calls", ()), strict=False)
    ]
    assert [theirs or ours for theirs, ours in ids] == [ours for _, ours in ids]
    assert kept_in([sent]) == kept_in(pieces_of(one.case))


KEYS = ("text", "summary", "data", "signature")  # of a detail, those that say something


def kept_in(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Reasoning and signatures in a message, or in its pieces, by where they stand. Details go before plain fields."""
    details = [it for piece in pieces for it in piece.get("reasoning_details") or () if any(map(it.get, KEYS))]
    if details:
        return {key: "".join(it.get(key) or "" for it in details) for key in KEYS} | signs(pieces)
    fields = [piece.get("reasoning_content") or piece.get("reasoning") or "" for piece in pieces]
    lists = [it for piece in pieces if isinstance(piece.get("content"), list) for it in piece["content"]]
    thoughts = [text["text"] for it in lists if it["type"] == "thinking" for text in it["thinking"]]
    names = {key for piece in pieces for key in ("reasoning_content", "reasoning") if piece.get(key)}
    return {"plain": "".join(fields), "listed": "".join(thoughts), "fields": names} | signs(pieces)


def signs(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Gemini's, of the message and of its calls."""
    calls = [call for piece in pieces for call in piece.get("tool_calls") or ()]
    return {"signs": [it["extra_content"] for it in (*pieces, *calls) if it.get("extra_content")]}


def pieces_of(case: Case) -> list[dict[str, Any]]:
    """What was streamed of the first choice, or the message of a body."""
    frames = events_of(case) if case.streamed else [json.loads(case.body)]
    choices = [choice for frame in frames for choice in frame.get("choices") or () if not choice.get("index")]
    return [choice.get("delta") or choice.get("message") or {} for choice in choices]


def legacy(one: Recorded) -> list[dict[str, Any]]:
    """What was called a function once goes back as a tool's call."""
    return [{"name": call.name, "input": call.arguments} for call in one.answer.calls]


def content_of(message: dict[str, Any]) -> str:
    """The text, whole or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(piece.get("text", "") for piece in content)


def test_one_history_goes_from_model_to_model_and_back() -> None:
    """Claude, then Responses, then Chat, then Claude again: each has its own blocks unchanged beside the others'."""
    if not RECORDED:
        pytest.skip("../shared/wire is absent")
    for number in range(20):
        picked = [kind[number * 7 % len(kind)] for kind in (OF_MESSAGES, OF_RESPONSES, OF_CHAT, OF_MESSAGES[::-1])]
        history: list[Message] = [PROMPT]
        for turn, one in enumerate(picked):
            history += [*one.turn(), user_message(f"u{turn}", "And then?")]
        for model in MODELS.values():
            assert [it for it in model.problems(history) if not excused(it)] == []
        for one in picked:
            alone, whole = answer_in(one, last=False), one.model.body(history)
            assert [item for item in alone if item in (whole.get("messages") or whole["input"])] == alone
