"""pydantic-ai: ``Agent.run_stream_events``, on the official SDKs, their retries off. Runs on asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anthropic
import openai

from .contender import MAX_TOKENS, MODEL, Client, Conversation, History, Seen, ToolFunction
from .peers import load

ai: Any = load("pydantic_ai")
messages: Any = load("pydantic_ai.messages")


class Pydantic:
    """One session."""

    def __init__(self, agent: Any, history: History) -> None:
        self._agent = agent
        self.messages: list[Any] = [_message(role, text) for role, text in history]

    async def run(self, text: str, seen: Seen, pause: float = 0.0) -> str:
        """As the protocol says; the reader takes no pauses."""
        answer = ""
        limits = ai.UsageLimits(request_limit=None)
        run = self._agent.run_stream_events(text, message_history=self.messages or None, usage_limits=limits)
        async with run as events:
            async for event in events:
                if isinstance(event, messages.PartDeltaEvent):
                    if isinstance(event.delta, messages.TextPartDelta):
                        seen(event.delta.content_delta)
                elif isinstance(event, messages.PartStartEvent):
                    if isinstance(event.part, messages.TextPart) and event.part.content:
                        seen(event.part.content)
                elif isinstance(event, ai.AgentRunResultEvent):
                    answer = event.result.output
                    self.messages = event.result.all_messages()
        return answer


def _message(role: str, text: str) -> Any:
    if role == "user":
        return messages.ModelRequest(parts=[messages.UserPromptPart(content=text)])
    return messages.ModelResponse(parts=[messages.TextPart(content=text)])


class PydanticClient:
    """An agent."""

    def __init__(self, model: Any, tools: Sequence[ToolFunction]) -> None:
        settings = {"max_tokens": MAX_TOKENS}
        self._agent = ai.Agent(model, tools=[ai.Tool(tool, takes_ctx=False) for tool in tools], model_settings=settings)

    @asynccontextmanager
    async def session(self, history: History = ()) -> AsyncIterator[Conversation]:
        """A new session."""
        yield Pydantic(self._agent, history)


@asynccontextmanager
async def open_messages(url: str, tools: Sequence[ToolFunction] = ()) -> AsyncIterator[Client]:
    """As the protocol says, on the Messages wire."""
    models: Any = load("pydantic_ai.models.anthropic")
    providers: Any = load("pydantic_ai.providers.anthropic")
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
        model = models.AnthropicModel(MODEL, provider=providers.AnthropicProvider(anthropic_client=client))
        yield PydanticClient(model, tools)


def open_chat(url: str, tools: Sequence[ToolFunction] = ()) -> AbstractAsyncContextManager[Client]:
    """As the protocol says, on the Chat Completions wire."""
    return _open_openai("OpenAIChatModel", url, tools)


def open_responses(url: str, tools: Sequence[ToolFunction] = ()) -> AbstractAsyncContextManager[Client]:
    """As the protocol says, on the Responses wire."""
    return _open_openai("OpenAIResponsesModel", url, tools)


@asynccontextmanager
async def _open_openai(model: str, url: str, tools: Sequence[ToolFunction]) -> AsyncIterator[Client]:
    models: Any = load("pydantic_ai.models.openai")
    providers: Any = load("pydantic_ai.providers.openai")
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        provider = providers.OpenAIProvider(openai_client=client)
        yield PydanticClient(getattr(models, model)(MODEL, provider=provider), tools)
