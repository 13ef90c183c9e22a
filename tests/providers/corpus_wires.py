"""The corpus by wire: what is different between their recordings, for tests that are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import attrs
import pytest

from agentrio.providers.anthropic import Anthropic
from agentrio.providers.base import Model, ModelResponse, PartDelta, ProviderError
from agentrio.providers.openai_chat import OpenAIChat
from agentrio.providers.openai_responses import OpenAIResponses
from agentrio.providers.presets import preset
from agentrio.providers.wire import anthropic_assembler, responses_assembler
from agentrio.providers.wire.chat_assembler import ChatAssembler, ChatBodyAssembler, Reading
from tests.providers import corpus_chat, corpus_responses
from tests.providers.corpus import Case, argued, cases, expected_outcome, outcome

Outcome: TypeAlias = dict[str, Any]
FRAMING = frozenset({"content-type", "content-encoding", "content-length", "transfer-encoding", "connection"})
"""Headers of the recorded connection, not of the answer: the bodies are kept plain."""


class Assembles(Protocol):
    """Bytes in, a response out."""

    def feed(self, data: bytes) -> list[PartDelta]: ...

    def close(self) -> list[PartDelta]: ...

    def response(self) -> ModelResponse: ...


@attrs.frozen(kw_only=True, eq=False)
class Wire:
    """One wire's recordings, and how ours are made of them.

    ``is_over`` tells of the frames of a stream whether its end has come, ``tells_error`` whether the server told one.
    With ``restarts`` a response may begin anew; with ``leaves_open_out`` calls that broke off are no parts of it; with
    ``ends_early`` usage may still come behind the end.
    """

    name: str
    cases: Sequence[Case]
    argued: Mapping[tuple[str, str], dict[str, Any]]
    model: Callable[[Case, str], Model]
    stream: Callable[[Case], Assembles]
    body: Callable[[Case], Assembles]
    outcome: Callable[[ModelResponse, ProviderError | None], Outcome]
    expected: Callable[[Case], Outcome]
    is_over: Callable[[Case, Sequence[bytes]], bool]
    tells_error: Callable[[Sequence[bytes]], bool]
    restarts: bool = False
    leaves_open_out: bool = False
    ends_early: bool = False

    def assemble(self, case: Case, pieces: Sequence[bytes]) -> ModelResponse:
        """The response of these bytes."""
        assembler = self.stream(case)
        for piece in pieces:
            assembler.feed(piece)
        assembler.close()
        return assembler.response()

    def whole(self, case: Case) -> ModelResponse | None:
        """The response of all bytes at once; None where it is an error."""
        try:
            return self.assemble(case, [case.body])
        except ProviderError:
            return None


def _anthropic_is_over(case: Case, frames: Sequence[bytes]) -> bool:
    return any(b'"message_delta"' in frame and b'"stop_reason":null' not in frame for frame in frames)


def _anthropic(case: Case, base_url: str) -> Model:
    return Anthropic("claude-test", api_key="test", base_url=base_url)


def _folder(case: Case) -> str:
    return case.name.partition("/")[0]


def _reading(case: Case) -> Reading:
    return preset(corpus_chat.PRESETS[_folder(case)]).reading


def _chat(case: Case, base_url: str) -> Model:
    return OpenAIChat("test", preset=corpus_chat.PRESETS[_folder(case)], api_key="test", base_url=base_url)


def _says_why(frame: bytes) -> bool:
    compact = frame.replace(b'": ', b'":')
    return b'"finish_reason":"' in compact and b'"finish_reason":""' not in compact


def _chat_tells_error(frames: Sequence[bytes]) -> bool:
    return any(b'"error":{' in frame for frame in frames)


def _chat_is_over(case: Case, frames: Sequence[bytes]) -> bool:
    done = _reading(case).finish_optional and any(frame.strip() == b"data: [DONE]" for frame in frames)
    return (done or any(map(_says_why, frames))) and not _chat_tells_error(frames)


def _responses(case: Case, base_url: str) -> Model:
    return OpenAIResponses("test", preset=corpus_responses.PRESETS[_folder(case)], api_key="test", base_url=base_url)


def _has(frames: Sequence[bytes], *types: bytes) -> bool:
    compact = (frame.replace(b'": "', b'":"') for frame in frames)
    return any(b'"type":"%b"' % kind in frame for frame in compact for kind in types)


WIRES = (
    Wire(
        name="Messages streams",
        cases=cases(),
        argued=argued(),
        model=_anthropic,
        stream=lambda case: anthropic_assembler.Assembler(),
        body=lambda case: anthropic_assembler.BodyAssembler(),
        outcome=outcome,
        expected=expected_outcome,
        is_over=_anthropic_is_over,
        tells_error=lambda frames: any(b"event: error" in frame for frame in frames),
        restarts=True,
    ),
    Wire(
        name="Chat Completions",
        cases=cases(corpus_chat.PRESETS),
        argued=argued("corpus_chat_differences.toml"),
        model=_chat,
        stream=lambda case: ChatAssembler(_reading(case)),
        body=lambda case: ChatBodyAssembler(_reading(case)),
        outcome=corpus_chat.chat_outcome,
        expected=corpus_chat.expected_chat_outcome,
        is_over=_chat_is_over,
        tells_error=_chat_tells_error,
        leaves_open_out=True,
        ends_early=True,
    ),
    Wire(
        name="Responses",
        cases=cases(corpus_responses.PRESETS),
        argued=argued("corpus_responses_differences.toml"),
        model=_responses,
        stream=lambda case: responses_assembler.Assembler(),
        body=lambda case: responses_assembler.BodyAssembler(),
        outcome=corpus_responses.responses_outcome,
        expected=corpus_responses.expected_responses_outcome,
        is_over=lambda case, frames: _has(frames, b"response.completed", b"response.incomplete"),
        tells_error=lambda frames: _has(frames, b"error"),
    ),
)


def of_all(keep: Callable[[Case], bool] = lambda case: True) -> list[Any]:
    """Each wire with each case of it that is kept, as parameters of a test."""
    return [pytest.param(wire, case, id=case.name) for wire in WIRES for case in wire.cases if keep(case)]
