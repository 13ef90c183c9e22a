"""What a function's signature says to a model."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import attrs

from ..domain.errors import DeclarationError
from .context import ToolContext


@attrs.frozen
class Signature:
    """The parameters that a model fills in, with their types and defaults, and the one that takes the context."""

    types: dict[str, Any]
    defaults: dict[str, Any]
    context: str | None


def where_is(fn: object) -> str:
    """How messages name a function: ``module:function``."""
    return f"{getattr(fn, '__module__', '?')}:{getattr(fn, '__qualname__', repr(fn))}"


def refuse(where: str, what: str) -> NoReturn:
    """Raises DeclarationError."""
    raise DeclarationError(f"The tool {where} can't be declared: {what}")


def check_function(fn: object, where: str) -> None:
    """Refuses what can't be a tool.

    Raises:
        DeclarationError: it is not a plain or async function, or one that yields.
    """
    if isinstance(fn, staticmethod | classmethod):
        refuse(where, f"it is a {type(fn).__name__}; write @{type(fn).__name__} above the tool's decorator.")
    if not (inspect.isfunction(fn) or inspect.ismethod(fn)):
        refuse(where, "it is no function; decorate a `def` or an `async def`.")
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        refuse(where, "it yields; return the whole result, and tell of progress with `await ctx.progress(...)`.")
    inner = inspect.unwrap(fn)
    if inspect.iscoroutinefunction(inner) and not inspect.iscoroutinefunction(fn):
        refuse(where, "a plain `def` wraps an `async def`; make the wrapper `async def` too.")


def read_signature(fn: Callable[..., Any], where: str) -> Signature:
    """The signature of a function, its annotations resolved.

    Raises:
        DeclarationError: a parameter has no type, can't be passed by name, or is one of two contexts.
    """
    parameters = inspect.signature(fn).parameters
    for name, parameter in parameters.items():
        _check_parameter(parameter, f"{where}, parameter {name!r},")
    names = {"ToolContext": ToolContext, **getattr(inspect.unwrap(fn), "__globals__", {})}
    hints = {name: _resolve(parameter, names, where) for name, parameter in parameters.items()}
    contexts = [name for name, hint in hints.items() if _is_context(hint)]
    if len(contexts) > 1:
        refuse(where, f"the parameters {' and '.join(contexts)} both take the ToolContext; keep one.")
    return Signature(
        {name: hint for name, hint in hints.items() if name not in contexts},
        {
            name: parameter.default
            for name, parameter in parameters.items()
            if parameter.default is not parameter.empty and name not in contexts
        },
        contexts[0] if contexts else None,
    )


def _check_parameter(parameter: inspect.Parameter, where: str) -> None:
    match parameter.kind:
        case parameter.POSITIONAL_ONLY:
            refuse(where, "it is positional-only, and models pass arguments by name; remove the `/`.")
        case parameter.VAR_POSITIONAL:
            refuse(where, "models pass arguments by name; replace `*` by a list parameter.")
        case parameter.VAR_KEYWORD:
            refuse(where, "a model must be told each name; replace `**` by a dict parameter, or use tool_from_schema.")
        case _:
            pass
    if parameter.annotation is parameter.empty:
        hint = " (of a method, decorate the bound one: read_tool(thing.method))" if parameter.name == "self" else ""
        refuse(where, f"it has no type annotation, and the schema is made from it; add one{hint}.")


def _resolve(parameter: inspect.Parameter, names: dict[str, Any], where: str) -> Any:
    # One at a time, and not the return type: what the schema does not need may be imported for type checkers only.
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return get_type_hints(holder, names, include_extras=True)[parameter.name]
    except Exception as wrong:  # annotations are code of the user's
        raise DeclarationError(
            f"The tool {where}, parameter {parameter.name!r}, can't be declared: its annotation "
            f"{parameter.annotation!r} can't be resolved ({wrong}); name types that are defined at the top of the "
            "module, and imported when the program runs."
        ) from wrong


def _is_context(hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return set(get_args(hint)) == {ToolContext, type(None)}
    return hint is ToolContext
