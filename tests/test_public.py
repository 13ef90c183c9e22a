"""What the package exports can be imported, named in annotations, and found in the reference."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import agentrio

DOCS = Path(__file__).parents[1] / "docs"


def reference_modules() -> list[str]:
    """The modules that have a page of reference."""
    tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    (found,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "REFERENCE"
    ]
    return list(ast.literal_eval(found))


@pytest.mark.parametrize("name", reference_modules())
def test_a_module_of_the_reference_says_what_it_exports(name: str) -> None:
    """Its page is written from ``__all__``; without one there is no page, and nobody notices."""
    module = importlib.import_module(name)
    assert module.__all__
    assert all(hasattr(module, each) for each in module.__all__)


@pytest.mark.parametrize(
    "name", ["CodecError", "MemoryPatchError", "PromptLayer", "RunStream", "RunSuspendedError", "Suspension", "Tool"]
)
def test_what_a_public_call_gives_or_raises_is_public(name: str) -> None:
    """Else it can neither be caught nor named in an annotation without reaching into the package."""
    assert name in agentrio.__all__
    assert getattr(agentrio, name).__module__.startswith("agentrio.")
