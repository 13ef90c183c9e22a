"""A person talks to a model: real processes, in a terminal of their own, against a model server."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import get_args

import pytest

from agentrio.cli.chat.command import LEVELS
from agentrio.domain.render import ThinkingLevel
from agentrio.domain.session import Session
from agentrio.testing import Call, CallsReply, ErrorReply, TextReply
from tests.cli.chatting import STORY, TOOLS, WIRES, WITHOUT_KEYS, chat_at, chatting
from tests.cli.support import AGENTRIO, model_server, run, terminal


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_ctrl_c_stops_the_answer_and_the_next_prompt_works(tmp_path: Path, wire: str) -> None:
    """The promise of the whole: the server sees its client leave, what was said is kept, the next answer comes, and
    Ctrl-C at an empty prompt leaves."""
    with (
        model_server(tmp_path, STORY, TextReply("It rained.")) as server,
        chatting(tmp_path, server, wire=wire) as shown,
    ):
        shown.type("Tell me a story.\n")
        shown.read_next("And then. ")
        shown.type("\x03")
        shown.read_next("[stopped; what was said is kept]")
        assert server.record("disconnect=1")[0]["ended"] == "client_closed"
        shown.read_next("> ")
        shown.type("In two words?\n")
        shown.read_next("It rained.")
        shown.read_next("> ")
        first, second = server.record()
        assert {first["path"], second["path"]} == {WIRES[wire][2]}
        assert "And then. " in json.dumps(second["body"])
        shown.type("\x03")
        assert shown.wait() == 130
    assert "Traceback" not in shown.shown


@pytest.mark.parametrize("keys", ["\x04", "/quit\n"])
def test_leaving_in_peace_is_no_error(tmp_path: Path, keys: str) -> None:
    """Ctrl-D and /quit exit 0, whatever the last answer was."""
    with model_server(tmp_path, ErrorReply(400)) as server, chatting(tmp_path, server) as shown:
        shown.type("Hello?\n")
        shown.read_next("agentrio: error: ")
        shown.read_next("> ")
        shown.type(keys)
        assert shown.wait() == 0


def test_ctrl_c_drops_a_line_that_has_something_in_it(tmp_path: Path) -> None:
    """As in a shell: only at an empty prompt it leaves. Nothing of the line is sent, or remembered."""
    with model_server(tmp_path, TextReply("Yes.")) as server, chatting(tmp_path, server) as shown:
        shown.type("never sent\x03")
        shown.read_next("^C")
        shown.read_next("> ")
        shown.type("\n   \nsent\n")
        shown.read_next("Yes.")
        assert shown.leave() == 0
        assert [each["body"]["messages"][-1]["content"] for each in server.record()] == ["sent"]
    assert (tmp_path / "state/agentrio/chat_history").read_text() == "sent\n"


def test_a_signal_at_the_prompt_leaves(tmp_path: Path) -> None:
    """`kill -INT` is no key: the terminal is put in order, and the exit code tells."""
    with model_server(tmp_path) as server, chatting(tmp_path, server) as shown:
        shown.interrupt()
        assert shown.wait() == 130


def test_a_second_ctrl_c_leaves_while_the_first_settles(tmp_path: Path) -> None:
    """Who presses it twice wants to be gone, and not to wait for a tool. A tool that ignores even that is ended with
    the process by pressing it again."""
    (tmp_path / "boat.py").write_text(TOOLS)
    call = CallsReply([Call("paint", {})])
    with model_server(tmp_path, call) as server, chatting(tmp_path, server, "--tools", "boat:paint") as shown:
        shown.type("Paint it.\n")
        shown.read_next("[paint: painting]")
        shown.type("\x03")
        time.sleep(0.2)  # two signals at the same time would be one; the stop itself takes a second here
        shown.type("\x03")
        shown.read_next("closing waits for tool")
        assert shown.press_until_gone("\x03") == -signal.SIGINT


def test_history_comes_back_with_the_arrows(tmp_path: Path) -> None:
    """Lines of an earlier chat are one key away; the file is for its owner alone."""
    replies = [TextReply("One."), TextReply("Two.")]
    with model_server(tmp_path, *replies) as server:
        with chatting(tmp_path, server) as shown:
            shown.type("What is the tide?\n")
            shown.read_next("One.")
            assert shown.leave() == 0
        with chatting(tmp_path, server) as shown:
            shown.type("\x1b[A\n")
            shown.read_next("Two.")
            assert shown.leave() == 0
        assert server.record()[1]["body"]["messages"][-1]["content"] == "What is the tide?"
    assert (tmp_path / "state/agentrio/chat_history").stat().st_mode & 0o077 == 0


def test_no_history_leaves_no_file(tmp_path: Path) -> None:
    """What is typed stays in the process."""
    with model_server(tmp_path, TextReply("One.")) as server, chatting(tmp_path, server, "--no-history") as shown:
        shown.type("A secret.\n")
        shown.read_next("One.")
        assert shown.leave() == 0
    assert not (tmp_path / "state").exists()


def test_a_history_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """A home that is read-only does not keep anybody from talking."""
    (tmp_path / "state").write_text("a file where the folder should be")
    with model_server(tmp_path, TextReply("One.")) as server, chatting(tmp_path, server) as shown:
        shown.type("Hello?\n")
        shown.read_next("One.")
        assert shown.leave() == 0


def test_a_conversation_is_saved_and_goes_on(tmp_path: Path) -> None:
    """/save writes the session as JSON, /load goes on with it, in another chat too; /usage counts."""
    replies = [TextReply("I am Ada."), TextReply("Ada, as I said.")]
    (tmp_path / "nameless.json").write_text('{"id": ""}')
    with model_server(tmp_path, *replies) as server:
        with chatting(tmp_path, server) as shown:
            shown.type("Who are you?\n")
            shown.read_next("I am Ada.")
            shown.read_next("> ")
            shown.type("/save talk.json\n")
            shown.read_next("2 messages are in talk.json")
            shown.type("/usage\n")
            shown.read_next("10 tokens in, 5 out")
            for line, answer in _REFUSED:
                shown.type(f"{line}\n")
                shown.read_next(answer)
            assert shown.leave() == 0
        assert len(Session.from_json((tmp_path / "talk.json").read_bytes()).messages) == 2
        with chatting(tmp_path, server) as shown:
            shown.type("/load talk.json\n")
            shown.read_next("going on with 2 messages")
            shown.read_next("> ")
            shown.type("Who?\n")
            shown.read_next("Ada, as I said.")
            assert shown.leave() == 0
        assert len(server.record()[1]["body"]["messages"]) == 3


def test_a_conversation_that_outgrew_the_model_is_left_for_a_new_one(tmp_path: Path) -> None:
    """Whoever talks for long must not have to leave the program for it."""
    overflow = ErrorReply(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")
    replies = TextReply("I am Ada."), overflow, TextReply("Who is that?")
    with model_server(tmp_path, *replies) as server, chatting(tmp_path, server, wire="anthropic") as shown:
        for line, answer in (("Who are you?", "I am Ada."), ("And?", "[/new begins another conversation]")):
            shown.type(f"{line}\n")
            shown.read_next(answer)
            shown.read_next("> ")
        shown.type("/new\n")
        shown.read_next("a new conversation")
        shown.read_next("> ")
        shown.type("Do you know Ada?\n")
        shown.read_next("Who is that?")
        assert shown.leave() == 0
        assert [len(request["body"]["messages"]) for request in server.record()] == [1, 3, 1]


def test_a_message_that_no_request_can_hold_leaves_the_chat_as_it_is(tmp_path: Path) -> None:
    """It is said why, and the next one is answered."""
    with model_server(tmp_path, TextReply("Yes?")) as server:
        with chatting(tmp_path, server, "--max-context-chars", "20") as shown:
            shown.type("It is longer than anything.\n")
            shown.read_next("a request has room for 20")
            shown.read_next("> ")
            shown.type("Hello?\n")
            shown.read_next("Yes?")
            assert shown.leave() == 0


def test_a_wrong_key_leaves_the_prompt(tmp_path: Path) -> None:
    """The failure is told, and what is typed next is sent."""
    replies = ErrorReply(401, message="no such key"), TextReply("Hello.")
    with model_server(tmp_path, *replies) as server, chatting(tmp_path, server) as shown:
        shown.type("Hi.\n")
        shown.read_next("no such key")
        shown.read_next("> ")
        shown.type("Hi again.\n")
        shown.read_next("Hello.")
        assert shown.leave() == 0


_REFUSED = [
    ("/help", "/load FILE"),
    ("/nonsense", "there is no /nonsense"),
    ("/save", "needs the name of a file"),
    ("/load", "needs the name of a file"),
    ("/save nowhere/talk.json", "can't write nowhere/talk.json: No such file"),
    ("/load nowhere.json", "can't read nowhere.json: No such file"),
    ("/load ~nobody-of-that-name/talk.json", "can't read ~nobody-of-that-name/talk.json"),
    ("/load script.json", "script.json holds no conversation"),
    ("/load nameless.json", "nameless.json holds no conversation"),
]


def test_thinking_is_folded_and_can_be_shown(tmp_path: Path) -> None:
    """One line with a count, drawn over while it grows."""
    replies = [TextReply("Noon.", thinking="The moon says noon.")] * 2
    with model_server(tmp_path, *replies) as server:
        with chatting(tmp_path, server, wire="anthropic") as shown:
            shown.type("When?\n")
            before = shown.read_next("Noon.")
            assert "[thinking: 19 characters]" in before
            assert "The moon" not in before
            assert shown.leave() == 0
        with chatting(tmp_path, server, "--show-thinking", wire="anthropic") as shown:
            shown.type("When?\n")
            assert "The moon says noon." in shown.read_next("Noon.").replace("\x1b[0m", "").replace("\x1b[2m", "")
            assert shown.leave() == 0


def test_the_count_of_thinking_is_drawn_over_in_a_narrow_terminal(tmp_path: Path) -> None:
    """A line that wraps would be drawn anew below itself with each word that is thought."""
    reply = TextReply("Noon.", thinking="The moon says noon.")
    with model_server(tmp_path, reply) as server, chatting(tmp_path, server, wire="anthropic") as shown:
        shown.resize(columns=12)
        shown.type("When?\n")
        assert "\r[thinking: \x1b[K" in shown.read_next("Noon.")
        assert shown.leave() == 0


def test_a_model_does_not_drive_the_terminal(tmp_path: Path) -> None:
    """Control characters in an answer are shown as replaced in a terminal; a pipe gets what was said."""
    replies = [TextReply(["a\x1b]52;c;x\x07b\tc\n"])] * 2
    with model_server(tmp_path, *replies) as server:
        with chatting(tmp_path, server, NO_COLOR="1") as shown:
            shown.type("?\n")
            shown.read_next("a\ufffd]52;c;x\ufffdb")
            assert shown.leave() == 0
            assert "\x1b[2m" not in shown.shown
        assert run(*chat_at(server), said="?").stdout == "a\x1b]52;c;x\x07b\tc\n"


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_draws_nothing_gets_plain_lines(tmp_path: Path, term: str) -> None:
    """With TERM=dumb, or none, there are no colours, and no line is drawn over."""
    reply = TextReply("Noon.", thinking="hm")
    with (
        model_server(tmp_path, reply) as server,
        chatting(tmp_path, server, wire="anthropic", redirect="", TERM=term) as shown,
    ):
        shown.type("When?\n")
        assert "[thinking: 2 characters]\r\n" in shown.read_next("Noon.")
        shown.read_next("tokens in")
        assert shown.leave() == 0
    assert "\x1b[2m" not in shown.shown


def test_the_answer_alone_goes_to_a_file(tmp_path: Path) -> None:
    """With stdout redirected a person can still type, without readline's keys, and is prompted on stderr."""
    with model_server(tmp_path, STORY, TextReply("It rained.")) as server:
        with chatting(tmp_path, server, redirect=">answers") as shown:
            shown.type("A story.\n")
            server.record("headers=1")
            while not (tmp_path / "answers").read_text():
                pass
            shown.type("\x03")
            shown.read_next("[stopped")
            shown.read_next("> ")
            shown.type("Shorter.\n")
            shown.read_next("tokens in")
            assert shown.leave() == 0
        said = (tmp_path / "answers").read_text()
        assert said.startswith("And then. ")
        assert said.endswith("\nIt rained.\n")


def test_json_in_a_terminal_keeps_its_notes_apart(tmp_path: Path) -> None:
    """What is no event goes to stderr."""
    with model_server(tmp_path) as server, chatting(tmp_path, server, "--json", redirect=">events") as shown:
        shown.type("/help\n")
        shown.read_next("/load FILE")
        assert shown.leave() == 0
    assert (tmp_path / "events").read_text() == ""


def test_a_missing_key_ends_a_chat_in_a_terminal_too(tmp_path: Path) -> None:
    """No line that could be typed would set it."""
    command = [*AGENTRIO, "chat", "--model", "groq:any", "--no-history"]
    with terminal(command, cwd=tmp_path, **WITHOUT_KEYS) as shown:
        shown.read_next("> ")
        shown.type("Hello?\n")
        assert shown.wait() == 69
    assert "GROQ_API_KEY" in shown.shown


def test_a_crash_of_ours_ends_the_run_alone(tmp_path: Path) -> None:
    """Hooked in from outside: the session of a crashed run is over, and the chat goes on with another that knows what
    was said."""
    (tmp_path / "sitecustomize.py").write_text(CRASHES_ONCE)
    with (
        model_server(tmp_path, TextReply("Here.")) as server,
        chatting(tmp_path, server, PYTHONPATH=_path_with(tmp_path)) as shown,
    ):
        shown.type("First.\n")
        shown.read_next("agentrio: error: The run crashed")
        shown.read_next("> ")
        shown.type("Second.\n")
        shown.read_next("Here.")
        assert shown.leave() == 0
        assert "First." in json.dumps(server.record()[0]["body"])


CRASHES_ONCE = """
from agentrio.actors.model_calls import ModelCalls
call = ModelCalls.call

async def crash(self, number):
    ModelCalls.call = call
    raise ZeroDivisionError

ModelCalls.call = crash
"""


def _path_with(folder: Path) -> str:
    return os.pathsep.join([str(folder), *filter(None, sys.path)])


def test_the_levels_of_thinking_are_the_library_s() -> None:
    """They stand in the options too, because --help must not load what defines them."""
    assert get_args(ThinkingLevel) == LEVELS
