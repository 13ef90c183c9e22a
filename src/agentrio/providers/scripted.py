"""A model that says what a script tells it to: for tests, demos and dry runs. No network, no randomness."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import attrs
import trio

from agentrio.domain.errors import DeclarationError
from agentrio.domain.keywords import tells_keywords
from agentrio.domain.messages import ModelTag
from agentrio.domain.parts import Part, Text, Thinking, ToolCall
from agentrio.domain.render import ModelRequest
from agentrio.domain.status import StopReason
from agentrio.domain.usage import Usage

from .base import ModelClient, ModelResponse, ModelStream, PartDelta, ProviderError, Timeouts
from .wire.json import encode_text, parse_arguments

__all__ = ["Reply", "Said", "Scripted", "ScriptedCall", "ScriptedReply", "call"]

SOME_USAGE = Usage(input=10, output=5)
FRAGMENT = 12  # characters in one streamed delta: a short sentence arrives in several


@attrs.frozen
class ScriptedCall:
    """A tool call that the model is to make. ``arguments`` may be raw JSON text, valid or not."""

    name: str
    arguments: Mapping[str, Any] | str = attrs.field(factory=dict)
    id: str = ""


def call(name: str, /, **arguments: Any) -> ScriptedCall:
    """``call("forecast", city="Oslo")``: a tool call for a scripted reply."""
    return ScriptedCall(name, arguments)


def _as_calls(calls: Iterable[ScriptedCall]) -> tuple[ScriptedCall, ...]:
    return tuple(calls)


@tells_keywords
@attrs.frozen
class Reply:
    """One scripted response: reasoning, then text, then calls.

    The stop reason is worked out (``tool_calls`` where there are calls, else ``end``) unless given.
    """

    text: str = ""
    calls: tuple[ScriptedCall, ...] = attrs.field(default=(), converter=_as_calls)
    thinking: str = ""
    stop_reason: StopReason | None = None
    usage: Usage = SOME_USAGE


Said: TypeAlias = str | Sequence[ScriptedCall] | Reply | Exception
ScriptedReply: TypeAlias = Said | Callable[[ModelRequest], Said]
"""A text, calls, a ``Reply``, an exception to raise, or a function of the request that returns one of these."""


def _as_replies(replies: Iterable[ScriptedReply]) -> tuple[ScriptedReply, ...]:
    if isinstance(replies, str | Reply | ScriptedCall):  # a str would be one reply per letter
        raise DeclarationError("Scripted takes a list of replies; put this one into a list, as in Scripted(['Hi.']).")
    return tuple(replies)


def _check_replies(owner: object, attribute: object, replies: tuple[ScriptedReply, ...]) -> None:
    for number, reply in enumerate(replies):
        if not callable(reply):
            _as_reply(reply, f"Scripted reply {number + 1}")


@tells_keywords
@attrs.define(eq=False)
class Scripted:
    """A model that gives one reply per model call, in order.

    ``requests`` are the requests it was given, oldest first. The script goes on from where it stands when the model is
    opened again; with ``restart`` each opening begins at the first reply. Where it has run out, the model call fails
    ``invalid_response``, naming how many replies there were.
    """

    replies: tuple[ScriptedReply, ...] = attrs.field(converter=_as_replies, validator=_check_replies)
    restart: bool = attrs.field(default=False, kw_only=True)
    model: str = attrs.field(default="scripted", kw_only=True)
    requests: list[ModelRequest] = attrs.field(factory=list, init=False, repr=False)
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count, init=False, repr=False)

    @property
    def tag(self) -> ModelTag:
        """Provider ``scripted``, api ``scripted``."""
        return ModelTag("scripted", "scripted", self.model)

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        """A client; clients of one model share its script unless ``restart`` is set."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[ModelClient]:
        await trio.lowlevel.checkpoint()
        yield _Client(self, itertools.count() if self.restart else self._numbers)


def _as_reply(reply: object, what: str) -> Reply | Exception:
    match reply:
        case Reply() | Exception():
            return reply
        case str():
            return Reply(reply)
        case Sequence() if all(isinstance(item, ScriptedCall) for item in reply):
            return Reply(calls=reply)
        case ScriptedCall(name=name):
            raise DeclarationError(f"{what} is a single call; put it into a list of its own: [call({name!r}, ...)].")
        case _:
            raise DeclarationError(
                f"{what} is {reply!r}; it must be a text, a list of call(...), a Reply, an exception, or a function of "
                "the request that returns one of these."
            )


@attrs.define(eq=False)
class _Client:
    _script: Scripted
    _numbers: itertools.count[int]

    @asynccontextmanager
    async def stream(self, request: ModelRequest, timeouts: Timeouts) -> AsyncGenerator[ModelStream]:
        await trio.lowlevel.checkpoint()
        script = self._script
        number = next(self._numbers)
        script.requests.append(request)
        if number >= len(script.replies):
            raise ProviderError(
                f"The script has run out: {len(script.replies)} replies were scripted, and this is model call "
                f"{number + 1}.",
                code="invalid_response",
            )
        said = script.replies[number]
        if callable(said):
            said = said(request)
        reply = _as_reply(said, f"Scripted reply {number + 1}")
        if isinstance(reply, Exception):
            raise reply
        yield _Stream(reply, script.model)


@attrs.define(eq=False)
class _Stream:
    _reply: Reply
    _model: str
    _parts: tuple[Part, ...] = attrs.field(init=False)
    _deltas: list[PartDelta] = attrs.field(init=False)
    _given: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._parts = tuple(_parts(self._reply))
        self._deltas = [delta for index, part in enumerate(self._parts) for delta in _deltas(index, part)]

    async def receive(self) -> Sequence[PartDelta]:
        """The next delta; a checkpoint each."""
        await trio.lowlevel.checkpoint()
        if self._given == len(self._deltas):
            raise trio.EndOfChannel
        self._given += 1
        return self._deltas[self._given - 1 : self._given]

    def response(self) -> ModelResponse:
        """The whole reply once all of it was received, before that the parts that are complete or shown."""
        if self._given < len(self._deltas):
            return ModelResponse(tuple(self._partial()), model=self._model)
        stop: StopReason = self._reply.stop_reason or ("tool_calls" if self._reply.calls else "end")
        return ModelResponse(self._parts, stop, stop, self._reply.usage, self._model)

    def _partial(self) -> Iterable[Part]:
        shown: dict[int, str] = {}
        for delta in self._deltas[: self._given]:
            shown[delta.part] = shown.get(delta.part, "") + delta.text
        for index, text in shown.items():
            match self._parts[index]:
                case Text():
                    yield Text(text)
                case Thinking():
                    yield Thinking(text)
                case ToolCall() as whole if text == whole.arguments_json:
                    yield whole
                case _:  # a call in pieces is none
                    pass


def _parts(reply: Reply) -> Iterable[Part]:
    if reply.thinking:
        yield Thinking(reply.thinking)
    if reply.text:
        yield Text(reply.text)
    for number, wanted in enumerate(reply.calls):
        yield _tool_call(wanted, number)


def _tool_call(wanted: ScriptedCall, number: int) -> ToolCall:
    json = wanted.arguments if isinstance(wanted.arguments, str) else encode_text(wanted.arguments)
    return ToolCall("", wanted.id or f"call_{number}", wanted.name, json, parse_arguments(json))


def _deltas(index: int, part: Part) -> Iterable[PartDelta]:
    match part:
        case Text(text=text):
            yield from _cut("text", index, text)
        case Thinking(text=text):
            yield from _cut("thinking", index, text)
        case ToolCall(name=name, arguments_json=text):
            yield from _cut("input", index, text, name)
        case _:  # _parts makes no other
            pass


def _cut(kind: Any, index: int, text: str, name: str = "") -> Iterable[PartDelta]:
    for start in range(0, len(text), FRAGMENT):
        yield PartDelta(kind, index, start, text[start : start + FRAGMENT], name)
