"""From the options to an agent. All of it happens before the loop runs: a module of tools may take its time."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import attrs

from agentrio.agent.agent import Agent
from agentrio.agent.tool import Tool
from agentrio.domain.errors import DeclarationError
from agentrio.domain.limits import Limits
from agentrio.providers.base import Model
from agentrio.providers.registry import resolve

from ..command import UNAVAILABLE, USAGE, Refusal


def declare(options: Namespace) -> Agent[None]:
    """The agent that the options describe.

    Raises:
        Refusal: they can't be followed.
    """
    try:
        return Agent(
            name="chat",
            model=_model(options.model, _account(options)),
            fallbacks=options.fallback,
            prompt=_text(options.system),
            tools=[tool for module, names in options.tools for tool in load_tools(module, names)],
            max_tokens=options.max_tokens,
            thinking=options.thinking,
            limits=_limits(options),
        )
    except DeclarationError as wrong:
        raise Refusal(str(wrong), USAGE) from wrong


def _limits(options: Namespace) -> Limits:
    most = options.max_context_chars
    return Limits() if most is None else Limits(max_context_chars=most)


def _text(system: str | None) -> str | tuple[()]:
    """What ``--system`` says; behind an ``@`` stands the file that says it."""
    if not system:
        return ()
    if not system.startswith("@"):
        return system
    try:
        return Path(system[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, RuntimeError, ValueError) as wrong:  # no such file, no such user's home, not UTF-8
        why = wrong.strerror if isinstance(wrong, OSError) else wrong
        raise Refusal(f"--system: can't read the file {system[1:]!r}: {why}", USAGE) from wrong


def _account(options: Namespace) -> dict[str, str]:
    """What the options say in place of the provider's own address and key."""
    given: dict[str, str] = {}
    if options.base_url is not None:
        given["base_url"] = options.base_url
    if options.api_key_env is not None:
        key = os.environ.get(options.api_key_env)
        if not key:
            raise Refusal(f"there is no key: the variable {options.api_key_env} is not set", UNAVAILABLE)
        given["api_key"] = key
    return given


def _model(name: str, given: dict[str, str]) -> Model:
    """The model of that name. Of a server without an address of its own it can be told with one."""
    provider, _, rest = name.partition(":")
    if rest and provider in _without_address():
        if "base_url" not in given:
            raise Refusal(f"{provider} has no address of its own; say with --base-url where {rest} is served", USAGE)
        from agentrio.providers.openai_chat import OpenAIChat

        return OpenAIChat(rest, preset=provider, base_url=given["base_url"], api_key=given.get("api_key"))
    return cast(Model, attrs.evolve(cast(Any, resolve(name)), **given))


def _without_address() -> frozenset[str]:
    from agentrio.providers.presets import presets

    return frozenset(it.name for it in presets().values() if not (it.base_url or it.base_url_variable))


def load_tools(module: str, names: Sequence[str]) -> Iterator[Tool[..., Any]]:
    """The tools that a module holds under these names; a list of tools may stand under one.

    Raises:
        Refusal: the module can't be imported, or something in it is no tool.
    """
    found = _imported(module)
    for name in names:
        if not hasattr(found, name):
            raise Refusal(f"--tools: the module {module!r} has no {name!r}{_instead(found, name)}")
        value = getattr(found, name)
        for tool in value if isinstance(value, list | tuple) else (value,):
            if not isinstance(tool, Tool):
                raise Refusal(
                    f"--tools: {module}:{name} is no tool but a {type(tool).__name__}; decorate a function with "
                    "@read_tool or @write_tool"
                )
            yield tool


def _instead(found: Any, name: str) -> str:
    tools = [each for each, value in vars(found).items() if isinstance(value, Tool)]
    near = get_close_matches(name, tools, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; its tools are {', '.join(tools)}" if tools else "; there is no tool in it"


def _imported(module: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` has it; the script `agentrio` begins with its own folder
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as wrong:  # SystemExit: a script that does its work when it is imported
        raise Refusal(f"--tools: the module {module!r} can't be imported: {_why(module, wrong)}") from wrong


def _why(module: str, wrong: BaseException) -> str:
    if not all(part.isidentifier() for part in module.split(".")) or Path(module).is_file():
        return f"write it as in an import, such as {Path(module).stem}:NAME, and go to its folder first"
    why = f"{type(wrong).__name__}: {wrong}"
    if isinstance(wrong, ModuleNotFoundError) and wrong.name == module.partition(".")[0]:
        return f"{why} (looked for in {Path.cwd()}, and among the packages of {sys.prefix})"
    frame = traceback.extract_tb(wrong.__traceback__)[-1]
    return why if "importlib" in frame.filename else f"{why} ({frame.filename}, line {frame.lineno})"
