"""What the package exports can be imported, named in annotations, and found in the reference."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentrio
from agentrio import AgentrioError

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


def test_what_users_import_from_has_a_page() -> None:
    """A page has all that its module exports; these are the modules that the documentation names."""
    users = ["agentrio", "agentrio.events", "agentrio.parts", "agentrio.testing"]
    providers = ["agentrio.providers.base", "agentrio.providers.presets", "agentrio.providers.scripted"]
    assert set(users + providers) <= set(reference_modules())


def _documented() -> set[str]:
    return {name for module in reference_modules() for name in importlib.import_module(module).__all__}


def test_every_error_of_ours_has_a_page() -> None:
    """Whoever meets one looks it up: what it means, and what it holds."""
    for module in pkgutil.walk_packages(agentrio.__path__, "agentrio."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ours = {error.__name__ for error in _below(AgentrioError) if error.__module__.startswith("agentrio.")}
    assert ours - _documented() == set()


def _below(error: type[Exception]) -> Iterator[type[Exception]]:
    for below in error.__subclasses__():
        yield below
        yield from _below(below)


RAISES = re.compile(r"^Raises:\n((?:    .*\n?|\n)+)", re.MULTILINE)


def _docstrings() -> Iterator[tuple[str, str]]:
    for module in reference_modules():
        exported = importlib.import_module(module)
        for name in exported.__all__:
            value = getattr(exported, name)
            members = vars(value).items() if inspect.isclass(value) else ()
            public = [(f"{name}.{key}", each) for key, each in members if not key.startswith("_")]
            for label, each in [(name, value), *public]:
                if inspect.isclass(each) or inspect.isroutine(each) or isinstance(each, property):
                    yield label, inspect.getdoc(each) or ""


def test_what_a_page_says_is_raised_has_a_page_too() -> None:
    """Or is Python's own."""
    raised = {
        (label, name.strip())
        for label, text in _docstrings()
        for section in RAISES.findall(text)
        for names in re.findall(r"^    ([A-Z][\w., ]*):", section, re.MULTILINE)
        for name in names.split(",")
    }
    assert ("Agent", "DeclarationError") in raised  # the pattern still finds them
    known = _documented()
    assert [each for each in sorted(raised) if each[1] not in known and not hasattr(builtins, each[1])] == []
