"""Opening a model imports an SDK, which nothing can stop; whoever waits for it can be stopped."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
import trio

from agentrio import Agent, Anthropic, OpenAIChat, OpenAIResponses, Runtime, SessionClosed, ask, open_runtime
from agentrio.providers import _openai, _prices, anthropic
from agentrio.providers._opening import begin
from agentrio.testing import LeakCheck


@attrs.define(eq=False)
class Slow:
    """Work in a thread that goes on until it is released."""

    began: trio.Event = attrs.field(factory=trio.Event)
    release: threading.Event = attrs.field(factory=threading.Event)
    times: int = 0
    done: bool = False

    def __call__(self, *_: object) -> Any:
        self.times += 1
        trio.from_thread.run_sync(self.began.set)
        self.release.wait(60)  # as a watchdog: a cancel that waited for it would be found out
        self.done = True


@pytest.fixture
def slow() -> Iterator[Slow]:
    """Slow work, released when the test is over."""
    work = Slow()
    yield work
    work.release.set()


MODELS: list[tuple[Any, ModuleType, str]] = [
    *((Anthropic, anthropic, name) for name in ("_load_sdk", "_own_client", "_connect")),
    *((OpenAIChat, _openai, name) for name in ("_load_sdk", "make_client", "_connect")),
    (OpenAIResponses, _openai, "_load_sdk"),
    *((model, _prices, "_load_list") for model in (Anthropic, OpenAIChat, OpenAIResponses)),
]


@pytest.mark.parametrize(("model", "module", "name"), MODELS)
async def test_a_cancel_does_not_wait_for_a_model_that_opens(
    monkeypatch: pytest.MonkeyPatch, leak_check: LeakCheck, slow: Slow, model: Any, module: ModuleType, name: str
) -> None:
    """The first stop in a process would take seconds; and the thread that goes on is no leak: it ends by itself."""
    monkeypatch.setattr(module, name, slow)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_then, slow.began, scope.cancel)
            await ask(Agent(model=model("any", api_key="not-a-key")), "Go.")
    assert scope.cancelled_caught
    assert (slow.times, slow.done) == (1, False)
    await leak_check.check()


async def test_closing_a_runtime_does_not_wait_for_a_model_that_opens(
    monkeypatch: pytest.MonkeyPatch, slow: Slow
) -> None:
    """Its opener has left before, or leaves now."""
    monkeypatch.setattr(anthropic, "_load_sdk", slow)
    async with open_runtime() as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_then, slow.began, nursery.cancel_scope.cancel)
            await runtime.start_session(Agent(model=Anthropic("any", api_key="not-a-key")))
    assert not slow.done


async def test_who_opens_a_session_while_the_runtime_is_closed_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, slow: Slow
) -> None:
    """There will be no session, so nothing is worth waiting for."""
    monkeypatch.setattr(anthropic, "_load_sdk", slow)
    async with open_runtime() as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_refused, runtime)
            await slow.began.wait()
            await runtime.close()
    assert not slow.done


async def _refused(runtime: Runtime) -> None:
    with pytest.raises(SessionClosed):
        await runtime.start_session(Agent(model=Anthropic("any", api_key="not-a-key")))


async def _cancel_then(event: trio.Event, act: Callable[[], None]) -> None:
    await event.wait()
    act()


async def test_who_opens_it_meanwhile_joins_the_import(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slow: Slow
) -> None:
    """The module is loaded once, whoever began it."""
    (tmp_path / "slow_sdk.py").write_text("import slow_gate\nslow_gate.slow()\n")
    monkeypatch.syspath_prepend(tmp_path)
    gate: Any = ModuleType("slow_gate")
    gate.slow = slow
    monkeypatch.setitem(sys.modules, "slow_gate", gate)
    got: list[ModuleType] = []

    async def load() -> None:
        got.append(await begin(importlib.import_module, "slow_sdk"))

    async with trio.open_nursery() as first:
        first.start_soon(load)
        first.start_soon(_cancel_then, slow.began, first.cancel_scope.cancel)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(load)
        await trio.testing.wait_all_tasks_blocked()
        assert got == []
        slow.release.set()
    monkeypatch.delitem(sys.modules, "slow_sdk")
    assert ([module.__name__ for module in got], slow.times) == (["slow_sdk"], 1)
