"""One history for every model: what another one wrote, in the form that this one takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, assert_never

import attrs

from .messages import Message, ModelTag, memoised
from .parts import File, Image, Part, RawBlock, ResultPart, Text, Thinking, ToolCall, ToolResult

ForeignThinking: TypeAlias = Literal["label", "drop"]

OPENING = "[Reasoning of another model]\n"
CLOSING = "\n[End of that reasoning]"
SEAM = "\n\n"  # between such reasoning and what is said beside it: two wires join the texts of an answer
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
    kept = [(part, new) for part in message.parts for new in _parts(part, own, images, files, thinking)]
    parts = tuple(_with_seams(kept))
    return message if parts == message.parts else attrs.evolve(message, parts=parts)


def _with_seams(kept: Sequence[tuple[Part, Part]]) -> Iterator[Part]:
    """The new parts, those that were reasoning apart from the texts beside them. Each comes with what it was."""
    for at, (was, part) in enumerate(kept):
        if isinstance(was, Thinking) and isinstance(part, Text):
            before = SEAM if at and isinstance(kept[at - 1][0], Text) else ""
            after = SEAM if at + 1 < len(kept) and isinstance(kept[at + 1][1], Text) else ""
            part = Text(f"{before}{part.text}{after}")
        yield part


def _parts(part: Part, own: bool, images: bool, files: bool, thinking: ForeignThinking) -> Iterator[Part]:
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
                yield Text(f"{OPENING}{text}{CLOSING}")
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
