"""What a person types: its letters, its history, and the keys that are no letters."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.cli.chat.history import KEPT, History
from agentrio.testing import TextReply
from tests.cli.chatting import chat_at, chatting
from tests.cli.support import AGENTRIO, Server, model_server, terminal


def _said(server: Server) -> list[str]:
    return [each["body"]["messages"][-1]["content"] for each in server.record()]


def test_a_message_of_many_lines_comes_back_whole_in_a_later_chat(tmp_path: Path) -> None:
    """One key brings back what was sent as one message, not its last line."""
    text = "one\n\\two\\n\nthree"
    with model_server(tmp_path, TextReply("Read."), TextReply("Again.")) as server:
        for keys, answer in ((f"\x1b[200~{text}\x1b[201~\n", "Read."), ("\x1b[A\n", "Again.")):
            with chatting(tmp_path, server) as shown:
                shown.type(keys)
                shown.read_next(answer)
                assert shown.leave() == 0
        assert _said(server) == [text, text]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_entries_of_any_text_are_read_as_they_were_added(
    tmp_path_factory: pytest.TempPathFactory, entries: list[str]
) -> None:
    """Line ends and backslashes in them, too."""
    history = History(tmp_path_factory.mktemp("history") / "folder" / "file")
    for entry in entries:
        history.add(entry)
    assert history.read() == entries


def test_a_long_history_is_cut(tmp_path: Path) -> None:
    """It does not grow for ever, and stays its owner's alone."""
    history = History(tmp_path / "file")
    history.file.write_text("old\n" * KEPT + "new\n" * KEPT + "last\n")
    assert history.read() == ["new"] * (KEPT - 1) + ["last"]
    assert history.file.read_text().count("\n") == KEPT
    assert history.file.stat().st_mode & 0o077 == 0
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("keys", "said", "env"),
    [
        ("a \udcff b\n", "a \ufffd b", {"PYTHONIOENCODING": "utf-8:strict"}),
        ("café\n", "café", {"LC_ALL": "C"}),
    ],
)
def test_letters_that_the_locale_does_not_have_end_no_chat(
    tmp_path: Path, keys: str, said: str, env: dict[str, str]
) -> None:
    """A byte that is no UTF-8 (how most desktops read a terminal is `strict`), and a letter where there is ASCII alone.
    The file has what was typed."""
    with model_server(tmp_path, TextReply("Read.")) as server, chatting(tmp_path, server, **env) as shown:
        shown.type(keys)
        shown.read_next("Read.")
        assert shown.leave() == 0
        assert _said(server) == [said]
    assert (tmp_path / "state/agentrio/chat_history").read_text(encoding="utf-8") == f"{said}\n"


def test_without_a_home_there_is_no_history(tmp_path: Path) -> None:
    """As in a container whose user has no entry: it is no reason not to talk."""
    home = {"XDG_STATE_HOME": "~nobody-of-that-name"}
    with model_server(tmp_path, TextReply("One.")) as server, chatting(tmp_path, server, **home) as shown:
        shown.type("Hello?\n")
        shown.read_next("One.")
        assert shown.leave() == 0


def test_the_terminal_is_asked_to_mark_what_is_pasted(tmp_path: Path) -> None:
    """Unasked it sends each line as if it were typed, and a paste of many lines would be as many messages. It is asked
    to leave that off while an answer comes, and behind the chat."""
    with model_server(tmp_path, TextReply("One.")) as server, chatting(tmp_path, server) as shown:
        assert shown.shown.endswith("\x1b[?2004h> ")
        shown.type("Hello?\n")
        assert "\x1b[?2004l" in shown.read_next("One.")
        assert shown.leave() == 0
    assert shown.shown.rfind("\x1b[?2004l") > shown.shown.rfind("\x1b[?2004h")


def test_a_terminal_that_obeys_nothing_is_asked_for_nothing(tmp_path: Path) -> None:
    """With TERM=dumb what is asked would be shown."""
    with model_server(tmp_path) as server, chatting(tmp_path, server, TERM="dumb") as shown:
        shown.type("\x04")
        assert shown.wait() == 0
    assert "\x1b" not in shown.shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("redirect", ["", ">file"])
def test_who_is_ended_at_the_prompt_ends_its_line(tmp_path: Path, redirect: str, number: int, code: int) -> None:
    """What comes next in the terminal, the prompt of a shell, begins a line of its own."""
    with model_server(tmp_path) as server, chatting(tmp_path, server, redirect=redirect) as shown:
        shown.signal(number)
        assert shown.wait() == code
    assert shown.shown.endswith("\n")
    assert shown.shown.rfind("\x1b[?2004l") >= shown.shown.rfind("\x1b[?2004h")


def test_the_end_of_the_input_ends_the_line_of_a_plain_prompt(tmp_path: Path) -> None:
    """As where the line is edited."""
    with model_server(tmp_path) as server, chatting(tmp_path, server, redirect=">file") as shown:
        shown.type("\x04")
        assert shown.wait() == 0
    assert shown.shown == "> \r\n"


SHELL = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
found = termios.tcgetattr(0)
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
while os.WIFSTOPPED(status := os.waitpid(job, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpid())
    termios.tcsetattr(0, termios.TCSADRAIN, found)
    print("[stopped]", flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("mode", ["emacs", "vi"])
def test_ctrl_z_stops_a_half_typed_line_and_fg_brings_it_back(tmp_path: Path, mode: str) -> None:
    """A shell sets the terminal as it wants it meanwhile: behind that the prompt, the keys and the line are there."""
    (tmp_path / "inputrc").write_text(f"set editing-mode {mode}\n")
    env = {"INPUTRC": str(tmp_path / "inputrc"), "XDG_STATE_HOME": str(tmp_path)}
    with model_server(tmp_path, TextReply("One.")) as server:
        command = [sys.executable, "-c", SHELL, *AGENTRIO, *chat_at(server)]
        with terminal(command, cwd=tmp_path, **env) as shown:
            shown.read_next("> ")
            shown.type("\x1b[200~half\na li\x1b[201~\x1a")
            shown.read_next("[stopped]")
            shown.type("fg\n")
            shown.read_next("a li")
            shown.type("nx\x7fe\n")
            shown.read_next("One.")
            shown.read_next("> ")
            shown.type("dropped\x03")
            shown.read_next("^C")
            shown.read_next("> ")
            shown.type("\x03")
            assert shown.wait() == 130
        assert _said(server) == ["half\na line"]


def test_ctrl_c_is_a_key_in_every_mode_of_vi(tmp_path: Path) -> None:
    """Also where letters are commands."""
    (tmp_path / "inputrc").write_text("set editing-mode vi\nset keyseq-timeout 1\n")
    with (
        model_server(tmp_path, TextReply("One.")) as server,
        chatting(tmp_path, server, INPUTRC=str(tmp_path / "inputrc")) as shown,
    ):
        shown.type("dropped\x1b")
        shown.read_next("\x08")  # the cursor steps onto the last letter: it is in command mode
        shown.type("\x03")
        shown.read_next("> ")
        shown.type("sent\n")
        shown.read_next("One.")
        assert shown.leave() == 0
        assert _said(server) == ["sent"]
