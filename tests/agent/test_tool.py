"""Declaring tools."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import msgspec
import pytest

from agentrio.agent.arguments import Arguments, check
from agentrio.agent.context import ToolContext
from agentrio.agent.tool import Tool, ToolKind, read_tool, tool_from_schema, write_tool
from agentrio.domain.errors import DeclarationError

if TYPE_CHECKING:
    from elsewhere import Unknown  # type: ignore[import-not-found]  # seen by type checkers only


@read_tool
async def forecast(city: str, days: int = 3) -> str:
    """Weather forecast for a city.

    Nothing beyond a week.

    Args:
        city: Name of
            the city.
        days: How many days ahead.
    """
    return f"{city} {days}"


@write_tool(name="keep", description="Keeps a number.", timeout=2)
def save(ctx: ToolContext, number: int) -> int:
    ctx.remember({"number": number})
    return number


async def whole(arguments: Mapping[str, Any], ctx: ToolContext | None = None) -> Mapping[str, Any]:
    return arguments


def invoke(tool: Tool[..., Any], arguments_json: str) -> Any:
    arguments = check(tool, arguments_json)
    assert isinstance(arguments, Arguments)
    return tool.invoke(arguments, ToolContext.for_test())


async def test_a_tool_stays_callable_as_its_function() -> None:
    """A unit test calls it with no runtime, as any function."""
    assert await forecast("Oslo", days=1) == "Oslo 1"
    ctx = ToolContext.for_test()
    assert save(ctx, 3) == 3
    assert ctx.patches == ({"number": 3},)


def test_a_tool_looks_like_its_function() -> None:
    """Documentation builders and debuggers follow the wrapped function."""
    assert forecast.__name__ == "forecast"  # type: ignore[attr-defined]  # copied from the function
    assert inspect.signature(forecast).parameters.keys() == {"city", "days"}
    assert (repr(forecast), repr(save)) == ("<read tool forecast>", "<write tool keep>")


def _labelled(fn: Callable[..., Any]) -> Callable[..., Any]:
    fn.kind, fn.name, fn.timeout = "write", "other", "soon"  # type: ignore[attr-defined]  # what decorators do
    return fn


def test_what_a_function_carries_changes_no_tool() -> None:
    """Another library's decorator may leave attributes on a function, and theirs may be called as ours are."""
    tool = read_tool(_labelled(_labelled(lambda: 1)), name="one")
    assert (tool.name, tool.kind, tool.timeout) == ("one", "read", None)


@pytest.mark.parametrize("name", ["kind", "name", "timeout", "fn", "spec", "fingerprint"])
def test_a_tool_does_not_change(name: str) -> None:
    """Agents share it, runs are under way with it: whoever wants another one declares another one."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(forecast, name, "write")


def test_the_model_is_told_what_the_signature_and_the_docstring_say() -> None:
    """One source: what is written for people is what the model reads."""
    assert forecast.description == "Weather forecast for a city.\n\nNothing beyond a week."
    assert forecast.spec.name == "forecast"
    assert forecast.spec.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "days": {"type": "integer", "description": "How many days ahead.", "default": 3},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_options_and_nature_are_kept() -> None:
    """The pool runs a call by them."""
    told = [(t.name, t.kind, t.timeout, t.threaded, t.context_parameter) for t in (forecast, save)]
    assert told == [("forecast", "read", None, False, None), ("keep", "write", 2.0, True, "ctx")]
    assert save.description == "Keeps a number."


async def test_the_context_is_filled_in_and_not_shown_to_the_model() -> None:
    """It is found by its annotation, wherever it stands."""

    async def last(a: int, *, ctx: ToolContext) -> tuple[int, str]:
        return a, ctx.agent

    def maybe(ctx: ToolContext | None = None, a: int = 0) -> tuple[int, bool]:
        return a, ctx is not None

    assert list(read_tool(last).spec.schema["properties"]) == ["a"]
    assert await invoke(read_tool(last), '{"a": 1}') == (1, "test")
    assert invoke(read_tool(maybe), "") == (0, True)
    assert invoke(save, '{"number": 2}') == 2
    assert await invoke(forecast, '{"city": "Oslo"}') == "Oslo 3"


def test_what_only_type_checkers_import_may_annotate_the_result() -> None:
    """The schema does not need it."""

    @read_tool
    async def odd(a: int) -> Unknown: ...

    assert list(odd.spec.schema["properties"]) == ["a"]


def test_a_bound_method_is_a_tool() -> None:
    """Tools that share a client are methods of one object."""

    class Client:
        async def fetch(self, url: str) -> str:
            return url

    assert list(read_tool(Client().fetch).spec.schema["properties"]) == ["url"]


def test_fingerprints_follow_what_the_model_could_be_told() -> None:
    """A resumed run must notice that a tool is no longer the one that it had proposed calls to."""

    def declared(kind: ToolKind = "read", name: str = "a", schema: Any = None, told: str = "Deletes nothing.") -> str:
        return tool_from_schema(name, told, schema or {"type": "object"}, whole, kind).fingerprint

    others = [declared("write"), declared(name="b"), declared(schema={"type": "object", "required": ["a"]})]
    assert len({declared(), declared(told="Deletes everything."), *others}) == 5
    assert declared(schema={"type": "object", "title": "t"}) == declared(schema={"title": "t", "type": "object"})


def test_fingerprints_are_the_same_in_each_process() -> None:
    """Another process resumes the run, with another seed of hashes."""
    program = "from tests.agent.test_tool import forecast, save; print(forecast.fingerprint, save.fingerprint)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [forecast.fingerprint, save.fingerprint]


def test_importing_tools_loads_no_machinery() -> None:
    """A program that declares no tool pays nothing for schemas."""
    program = (
        "import sys, agentrio.agent.tool, agentrio.agent.results, agentrio.agent.context, agentrio.agent.arguments\n"
        "print({'msgspec', 'cattrs', 'jsonschema_rs', 'docstring_parser'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


async def _yields(a: int) -> AsyncIterator[int]:  # noqa: ASYNC900  # it is refused as a tool
    yield a


def _yields_too(a: int) -> Iterator[int]:
    yield a


def _positional(a: int, /) -> None: ...
def _star(*a: int) -> None: ...
def _stars(**a: int) -> None: ...
def _bare(a) -> None: ...  # type: ignore[no-untyped-def]  # the mistake that is tested
def _method(self, a: int) -> None: ...  # type: ignore[no-untyped-def]  # the mistake that is tested
def _contexts(a: ToolContext, b: ToolContext) -> None: ...
def _unresolved(a: Unknown) -> None: ...
def _complex(a: complex) -> None: ...
def _none(a: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013  # the mistake
def _fine(a: int) -> None: ...


@functools.wraps(whole)
def _wraps(*args: Any, **kwargs: Any) -> Any:
    return whole(*args, **kwargs)


@attrs.define
class Cat:
    lives: int


@attrs.define
class Dog:
    bones: int


def _either(a: Cat | Dog) -> None: ...
def _pattern(a: Annotated[str, msgspec.Meta(pattern="(")]) -> None: ...
def _unclosed(a: Annotated[str, msgspec.Meta(extra_json_schema={"minimum": "x"})]) -> None: ...
def _backwards(a: Annotated[str, msgspec.Meta(pattern=r"(a)\1{2}(?<=b+)")]) -> None: ...


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (_yields, "it yields; return the whole result"),
        (_yields_too, "it yields; return the whole result"),
        (_positional, "parameter 'a', can't be declared: it is positional-only"),
        (_star, "parameter 'a', can't be declared: models pass arguments by name; replace `*`"),
        (_stars, "parameter 'a', can't be declared: models pass arguments by name|a model must be told each name"),
        (_bare, "parameter 'a', can't be declared: it has no type annotation"),
        (_method, "decorate the bound one"),
        (_contexts, "the parameters a and b both take the ToolContext"),
        (_unresolved, "parameter 'a', can't be declared: its annotation 'Unknown' can't be resolved"),
        (_complex, "parameter 'a', can't be declared: .*complex"),
        (_none, "parameter 'a', can't be declared: its default is None"),
        (_wraps, "make the wrapper `async def` too"),
        (_either, "parameter 'a', can't be declared: .*give the classes a tag"),
        (_pattern, "parameter 'a', can't be declared|its schema is wrong at properties/a/pattern"),
        (_unclosed, "its schema is wrong at properties/a/minimum"),
        (len, "it is no function"),
        (Cat, "it is no function"),
        (functools.partial(_fine, 1), "it is no function"),
        (read_tool(_fine), "it is a tool already; decorate it once"),
        (staticmethod(_fine), "it is a staticmethod; write @staticmethod above"),
        (lambda: 1, "'<lambda>' is no name; give one .* with `name=`"),
    ],
)
def test_a_function_that_can_be_no_tool_is_refused_where_it_is_declared(fn: Callable[..., Any], words: str) -> None:
    """What, where and how to mend it, before anything runs."""
    with pytest.raises(DeclarationError, match=words) as caught:
        read_tool(fn)
    assert getattr(fn, "__qualname__", "partial") in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"approval": "always"}, "approval='always' is not supported yet"),
        ({"authorize": len}, "authorize=.* is not supported yet"),
        ({"idempotency_key": len}, "idempotency_key=.* is not supported yet"),
        ({"reconcile": len}, "reconcile=.* is not supported yet"),
        ({"retries": 3}, "the decorator has no 'retries'; it knows name, description, timeout, approval"),
        ({"name": "a b"}, "'a b' is no name"),
        ({"name": "a" * 65}, "is no name"),
        ({"name": 5}, "5 is no name"),
        ({"description": 5}, "its description is 5"),
        ({"timeout": 0}, "timeout=0; it must be a positive number"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"timeout": "1"}, "timeout='1'"),
        ({"timeout": True}, "timeout=True"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], words: str) -> None:
    """An option that does nothing would be a promise broken in silence."""
    with pytest.raises(DeclarationError, match=words):
        write_tool(**options)(_fine)


def test_saying_what_holds_anyway_is_allowed() -> None:
    """A declaration may be explicit."""
    tool = read_tool(_fine, approval="never", timeout=None, name="fine")
    assert (tool.name, tool.timeout) == ("fine", None)
    assert read_tool(lambda: 1, name="one")() == 1


async def test_a_tool_from_a_schema_gets_its_arguments_as_one_mapping() -> None:
    """Tools of other servers bring their own schema."""
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    tool = tool_from_schema("far", "Far away.", schema, whole, "read", timeout=3)
    schema["properties"] = {}  # ours is a copy
    assert (tool.description, tool.timeout, tool.threaded, tool.context_parameter) == ("Far away.", 3.0, False, "ctx")
    assert await invoke(tool, '{"a": 1, "more": true}') == {"a": 1, "more": True}
    assert not isinstance(check(tool, '{"a": "x"}'), Arguments)


def _two(a: dict[str, Any], b: int) -> None: ...


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "its schema must describe an object"),
        ({}, "its schema must describe an object"),
        (True, "its schema must describe an object"),
        ({"type": "object", "default": {1}}, "its schema is not JSON"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "its schema is wrong at properties/a/type"),
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, "other documents are refused"),
        ({"type": "object", "$defs": {"a": {"$ref": "file:///etc/hostname"}}}, "other documents are refused"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, "its schema is wrong"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "its schema is wrong"),
        ({"type": "object", "$schema": "http://127.0.0.1:9/meta"}, "its schema is wrong"),
    ],
)
def test_a_wrong_schema_is_refused_without_touching_the_network(schema: Any, words: str) -> None:
    """A schema may come from a stranger; reading it must not fetch what it names."""
    with pytest.raises(DeclarationError, match=words):
        tool_from_schema("far", "", schema, whole, "read")


@pytest.mark.parametrize("kind", ["wrte", "Write", None, True, ["read"]])
def test_a_kind_that_there_is_not_is_refused(kind: Any) -> None:
    """Taken for a read, a misspelt write would run beside others, and again after a crash."""
    with pytest.raises(DeclarationError, match=r"kind=.*; it must be 'read' or 'write'"):
        tool_from_schema("wipe", "", {"type": "object"}, whole, kind)


def test_a_function_for_a_schema_takes_one_mapping() -> None:
    """There is nothing that could fill a second parameter."""
    with pytest.raises(DeclarationError, match="it must take one parameter"):
        tool_from_schema("far", "", {"type": "object"}, _two, "read")
    with pytest.raises(DeclarationError, match="'far away' is no name"):
        tool_from_schema("far away", "", {"type": "object"}, whole, "read")
