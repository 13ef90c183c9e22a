"""The law itself: what it lets pass, and that it can fail. A checker that never fails proves nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
import pytest
import trio

from agentrio import Agent, Limits, Message, RunResult, read_tool, write_tool
from agentrio.actors import settle
from agentrio.actors.cell import RunCell
from agentrio.actors.handle import SessionHandle
from agentrio.actors.hub import Hub
from agentrio.actors.readers import Reader
from agentrio.actors.session import SessionActor
from agentrio.agent.tool import Tool
from agentrio.domain.messages import user_message
from agentrio.domain.parts import Text, ToolCall, ToolResult
from agentrio.events import (
    CallFinished,
    CallProposed,
    Event,
    MessageCompleted,
    MessageStarted,
    Origin,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
)
from agentrio.providers.scripted import call
from agentrio.testing import (
    PROBE,
    CancelFailed,
    Scenario,
    Stage,
    Way,
    cancel_everywhere,
    check_events,
    check_history,
    rehearsed,
)
from agentrio.testing.everywhere import stage, steps

# Histories


def _user(id: str = "u1", text: str = "Hi.") -> Message:
    return user_message(id, text)


def _asks(*ids: str, message: str = "a1", cut: bool = False, arguments: Any = ()) -> Message:
    calls = tuple(ToolCall(id, id, "look", "{}", dict(arguments) if arguments is not None else None) for id in ids)
    return Message(message, "assistant", calls, interrupted=cut)


def _says(text: str = "Hello.", id: str = "a1", cut: bool = False) -> Message:
    return Message(id, "assistant", (Text(text),), interrupted=cut)


def _results(*ids: str) -> Message:
    return Message("t1", "tool", tuple(ToolResult(id, "look", "succeeded", (Text("seen"),)) for id in ids))


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (_user(),),
        (_user(), _user("u2")),
        (_user(), _says()),
        (_user(), _asks("c1", "c2"), _results("c1", "c2"), _says(id="a2")),
        (_user(), _says(cut=True), _says(id="a2")),
    ],
)
def test_a_history_that_providers_take_passes(messages: Sequence[Message]) -> None:
    """An empty one, an unanswered prompt, calls with their results, an answer after one that was cut off."""
    assert check_history(messages) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ((_says(),), "does not start with the user"),
        ((_user(), _user()), "same id"),
        ((_user(), Message("a1", "assistant", ())), "is empty"),
        ((_user(), _says("")), "has an empty text"),
        ((_user(), _asks("c1")), "results of"),
        ((_user(), _asks("c1", "c2"), _results("c1")), "results of"),
        ((_user(), _asks("c1", "c2"), _results("c2", "c1")), "results of"),
        ((_user(), _asks("c1"), _results("c1", "c1")), "results of"),
        ((_user(), _asks("c1"), _user("u2"), _results("c1")), "not behind the calls"),
        ((_user(), _says(), _results("c1")), "results of"),
        ((_user(), _says(), _says(id="a2")), "follows a finished answer"),
        ((_user(), _asks("c1", cut=True, arguments=None), _results("c1")), "were cut off"),
    ],
)
def test_a_history_that_a_provider_refuses_is_told(messages: Sequence[Message], problem: str) -> None:
    """Each of these is an error 400 somewhere."""
    assert any(problem in told for told in check_history(messages))


# Events

AT = Origin("s", "agent", "r1")


def _numbered(*events: Any) -> list[Event]:
    numbered: list[Event] = []
    for event in events:
        seq = sum(other.structural for other in numbered) + event.structural
        numbered.append(attrs.evolve(event, seq=seq))
    return numbered


def _whole() -> list[Event]:
    ask = _asks("c1", "c2")
    return _numbered(
        RunStarted(AT, "m", "p", None, Limits()),
        RoundStarted(AT, 1),
        MessageStarted(AT, 0, "a1", 1),
        MessageCompleted(AT, ask),
        *(CallProposed(AT, one, "read", "f") for one in ask.calls),
        *(CallFinished(AT, ToolResult(id, "look", "succeeded")) for id in ("c1", "c2")),
        RoundEnded(AT, 1),
        RunEnded(AT, RunResult("r1", "succeeded")),
    )


def test_a_whole_run_passes() -> None:
    """Every opened thing is closed before the end, innermost first."""
    assert check_events(_whole(), "r1") == []


@pytest.mark.parametrize("left_out", range(10))
def test_a_run_that_lacks_an_event_is_told(left_out: int) -> None:
    """Whichever it is: its partner is missing, or its number."""
    events = _whole()
    del events[left_out]
    assert check_events(events, "r1")


@pytest.mark.parametrize("twice", range(10))
def test_a_run_that_repeats_an_event_is_told(twice: int) -> None:
    """A second ending above all."""
    events = _whole()
    events.insert(twice, events[twice])
    assert check_events(events, "r1")


@pytest.mark.parametrize("first", range(9))
def test_a_run_out_of_order_is_told(first: int) -> None:
    """Any two neighbours that change places."""
    events = _whole()
    events[first], events[first + 1] = events[first + 1], events[first]
    assert check_events(events, "r1")


# Planted faults


def _scenario(tool: Tool[..., Any], also: Callable[[Stage], Sequence[str]] = lambda stage: ()) -> Scenario:
    @asynccontextmanager
    async def open_agent() -> AsyncIterator[Agent[Any]]:
        yield Agent(model=rehearsed([[call(tool.name)], "Done, and told."]), tools=[tool])

    return Scenario(name="planted", open_agent=open_agent, also=also)


def _problems(tool: Tool[..., Any], *ways: Way) -> str:
    """What a small sweep says against a scenario; it must say something."""
    report = cancel_everywhere(_scenario(tool), ways=ways or ("stop",), points="all")
    with pytest.raises(CancelFailed) as caught:
        report.check()
    return str(caught.value)


@pytest.fixture
def kept() -> Iterator[list[Any]]:
    """What a planted leak is released by."""
    releases: list[Any] = []
    yield releases
    for release in releases:
        release()


def test_a_sound_tool_passes() -> None:
    """Or else the faults below would prove nothing."""

    @read_tool
    async def sound() -> str:
        """Waits a little."""
        await trio.sleep(1)
        return "slept"

    cancel_everywhere(_scenario(sound), points="all").check()


def test_a_leaked_task_is_found() -> None:
    """A tool that starts work which nobody waits for."""

    @read_tool
    async def leak() -> str:
        """Starts a task that outlives everything."""
        trio.lowlevel.spawn_system_task(trio.sleep_forever, name="a leaked task")
        return "started"

    assert "task: a leaked task" in _problems(leak)


def test_a_tool_that_shields_itself_from_its_cancel_is_found() -> None:
    """It is named with the place where it waits; what is told of it besides must not hang."""

    @read_tool
    async def dig() -> str:
        """Digs on, whoever calls."""
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        return "dug"

    told = _problems(dig, "stop")
    assert "still there 1 s later: tool 'dig' of session s_everywhere, at" in told
    assert "await trio.sleep(30)" in told


def test_a_tool_that_swallows_its_cancel_is_found() -> None:
    """What it returns looks like a success, and whoever cancelled it waits for something else."""

    @read_tool
    async def doze() -> str:
        """Sleeps in."""
        for _ in range(3):
            try:
                await trio.sleep(0.5)
            except trio.Cancelled:  # noqa: ASYNC103, ASYNC104  # that is the fault
                pass
        return "slept"

    assert "the tool 'doze' swallowed its cancel" in _problems(doze, "stop")
    assert "the tool 'doze' swallowed its cancel" in _problems(doze, "runtime scope")


def test_a_tool_may_bound_what_it_keeps_whole() -> None:
    """A timeout of its own is not swallowed, whatever is cancelled around it; and a write may say what it did."""

    @read_tool
    async def careful() -> str:
        """Keeps one step whole, for a while."""
        with trio.move_on_after(0.1):
            await trio.sleep(1)
        with trio.move_on_after(0.2, shield=True):
            await trio.sleep_forever()
        return "whole"

    @write_tool
    async def undo() -> str:
        """Takes back what it did."""
        try:
            await trio.sleep(1)
        except trio.Cancelled:  # noqa: ASYNC103  # its result says so
            return "taken back"  # noqa: ASYNC104  # as above
        return "done"

    for tool in (careful, undo):
        cancel_everywhere(_scenario(tool), ways=("stop", "run scope"), points="all").check()


def test_a_thread_may_wait_in_the_loop() -> None:
    """What it asked for goes on when the run has stopped, and so does the clock."""

    @read_tool
    def rest() -> str:
        """Rests."""
        trio.from_thread.run(trio.sleep, 0.2)
        return "rested"

    cancel_everywhere(attrs.evolve(_scenario(rest), threads=True), points="all").check()


def test_a_leaked_thread_is_found(kept: list[Any]) -> None:
    """A tool that starts a thread and forgets it."""

    @read_tool
    async def leak() -> str:
        """Starts a thread that outlives everything."""
        release = threading.Event()
        kept.append(release.set)
        threading.Thread(target=release.wait, name="a leaked thread").start()
        return "started"

    assert "thread: a leaked thread" in _problems(leak)


def test_a_leaked_socket_is_found(kept: list[Any]) -> None:
    """A tool that opens a socket and does not close it, whatever ends the run."""

    @read_tool
    async def leak() -> str:
        """Opens a socket."""
        opened = socket.socket()
        kept.append(opened.close)
        return "opened"

    assert "socket: " in _problems(leak, "close")


def test_a_leaked_child_is_found(kept: list[Any]) -> None:
    """A tool that starts a program and does not wait for it."""

    @read_tool
    async def leak() -> str:
        """Starts a program."""
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)  # noqa: ASYNC220  # the leak
        kept.append(lambda: child.communicate(b"\n"))
        return "started"

    report = cancel_everywhere(_scenario(leak), ways=())
    assert "process: " in str(report.failures)


@read_tool
async def look() -> str:
    """Looks for a while."""
    await trio.sleep(1)
    return "seen"


@read_tool
async def look_long() -> str:
    """Looks for longer than a stop may take."""
    await trio.sleep(5)
    return "seen"


def test_a_session_that_swallows_the_stop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it has stopped, and goes on."""
    monkeypatch.setattr(RunCell, "stop", lambda run, reason=None: run.outcome is None)
    told = _problems(look)
    assert "stop() hit the run, which ended succeeded" in told
    assert "RoundStarted came after the stop" in told


def test_a_stop_that_only_works_between_rounds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends as cancelled, but when it pleases: the fault that most runtimes have."""

    def stop(run: RunCell, reason: str | None = None) -> bool:
        run.stop_after_round = run.stop_after_round or reason
        return run.outcome is None

    monkeypatch.setattr(RunCell, "stop", stop)
    assert "after its cancel" in _problems(look_long)


def test_a_second_ending_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers that count would be one run ahead for ever."""
    sound = Hub.tell

    def tell(hub: Hub, events: Sequence[Event]) -> None:
        sound(hub, events)
        if isinstance(events[-1], RunEnded):
            sound(hub, events)

    monkeypatch.setattr(Hub, "tell", tell)
    assert "RunEnded comes after RunEnded" in str(cancel_everywhere(_scenario(look), ways=()).failures)


def test_a_call_without_a_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next request would be refused by every provider."""

    async def nothing(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(settle, "_close_calls", nothing)
    told = _problems(look)
    assert "behind it are results of []" in told
    assert "ends while calls are open" in told


def test_a_session_that_stays_busy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ended, and a session that does not know: no prompt would ever be taken again."""
    sound = SessionActor._work

    async def work(actor: SessionActor, loop: Any) -> None:
        run = actor.current
        await sound(actor, loop)
        actor.current = run if run is not None and run.stop_reason else None

    monkeypatch.setattr(SessionActor, "_work", work)
    assert "the replay hung" in _problems(look)


def test_a_lost_shield_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cancel of the scope around it cuts off the run's last words, too."""

    @contextmanager
    def bare(seconds: float) -> Iterator[trio.CancelScope]:
        with trio.move_on_after(seconds) as scope:
            yield scope

    monkeypatch.setattr("agentrio.actors.loop.shielded", bare)
    assert "it has 0 endings" in _problems(look, "runtime scope")


@pytest.mark.parametrize(("door", "way"), [("run", "run scope"), ("open_runtime", "runtime scope")])
def test_a_swallowed_cancel_is_found(monkeypatch: pytest.MonkeyPatch, door: str, way: Way) -> None:
    """A block that ends as if all were well, in a scope that was cancelled: the program goes on by mistake."""
    home: Any = SessionHandle if door == "run" else stage
    sound = getattr(home, door)

    @asynccontextmanager
    async def swallows(*args: Any, **options: Any) -> AsyncIterator[Any]:
        inside = False
        try:
            async with sound(*args, **options) as opened:
                inside = True
                yield opened
        except* trio.Cancelled:  # noqa: ASYNC103  # the fault
            if not inside:
                raise

    monkeypatch.setattr(home, door, swallows)
    assert f"the cancel of the {way} was swallowed" in _problems(look, way)


def test_a_stop_that_answers_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user interface greys out its button by it."""
    sound = SessionHandle.stop
    monkeypatch.setattr(SessionHandle, "stop", lambda *args, **options: sound(*args, **options) or True)
    assert "stop() said True where a run was not open" in _problems(look)


def test_an_error_out_of_the_block_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop is no error, for whoever reads; nor is an ending that nobody asked for."""
    sound = Hub.tell

    def tell(hub: Hub, events: Sequence[Event]) -> None:
        sound(hub, events)
        if any(isinstance(event, RunEnded) and event.result.status == "cancelled" for event in events):
            raise ZeroDivisionError

    monkeypatch.setattr(Hub, "tell", tell)
    assert "raised: " in _problems(look)


def test_a_subscription_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader would wait for events of a runtime that is gone."""
    monkeypatch.setattr(Reader, "end", lambda reader: None)
    told = str(cancel_everywhere(_scenario(look), ways=()).failures)
    assert "the runtime's subscription does not end with the runtime" in told


def test_a_run_without_an_outcome_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended, and whoever holds it is not told how."""
    outcome = property(lambda run: None, lambda run, outcome: None)
    monkeypatch.setattr(RunCell, "outcome", outcome, raising=False)
    assert "the run has no outcome" in str(cancel_everywhere(_scenario(look), ways=()).failures)


def test_a_stream_that_ends_without_the_ending_is_found() -> None:
    """What a reader has seen last is all that it knows of the end."""

    async def loses(stage: Stage, run: Any) -> None:
        async for _event in stage.events(run):
            pass
        stage.seen.pop()

    report = cancel_everywhere(attrs.evolve(_scenario(look), consume=loses), ways=())
    assert "the run's own stream ended without RunEnded" in str(report.failures)


def test_a_state_that_is_not_the_fold_of_its_events_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal would bring back another conversation than the one that was held."""
    sound = SessionActor.value.fget  # type: ignore[attr-defined]  # mypy sees the property's value

    def value(actor: SessionActor) -> Any:
        return attrs.evolve(sound(actor), memory={"unheard": sound(actor).seq})

    monkeypatch.setattr(SessionActor, "value", property(value))
    assert "the fold of the events is not" in str(cancel_everywhere(_scenario(look), ways=()).failures)


def test_steps_without_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that spins never lets the virtual clock go on, so no timeout would tell."""
    monkeypatch.setattr(steps, "RUNAWAY", 5_000)

    async def spin(stage: Stage, run: Any) -> None:
        while True:  # noqa: ASYNC110  # the fault
            await trio.lowlevel.checkpoint()

    report = cancel_everywhere(attrs.evolve(_scenario(look), consume=spin), ways=())
    assert "tasks take steps without end" in str(report.failures)


def test_a_next_prompt_that_fails_is_found() -> None:
    """A model that no longer answers, for whatever reason."""

    @asynccontextmanager
    async def open_agent() -> AsyncIterator[Agent[Any]]:
        yield Agent(model=rehearsed(["Once."], answer=""))

    report = cancel_everywhere(Scenario(name="mute", open_agent=open_agent), ways=())
    assert "the next prompt ended error" in str(report.failures)


def test_what_a_scenario_has_to_say_is_heard() -> None:
    """A program's own invariants are checked at every step too."""
    report = cancel_everywhere(_scenario(look, also=lambda stage: ["the books do not balance"]), ways=())
    assert "the books do not balance" in str(report.failures)


def test_a_replay_that_never_ends_is_told() -> None:
    """A hang must end as a failure that names the step, not as a job that was killed."""

    async def hang(stage: Stage, run: Any) -> None:
        if stage.way == "stop":
            await trio.sleep_forever()

    scenario = attrs.evolve(_scenario(look), consume=hang)
    report = cancel_everywhere(scenario, ways=["stop"], points=[40])
    assert "the replay hung" in str(report.failures)


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point and the seed are all that it takes."""
    monkeypatch.setattr(RunCell, "stop", lambda run, reason=None: run.outcome is None)
    first = cancel_everywhere(_scenario(look), ways=["stop"], seed=3, sample=5)
    assert first.failures
    failure = first.failures[0]
    assert f"points=[{failure.point}], seed=3" in str(failure)
    again = cancel_everywhere(_scenario(look), ways=["stop"], seed=failure.seed, points=[failure.point])
    assert again.failures == [failure]


def test_the_probe_is_a_prompt_of_its_own() -> None:
    """Scripts know it by its text."""
    assert PROBE.endswith("?")
