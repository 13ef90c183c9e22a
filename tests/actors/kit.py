"""What the scenes of these tests are made of: a run watched to its end, events in short, odd models and clocks."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import attrs
import trio

from agentrio import Agent, RunResult, ToolContext, open_runtime, read_tool
from agentrio.domain.messages import ModelTag
from agentrio.domain.parts import Text, ToolCall, ToolResult
from agentrio.domain.render import ModelRequest
from agentrio.domain.usage import NO_USAGE, Usage
from agentrio.events import CallFinished, Event, MessageAdded, RunEnded
from agentrio.providers.base import ModelClient, ModelResponse, ModelStream, PartDelta, ProviderError, Timeouts

SPENT = Usage(input=10, output=5)
"""What each response of these tests costs."""

LOST = Usage(input=7, output=1)
"""What a response that breaks off costs."""


class NoJitter(random.Random):
    """A random source that always says the same, so that a schedule can be asserted."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__(0)
        self._value = value

    def random(self) -> float:
        return self._value


async def watch(agent: Agent[Any], text: str = "Go.", **options: Any) -> tuple[list[Event], RunResult[Any]]:
    """Every event of one run of a fresh session called ``s``, and its result."""
    async with open_runtime(rng=NoJitter()) as runtime, runtime.open_session(agent, id="s", **options) as session:
        async with session.run(text) as run:
            events = [event async for event in run]
        return events, run.result


def names(events: Sequence[Event]) -> list[str]:
    """The kinds of the events, in order."""
    return [type(event).__name__ for event in events]


def results(events: Sequence[Event]) -> list[ToolResult]:
    """The results of calls, in the order in which they were told."""
    return [event.result for event in events if isinstance(event, CallFinished)]


def said(result: ToolResult) -> str:
    """What the model reads of a result: its text, or the category of its error."""
    if result.error is not None:
        return result.error.category
    return "".join(part.text for part in result.parts if isinstance(part, Text))


def added(events: Sequence[Event]) -> list[str]:
    """The user messages that joined the conversation."""
    return [event.message.text for event in events if isinstance(event, MessageAdded)]


def ending(events: Sequence[Event]) -> RunResult[Any]:
    """The result that the last event tells."""
    last = events[-1]
    assert isinstance(last, RunEnded)
    return last.result


def spoken(request: ModelRequest) -> list[str]:
    """The texts of a request's messages, calls and results left out."""
    return [message.text for message in request.messages if message.text]


@attrs.frozen
class Broken:
    """A response that breaks off: what had arrived of it, and the error."""

    parts: tuple[Any, ...]
    error: Exception
    usage: Usage = NO_USAGE


Outcome: TypeAlias = "ModelResponse | Broken | Exception"


@attrs.define(eq=False)
class Canned:
    """A model whose responses are given whole, however odd: equal ids, no ids, raw blocks, breaks in mid-stream.

    ``asked`` holds the requests, ``at`` when each one came.
    """

    outcomes: list[Outcome]
    asked: list[ModelRequest] = attrs.field(factory=list)
    at: list[float] = attrs.field(factory=list)

    @property
    def tag(self) -> ModelTag:
        return ModelTag("canned", "canned", "canned")

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ModelClient]:
        await trio.lowlevel.checkpoint()
        yield self

    @asynccontextmanager
    async def stream(self, request: ModelRequest, timeouts: Timeouts) -> AsyncIterator[ModelStream]:
        await trio.lowlevel.checkpoint()
        self.asked.append(request)
        self.at.append(trio.current_time())
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        yield _CannedStream(outcome)


@attrs.define(eq=False)
class _CannedStream:
    _outcome: ModelResponse | Broken
    _told: bool = False

    async def receive(self) -> Sequence[PartDelta]:
        await trio.lowlevel.checkpoint()
        if not self._told:
            self._told = True
            texts = ((index, part) for index, part in enumerate(self._outcome.parts) if isinstance(part, Text))
            return [PartDelta("text", index, 0, part.text) for index, part in texts]
        if isinstance(self._outcome, Broken):
            raise self._outcome.error
        raise trio.EndOfChannel

    def response(self) -> ModelResponse:
        if isinstance(self._outcome, Broken):
            return ModelResponse(self._outcome.parts, usage=self._outcome.usage)
        return self._outcome


def answer(text: str, stop: Any = "end") -> ModelResponse:
    """A whole response of one text."""
    return ModelResponse((Text(text),), stop, str(stop), SPENT)


def asks(*calls: ToolCall, stop: Any = "tool_calls") -> ModelResponse:
    """A whole response of calls."""
    return ModelResponse(calls, stop, str(stop), SPENT)


def wants(name: str, arguments: str = "{}", id: str = "") -> ToolCall:
    """A call as a provider hands it over."""
    return ToolCall("", id, name, arguments, {})


def refused(code: Any = "overloaded", retry: Any = "request", **more: Any) -> ProviderError:
    """A model call that failed before its first content."""
    return ProviderError("The server said no.", code=code, retry=retry, **more)


def dropped(text: str = "Hal", usage: Usage = LOST) -> Broken:
    """A response that broke off after some text."""
    lost = ProviderError("The response broke off.", code="stream_dropped", retry="stream")
    return Broken((Text(text),), lost, usage)


@attrs.define
class Log:
    """What the tools of a scene noted down, in order."""

    lines: list[str] = attrs.field(factory=list)

    def __call__(self, line: str) -> None:
        self.lines.append(line)


def read_named(name: str, work: Callable[[ToolContext], Any]) -> Any:
    """A read tool of that name that does the given work."""

    async def tool(ctx: ToolContext) -> Any:
        return await work(ctx)

    return read_tool(name=name, description=name)(tool)
