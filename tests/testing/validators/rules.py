"""One rule of a wire: a body that keeps it, one that breaks it, and what is said of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from agentrio.testing.validators import Demands, WireName, validate

Body = dict[str, Any]
PNG = "aGk="


@attrs.frozen(kw_only=True)
class Rule:
    """``path`` and ``says`` are of one problem among those that the broken body has; ``says`` is a part of it."""

    name: str
    keeps: Any
    breaks: Any
    path: str
    says: str
    demands: Demands = attrs.field(factory=Demands)


def hold(wire: WireName, rule: Rule) -> None:
    """Hold the validator to a rule."""
    assert validate(wire, rule.keeps, rule.demands) == []
    found = validate(wire, rule.breaks, rule.demands)
    assert any(it.path == rule.path and rule.says in it.reason for it in found), [str(it) for it in found]


def tells_of(wire: WireName, body: Any, demands: Demands | None = None) -> list[str]:
    """The problems of a body as texts."""
    return [str(problem) for problem in validate(wire, body, demands or Demands())]


def rule(name: str, keeps: Body, breaks: Any, path: str, says: str, **demands: Any) -> Rule:
    """A rule, with its demands as keywords."""
    return Rule(name=name, keeps=keeps, breaks=breaks, path=path, says=says, demands=Demands(**demands))


def without(body: Body, key: str) -> Body:
    """The body without one of its keys."""
    return {name: value for name, value in body.items() if name != key}


def openai_rules(ask: Callable[..., Body], tool: Body, alone: Body, choice: Callable[[str], Body]) -> list[Rule]:
    """Rules of both OpenAI wires. ``tool`` is called ``now``; ``alone`` is a conversation with a call and no tools."""
    return [
        rule(
            "a choice needs tools",
            ask(tools=[tool], tool_choice="auto"),
            ask(tool_choice="auto"),
            "tool_choice",
            "only allowed",
        ),
        rule(
            "a choice is among the tools",
            ask(tools=[tool], tool_choice=choice("now")),
            ask(tools=[tool], tool_choice=choice("x")),
            "tool_choice",
            "not found",
        ),
        rule(
            "parallel calls need tools",
            ask(tools=[tool], parallel_tool_calls=True),
            ask(parallel_tool_calls=True),
            "parallel_tool_calls",
            "only allowed",
        ),
        rule(
            "calls need tools, some say",
            alone | {"tools": [tool]},
            alone,
            "tools",
            "must be specified",
            tools_for_calls=True,
        ),
        rule(
            "options of streams are for streams",
            ask(stream=True, stream_options={}),
            ask(stream_options={}),
            "stream_options",
            "only allowed",
        ),
    ]
