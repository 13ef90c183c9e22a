"""The parts of the chat that a process can't show as well: how things are told, and what a terminal seldom does."""

from __future__ import annotations

import io
import json
import logging
import os
import resource
import signal
import sys
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from pathlib import Path

import pytest
import trio

from agentrio.agent.agent import Agent
from agentrio.cli.chat.interrupts import Interrupts, kill
from agentrio.cli.chat.lines import _readline
from agentrio.cli.chat.logs import log_to
from agentrio.cli.chat.slash import Command, Done, Talked, parse, perform
from agentrio.cli.chat.talk import exit_code, once
from agentrio.cli.chat.view import SHOWN, JsonView, TextView, told_result, told_usage
from agentrio.cli.command import USAGE, Refusal
from agentrio.domain import events as ev
from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import ModelTag
from agentrio.domain.parts import CallError, Image, Text, ToolResult
from agentrio.domain.session import Session
from agentrio.domain.status import Failure, RunResult
from agentrio.domain.usage import Usage
from agentrio.providers.base import ModelClient

HERE = ev.Origin("s")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_usage_is_told_in_one_line() -> None:
    """What is zero is left out; money only where a price is known."""
    assert told_usage(Usage(10, 5)) == "10 tokens in, 5 out"
    whole = Usage(10, 5, cache_read=3, cache_write=2, reasoning=4, cost=Decimal("0.01234"))
    assert told_usage(whole) == (
        "10 tokens in, 5 out (4 of them thinking), 3 read from the cache, 2 written to the cache, $0.0123"
    )
    assert told_usage(Usage(1, 1, cost=Decimal("0.00002"))) == "1 tokens in, 1 out, less than $0.0001"
    assert told_usage(Usage(1, 1, cost=Decimal(0))) == "1 tokens in, 1 out, $0.0000"


def test_results_are_told_in_one_line() -> None:
    """Long ones are cut, images are counted, failures say why."""
    long = ToolResult("c", "t", "succeeded", (Text("a\n b" * 100),))
    assert told_result(long).startswith("a ba ba b")
    assert told_result(long).endswith("... (400 characters)")
    assert len(told_result(long)) < SHOWN + 30
    image = ToolResult("c", "t", "succeeded", (Text("a map"), Image("", "image/png")))
    assert told_result(image) == "a map and 1 attachments"
    failed = ToolResult("c", "t", "denied", error=CallError("denied", "not you"))
    assert told_result(failed) == "denied, not you"


def test_what_happens_beside_the_answer_is_told_on_its_own_lines() -> None:
    """Each on a line of its own, also in the middle of an answer; what means nothing to a person is not shown."""
    answer, notes = io.StringIO(), io.StringIO()
    view = TextView(answer=answer, notes=notes)
    for event in (
        ev.RoundStarted(HERE, 1),
        ev.TextDelta(HERE, 1, "m", 0, 0, "Half"),
        ev.TextDelta(HERE, 1, "m", 0, 4, ""),
        ev.MessageDiscarded(HERE, 1, "m", "it broke off"),
        ev.Retrying(HERE, 1, "stream", 1, 3, 1.0, "It broke off."),
        ev.Retrying(HERE, 1, "length", 1, 2, 0.0, "It was cut."),
        ev.Retrying(HERE, 1, "fallback", 1, 1, 0.0, "It is gone."),
        ev.Notice(HERE, 1, "code", "Mind the gap"),
        ev.Compacted(HERE, 3, 500),
        ev.CallProgress(HERE, 1, "unknown", "halfway"),
        ev.RunEnded(HERE, RunResult("r", "blocked")),
        ev.RunEnded(HERE, RunResult("r", "cancelled")),
    ):
        view.event(event)
    assert answer.getvalue() == "Half\n"
    assert notes.getvalue().splitlines() == [
        "[void: it broke off]",
        "[It broke off; trying again in 1.0 s]",
        "[It was cut; trying again]",
        "[It is gone; asking the next model]",
        "[Mind the gap]",
        "[the conversation outgrew its limit: what is old is sent 500 characters shorter]",
        "[call: halfway]",
        "agentrio: blocked",
        "[stopped]",
    ]


def test_thinking_is_folded_by_what_the_output_can_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal the count is drawn over; elsewhere it is written once; shown, it is the text itself."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown: list[str] = []
    for notes, whole in ((Terminal(), False), (io.StringIO(), False), (Terminal(), True)):
        view = TextView(whole, answer=Terminal(), notes=notes)
        for text in ("so", "\x07so"):
            view.event(ev.ThinkingDelta(HERE, 1, "m", 0, 0, text))
        view.event(ev.TextDelta(HERE, 1, "m", 1, 0, "Yes."))
        shown.append(notes.getvalue())
    live, written, thought = shown
    assert live.count("\r") == 2
    assert "5 characters" in live
    assert written == "[thinking: 5 characters]\n"
    assert thought == "\x1b[2mso\x1b[0m\x1b[2m\ufffdso\x1b[0m\n"


def test_programs_get_notes_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing but events on stdout."""
    JsonView().note("hello")
    JsonView().event(ev.RoundStarted(HERE, 1))
    said = capsys.readouterr()
    assert said.err == "hello\n"
    assert said.out.startswith('{"type":"round_started"')


def test_a_line_of_json_is_one_line_for_everybody(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON takes some characters as they are that a terminal obeys (C1 controls), or that readers of lines break at."""
    text = "a\x9b2Jb\x7fc\x85d\u2028e\u2029f\x1bg\u00e9"
    JsonView().event(ev.TextDelta(HERE, 1, "m", 0, 0, text))
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 1
    assert json.loads(said)["text"] == text
    assert not set(said) & set("\x1b\x9b\x7f\x85\u2028\u2029")
    assert "\u00e9" in said


def test_notes_of_programs_do_not_drive_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is logged can hold what a server said."""
    monkeypatch.setattr(sys, "stderr", notes := Terminal())
    JsonView().note("a\x1b[2J\x9bb")
    assert notes.getvalue() == "a\ufffd[2J\ufffdb\n"


def test_lines_that_end_as_windows_ends_them_are_lines() -> None:
    """Also where the stream is cut in the middle of such an end; a lone CR, which draws over a line, is gone."""
    view = TextView(answer=(answer := Terminal()), notes=io.StringIO())
    for text in ("one\r", "\ntwo\r\n", "thr\ree"):
        view.event(ev.TextDelta(HERE, 1, "m", 0, 0, text))
    assert answer.getvalue() == "one\ntwo\nthree"


def test_small_commands(tmp_path: Path) -> None:
    """They work on the value of the session alone."""
    talked = Talked(Session("s", "chat"), Usage(1, 2))
    file = str(tmp_path / "talk.json")
    assert parse("hello") is None
    assert parse(" /quit") is None
    assert parse("/save  a file ") == Command("save", "a file")

    def told(line: str) -> Done:
        command = parse(line)
        assert command is not None
        return perform(command, talked)

    assert told("/quit") == Done(outcome=0)
    assert told("/usage") == Done("1 tokens in, 2 out, at a cost that is not known")
    talked = Talked(talked.value, Usage(1, 2, cost=Decimal("0.5")))
    assert told("/usage") == Done("1 tokens in, 2 out, $0.5000")
    assert "/load FILE" in told("/help").note
    fresh = told("/new").outcome
    assert isinstance(fresh, Session)
    assert (fresh.messages, fresh.agent, fresh.id != talked.value.id) == ((), talked.value.agent, True)
    assert "no /" in told("/").note
    assert told(f"/save {file}").note == f"0 messages are in {file}"
    assert told(f"/load {file}").outcome == talked.value
    assert told("/save").note == "/save needs the name of a file"
    assert told("/load").note == "/load needs the name of a file"
    assert told(f"/save {tmp_path}/no/file").note.endswith("No such file or directory")
    assert told(f"/load {tmp_path}/no/file").note.endswith("No such file or directory")
    assert "can't read ~nobody-here/x" in told("/load ~nobody-here/x").note
    Path(file).write_text("[]")
    assert told(f"/load {file}").note.startswith(f"{file} holds no conversation: ")


@pytest.mark.parametrize(
    "text", ['{"id": ""}', '{"id": "s", "runs": -1}', '{"id": "s", "agent": 1}', "\xff", "[" * 9999]
)
def test_a_file_that_no_session_can_go_on_from_is_refused(tmp_path: Path, text: str) -> None:
    """The conversation that is open goes on."""
    file = tmp_path / "talk.json"
    file.write_text(text, encoding="latin-1")
    done = perform(Command("load", str(file)), Talked(Session("s", "chat"), Usage()))
    assert done.outcome is None
    assert done.note.startswith(f"{file} holds no conversation: ")
    assert len(done.note) < 500


def test_a_conversation_is_saved_whole_or_not_at_all(tmp_path: Path) -> None:
    """A full disk does not take the earlier one with it; a link stays a link, a mode the same, a device works."""
    file, link = tmp_path / "talk.json", tmp_path / "link"
    file.write_text("earlier")
    file.chmod(0o600)
    link.symlink_to(file)
    talked = Talked(Session("s" * 100, "chat"), Usage())
    found = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, found[1]))
    try:
        told = perform(Command("save", str(link)), talked).note
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, found)
    assert told == f"can't write {link}: File too large"
    assert file.read_text() == "earlier"
    assert perform(Command("save", str(link)), talked).note.startswith("0 messages are in")
    assert Session.from_json(file.read_bytes()) == talked.value
    assert (link.is_symlink(), file.stat().st_mode & 0o777) == (True, 0o600)
    assert len(list(tmp_path.iterdir())) == 2
    assert perform(Command("save", "/dev/null"), talked).note == "0 messages are in /dev/null"


@pytest.mark.parametrize("command", ["save", "load"])
def test_a_name_that_no_file_can_have_is_no_error(command: str) -> None:
    """It is told like one that can't be written or read."""
    done = perform(Command(command, "a\0b"), Talked(Session("s", "chat"), Usage()))
    assert "a\0b: " in done.note
    assert "embedded null" in done.note  # in the words of each Python


def test_exit_codes_of_runs() -> None:
    """What a shell can tell apart."""
    assert exit_code(RunResult("r", "succeeded")) == 0
    assert exit_code(RunResult("r", "cancelled")) == 130
    assert exit_code(RunResult("r", "refused")) == 1
    assert exit_code(RunResult("r", "error", failure=Failure("error", "no", "unauthorized"))) == 1
    assert exit_code(RunResult("r", "error", failure=Failure("error", "no", "overloaded"))) == 69


def test_the_last_ctrl_c_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it had never taken the signal; nothing orderly can hold it up."""
    told: list[object] = []
    monkeypatch.setattr(signal, "signal", lambda *what: told.append(what))
    monkeypatch.setattr(os, "kill", lambda *what: told.append(what))
    kill(signal.SIGINT)
    assert told == [(signal.SIGINT, signal.SIG_DFL), (os.getpid(), signal.SIGINT)]


@pytest.mark.parametrize(
    ("sent", "told", "left"),
    [
        ([signal.SIGINT] * 3, ["stop", "stop", "killed by 2"], signal.SIGINT),
        ([signal.SIGTERM, signal.SIGINT], ["killed by 2"], signal.SIGTERM),
        ([signal.SIGHUP, signal.SIGHUP], [], signal.SIGHUP),
        ([signal.SIGINT, signal.SIGTERM, signal.SIGTERM], ["stop", "killed by 15"], signal.SIGTERM),
    ],
)
async def test_ctrl_c_stops_then_leaves_then_ends(
    monkeypatch: pytest.MonkeyPatch, sent: list[int], told: list[str], left: int
) -> None:
    """In this order, for as long as the one before has not helped; SIGTERM leaves at once."""
    said: list[str] = []
    signals = iter(sent)

    class Signals:
        def __enter__(self) -> Signals:
            return self

        def __exit__(self, *_: object) -> None: ...

        def __aiter__(self) -> Signals:
            return self

        async def __anext__(self) -> int:
            await trio.lowlevel.checkpoint()
            for number in signals:
                return number
            raise StopAsyncIteration

    monkeypatch.setattr(trio, "open_signal_receiver", lambda *_: Signals())
    monkeypatch.setattr("agentrio.cli.chat.interrupts.kill", lambda number: said.append(f"killed by {number}"))

    def stop() -> bool:
        said.append("stop")
        return said == ["stop"]

    interrupts = Interrupts(stop)
    await interrupts.run()
    assert (said, interrupts.left) == (told, left)
    assert interrupts.scope.cancel_called


def test_without_readline_lines_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some Pythons are built without it."""
    monkeypatch.setitem(sys.modules, "readline", None)
    assert _readline() is None


def test_what_is_logged_is_shown_in_a_line() -> None:
    """Without the traceback, and through no other handler; a view that can't write is no error."""
    notes = io.StringIO()
    log = logging.getLogger("agentrio")
    with log_to(TextView(notes=notes)):
        log.warning("first:\nsecond")
        try:
            raise ValueError("no")
        except ValueError:
            log.exception("it failed")
        log.info("not worth a line")
    assert notes.getvalue() == "[first]\n[it failed (ValueError: no)]\n"
    assert not log.handlers
    assert log.propagate


class Unopened:
    """A model that can't be opened."""

    tag = ModelTag("p", "a", "m")

    def open(self) -> AbstractAsyncContextManager[ModelClient]:
        raise DeclarationError("a wrong address")


def test_a_model_that_cannot_be_opened_is_a_refusal() -> None:
    """What is found out only then is told as what is found out before."""

    async def read() -> str:
        return "Hello?"

    with pytest.raises(Refusal, match="a wrong address") as refused:
        trio.run(once, Agent(model=Unopened()), TextView(), read)
    assert refused.value.code == USAGE
