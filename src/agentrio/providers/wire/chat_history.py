"""The conversation as messages of the Chat Completions wire, encoded once.

What was written by the same model goes back as it came: reasoning in the field it came in, signed details and Gemini's
thought signatures verbatim. Of another model, readable reasoning is labelled text, and calls are marked as unsigned.

The wire has no mark for a failed call, so its result says so in words; and it takes no images in results, so they
follow in a user message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import msgspec

from agentrio.domain.handoff import NO_FILE, ForeignThinking, for_model, only_paused
from agentrio.domain.messages import Message, ModelTag, memoised
from agentrio.domain.parts import File, Image, RawBlock, Text, Thinking, ToolCall, ToolResult

from .call_ids import CallIds
from .chat_assembler import MESSAGE_FIELDS
from .chat_dialect import Dialect, IdRule
from .chat_parts import REFUSAL
from .common import GO_ON, call_name
from .files import told_as_text
from .json import add_item, encode, says, trimmed
from .openai_calls import arguments_text, error_text

NO_OUTPUT = "(The tool returned nothing.)"
SEE_BELOW = "(What the tool returned follows in the next message.)"
ATTACHED = "This is what the tools returned beside text, in the order of their calls:"
PDF = "application/pdf"
BRIDGE = {"role": "assistant", "content": "OK."}
UNSIGNED = "skip_thought_signature_validator"
"""What Google says to send with a call that Gemini did not sign, since another model made it:
https://ai.google.dev/gemini-api/docs/thought-signatures.
"""


_BEFORE_SIGNATURES = re.compile(r"gemini-[12]\b")


class NineIds(CallIds):
    """Mistral takes nine letters and digits: https://github.com/karthink/gptel/issues/1203."""

    def __init__(self, tag: ModelTag) -> None:
        super().__init__(tag)
        self._valid = re.compile(r"[a-zA-Z0-9]{9}\Z")

    def _hashed(self, id: str, salt: int = 0) -> str:
        return super()._hashed(id, salt)[-9:]


class AnyIds(CallIds):
    """Servers whose templates read ids (Kimi's ``functions.name:0``) are given back their own."""

    def __init__(self, tag: ModelTag) -> None:
        super().__init__(tag)
        self._valid = re.compile(r"[!-~]{1,64}\Z")


def call_ids(tag: ModelTag, rule: IdRule) -> CallIds:
    """Ids as a server takes them; OpenAI's has no more than 40 characters in one."""
    match rule:
        case "nine":
            return NineIds(tag)
        case "any":
            return AnyIds(tag)
        case "openai":
            return CallIds(tag, 40)
        case _:
            assert_never(rule)


class Conversation:
    """Encoded messages of a history that grows. A history that does not continue the last one starts over."""

    def __init__(self, tag: ModelTag, dialect: Dialect, foreign: ForeignThinking) -> None:
        self._tag = tag
        self._dialect = dialect
        self._foreign: ForeignThinking = foreign
        self._restart()

    def _restart(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._ids = call_ids(self._tag, self._dialect.ids)
        self._pieces: list[bytes] = []  # with the commas between them, ready to be joined
        self._last: Message | None = None  # the last message that left something
        self._user: tuple[int, Message] | None = None  # the user's last message, and its place among the pieces

    def feed(self, messages: tuple[Message, ...]) -> None:
        """The whole history so far, normalised."""
        done = len(self._seen)
        if messages[:done] != self._seen:  # the same objects compare at C speed
            self._restart()
            done = 0
        for message in messages[done:]:
            self._add(message)
        self._seen = messages

    def _add(self, message: Message) -> None:
        told = for_model(message, self._tag, images=self._dialect.images, thinking=self._foreign)
        used = tuple(_wire_ids(told, self._ids))
        key = ("chat", self._tag, self._dialect, used)
        fragment = memoised(told, key, lambda it: _encoded(it, self._tag, self._dialect, self._ids))
        if not fragment:
            return
        if self._dialect.answer_before_user and told.role == "user" and self._last and self._last.role == "tool":
            add_item(self._pieces, encode(BRIDGE))
        add_item(self._pieces, fragment)
        self._last = told
        if told.role == "user":
            self._user = len(self._pieces) - 1, told

    def pieces(self, *, mark: bool) -> list[bytes]:
        """All messages, to be joined. Behind an answer at the end the user asks for the rest of it, unless the server
        goes on with what is marked as a beginning: most refuse such an end where their models think. An answer that
        does stand at the end loses trailing space, which some servers refuse there. ``mark`` says that the server is to
        keep all up to the user's last words.
        """
        last, pieces = self._last, self._marked() if mark else self._pieces
        if last is None or last.role != "assistant" or last.calls:
            return pieces
        if not self._dialect.prefix_last and not only_paused(self._seen[-1], self._tag):
            return [*pieces, b",", encode({"role": "user", "content": GO_ON})]
        message = _assistant(last, self._tag, self._dialect, self._ids)
        _trim(message)
        if self._dialect.prefix_last:
            message["prefix"] = True
        return [*pieces[:-1], encode(message)]

    def _marked(self) -> list[bytes]:
        """The pieces with a mark on the last text of the user's last message, if it has one."""
        at, message = self._user or (0, None)
        content = _user_content(message.parts, self._dialect) if message else []
        blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [block for block in blocks if block["type"] == "text"]
        if not texts:
            return self._pieces
        texts[-1]["cache_control"] = {"type": "ephemeral"}
        return [*self._pieces[:at], encode({"role": "user", "content": blocks}), *self._pieces[at + 1 :]]


def _trim(wire: dict[str, Any]) -> None:
    content = wire.get("content")
    if isinstance(content, str):
        wire["content"] = trimmed(content)
    elif content and content[-1]["type"] == "text":
        content[-1]["text"] = trimmed(content[-1]["text"])


def _wire_ids(message: Message, ids: CallIds) -> Iterable[str]:
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield ids.of_call(part, message.model)
        elif isinstance(part, ToolResult):
            yield ids.of_result(part)


def _encoded(message: Message, tag: ModelTag, dialect: Dialect, ids: CallIds) -> bytes:
    match message.role:
        case "user":
            content = _user_content(message.parts, dialect)
            return encode({"role": "user", "content": content}) if content else b""
        case "assistant":
            wire = _assistant(message, tag, dialect, ids)
            return encode(wire) if _answers(wire) else b""
        case "tool":
            return b",".join(map(encode, _results(message, dialect, ids)))
        case _:
            assert_never(message.role)


def _answers(wire: dict[str, Any]) -> bool:
    """Whether there is more in an answer than reasoning and space, which alone is refused."""
    content = wire.get("content") or ""
    told = content if isinstance(content, str) else "".join(piece.get("text", "") for piece in content)
    return says(told) or "tool_calls" in wire or says(wire.get("refusal", ""))


def _user_content(parts: Iterable[Any], dialect: Dialect) -> str | list[dict[str, Any]]:
    """A text where there is nothing else: some servers take no list. Texts of nothing but space say nothing."""
    told = [_told(part, dialect) for part in parts if isinstance(part, (Text, Image, File))]
    if all(block["type"] == "text" for block in told):
        return "\n\n".join(block["text"] for block in told if says(block["text"]))
    return [block for block in told if block["type"] != "text" or says(block["text"])]


def _told(part: Text | Image | File, dialect: Dialect) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(data=data, media_type=media_type):
            return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
        case File():
            return _file(part, dialect)
        case _:
            assert_never(part)


def _file(file: File, dialect: Dialect) -> dict[str, Any]:
    """Text as it is, everywhere; PDF where the server takes it: the wire knows no other files."""
    if file.media_type.startswith("text/"):
        return {"type": "text", "text": told_as_text(file)}
    if not dialect.files or file.media_type != PDF:
        return {"type": "text", "text": NO_FILE}
    url = f"data:{file.media_type};base64,{file.data}"
    return {"type": "file", "file": {"filename": file.name or "file", "file_data": url}}


def _results(message: Message, dialect: Dialect, ids: CallIds) -> Iterator[dict[str, Any]]:
    attached: list[dict[str, Any]] = []
    for result in [part for part in message.parts if isinstance(part, ToolResult)]:
        text, media = _result(result, dialect)
        attached += media
        name = {"name": call_name(result.name)} if dialect.tool_name else {}
        yield {"role": "tool", "tool_call_id": ids.of_result(result)} | name | {"content": text}
    if attached:
        if dialect.answer_before_user:
            yield BRIDGE
        yield {"role": "user", "content": [{"type": "text", "text": ATTACHED}, *attached]}


def _result(result: ToolResult, dialect: Dialect) -> tuple[str, list[dict[str, Any]]]:
    if result.status != "succeeded":
        return error_text(result), []
    told = [_told(part, dialect) for part in result.parts]
    media = [block for block in told if block["type"] != "text"]
    text = "\n\n".join(block["text"] for block in told if block["type"] == "text" and says(block["text"]))
    return text or (SEE_BELOW if media else NO_OUTPUT), media


def _assistant(message: Message, tag: ModelTag, dialect: Dialect, ids: CallIds) -> dict[str, Any]:
    own = message.model == tag
    texts = [part.text for part in message.parts if isinstance(part, Text) and not (own and part.raw == REFUSAL)]
    refusal = "".join(part.text for part in message.parts if isinstance(part, Text) and own and part.raw == REFUSAL)
    calls = [_call(part, own, ids.of_call(part, message.model)) for part in message.calls]
    wire: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if not says(wire["content"]) and (calls or refusal):
        wire["content"] = "" if dialect.empty_content == "empty" else None
        if dialect.empty_content == "omit":
            del wire["content"]
    if says(refusal):
        wire["refusal"] = refusal
    if own:
        _add_own(wire, message)
    if calls:
        if dialect.thought_signatures and not _BEFORE_SIGNATURES.search(tag.model):
            _mark_unsigned(wire, calls[0])
        wire["tool_calls"] = calls
        if dialect.reasoning_required:
            wire.setdefault(dialect.reasoning_required, "")
    return wire


def _mark_unsigned(answer: dict[str, Any], call: dict[str, Any]) -> None:
    """Of calls that are made at once Gemini signs the first alone, or their message."""
    if not _is_signed(call) and not _is_signed(answer):
        call["extra_content"] = {"google": {"thought_signature": UNSIGNED}}


def _is_signed(wire: dict[str, Any]) -> bool:
    extra = wire.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    return isinstance(google, dict) and bool(google.get("thought_signature"))


def _add_own(wire: dict[str, Any], message: Message) -> None:
    """Reasoning and fields that only the model which wrote them is given back."""
    listed: list[dict[str, Any]] = []
    has_list = False
    for part in message.parts:
        match part:
            case Thinking(raw=str(raw)):
                has_list = _add_thinking(wire, part, msgspec.json.decode(raw), listed) or has_list
            case Text(text=text) if says(text):
                listed.append({"type": "text", "text": text})
            case RawBlock(kind=kind, json=json) if kind == MESSAGE_FIELDS:
                wire.update(msgspec.json.decode(json))
            case _:
                pass
    if has_list:
        wire["content"] = listed


def _add_thinking(wire: dict[str, Any], part: Thinking, raw: dict[str, Any], listed: list[dict[str, Any]]) -> bool:
    field, details = raw.get("field"), raw.get("details")
    if details:
        wire["reasoning_details"] = [*wire.get("reasoning_details", ()), *details]
    elif field == "content":
        listed.append({"type": "thinking", "thinking": [{"type": "text", "text": part.text}]})
        return True
    elif field in ("reasoning_content", "reasoning"):
        wire[field] = wire.get(field, "") + part.text
    return False


def _call(call: ToolCall, own: bool, id: str) -> dict[str, Any]:
    extra = msgspec.json.decode(call.raw) if own and call.raw is not None else {}
    function = {"name": call_name(call.name), "arguments": arguments_text(call)}
    return {"id": id, "type": "function", "function": function} | extra
