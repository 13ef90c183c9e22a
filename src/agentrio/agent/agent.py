"""The declaration of an agent."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, runtime_checkable
from weakref import WeakValueDictionary

import attrs

from agentrio.domain.errors import DeclarationError
from agentrio.domain.keywords import no_such
from agentrio.domain.limits import MOST, Limits, shown
from agentrio.domain.messages import ModelTag
from agentrio.domain.render import ThinkingLevel

from .prompt import PromptLayer, check_layers
from .tool import Tool

if TYPE_CHECKING:  # with a default, `agent = Agent(...)` needs no annotation; the standard library has it from 3.13 on
    from typing_extensions import TypeVar

    Out = TypeVar("Out", covariant=True, default=None)
else:
    from typing import TypeVar

    Out = TypeVar("Out", covariant=True)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
_WANTED = {
    "prompt": "a text, or a list of texts and prompt_layer(...)s",
    "tools": "a list of tools",
    "fallbacks": "a list of models",
}
_RESOLVED: WeakValueDictionary[str, DeclaredModel] = WeakValueDictionary()
_LATER = ("resources", "workflows", "guardrails", "hooks", "mcp", "compactor")


@runtime_checkable
class DeclaredModel(Protocol):
    """What an agent needs to know of its model; ``agentrio.providers.base.Model`` says the rest."""

    @property
    def tag(self) -> ModelTag:
        """Provider, api and model."""
        ...

    def open(self) -> Any:
        """A client for one runtime."""


@attrs.frozen(kw_only=True, eq=False, init=False)  # init=False: or type checkers read attrs' __init__, not ours
class Agent(Generic[Out]):
    """An immutable declaration. Building one touches no network.

    ``model`` is a model object, or a string such as ``"anthropic:claude-sonnet-5"``. ``prompt`` is a text or a list of
    layers. ``max_tokens``, ``thinking`` and ``temperature`` are left to the provider where they are None. Where a model
    fails for good, its retries used up, the ``fallbacks`` are asked in order; a run stays with the one that answered.

    Raises:
        DeclarationError: a declaration is wrong; the message says what, where and how to mend it.
    """

    model: DeclaredModel = attrs.field()
    name: str = "agent"
    prompt: tuple[PromptLayer, ...] = attrs.field(default=())
    tools: tuple[Tool[..., Any], ...] = attrs.field(default=())
    limits: Limits = attrs.field(factory=Limits)
    max_tokens: int | None = None
    thinking: ThinkingLevel | None = None
    temperature: float | None = None
    fallbacks: tuple[DeclaredModel, ...] = ()
    output_type: type[Out] | None = None
    by_name: Mapping[str, Tool[..., Any]] = attrs.field(init=False, repr=False)

    def __init__(
        self,
        *,
        model: str | DeclaredModel,
        fallbacks: Sequence[str | DeclaredModel] = (),
        name: str = "agent",
        prompt: str | Sequence[str | PromptLayer] = (),
        tools: Sequence[Tool[..., Any]] = (),
        limits: Limits | None = None,
        max_tokens: int | None = None,
        thinking: ThinkingLevel | None = None,
        temperature: float | None = None,
        output_type: type[Out] | None = None,
        **later: Any,
    ) -> None:
        _refuse_later(name, later, output_type)
        _check_name(name)
        checked = _check_tools(name, tools)
        self.__attrs_init__(  # pyright: ignore[reportAttributeAccessIssue]  # attrs makes it for init=False
            model=_resolve_model(name, model),
            fallbacks=_resolve_fallbacks(name, fallbacks),
            name=name,
            prompt=check_layers(name, (prompt,) if isinstance(prompt, str) else _check_list(name, "prompt", prompt)),
            tools=checked,
            limits=_check_limits(name, limits),
            max_tokens=_check_max_tokens(name, max_tokens),
            thinking=_check_thinking(name, thinking),
            temperature=_check_temperature(name, temperature),
            output_type=output_type,
        )
        object.__setattr__(self, "by_name", MappingProxyType({tool.name: tool for tool in checked}))

    @property
    def models(self) -> tuple[DeclaredModel, ...]:
        """The model, then its fallbacks."""
        return (self.model, *self.fallbacks)

    @property
    def fingerprint(self) -> str:
        """Changes when what the model is told of its tools and static prompt changes; the same in every process."""
        tag = self.model.tag
        told: list[Any] = [tag.provider, tag.api, tag.model, [tool.fingerprint for tool in self.tools]]
        told.append([[layer.name, layer.text if isinstance(layer.text, str) else None] for layer in self.prompt])
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _refuse_later(name: str, later: Mapping[str, Any], output_type: object) -> None:
    for key in later:
        if key in _LATER:
            raise DeclarationError(f"Agent {name!r}: {key} are not supported yet by this version; leave {key}= out.")
        known = [field.name for field in attrs.fields(Agent) if field.init]
        raise DeclarationError(no_such(f"Agent {name!r}", key, known))
    if output_type is not None:
        raise DeclarationError(
            f"Agent {name!r}: structured output is not supported yet by this version; leave output_type= out."
        )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeclarationError(f"Agent name {name!r}: use 1 to 64 of the characters a-z, A-Z, 0-9, _ and -.")


def _resolve_model(name: str, model: object) -> DeclaredModel:
    if isinstance(model, str):
        return _of_string(model)
    if isinstance(model, DeclaredModel) and not isinstance(model, type):
        return model
    raise DeclarationError(
        f"Agent {name!r}: model is {_kind(model)}; give a string such as 'anthropic:claude-sonnet-5', "
        "or a model object such as Anthropic(...) or Scripted(...)."
    )


def _of_string(name: str) -> DeclaredModel:
    """The model of that name. Agents of one string share it, and with it a runtime's connections."""
    made = _RESOLVED.get(name)
    if made is None:
        resolve = importlib.import_module("agentrio.providers.registry").resolve  # by name: agents import no provider
        made = _RESOLVED[name] = resolve(name)
    return made


def _resolve_fallbacks(name: str, models: Sequence[str | DeclaredModel]) -> tuple[DeclaredModel, ...]:
    if isinstance(models, str):
        raise DeclarationError(f"Agent {name!r}: fallbacks is a list; write fallbacks=[{models!r}].")
    return tuple(_resolve_model(name, model) for model in _check_list(name, "fallbacks", models))


def _check_tools(name: str, tools: Sequence[object]) -> tuple[Tool[..., Any], ...]:
    made: dict[str, Tool[..., Any]] = {}
    _check_list(name, "tools", tools)
    for index, tool in enumerate(tools):
        if not isinstance(tool, Tool):
            what = getattr(tool, "__name__", type(tool).__name__)
            raise DeclarationError(
                f"Agent {name!r}: tools[{index}] ({what}) is no tool; decorate it with @read_tool or @write_tool."
            )
        if tool.name in made:
            raise DeclarationError(
                f"Agent {name!r}: two tools are called {tool.name!r}; give one another name with @read_tool(name=...)."
            )
        made[tool.name] = tool
    return tuple(made.values())


def _check_list(name: str, field: str, value: Sequence[Any]) -> Sequence[Any]:
    if not isinstance(value, Sequence):
        raise DeclarationError(f"Agent {name!r}: {field} is {_kind(value)}; give {_WANTED[field]}.")
    return value


def _kind(value: object) -> str:
    if value is None or isinstance(value, type):
        return "None" if value is None else f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _check_limits(name: str, limits: object) -> Limits:
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise DeclarationError(f"Agent {name!r}: limits is a {type(limits).__name__}; give Limits(...).")
    return limits


def _check_max_tokens(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST):
        raise DeclarationError(
            f"Agent {name!r}: max_tokens is {shown(value)}; it must be a whole number of at least 1 and at most {MOST}."
        )
    return value


def _check_temperature(name: str, value: float | None) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1e9):
        raise DeclarationError(
            f"Agent {name!r}: temperature is {shown(value)}; it must be a number of at least 0, such as 0.7."
        )
    return value


def _check_thinking(name: str, level: ThinkingLevel | None) -> ThinkingLevel | None:
    if level is not None and level not in _LEVELS:
        raise DeclarationError(f"Agent {name!r}: thinking is {shown(level)}; it must be one of {', '.join(_LEVELS)}.")
    return level
