"""What may be given to a runtime: checked where it enters, so that nobody else pays for another's mistake."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import trio

from agentrio.agent.agent import Agent
from agentrio.domain.errors import DeclarationError
from agentrio.domain.identity import Identity
from agentrio.domain.keywords import no_such
from agentrio.domain.limits import Limits
from agentrio.domain.messages import Message
from agentrio.domain.render import ModelRequest, SystemBlock, message_chars, request_chars
from agentrio.domain.session import Session
from agentrio.domain.storable import check_session

_LATER = ("store", "sinks", "mcp")


def agents_by_name(agents: Sequence[Agent[Any]]) -> dict[str, Agent[Any]]:
    """The agents of ``open_runtime``.

    Raises:
        DeclarationError: there is no list of them, something else stands among them, or two have one name.
    """
    made: dict[str, Agent[Any]] = {}
    if isinstance(agents, str | Agent):
        raise DeclarationError(f"open_runtime: agents is a {type(agents).__name__}; put it into a list.")
    if not isinstance(agents, Sequence):
        raise DeclarationError(f"open_runtime: agents is a {type(agents).__name__}; give a list of Agent(...) objects.")
    for agent in agents:
        if not isinstance(agent, Agent):
            raise DeclarationError(f"open_runtime: {agent!r} among the agents is none; give Agent(...) objects.")
        if agent.name in made:
            raise DeclarationError(f"open_runtime: two agents are called {agent.name!r}; rename one.")
        made[agent.name] = agent
    return made


def check_options(threads: object, rng: object, later: Mapping[str, Any]) -> None:
    """The other options of ``open_runtime``.

    Raises:
        DeclarationError: one is wrong, unknown or not supported yet.
        RuntimeError: no Trio loop runs here.
    """
    if not trio.lowlevel.in_trio_run():
        raise RuntimeError("agentrio runs on Trio, and no Trio loop runs here; begin with trio.run(main)")
    for key in later:
        if key in _LATER:
            raise DeclarationError(f"open_runtime: {key}= is not supported by this version; leave it out.")
        raise DeclarationError(no_such("open_runtime", key, ("agents", "threads", "rng")))
    if not _is_count(threads, 1):
        raise DeclarationError(f"open_runtime: threads is {threads!r}; it must be a whole number of at least 1.")
    if rng is not None and not isinstance(rng, random.Random):
        raise DeclarationError(f"open_runtime: rng is {rng!r}; give a random.Random(...), or leave it out.")


def check_agent(agent: object, known: Mapping[str, Agent[Any]]) -> Agent[Any]:
    """The agent of ``open_session``.

    Raises:
        DeclarationError: it is no agent, and no name of one that is known.
    """
    if isinstance(agent, Agent):
        return agent
    if isinstance(agent, str) and agent in known:
        return known[agent]
    names = ", ".join(sorted(known)) or "none"
    raise DeclarationError(
        f"There is no agent {agent!r}; give an Agent(...), or the name of one that open_runtime(agents=[...]) "
        f"was given: {names}."
    )


def check_opening(id: object, value: object, identity: object) -> None:
    """What else a session is opened with.

    Raises:
        TypeError: the id is no text, the value no Session or the identity no Identity.
        ValueError: the id differs from the value's, or the value is one that no session can have had.
    """
    if value is not None and not isinstance(value, Session):
        raise TypeError(f"value is a {type(value).__name__}; give a Session, such as Session.from_json(text)")
    if id is not None and (not isinstance(id, str) or not id):
        raise TypeError(f"id is {id!r}; it is a text, or left out")
    if identity is not None and not isinstance(identity, Identity):
        raise TypeError(f'identity is a {type(identity).__name__}; give an Identity, such as Identity(subject="u1")')
    if value is None:
        return
    _check_value(value)
    if id is not None and id != value.id:
        raise ValueError(f"id is {id!r} but the value's is {value.id!r}; leave id out")


def _check_value(value: Session) -> None:
    """A session made by hand may hold anything; found out in a run it would be a crash."""
    if not isinstance(value.id, str) or not value.id:
        raise ValueError(f"value.id is {value.id!r}; it is a text")
    if not isinstance(value.agent, str):
        raise ValueError(f"value.agent is {value.agent!r}; it is the agent's name")
    if not isinstance(value.memory, Mapping):
        raise ValueError(f"value.memory is a {type(value.memory).__name__}; it is a dict")
    for name in ("runs", "queued_total", "seq"):
        if not _is_count(getattr(value, name), 0):
            raise ValueError(f"value.{name} is {getattr(value, name)!r}; it is a whole number of at least 0")
    check_session(value)


def fixed_chars(agent: Agent[Any]) -> int:
    """What each request of the agent holds, whatever is said: its static layers and tools."""
    system = tuple(SystemBlock(layer.text) for layer in agent.prompt if isinstance(layer.text, str))
    return request_chars(ModelRequest("", (), system, tuple(tool.spec for tool in agent.tools)))


def check_fits(message: Message, fixed: int, limits: Limits) -> None:
    """A message of the user; one that no request could hold would be in the way of all that come later.

    Raises:
        ValueError: it is too long.
    """
    size, room = message_chars(message), limits.max_context_chars - fixed
    if size > room:
        raise ValueError(
            f"the message has {size} characters, and a request has room for {room} "
            f"(Limits.max_context_chars={limits.max_context_chars}, less the prompt and the tools); "
            "shorten it, or raise the limit"
        )


def check_cursor(after: object, value: Session) -> None:
    """The cursor of ``events``.

    Raises:
        TypeError: it is no whole number.
        ValueError: no event of the session can have had it.
    """
    if after is None:
        return
    if not isinstance(after, int) or isinstance(after, bool):
        raise TypeError(f"after is {after!r}; it is the seq of an event, 0 for all of them, or None for new ones")
    if not 0 <= after <= value.seq:
        raise ValueError(
            f"after is {after}, and the events of session {value.id} go from 1 to {value.seq}; "
            "give the seq of the last one that was read, 0 for all of them, or None for new ones"
        )


def check_reading(session: object, on_lag: object, max_pending: object) -> None:
    """The options of ``subscribe``.

    Raises:
        TypeError, ValueError: one is wrong.
    """
    if on_lag not in ("merge", "drop", "wait"):
        raise ValueError(f"on_lag is {on_lag!r}; it is 'merge', 'drop' or 'wait'")
    if on_lag == "wait" and session is None:
        raise ValueError("on_lag='wait' would let one reader stop every session; name the session it reads")
    if session is not None and not isinstance(session, str):
        raise TypeError(f"session is a {type(session).__name__}; give the id of an open session, or leave it out")
    if not isinstance(max_pending, int) or isinstance(max_pending, bool):
        raise TypeError(f"max_pending is {max_pending!r}; it is a whole number of events")
    if max_pending < 1:
        raise ValueError(f"max_pending is {max_pending}; it is at least 1")


def _is_count(value: object, lowest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest
