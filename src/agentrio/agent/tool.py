"""Tools: functions that a model may call."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, overload

import attrs

from ..domain.render import ToolSpec

if TYPE_CHECKING:
    from typing import Unpack

    from .arguments import ArgumentChecker, Arguments
    from .context import ToolContext

P = ParamSpec("P")
R = TypeVar("R")

ToolKind: TypeAlias = Literal["read", "write"]
"""A read may run beside others, and again after a crash; a write runs alone, in order, and never twice silently."""


class ToolOptions(TypedDict, total=False):
    """What a decorator takes. ``timeout`` is in seconds and beats ``Limits.call_timeout``."""

    name: str
    description: str
    timeout: float | None
    approval: Literal["never"]


@attrs.frozen(eq=False, slots=False, repr=False)
class Tool(Generic[P, R]):
    """A declared tool, immutable. It is called exactly as its function: ``await forecast("Oslo")``.

    ``threaded`` tools are plain functions, run in a worker thread. ``fingerprint`` changes with the name, the kind,
    the description or the schema, and is the same in each process. ``context_parameter`` names the parameter that
    takes the ToolContext, if there is one.
    """

    fn: Callable[P, R]
    name: str
    kind: ToolKind
    spec: ToolSpec
    timeout: float | None
    threaded: bool
    context_parameter: str | None
    checker: ArgumentChecker
    fingerprint: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        spec = self.spec
        told = {"name": self.name, "kind": self.kind, "description": spec.description, "schema": spec.schema}
        canonical = json.dumps(told, sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "fingerprint", hashlib.sha256(canonical.encode()).hexdigest())
        self._look_like(self.fn)

    def _look_like(self, fn: Callable[P, R]) -> None:
        """As ``functools.update_wrapper``, less the function's own attributes: one called ``kind`` is not ours."""
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(fn, name):
                object.__setattr__(self, name, getattr(fn, name))
        object.__setattr__(self, "__wrapped__", fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.kind} tool {self.name}>"

    @property
    def description(self) -> str:
        """What the model is told that the tool does."""
        return self.spec.description

    def invoke(self, arguments: Arguments, context: ToolContext) -> R:
        """Calls the function with checked arguments and, if it wants it, the context."""
        call: Callable[..., R] = self.fn
        if self.context_parameter is None:
            return call(**arguments.values)
        return call(**arguments.values, **{self.context_parameter: context})


@overload
def read_tool(fn: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
@overload
def read_tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def read_tool(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declares a function as a tool that only reads: it may run beside others, and again after a crash.

    The schema is made from the signature, its descriptions from the docstring. A parameter annotated with
    ``ToolContext`` is filled in and not shown to the model.

    Raises:
        DeclarationError: the function can't be a tool; the message says what, where and how to mend it.
    """
    return _decorate("read", fn, options)


@overload
def write_tool(fn: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
@overload
def write_tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def write_tool(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declares a function as a tool that changes something: it runs alone, in order, and never twice silently.

    Everything else is as with ``read_tool``.

    Raises:
        DeclarationError: the function can't be a tool; the message says what, where and how to mend it.
    """
    return _decorate("write", fn, options)


def tool_from_schema(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    fn: Callable[P, R],
    kind: ToolKind,
    *,
    timeout: float | None = None,
) -> Tool[P, R]:
    """A tool whose arguments are described by a JSON Schema and reach ``fn`` as one mapping.

    The schema must have an object on top and hold itself: references to other documents are refused, and nothing is
    ever fetched.

    Raises:
        DeclarationError: the schema, the function or the kind can't be used; the message says why.
    """
    from .declare import declare_schema

    return declare_schema(name, description, schema, fn, kind, timeout)


def _decorate(kind: ToolKind, fn: Callable[..., Any] | None, options: dict[str, Any]) -> Any:
    if fn is None:
        return functools.partial(_decorate, kind, options=options)
    from .declare import declare  # here: the machinery of schemas is loaded with the first tool

    return declare(fn, kind, **options)
