"""The demo does what it shows: its events, what its server saw, and how it looks."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import pytest
import trio

from agentrio.cli.demo.perform import perform
from agentrio.cli.demo.tempo import FAST
from agentrio.domain.codec import from_data
from agentrio.domain.events import CallFinished, CallReturned, CallStarted, Event, RunEnded
from tests.cli.support import AGENTRIO, run, terminal

IN_FAST_SCENES = """
import sys, trio
from agentrio.cli.demo.perform import perform
from agentrio.cli.demo.picture import Picture
from agentrio.cli.demo.tempo import Tempo
sys.exit(trio.run(perform, Picture(), Tempo(frame=0.0, tool={tool}, pause={pause})))
"""


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    done = run("demo", "--fast", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def events(lines: list[dict[str, Any]]) -> list[Event]:
    kind: Any = Event
    return [from_data(line, kind) for line in lines[:-1]]


def test_each_run_ends_once_and_last(events: list[Event]) -> None:
    """Three runs: one succeeds, one is stopped, and the next one works."""
    runs: dict[str, list[Event]] = {}
    for event in events:
        runs.setdefault(event.origin.run, []).append(event)
    endings = [[event for event in told if isinstance(event, RunEnded)] for told in runs.values()]
    assert [len(ended) for ended in endings] == [1, 1, 1]
    assert [told[-1] for told in runs.values()] == [ended[0] for ended in endings]
    assert [ended[0].result.status for ended in endings] == ["succeeded", "cancelled", "succeeded"]
    assert "lighthouse keeper" in endings[1][0].result.text


def test_calls_overlap_and_their_results_keep_their_order(events: list[Event]) -> None:
    """The three reads have all begun before the first returns; the slowest was asked for first, and its result is
    told first."""
    started = [event.call_id for event in events if isinstance(event, CallStarted)]
    returned = [event.call_id for event in events if isinstance(event, CallReturned)]
    finished = [event.result.call_id for event in events if isinstance(event, CallFinished)]
    kinds = [type(event) for event in events if isinstance(event, CallStarted | CallReturned)]
    assert kinds == [CallStarted] * 3 + [CallReturned] * 3
    assert finished == started != returned
    assert sorted(returned) == sorted(started)


def test_the_wish_said_while_tools_run_goes_with_their_results(lines: list[dict[str, Any]]) -> None:
    """Steering is queued during the calls, and joins before the next request."""
    kinds = [line["type"] for line in lines]
    queued, joined = kinds.index("message_queued"), kinds.index("message_added", 3)
    assert kinds.index("call_started") < queued < kinds.index("call_finished") < joined
    assert lines[joined]["source"] == "steering"


def test_the_server_saw_its_client_leave(lines: list[dict[str, Any]]) -> None:
    """The stop reached the wire: the story's connection was closed from outside, long before its end."""
    record = lines[-1]
    assert record["type"] == "server_record"
    first, second, story, last = record["exchanges"]
    assert [each["ended"] for each in (first, second, story, last)] == ["sent", "sent", "client_closed", "sent"]
    assert story["disconnected"] is not None
    assert story["frames_sent"] < 379
    (stop,) = record["stops"]
    assert stop["exchange"] == story["number"]
    assert stop["seen_after"] > 0


def test_the_interrupted_story_is_sent_with_the_next_question(lines: list[dict[str, Any]]) -> None:
    """What was said before the stop is part of the conversation."""
    messages = lines[-1]["exchanges"][-1]["body"]["messages"]
    assert "lighthouse keeper is a legendary figure" in json.dumps(messages)


def test_it_is_drawn_in_a_terminal() -> None:
    """Every scene is shown, and the cursor is back when it ends."""
    with terminal([*AGENTRIO, "demo", "--fast"]) as shown:
        assert shown.wait() == 0
    for text in ("side by side", "weather(Tromsø)", "calls took", "heard enough", "client leave", "next run works"):
        assert text in shown.shown
    assert "\x1b[" in shown.shown
    assert shown.shown.rfind("\x1b[?25h") >= shown.shown.rfind("\x1b[?25l")


def test_without_a_terminal_it_is_plain_text() -> None:
    """In a file or a log there are no control characters, and every finished thing stands once."""
    done = run("demo", "--fast", env={"COLUMNS": "100"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.count("calls took") == 1
    assert " ".join(done.stdout.split()).count("[stopped here]") == 1


def test_colours_can_be_turned_off() -> None:
    """NO_COLOR is honoured."""
    with terminal([*AGENTRIO, "demo", "--fast"], NO_COLOR="1") as shown:
        assert shown.wait() == 0
    assert "\x1b[32m" not in shown.shown


def test_an_output_that_knows_ascii_only_gets_replacements() -> None:
    """A locale without UTF-8 must not end the demo with an encoding error."""
    done = run("demo", "--fast", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Troms?" in done.stdout


def _scenes(tool: float, pause: float) -> list[str]:
    return [sys.executable, "-c", IN_FAST_SCENES.format(tool=tool, pause=pause)]


def test_ctrl_c_stops_the_open_run_and_the_demo_goes_on() -> None:
    """Pressed while slow tools run: that run is cancelled, and the two other scenes are played."""
    with terminal(_scenes(tool=30.0, pause=0.0)) as shown:
        shown.read_until("asking the station")
        shown.interrupt()
        assert shown.wait() == 0
    for text in ("cancelled (Ctrl-C)", "No request was open", "heard enough", "sailor and navigator"):
        assert text in shown.shown


def test_ctrl_c_twice_leaves() -> None:
    """The second one ends the demo in order, with the exit code that shells know."""
    with terminal(_scenes(tool=30.0, pause=60.0)) as shown:
        shown.read_until("See examples")
        shown.interrupt()
        shown.read_until("Once more leaves it")
        shown.interrupt()
        assert shown.wait() == 130
    assert "no run was open" in shown.shown
    assert "Traceback" not in shown.shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_kill_leaves_the_terminal_in_order(number: int, code: int) -> None:
    """While something moves the cursor is hidden; a shell would not bring it back."""
    with terminal(_scenes(tool=30.0, pause=0.0)) as shown:
        shown.read_until("asking the station")
        shown.signal(number)
        assert shown.wait() == code
    assert shown.shown.rfind("\x1b[?25h") > shown.shown.rfind("\x1b[?25l") > 0


class _Broken:
    """A view that fails when the first scene begins."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def scene(self, scene: object) -> None:
        raise self._error

    def event(self, event: object) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self, record: object, stops: object) -> None: ...


def test_a_fault_of_the_view_is_told_as_what_it_is() -> None:
    """The door tells a closed pipe and a full disk from a bug by it."""
    for error in (BrokenPipeError, ZeroDivisionError):
        with pytest.RaisesGroup(error):
            trio.run(perform, _Broken(error()), FAST)
