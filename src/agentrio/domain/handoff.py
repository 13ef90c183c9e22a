"""One history for every model: what another one wrote, in the form that this one takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, assert_never

import attrs

from .messages import Message, ModelTag, memoised
from .parts import File, Image, Part, RawBlock, ResultPart, Text, Thinking, ToolCall, ToolResult

ForeignThinking: TypeAlias = Literal["label", "drop"]

OPENING = "[Reasoning of another model]\n"
CLOSING = "\n[End of that reasoning]"
NO_IMAGE = "[An image was left out: this model takes none.]"
NO_FILE = "[A file was left out: this model takes none.]"


def for_model(
    message: Message, tag: ModelTag, *, images: bool = True, files: bool = True, thinking: ForeignThinking = "label"
) -> Message:
    """The message as the model ``tag`` may be sent it; the message itself where nothing has to change.

    What the same model wrote stays as it is, its blocks verbatim. Of another model's message the readable reasoning
    becomes labelled text, or goes; hidden reasoning and blocks of its provider's own go. Images and files that the
    model can't take are replaced by a note. A message may be left without parts.
    """
    own = message.model == tag
    if (own or message.role != "assistant") and images and files:
        return message
    key = ("for_model", tag, images, files, thinking)
    return memoised(message, key, lambda it: _adapt(it, own, images, files, thinking))


def only_paused(answer: Message, tag: ModelTag) -> bool:
    """Whether an answer at the end of a history is a whole one of the model ``tag``, which then only paused.

    It is sent as it is, to be continued. Of one that was stopped, or that another model gave, the rest is asked for.
    """
    return answer.model == tag and not answer.interrupted


def _adapt(message: Message, own: bool, images: bool, files: bool, thinking: ForeignThinking) -> Message:
    parts = tuple(
        kept
        for index, part in enumerate(message.parts)
        for kept in _parts(part, own, images, files, thinking, last=index == len(message.parts) - 1)
    )
    return message if parts == message.parts else attrs.evolve(message, parts=parts)


def _parts(
    part: Part, own: bool, images: bool, files: bool, thinking: ForeignThinking, *, last: bool
) -> Iterator[Part]:
    match part:
        case Image() | File():
            yield _visible(part, images, files)
        case ToolResult(parts=inner):
            seen = tuple(_visible(item, images, files) for item in inner)
            yield part if seen == inner else attrs.evolve(part, parts=seen)
        case _ if own:
            yield part
        case Thinking(text=text):
            if text and thinking == "label":
                yield Text(f"{OPENING}{text}{CLOSING}" + ("" if last else "\n\n"))
        case RawBlock():
            return
        case Text() | ToolCall():
            yield part if part.raw is None else attrs.evolve(part, raw=None)
        case _:
            assert_never(part)


def _visible(part: ResultPart, images: bool, files: bool) -> ResultPart:
    if isinstance(part, Image) and not images:
        return Text(NO_IMAGE)
    if isinstance(part, File) and not files:
        return Text(NO_FILE)
    return part
