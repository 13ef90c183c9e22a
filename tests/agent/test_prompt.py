"""Prompt layers: their order, the mark of what can be cached, and functions asked each round."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from agentrio import Agent, DeclarationError, Identity, PromptContext, Scripted, open_runtime, prompt_layer, read_tool
from agentrio.agent.prompt import PromptLayer, check_layers, resolve_layers
from agentrio.domain.render import SystemBlock
from agentrio.domain.session import Session
from agentrio.providers.scripted import call

HERE = PromptContext(Session("s"))


def resolved(*layers: PromptLayer) -> list[tuple[str, bool]]:
    """The blocks of a prompt: text, and whether it is the last of what can be cached."""

    async def resolve() -> tuple[SystemBlock, ...]:
        return await resolve_layers(layers, HERE)

    return [(block.text, block.cache) for block in trio.run(resolve)]


def test_static_layers_go_first_then_functions_each_in_order() -> None:
    """What never changes stands in front, where a provider can cache it."""
    layers = [
        prompt_layer("f1", lambda context: "F1"),
        prompt_layer("s1", "S1"),
        prompt_layer("f2", lambda context: "F2"),
        prompt_layer("s2", "S2"),
    ]
    assert resolved(*layers) == [("S1", False), ("S2", False), ("F1", False), ("F2", False)]


def test_the_mark_is_on_the_last_layer_that_asks_for_it() -> None:
    """One mark covers all before it; what stands behind is outside of the cached prefix."""
    layers = [
        prompt_layer("a", "A", cache=True),
        prompt_layer("b", "B"),
        prompt_layer("c", "C", cache=True),
        prompt_layer("d", "D"),
    ]
    assert resolved(*layers) == [("A", False), ("B", False), ("C", True), ("D", False)]


@pytest.mark.parametrize("empty", range(4))
def test_an_empty_layer_moves_neither_text_nor_mark(empty: int) -> None:
    """Leaving one out must not shift the others: the mark stays with the text that it was declared on."""
    texts = ["A", "B", "C", "D"]
    texts[empty] = ""
    layers = [prompt_layer(name, text, cache=name == "b") for name, text in zip("abcd", texts, strict=True)]
    expected = [(text, text == "B") for text in texts if text]
    assert resolved(*layers) == expected


def test_an_empty_cached_layer_gives_its_mark_to_the_one_before() -> None:
    """That text asked to be cached too."""
    layers = [prompt_layer("a", "A", cache=True), prompt_layer("b", "", cache=True), prompt_layer("c", "C")]
    assert resolved(*layers) == [("A", True), ("C", False)]


def test_layers_that_say_nothing_are_no_prompt() -> None:
    """A provider refuses an empty block."""
    assert resolved(prompt_layer("a", ""), prompt_layer("f", lambda context: "")) == []


def test_a_function_may_wait() -> None:
    """It can ask a service; a plain one is as good."""

    async def live(context: PromptContext) -> str:
        await trio.lowlevel.checkpoint()
        return f"live in {context.session.id}"

    assert resolved(prompt_layer("live", live)) == [("live in s", False)]


def test_a_function_must_give_text() -> None:
    """A None would be sent as the word."""
    odd: Any = lambda context: None  # noqa: E731  # a def would need a type that is wrong
    with pytest.raises(TypeError, match=r"prompt layer 'odd' gave a NoneType"):
        resolved(prompt_layer("odd", odd))


async def test_functions_are_asked_each_round_with_what_they_may_look_at(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The clock, the user's plan, the cart: as of this round."""
    seen: list[PromptContext] = []

    def live(context: PromptContext) -> str:
        seen.append(context)
        return f"Messages so far: {len(context.session.messages)}."

    @read_tool
    async def look() -> str:
        """Looks."""
        return "seen"

    model = Scripted([[call("look")], "Done."])
    agent = Agent(model=model, prompt=["Be kind.", prompt_layer("live", live)], tools=[look])
    async with open_runtime() as runtime:
        async with runtime.open_session(agent, identity=Identity(subject="u1"), services="db") as session:
            await session.ask("Go.")
    told = [[block.text for block in request.system] for request in model.requests]
    assert told == [["Be kind.", "Messages so far: 1."], ["Be kind.", "Messages so far: 3."]]
    assert (seen[0].identity, seen[0].services) == (Identity(subject="u1"), "db")


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: prompt_layer("", "A"), "needs a name"),
        (lambda: prompt_layer(5, "A"), "not 5"),  # type: ignore[arg-type]  # that is the mistake
        (lambda: prompt_layer("a", lambda context: "x", cache=True), "'a' is a function.*Leave out cache=True"),
        (lambda: prompt_layer("a", 5), "'a': the text is a str or a function, not int"),  # type: ignore[arg-type]  # the mistake
        (lambda: check_layers("copilot", [5]), r"'copilot': prompt\[0\] is a int; use prompt_layer"),
        (lambda: check_layers("copilot", [prompt_layer("a", "A"), prompt_layer("a", "B")]), "two .* called 'a'"),
    ],
)
def test_a_wrong_layer_is_refused_where_it_is_declared(declare: Any, words: str) -> None:
    """The message says what, where, and how to mend it."""
    with pytest.raises(DeclarationError, match=words):
        declare()


def test_texts_alone_are_layers_by_their_place() -> None:
    """A prompt of one string needs no ceremony."""
    assert check_layers("a", ["A", "B"]) == (PromptLayer("layer-1", "A"), PromptLayer("layer-2", "B"))
