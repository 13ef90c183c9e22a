"""Asking the model: one request at a time, retried by one typed schedule."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import attrs
import trio

from agentrio.agent.agent import DeclaredModel
from agentrio.agent.prompt import PromptContext, resolve_layers
from agentrio.domain import ids
from agentrio.domain.events import (
    Compacted,
    Event,
    MessageCompleted,
    MessageDiscarded,
    MessageStarted,
    Retrying,
    RoundEnded,
    RoundStarted,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from agentrio.domain.messages import Message, ModelTag
from agentrio.domain.parts import Part, Text, Thinking, ToolCall
from agentrio.domain.render import ModelRequest, RequestInputs, compaction, render, request_chars
from agentrio.domain.status import Failure, Status
from agentrio.domain.usage import NO_USAGE, Usage
from agentrio.providers.base import ModelClient, ModelResponse, ModelStream, PartDelta, ProviderError, Timeouts

from .bench import Bench
from .supervise import Foreign, kind_of, log

REQUEST_DELAYS = (0.5, 1.0, 2.0)  # seconds, plus jitter
STREAM_DELAYS = (1.0, 2.0, 4.0)
LENGTH_RETRIES = 2
JITTER = 0.25  # of the delay, at most
SPARE = 4  # a compaction makes room for a quarter of the limit
LONGEST_RETRY_AFTER = 60.0  # seconds; a server that asks for more is told of, not waited for

RetryKind = Literal["request", "stream", "length", "response", "fallback"]

FALLS_BACK = frozenset(
    {
        "context_overflow",
        "dependency_failed",
        "invalid_response",
        "not_provisioned",
        "overloaded",
        "rate_limited",
        "stream_dropped",
        "unauthorized",
        "unsupported",
    }
)
"""Failures that another model may not have."""


@attrs.define(eq=False)
class OpenMessage:
    """A response that is still arriving."""

    id: str
    stream: ModelStream
    tag: ModelTag


class ModelCalls:
    """Performs ``CallModel``: gathers the round's inputs, sends, streams, retries, completes the message."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._attempt = 0
        self._max_tokens: int | None = None
        self._models = deque(bench.agent.models)
        self.open: OpenMessage | None = None
        self.discarded: Usage = NO_USAGE

    async def call(self, round: int) -> None:
        """One round's response: stored and told, or the round ended by a failure."""
        bench = self._bench
        self._attempt = 0
        self.discarded = NO_USAGE
        self._max_tokens = bench.agent.max_tokens
        if not bench.state.round_open:
            await bench.emitter.emit(RoundStarted(bench.origin, round))
        inputs = await self._inputs()
        if isinstance(inputs, Failure):
            await self._end(round, inputs)
            return
        try:
            response = await self._fall_back(inputs)
        except ProviderError as error:
            await self._end(round, failure_of(error))
            return
        await self._complete(round, response)

    async def _inputs(self) -> RequestInputs | Failure:
        bench = self._bench
        context = PromptContext(bench.session_state.session, bench.identity, bench.services)
        try:
            with Foreign("a prompt layer"):
                system = await resolve_layers(bench.agent.prompt, context, self._ask_layer)
        except Exception as error:
            log.warning("%s of agent %r failed", bench.run.asking, bench.agent.name, exc_info=error)
            return Failure("error", f"A prompt layer failed: {kind_of(error)}.", "dependency_failed")
        finally:
            bench.run.asking = None
        tools = tuple(tool.spec for tool in bench.agent.tools)
        return RequestInputs(system, tools, self._max_tokens, bench.agent.thinking, bench.agent.temperature)

    def _ask_layer(self, name: str) -> None:
        self._bench.run.asking = f"prompt layer {name!r}"

    async def _request(self, inputs: RequestInputs) -> ModelRequest:
        bench = self._bench
        if inputs.max_tokens != self._max_tokens:
            inputs = attrs.evolve(inputs, max_tokens=self._max_tokens)
        most = bench.limits.max_context_chars
        while True:
            request = render(bench.session_state, inputs, bench.memo)
            size = request_chars(request)
            if size <= most:
                return request
            short = compaction(bench.session_state.session, size - most, most // SPARE)
            if short is None:
                raise ProviderError(
                    f"The conversation has {size:,} characters; the limit is {most:,}. Raise Limits.max_context_chars, "
                    "or go on in a new session with less of the history.",
                    code="limit",
                )
            await bench.emitter.emit(Compacted(bench.origin, short.messages, short.chars, short.shortened))

    async def _fall_back(self, inputs: RequestInputs) -> ModelResponse:
        """The response of the first model that gives one; those that failed for good are not asked again."""
        while True:
            try:
                return await self._respond(inputs, _Schedule(self._bench))
            except ProviderError as error:
                if error.code not in FALLS_BACK or len(self._models) == 1:
                    raise
                self._models.popleft()
                most = len(self._bench.agent.fallbacks)
                attempt = most - len(self._models) + 1
                await self._wait(_Retry("fallback", attempt, most, 0.0, error.message))

    async def _respond(self, inputs: RequestInputs, schedule: _Schedule) -> ModelResponse:
        """The response worth keeping, after as many attempts as the schedule allows."""
        while True:
            try:
                response = await self._ask(await self._request(inputs))
                again = schedule.unusable(response)
            except ProviderError as error:
                self._discard(error.code)
                retry = schedule.failed(error)
            else:
                if again is None:
                    return response
                self._discard(again.kind)
                retry = again
                if again.kind == "length" and self._bench.limits.length_policy == "escalate" and self._max_tokens:
                    self._max_tokens *= 2
            await self._wait(retry)

    async def _wait(self, retry: _Retry) -> None:
        bench = self._bench
        event = Retrying(bench.origin, bench.seq, retry.kind, retry.attempt, retry.most, retry.delay, retry.message)
        bench.hub.tell([event])
        await trio.sleep(retry.delay)

    async def _ask(self, request: ModelRequest) -> ModelResponse:
        run = self._bench.run
        run.asking = f"the model {self._models[0].tag.model!r}"
        try:
            with Foreign(run.asking):
                return await self._stream(request)
        finally:
            run.asking = None

    async def _stream(self, request: ModelRequest) -> ModelResponse:
        bench = self._bench
        self._attempt += 1
        limits = bench.limits
        model = self._models[0]
        client = await self._client(model)
        timeouts = Timeouts(limits.connect_timeout, limits.idle_timeout)
        async with client.stream(request, timeouts) as stream:
            message_id = ids.assistant_id(bench.run.id, bench.state.rounds, self._attempt)
            self._start(OpenMessage(message_id, stream, model.tag))
            hub, receive = bench.hub, stream.receive
            while True:
                await hub.room()
                try:
                    deltas = await receive()
                except trio.EndOfChannel:
                    return stream.response()
                if deltas:
                    hub.tell(self._events(message_id, deltas))

    async def _client(self, model: DeclaredModel) -> ModelClient:
        """The model's client. One that can't be opened is a failure that another model may not have."""
        try:
            return await self._bench.client(model)
        except ProviderError:
            raise
        except Exception as error:
            log.warning("the model %s could not be opened", model.tag, exc_info=error)
            message = f"The model {model.tag.model} could not be opened: {kind_of(error)}."
            raise ProviderError(message, code="dependency_failed") from error

    def _start(self, message: OpenMessage) -> None:
        bench = self._bench
        self.open = message
        bench.hub.draft = lambda: (message.id, message.stream.response().parts)
        bench.hub.tell([MessageStarted(bench.origin, bench.seq, message.id, bench.state.rounds)])

    def _events(self, message_id: str, deltas: Sequence[PartDelta]) -> list[Event]:
        origin, seq = self._bench.origin, self._bench.seq
        made: list[Event] = []
        for delta in deltas:
            kind = delta.kind
            if kind == "text":
                made.append(TextDelta(origin, seq, message_id, delta.part, delta.offset, delta.text))
            elif kind == "thinking":
                made.append(ThinkingDelta(origin, seq, message_id, delta.part, delta.offset, delta.text))
            else:
                made.append(ToolInputDelta(origin, seq, message_id, delta.part, delta.offset, delta.text, delta.name))
        return made

    def take_open(self) -> OpenMessage | None:
        """The open message, which from here on is its taker's to complete or discard."""
        message, self.open = self.open, None
        self._bench.hub.draft = None
        return message

    def _discard(self, why: str) -> None:
        message = self.take_open()
        if message is not None:
            self.discarded += message.stream.response().usage
            self._bench.hub.tell([MessageDiscarded(self._bench.origin, self._bench.seq, message.id, why)])

    async def _complete(self, round: int, response: ModelResponse) -> None:
        bench = self._bench
        if not _worth_storing(response.parts):
            self._discard_empty(response)
            await self._end(round, None, response)
            return
        opened = self.open
        assert opened is not None
        message = Message(opened.id, "assistant", self.numbered(response.parts), opened.tag)
        await bench.emitter.emit(
            MessageCompleted(
                bench.origin,
                message,
                response.usage,
                response.stop_reason,
                response.raw_stop_reason,
                self.discarded,
                response.stop_detail,
            )
        )
        self.take_open()  # not before it is told: a stop while it waits for its turn finds it still open

    def _discard_empty(self, response: ModelResponse) -> None:
        spent, self.discarded = self.discarded, NO_USAGE
        self._discard("empty")
        self.discarded = spent  # the empty response's own tokens are the round's usage, not a lost attempt's

    def numbered(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """The parts with our own ids on their calls."""
        run, round = self._bench.run.id, self._bench.state.rounds
        index = -1
        made: list[Part] = []
        for part in parts:
            if isinstance(part, ToolCall):
                index += 1
                id = ids.call_id(run, round, index)
                part = ToolCall(id, part.provider_id, part.name, part.arguments_json, part.arguments, part.raw)
            made.append(part)
        return tuple(made)

    async def _end(self, round: int, failure: Failure | None, response: ModelResponse | None = None) -> None:
        bench = self._bench
        usage: Usage = NO_USAGE if response is None else response.usage
        reason = None if response is None else response.stop_reason
        raw = None if response is None else response.raw_stop_reason
        detail = None if response is None else response.stop_detail
        await bench.emitter.emit(RoundEnded(bench.origin, round, usage, reason, raw, self.discarded, failure, detail))


def _worth_storing(parts: Sequence[Part]) -> bool:
    return any(not isinstance(part, Text) or part.text for part in parts)


@attrs.frozen
class _Retry:
    kind: RetryKind
    attempt: int
    most: int
    delay: float
    message: str


class _Schedule:
    """How often one model call may still be retried, and after how long."""

    def __init__(self, bench: Bench) -> None:
        self._rng = bench.rng
        self._length = 0 if bench.limits.length_policy == "off" else LENGTH_RETRIES
        self._done: dict[RetryKind, int] = {"request": 0, "stream": 0, "length": 0, "response": 0}

    def failed(self, error: ProviderError) -> _Retry:
        """The retry that a failed attempt calls for.

        Raises:
            ProviderError: none does, or no more of its kind, or the server asks for a longer wait than we grant.
        """
        if error.retry is None:
            raise error
        delays = REQUEST_DELAYS if error.retry == "request" else STREAM_DELAYS
        done = self._done[error.retry]
        if done >= len(delays) or (error.retry_after or 0) > LONGEST_RETRY_AFTER:
            raise error
        delay = delays[done] * (1 + JITTER * self._rng.random())
        return self._next(error.retry, len(delays), max(delay, error.retry_after or 0), error.message)

    def unusable(self, response: ModelResponse) -> _Retry | None:
        """The retry that a complete response calls for; None where it is to be kept.

        Raises:
            ProviderError: it can't be used, and asking again did not help.
        """
        if response.stop_reason == "max_tokens":
            if self._done["length"] >= self._length:
                return None
            return self._next("length", self._length, 0.0, "The response was cut at the token limit.")
        problem = _problem(response)
        if problem is None:
            return None
        if self._done["response"] >= 1 or problem.startswith("Two"):
            raise ProviderError(problem, code="invalid_response")
        return self._next("response", 1, 0.0, problem)

    def _next(self, kind: RetryKind, most: int, delay: float, message: str) -> _Retry:
        self._done[kind] += 1
        if kind in ("length", "response"):
            self._done["request"] = self._done["stream"] = 0
        return _Retry(kind, self._done[kind], most, delay, message)


def _problem(response: ModelResponse) -> str | None:
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    named = [call.provider_id for call in calls if call.provider_id]
    if len(set(named)) < len(named):
        return "Two tool calls of one response have the same id."
    if response.stop_reason == "tool_calls" and not calls:
        return "The response promises tool calls and has none."
    told = [part for part in response.parts if not isinstance(part, Text) or part.text]
    thinking_only = bool(told) and all(isinstance(part, Thinking) for part in told)
    if thinking_only and response.stop_reason in ("end", "stop_sequence"):
        return "The response holds reasoning and no answer."
    return None


def failure_of(error: ProviderError) -> Failure:
    """The failure that a run ends with when a model call is given up."""
    statuses: dict[str, Status] = {"not_provisioned": "not_provisioned", "content_filter": "blocked"}
    status = statuses.get(error.code, "error")
    recoverable = error.retry is not None
    return Failure(status, error.message, error.code, recoverable, error.retry_after, error.request_id)
