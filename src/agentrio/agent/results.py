"""From what a tool returns, or raises, to what the model reads."""

from __future__ import annotations

import base64
import binascii
import inspect
from collections.abc import Sequence

from ..domain.parts import CallError, File, Image, ResultPart, Text
from ..domain.plain import unicode_text
from .js_json import NotJSON, js_json

GENERIC_FAILURE = "The tool failed."


class ToolError(Exception):
    """Raised by a tool to tell the model what went wrong, in words meant for it.

    Whatever else a tool raises is told as "The tool failed.", since its text was not written for the model.
    """


class ResultError(Exception):
    """A tool returned what can't be sent to a model. The message, a clause, is safe to show to it."""


def to_parts(value: object) -> tuple[ResultPart, ...]:
    """A tool's return value as the parts of its result.

    Strings are sent as they are; parts, and lists or tuples of parts and strings, too; everything else becomes compact
    JSON as JavaScript would write it.

    Raises:
        ResultError: the value is binary, mixes parts with other values, or can't be JSON.
    """
    if isinstance(value, list | tuple) and any(isinstance(item, Text | Image | File) for item in value):
        parts = [_part(item) for item in value]
        if None in parts:
            raise ResultError("the result mixes images, files or texts with other values")
        return tuple(part for part in parts if part is not None)
    return (_part(value) or Text(_json(value)),)


def _part(value: object) -> ResultPart | None:
    """A part of our own making, whatever the tool's has for a class, with texts in it and nothing else."""
    match value:
        case str():
            return Text(_plain(value))
        case Text(text=text, raw=raw):
            return Text(_checked(text, "text", value), None if raw is None else _checked(raw, "raw block", value))
        case Image(data=data, media_type=media_type):
            return Image(_checked(data, "data", value), _checked(media_type, "media type", value))
        case File(data=data, media_type=media_type, name=name):
            told = None if name is None else _checked(name, "name", value)
            return File(_checked(data, "data", value), _checked(media_type, "media type", value), told)
        case _:
            return None


def _checked(value: object, what: str, part: Text | Image | File) -> str:
    if isinstance(value, str):
        return _plain(value)
    noun = "a text" if isinstance(part, Text) else "an image" if isinstance(part, Image) else "a file"
    wanted = "base64 text" if what == "data" else "text"
    raise ResultError(f"the {what} of {noun} is of type {type(value).__name__}; it must be {wanted}")


def _plain(text: str) -> str:
    return unicode_text(str.__str__(text))  # not str(): that of an enum of strings is its name


def _json(value: object) -> str:
    try:
        return js_json(value)
    except NotJSON as wrong:
        raise ResultError(f"result is not JSON-serialisable: {wrong}") from wrong
    except Exception as wrong:  # a container of the tool's own may raise anything while it is read
        raise ResultError("result is not JSON-serialisable") from wrong


def advice(value: object) -> str:
    """What the author of a tool may return instead of what can't be sent, to go behind the reason; or nothing.

    A coroutine is closed, since nobody will await it.
    """
    first = value[0] if isinstance(value, list | tuple) and value else value
    if inspect.iscoroutine(first):
        first.close()
        return "; await it in the tool"
    if inspect.isgenerator(first):
        return "; make a list of it"
    return "; return its .model_dump()" if hasattr(type(first), "model_dump") else ""


def truncate(parts: Sequence[ResultPart], max_chars: int) -> tuple[ResultPart, ...]:
    """The parts with their text cut to ``max_chars`` characters in all, and a mark that says how many are missing.

    The mark itself is not counted. Images and files stay.
    """
    missing = sum(len(part.text) for part in parts if isinstance(part, Text)) - max_chars
    if missing <= 0:
        return tuple(parts)
    kept: list[ResultPart] = []
    room, last, end = max_chars, -1, ""
    for part in parts:
        if isinstance(part, Text):
            if room == 0 and last >= 0:
                continue
            last, end = len(kept), part.text[:room]
            room -= len(end)
        kept.append(part)
    kept[last] = Text(f"{end}…[truncated {missing} chars]")
    return tuple(kept)


def shorten(error: CallError, max_chars: int) -> CallError:
    """The error with its message cut as ``truncate`` cuts a result's text."""
    missing = len(error.message) - max_chars
    if missing <= 0:
        return error
    return CallError(error.category, f"{error.message[:max_chars]}…[truncated {missing} chars]")


def check_images(parts: Sequence[ResultPart], *, max_bytes: int, max_images: int) -> int:
    """How many images the parts hold, all of them fit to be sent.

    ``max_images`` is how many the run may still return; ``max_bytes`` bounds each image and each file.

    Raises:
        ResultError: there are too many images, or one is too large, is no base64, or says that it is no image.
    """
    images = sum(isinstance(part, Image) for part in parts)
    if images > max_images:
        raise ResultError(f"the result holds {images} images; at most {max_images} more may be returned in this run")
    for part in parts:
        if not isinstance(part, Text):
            _check_binary(part, max_bytes)
    return images


def _check_binary(part: Image | File, max_bytes: int) -> None:
    noun = "image" if isinstance(part, Image) else "file"
    size = len(part.data) * 3 // 4 - part.data[-2:].count("=")
    if size > max_bytes:
        raise ResultError(f"the {noun} has {size} bytes; at most {max_bytes} are allowed")
    if isinstance(part, Image) and not part.media_type.startswith("image/"):
        raise ResultError(f"an image has the media type {part.media_type!r}")
    try:
        base64.b64decode(part.data, validate=True)
    except (binascii.Error, ValueError):
        raise ResultError(f"the data of the {noun} is not base64") from None


def failure(error: Exception) -> CallError:
    """What the model is told of an exception that left a tool.

    A group of nothing but ToolErrors, as a nursery raises it, counts as one. One that can't say its own text counts as
    any other exception.
    """
    told = _told(error)
    if told is None or not (text := "; ".join(filter(None, told))):
        return CallError("tool_failed", GENERIC_FAILURE)
    return CallError("tool_failed", text)


def _told(error: BaseException) -> list[str] | None:
    if isinstance(error, BaseExceptionGroup):
        inner = [_told(each) for each in error.exceptions]
        return None if None in inner else [text for texts in inner if texts for text in texts]
    if isinstance(error, ToolError):
        return _words(error)
    if isinstance(error, ResultError):
        return [f"The tool returned what can't be sent: {error}."]
    return None


def _words(error: ToolError) -> list[str] | None:
    try:
        return [_plain(str(error)).strip()]
    except Exception:  # its __str__ is the tool's
        return None
