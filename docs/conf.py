"""Sphinx configuration, and the hooks that write pages from the code: the reference, and the table of servers."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

project = "agentrio"
author = "agentrio contributors"
project_copyright = "agentrio contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "agentrio"
default_role = "literal"  # in a docstring, `name` is code
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True

# The modules of the reference, in the order in which it shows them. One that does not exist yet, or exports nothing,
# has no page.
REFERENCE = [
    "agentrio",
    "agentrio.parts",
    "agentrio.events",
    "agentrio.providers.base",
    "agentrio.providers.presets",
    "agentrio.providers.scripted",
    "agentrio.testing",
]

GENERATED = Path(__file__).parent / "_generated"


def write_reference(app: Sphinx) -> None:
    """Write one page for each module of the reference. A name that two modules export is indexed in the first."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    GENERATED.mkdir()
    seen: set[int] = set()
    for order, name in enumerate(REFERENCE):
        if importlib.util.find_spec(name) is None:
            continue
        exported = getattr(importlib.import_module(name), "__all__", ())
        if exported:
            page = GENERATED / f"{order:02}-{name}.rst"
            page.write_text(_page(name, sorted(exported, key=str.casefold), seen), encoding="utf-8")


def _page(module_name: str, exported: list[str], seen: set[int]) -> str:
    module = importlib.import_module(module_name)
    lines = [module_name, "=" * len(module_name), "", f".. automodule:: {module_name}", "   :no-members:", ""]
    for name in exported:
        value: Any = getattr(module, name)
        if inspect.ismodule(value) or name.startswith("__"):
            continue
        lines += [f".. {_directive(value)}:: {module_name}.{name}"]
        if inspect.isclass(value):
            lines += ["   :members:"]
        if id(value) in seen:
            lines += ["   :no-index:"]
        seen.add(id(value))
        lines += [""]
    return "\n".join(lines)


def _directive(value: Any) -> str:
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(value) else "autodata"


PROVIDERS = Path(__file__).parent / "providers.md"

SERVERS = """\
# Servers of the Chat Completions wire

Written from `presets.toml`, where each fact stands with its source. What is not listed is as the wire's own
documentation has it. Where a source could not be read, so that nothing confirms the fact, it is marked as not
confirmed. [How to choose one](howto/providers.md) says how they are named; Anthropic and OpenAI's Responses
API have wires of their own.
"""


def write_providers(app: Sphinx) -> None:
    """Write the page of the servers that are known by name."""
    from agentrio.providers.presets import presets

    PROVIDERS.write_text("\n".join([SERVERS, *map(_server, presets().values())]), encoding="utf-8")


def _server(preset: Any) -> str:
    lines = [f"## {preset.name}", "", f"{preset.title}.", ""]
    if preset.sources:
        lines += ["| fact | value | source |", "|---|---|---|"]
    doubt = " (not confirmed)"
    for fact, source in preset.sources.items():
        home = next(it for it in (preset, preset.dialect, preset.reading) if hasattr(it, fact))
        value = getattr(home, fact)
        told = {True: "yes", False: "no"}.get(value, f"`{value}`")
        shown = f"<{source}>" if "://" in source else source
        lines.append(f"| {fact.replace('_', ' ')} | {told} | {shown}{doubt if fact in preset.unconfirmed else ''} |")
    return "\n".join([*lines, ""])


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_reference)
    app.connect("builder-inited", write_providers)
