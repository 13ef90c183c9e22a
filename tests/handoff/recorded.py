"""What real servers answered, as messages of a history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from agentrio.domain.messages import Message, user_message
from agentrio.domain.parts import Text, ToolCall, ToolResult
from agentrio.providers.base import ProviderError
from agentrio.providers.presets import preset
from agentrio.providers.wire import anthropic_assembler, chat_assembler, responses_assembler
from tests.handoff.targets import MODELS, Model
from tests.providers import corpus_chat, corpus_responses
from tests.providers.corpus import FOLDERS, Case, cases

MAKERS: dict[str, Callable[[Case], Any]] = {
    "messages": lambda case: anthropic_assembler.Assembler() if case.streamed else anthropic_assembler.BodyAssembler(),
    "responses": lambda case: responses_assembler.Assembler() if case.streamed else responses_assembler.BodyAssembler(),
    "chat": lambda case: _chat(case),
}
PROMPT = user_message("u1", "Hi.")
NEXT = user_message("u2", "Go on.")


def _chat(case: Case) -> Any:
    reading = preset(corpus_chat.PRESETS[_folder(case)]).reading
    return chat_assembler.ChatAssembler(reading) if case.streamed else chat_assembler.ChatBodyAssembler(reading)


def _folder(case: Case) -> str:
    return case.name.partition("/")[0]


@attrs.frozen(eq=False)
class Recorded:
    """An answer and whose it was."""

    case: Case
    model: Model
    answer: Message

    @property
    def name(self) -> str:
        """Of the case."""
        return self.case.name

    def turn(self) -> list[Message]:
        """The answer, with results for its calls."""
        results = tuple(ToolResult(it.id, it.name, "succeeded", (Text("noon"),)) for it in self.answer.calls)
        return [self.answer, Message(f"{self.answer.id}-results", "tool", results)] if results else [self.answer]

    def history(self) -> list[Message]:
        """A conversation with this one answer in it."""
        return [PROMPT, *self.turn(), NEXT]


def _model(case: Case) -> Model:
    folder = _folder(case)
    if folder in FOLDERS:
        return MODELS["anthropic"]
    if folder in corpus_responses.PRESETS:
        return MODELS[f"responses-{corpus_responses.PRESETS[folder]}"]
    return MODELS[f"chat-{corpus_chat.PRESETS[folder]}"]


def _answer(case: Case, model: Model) -> Message | None:
    assembler = MAKERS[model.wire](case)
    try:
        assembler.feed(case.body)
        assembler.close()
    except ProviderError:
        return None
    parts = tuple(
        attrs.evolve(part, id=f"{case.name}:{index}") if isinstance(part, ToolCall) else part
        for index, part in enumerate(assembler.response().parts)
    )
    return Message(case.name, "assistant", parts, model.tag) if parts else None


def _recorded() -> list[Recorded]:
    folders = (*FOLDERS, *corpus_responses.PRESETS, *corpus_chat.PRESETS)
    found = [(case, _model(case)) for case in cases(folders) if case.status == 200]
    return [Recorded(case, model, answer) for case, model in found if (answer := _answer(case, model))]


RECORDED = _recorded()
