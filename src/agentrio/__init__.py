"""An actor-based concurrent agent runtime on Trio."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .actors.cell import Run as Run
    from .actors.handle import RunStream as RunStream
    from .actors.handle import SessionHandle as SessionHandle
    from .actors.runtime import Runtime as Runtime
    from .actors.runtime import open_runtime as open_runtime
    from .actors.script import ask as ask
    from .actors.script import run_sync as run_sync
    from .actors.session import Receipt as Receipt
    from .agent.agent import Agent as Agent
    from .agent.context import ToolContext as ToolContext
    from .agent.prompt import PromptContext as PromptContext
    from .agent.prompt import PromptLayer as PromptLayer
    from .agent.prompt import prompt_layer as prompt_layer
    from .agent.results import ToolError as ToolError
    from .agent.tool import Tool as Tool
    from .agent.tool import read_tool as read_tool
    from .agent.tool import write_tool as write_tool
    from .domain.errors import AgentrioError as AgentrioError
    from .domain.errors import CodecError as CodecError
    from .domain.errors import DeclarationError as DeclarationError
    from .domain.errors import MemoryPatchError as MemoryPatchError
    from .domain.errors import NothingToProceed as NothingToProceed
    from .domain.errors import RunFailed as RunFailed
    from .domain.errors import RunNotEnded as RunNotEnded
    from .domain.errors import RunSuspendedError as RunSuspendedError
    from .domain.errors import RuntimeCrashed as RuntimeCrashed
    from .domain.errors import SessionBusy as SessionBusy
    from .domain.errors import SessionClosed as SessionClosed
    from .domain.errors import SessionCrashed as SessionCrashed
    from .domain.errors import WouldDeadlock as WouldDeadlock
    from .domain.identity import Identity as Identity
    from .domain.limits import Limits as Limits
    from .domain.messages import Message as Message
    from .domain.session import Session as Session
    from .domain.state import reduce as reduce
    from .domain.status import Failure as Failure
    from .domain.status import RunResult as RunResult
    from .domain.status import Suspension as Suspension
    from .domain.usage import Prices as Prices
    from .domain.usage import Usage as Usage
    from .providers.anthropic import Anthropic as Anthropic
    from .providers.openai_chat import OpenAIChat as OpenAIChat
    from .providers.openai_responses import OpenAIResponses as OpenAIResponses
    from .providers.scripted import Scripted as Scripted

_HOME = {
    "Agent": "agent.agent",
    "AgentrioError": "domain.errors",
    "Anthropic": "providers.anthropic",
    "CodecError": "domain.errors",
    "DeclarationError": "domain.errors",
    "Failure": "domain.status",
    "Identity": "domain.identity",
    "Limits": "domain.limits",
    "MemoryPatchError": "domain.errors",
    "Message": "domain.messages",
    "NothingToProceed": "domain.errors",
    "OpenAIChat": "providers.openai_chat",
    "OpenAIResponses": "providers.openai_responses",
    "PromptContext": "agent.prompt",
    "PromptLayer": "agent.prompt",
    "Receipt": "actors.session",
    "Run": "actors.cell",
    "RunFailed": "domain.errors",
    "RunNotEnded": "domain.errors",
    "RunResult": "domain.status",
    "RunStream": "actors.handle",
    "RunSuspendedError": "domain.errors",
    "Runtime": "actors.runtime",
    "RuntimeCrashed": "domain.errors",
    "Scripted": "providers.scripted",
    "Session": "domain.session",
    "SessionBusy": "domain.errors",
    "SessionClosed": "domain.errors",
    "SessionCrashed": "domain.errors",
    "SessionHandle": "actors.handle",
    "Suspension": "domain.status",
    "Tool": "agent.tool",
    "ToolContext": "agent.context",
    "ToolError": "agent.results",
    "Prices": "domain.usage",
    "Usage": "domain.usage",
    "WouldDeadlock": "domain.errors",
    "ask": "actors.script",
    "open_runtime": "actors.runtime",
    "prompt_layer": "agent.prompt",
    "read_tool": "agent.tool",
    "reduce": "domain.state",
    "run_sync": "actors.script",
    "write_tool": "agent.tool",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]  # type checkers read the imports above


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'agentrio' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"agentrio.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
