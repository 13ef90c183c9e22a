"""Declaring an agent: mistakes are found before anything runs, and told with what, where and how to mend it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from agentrio import Agent, DeclarationError, Limits, Scripted, prompt_layer, read_tool, write_tool
from agentrio.providers.scripted import Scripted as ScriptedClass


@read_tool
def look(city: str) -> str:
    """Looks."""
    return city


@write_tool
def save(city: str) -> str:
    """Saves."""
    return city


def plain() -> str:
    """Was never decorated."""
    return ""


def agent_with(**options: Any) -> Agent[Any]:
    """An agent that is right but for these."""
    return Agent(**{"name": "copilot", "model": Scripted([]), **options})


def test_an_agent_has_sensible_defaults() -> None:
    """A model is all it needs."""
    agent = Agent(model=Scripted([]))
    assert (agent.name, agent.prompt, agent.tools, agent.limits) == ("agent", (), (), Limits())
    assert (agent.max_tokens, agent.thinking, agent.temperature, agent.output_type) == (None,) * 4


def test_an_agent_is_immutable() -> None:
    """Sessions rely on it from other tasks."""
    agent = agent_with(tools=[look])
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        agent.name = "other"  # type: ignore[misc]  # that is the mistake
    assert agent.by_name == {"look": look}
    with pytest.raises(TypeError):
        agent.by_name["save"] = save  # type: ignore[index]  # an agent does not change


def test_one_text_is_a_prompt() -> None:
    """The shortest declaration that says something."""
    (layer,) = agent_with(prompt="Be kind.").prompt
    assert (layer.text, layer.cache) == ("Be kind.", False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "Agent name ''.*1 to 64"),
        ({"name": "my agent"}, "'my agent': use 1 to 64 of the characters"),
        ({"name": 5}, "Agent name 5"),
        ({"model": 5}, "'copilot': model is an int; give a string such as"),
        ({"model": None}, "model is None; give"),
        ({"model": ScriptedClass}, "model is the class Scripted"),
        ({"model": "nosuch:model"}, "'nosuch:model' names no known provider"),
        ({"model": "claude"}, "write provider:model with one of"),
        ({"tools": [plain]}, r"tools\[0\] \(plain\) is no tool; decorate it with @read_tool or @write_tool"),
        ({"tools": [look, "look"]}, r"tools\[1\] \(str\) is no tool"),
        ({"tools": [look, look]}, r"two tools are called 'look'; give one another name"),
        ({"prompt": len}, r"prompt is a builtin_function_or_method; give a text, or a list of texts and prompt_layer"),
        ({"tools": None}, "tools is None; give a list of tools"),
        ({"prompt": [5]}, r"'copilot': prompt\[0\] is a int"),
        ({"prompt": [prompt_layer("a", "A"), prompt_layer("a", "B")]}, "two prompt layers are called 'a'"),
        ({"limits": {"max_rounds": 3}}, "limits is a dict; give Limits"),
        ({"max_tokens": 0}, "max_tokens is 0; it must be a whole number of at least 1"),
        ({"max_tokens": True}, "max_tokens is True"),
        ({"max_tokens": 1.5}, "max_tokens is 1.5"),
        ({"max_tokens": 10**5000}, "max_tokens is an int of thousands of digits; it must be .* and at most"),
        ({"thinking": "hard"}, "thinking is 'hard'; it must be one of off, minimal"),
        ({"output_type": int}, "structured output is not supported yet.*leave output_type= out"),
        ({"guardrails": []}, "guardrails are not supported yet.*leave guardrails= out"),
        ({"tool": [look]}, "has no 'tool'; did you mean 'tools'"),
    ],
)
def test_a_wrong_declaration_is_refused(options: dict[str, Any], words: str) -> None:
    """At the line that declares it, not in the first run at night."""
    with pytest.raises(DeclarationError, match=words):
        agent_with(**options)


@pytest.mark.parametrize("wrong", ["tools", "prompt"])
def test_a_lone_tool_or_number_instead_of_a_list_is_refused(wrong: str) -> None:
    """A missing pair of brackets is the likeliest slip of all."""
    value: Any = look if wrong == "tools" else 5
    with pytest.raises(DeclarationError, match=f"'copilot': {wrong}"):
        agent_with(**{wrong: value})


@pytest.mark.parametrize("temperature", ["hot", True, float("nan"), float("inf"), 10**400, -1])
def test_a_temperature_is_a_number(temperature: Any) -> None:
    """A provider would refuse it in the first run."""
    with pytest.raises(DeclarationError, match="'copilot': temperature is"):
        agent_with(temperature=temperature)


def test_the_fingerprint_is_of_what_the_model_is_told() -> None:
    """A resumed run can tell whether its agent has changed: the same declaration gives the same one, anywhere."""
    agent = agent_with(tools=[look], prompt="Be kind.")
    assert agent.fingerprint == agent_with(tools=[look], prompt="Be kind.").fingerprint
    reworded = read_tool(look.fn, name=look.name, description="Looks away.")
    others = [
        agent_with(tools=[save], prompt="Be kind."),
        agent_with(tools=[reworded], prompt="Be kind."),
        agent_with(tools=[look], prompt="Be quick."),
        agent_with(tools=[look], prompt=["Be kind.", prompt_layer("live", lambda context: "x")]),
        agent_with(tools=[look], prompt="Be kind.", model=Scripted([], model="other")),
    ]
    assert len({agent.fingerprint, *(other.fingerprint for other in others)}) == 6


def test_a_model_by_name_is_found_without_a_network() -> None:
    """Declaring opens nothing: not even a key is looked at."""
    agent = agent_with(model="anthropic:claude-sonnet-5")
    assert (agent.model.tag.provider, agent.model.tag.model) == ("anthropic", "claude-sonnet-5")
