"""What a person types: its letters, its history, and the keys that are no letters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.cli.chat.history import KEPT, History
from agentrio.testing import TextReply
from tests.cli.chatting import chatting
from tests.cli.support import Server, model_server


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
