"""One rule of a wire: a body that keeps it, one that breaks it, and what is said of that."""

from __future__ import annotations

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
