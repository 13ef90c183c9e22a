"""A keyword that does not exist is answered with the one that was meant, by every public call alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from agentrio import (
    Agent,
    Anthropic,
    DeclarationError,
    Identity,
    Limits,
    OpenAIChat,
    OpenAIResponses,
    Runtime,
    Scripted,
    open_runtime,
    prompt_layer,
    read_tool,
    write_tool,
)
from agentrio.domain.keywords import keywords_told, no_such, tells_keywords
from agentrio.providers.presets import Preset
from agentrio.providers.scripted import Reply
from agentrio.testing import CallsReply, ErrorReply, Fault, Pace, RawReply, Scenario, Script, TextReply, WireUsage


def test_the_near_one_is_named_or_else_all() -> None:
    """Whoever mistyped wants the one, whoever guessed wants the list."""
    assert no_such("It", "timout", ["timeout", "name"]) == "It has no 'timout'; did you mean 'timeout'?"
    assert no_such("It", "colour", ["timeout", "name"]) == "It has no 'colour'; it knows timeout, name."


@pytest.mark.parametrize(
    ("maker", "arguments"),
    [
        (Limits, ()),
        (Identity, ("ada",)),
        (Anthropic, ("m",)),
        (OpenAIChat, ("m",)),
        (OpenAIResponses, ("m",)),
        (Scripted, (["Hi."],)),
        (Reply, ()),
        (Preset, ()),
        (prompt_layer, ("a", "b")),
        (Script, ([],)),
        (Fault, ()),
        (Pace, ()),
        (WireUsage, ()),
        (TextReply, ("Hi.",)),
        (CallsReply, ([],)),
        (RawReply, (b"",)),
        (ErrorReply, (500,)),
        (Scenario, ()),
    ],
)
def test_what_is_made_with_keywords_names_a_wrong_one(maker: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """A bare TypeError names neither what there is nor what is near. Its keywords and its text stay what they are."""
    keyword = [name for name in inspect.signature(maker).parameters if name != "self"][-1]
    with pytest.raises(DeclarationError, match=rf"{maker.__name__} has no '{keyword}x'; did you mean '{keyword}'\?"):
        maker(*arguments, **{f"{keyword}x": 1})
    with pytest.raises(DeclarationError, match=rf"{maker.__name__} has no 'zzz'; it knows .*{keyword}"):
        maker(*arguments, zzz=1)


MISTYPED: Any = {"timout": 3}


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Agent(model=Scripted([]), tols=[]),
        lambda: read_tool(**MISTYPED)(trusted),
        lambda: write_tool(**MISTYPED)(trusted),
    ],
)
def test_declarations_with_later_keywords_name_it_too(mistake: Callable[[], object]) -> None:
    """They take any keyword themselves, to tell those that are not supported yet."""
    with pytest.raises(DeclarationError, match=r"has no '(tols|timout)'; did you mean '(tools|timeout)'\?"):
        mistake()


async def trusted() -> None:
    """A tool."""


@pytest.mark.parametrize(
    ("method", "keyword", "meant"),
    [
        (Runtime.open_session, "identiy", "identity"),
        (Runtime.start_session, "vlaue", "value"),
        (Runtime.subscribe, "onlag", "on_lag"),
    ],
)
async def test_the_doors_of_a_runtime_name_it(method: Callable[..., Any], keyword: str, meant: str) -> None:
    """Before anything has happened."""
    agent = Agent(model=Scripted(["Hi."]))
    async with open_runtime() as runtime:
        arguments = () if method is Runtime.subscribe else (agent,)
        with pytest.raises(DeclarationError, match=f"{method.__name__} has no '{keyword}'; did you mean '{meant}'"):
            method(runtime, *arguments, **{keyword: None})


def test_other_mistakes_stay_what_they_are() -> None:
    """Too many arguments, and a TypeError from inside: neither is about a keyword."""

    @keywords_told
    def parse(text: str, *, base: int = 10) -> int:
        return int(text, base=base)

    assert parse("12") == 12
    with pytest.raises(TypeError, match="positional"):
        parse("12", 3)  # type: ignore[call-arg]  # the mistake
    with pytest.raises(TypeError, match="int"):
        parse("12", base="x")  # type: ignore[arg-type]  # the mistake


def test_a_class_is_the_same_class() -> None:
    """The decorator makes no other one: its fields, its name and its signature are found as before."""

    @attrs.frozen(kw_only=True)
    class Box:
        size: int = 1

    plain = inspect.signature(Box)
    assert tells_keywords(Box) is Box
    assert inspect.signature(Box) == plain
    assert attrs.evolve(Box(size=2), size=3) == Box(size=3)
