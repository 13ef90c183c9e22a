"""The models that a history is handed to: each with its encoder, and a validator with its server's demands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import msgspec

from agentrio.domain.history import normalise_history
from agentrio.domain.messages import Message, ModelTag
from agentrio.domain.render import ModelRequest
from agentrio.providers.presets import presets
from agentrio.providers.wire import anthropic_request, chat_request, responses_request
from agentrio.providers.wire.chat_dialect import Dialect
from agentrio.providers.wire.responses_history import Target
from agentrio.testing.validators import Demands, Problem, WireName, validate

OWN_FIELDS_ALONE = ("openai", "azure")  # their servers know no fields but the published ones


@attrs.frozen(eq=False)
class Model:
    """A model and its wire."""

    tag: ModelTag
    wire: WireName
    encode: Callable[[ModelRequest], bytes] = attrs.field(repr=False)
    demands: Demands = attrs.field(factory=Demands, repr=False)

    def body(self, history: list[Message]) -> dict[str, Any]:
        """The request that it is sent of a history."""
        found: dict[str, Any] = msgspec.json.decode(self.encode(_request(history)))
        return found

    def data(self, history: list[Message]) -> bytes:
        """The same as bytes."""
        return self.encode(_request(history))

    def problems(self, history: list[Message]) -> list[Problem]:
        """What its server would say against that request."""
        return validate(self.wire, self.data(history), self.demands)


def _request(history: list[Message]) -> ModelRequest:
    return ModelRequest("s", normalise_history(history))


def anthropic(name: str = "claude-sonnet-5", *, prefill: bool = False) -> Model:
    """Claude, which from 4.6 on takes no beginning of an answer."""
    tag = ModelTag("anthropic", "messages", name)
    options = anthropic_request.MessagesOptions(tag)
    demands = Demands(prefill=prefill)
    return Model(tag, "messages", lambda request: anthropic_request.encode_request(request, options), demands)


def responses(provider: str = "openai") -> Model:
    """A model of the Responses wire."""
    tag = ModelTag(provider, "responses", "gpt-5.2")
    options = responses_request.ResponsesOptions(Target(tag))
    demands = Demands(prefill=False)
    return Model(tag, "responses", lambda request: responses_request.encode_request(request, options), demands)


def chat(provider: str) -> Model:
    """A model of the Chat Completions wire, by the name of its preset."""
    dialect = presets()[provider].dialect
    tag = ModelTag(provider, "chat", "some-model")
    options = chat_request.ChatOptions(tag, dialect)
    demands = chat_demands(dialect, extensions=provider not in OWN_FIELDS_ALONE)
    return Model(tag, "chat", lambda request: chat_request.encode_request(request, options), demands)


def chat_demands(dialect: Dialect, *, extensions: bool) -> Demands:
    """What a server asks that has such a dialect."""
    return Demands(
        images=dialect.images,
        files=dialect.files,
        ids=dialect.ids,
        call_content=dialect.empty_content,
        answer_before_user=dialect.answer_before_user,
        reasoning_field=dialect.reasoning_required,
        prefill=dialect.prefix_last,
        prefix_last=dialect.prefix_last,
        thought_signatures=dialect.thought_signatures,
        extensions=extensions,
    )


MODELS: Mapping[str, Model] = {
    "anthropic": anthropic(),
    "anthropic-old": anthropic("claude-sonnet-4-5", prefill=True),
    **{f"responses-{name}": responses(name) for name in presets()},
    **{f"chat-{name}": chat(name) for name in presets()},
}
MAIN = (
    "anthropic",
    "responses-openai",
    "responses-azure",
    "chat-openai",
    "chat-deepseek",
    "chat-mistral",
    "chat-gemini",
)
