"""A person, or a pipe, talks to a model: real processes, in a terminal of their own, against a model server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from agentrio.cli import main
from agentrio.cli.chat.command import LEVELS
from agentrio.domain.codec import from_data
from agentrio.domain.events import Event, RunEnded, RunStarted
from agentrio.domain.render import ThinkingLevel
from agentrio.domain.state import Session
from agentrio.testing import Call, CallsReply, ErrorReply, Fault, TextReply, digest
from tests.cli.support import AGENTRIO, PATIENCE, Server, Terminal, model_server, run, terminal

NOWHERE = "http://127.0.0.1:1"  # nobody listens at port 1
STORY = TextReply("And then. ", fault=Fault(endless=True))
WIRES = {  # model, what stands behind the server's address, the path of its requests
    "anthropic": ("anthropic:any", "", "/v1/messages"),
    "chat": ("llamacpp:any", "/v1", "/v1/chat/completions"),
    "responses": ("openai:any", "/v1", "/v1/responses"),
}
TOOLS = '''
import trio
from agentrio import ToolContext, read_tool, write_tool

@read_tool
async def tide(ctx: ToolContext, place: str) -> str:
    """When the tide is high."""
    await ctx.progress("looking it up", done=1, total=2)
    return f"{place}: at noon"

@write_tool
async def paint(ctx: ToolContext) -> str:
    """Paints the boat."""
    await ctx.progress("painting")
    with trio.CancelScope(shield=True):
        await trio.sleep(3600)
    return "painted"

@read_tool
async def leak() -> str:
    """Fails."""
    raise ValueError("a secret of the tool")

many = [tide, paint]
number = 7
'''


def chat_at(server: Server, *options: str, wire: str = "chat") -> list[str]:
    """The options of a chat with that server; the Chat wire's loads fastest."""
    model, behind, _ = WIRES[wire]
    return ["chat", "--model", model, "--base-url", server.base_url + behind, *options]


@contextmanager
def chatting(
    folder: Path, server: Server, *options: str, wire: str = "chat", redirect: str = "", **env: str
) -> Iterator[Terminal]:
    """A chat in a terminal, at its first prompt."""
    command = [*AGENTRIO, *chat_at(server, *options, wire=wire)]
    keys = {"ANTHROPIC_API_KEY": "a-key", "OPENAI_API_KEY": "a-key", "XDG_STATE_HOME": str(folder / "state")}
    with terminal(command, cwd=folder, redirect=redirect, **{**keys, **env}) as shown:
        shown.read_next("> ")
        yield shown


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


_REFUSED = [
    ("/help", "/load FILE"),
    ("/nonsense", "there is no /nonsense"),
    ("/save", "needs the name of a file"),
    ("/load", "needs the name of a file"),
    ("/save nowhere/talk.json", "can't write nowhere/talk.json: No such file"),
    ("/load nowhere.json", "can't read nowhere.json: No such file"),
    ("/load ~nobody-of-that-name/talk.json", "can't read ~nobody-of-that-name/talk.json"),
    ("/load script.json", "script.json holds no conversation"),
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


def test_a_terminal_that_draws_nothing_gets_plain_lines(tmp_path: Path) -> None:
    """With TERM=dumb there are no colours, and no line is drawn over."""
    reply = TextReply("Noon.", thinking="hm")
    with (
        model_server(tmp_path, reply) as server,
        chatting(tmp_path, server, wire="anthropic", redirect="", TERM="dumb") as shown,
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


def test_tools_are_called_and_their_progress_is_shown(tmp_path: Path) -> None:
    """A line when a call is made, one for each report, one for its result. A list of tools counts as its members."""
    (tmp_path / "boat.py").write_text(TOOLS)
    call = CallsReply([Call("tide", {"place": "Bergen"})])
    with model_server(tmp_path, call, TextReply("At noon.")) as server:
        done = run(*chat_at(server, "--tools", "boat:many,leak"), said="When?", cwd=tmp_path)
        offered = [tool["function"]["name"] for tool in server.record()[0]["body"]["tools"]]
    assert (done.returncode, done.stdout) == (0, "At noon.\n")
    lines = ['[call tide {"place":"Bergen"}]', "[tide: looking it up 1 of 2]", "[tide: Bergen: at noon]"]
    assert done.stderr.splitlines() == [*lines, "[20 tokens in, 10 out]"]
    assert offered == ["tide", "paint", "leak"]


def test_a_failing_tool_is_told_in_a_line(tmp_path: Path) -> None:
    """The library logs what a tool raised. The chat shows it without a traceback, and the model is told less."""
    (tmp_path / "boat.py").write_text(TOOLS)
    with model_server(tmp_path, CallsReply([Call("leak", {})]), TextReply("It failed.")) as server:
        done = run(*chat_at(server, "--tools", "boat:leak"), said="Go.", cwd=tmp_path)
        assert "a secret" not in json.dumps(server.record()[1]["body"])
    assert (done.returncode, done.stdout) == (0, "It failed.\n")
    assert "failed (ValueError: a secret of the tool)]" in done.stderr
    assert "[leak: failed, " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("tools", "code", "says"),
    [
        ("boat", 2, "is not MODULE:NAME"),
        ("boat:", 2, "is not MODULE:NAME"),
        (":tide", 2, "is not MODULE:NAME"),
        ("boat:tide,tide", 2, "two tools are called 'tide'"),
        ("boat:nothing", 1, "has no 'nothing'"),
        ("boat:number", 1, "is no tool but a int"),
        ("no_such_module:tide", 1, "No module named 'no_such_module'"),
        ("broken:tide", 1, "ZeroDivisionError: division by zero (%s, line 2)"),
    ],
)
def test_tools_that_cannot_be_had_are_named(tmp_path: Path, tools: str, code: int, says: str) -> None:
    """Each mistake has its own words, and none a traceback."""
    (tmp_path / "boat.py").write_text(TOOLS)
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    done = run("chat", "--model", "llamacpp:any", "--tools", tools, said="Hello.", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert says.replace("%s", str(tmp_path / "broken.py")) in done.stderr
    assert "Traceback" not in done.stderr


def test_piped_input_is_one_message(tmp_path: Path) -> None:
    """`cat letter | agentrio chat ...`: all of it is sent, a slash in front too; the answer alone is on stdout."""
    with model_server(tmp_path, TextReply("Hello.\n")) as server:
        options = ("--system", "Be kind.", "--max-tokens", "77", "--thinking", "off")
        done = run(*chat_at(server, *options), said="/help\nme\n")
        body = server.record()[0]["body"]
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "[10 tokens in, 5 out]\n")
    assert body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "/help\nme\n"},
    ]
    assert body["max_tokens"] == 77


def test_json_prints_every_event(tmp_path: Path) -> None:
    """One line each, as the codec reads them back; nothing else is on stdout."""
    with model_server(tmp_path, TextReply("Hello.")) as server:
        done = run(*chat_at(server, "--json"), said="Hello?")
    kind: Any = Event
    events = [from_data(json.loads(line), kind) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunEnded)
    assert events[-1].result.text == "Hello."


def test_json_in_a_terminal_keeps_its_notes_apart(tmp_path: Path) -> None:
    """What is no event goes to stderr."""
    with model_server(tmp_path) as server, chatting(tmp_path, server, "--json", redirect=">events") as shown:
        shown.type("/help\n")
        shown.read_next("/load FILE")
        assert shown.leave() == 0
    assert (tmp_path / "events").read_text() == ""


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (ErrorReply(401, message="no such key"), 1, "no such key"),
        (TextReply(["I can't."], stop_reason="refusal"), 1, "agentrio: refused"),
        (ErrorReply(429, headers={"retry-after": "3600"}), 69, "agentrio: error: "),
    ],
)
def test_a_failed_answer_is_told_by_the_exit_code(tmp_path: Path, reply: Any, code: int, says: str) -> None:
    """1 for a failure, 69 for a server that can't be had now; the reason is on stderr."""
    with model_server(tmp_path, reply) as server:
        done = run(*chat_at(server, wire="anthropic"), said="Hello?", env={"ANTHROPIC_API_KEY": "wrong"})
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """It is tried again, which is told; then 69."""
    done = run("chat", "--model", "llamacpp:any", "--base-url", f"{NOWHERE}/v1", said="Hello?")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.count("trying again in") == 3
    assert "agentrio: error: The model server at 127.0.0.1 could not be reached" in done.stderr


WITHOUT_KEYS = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "OPENAI_API_KEY": "", "GROQ_API_KEY": ""}


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        (["--model", "anthropic:any"], "ANTHROPIC_API_KEY"),
        (["--model", "openai:any"], "OPENAI_API_KEY"),
        (["--model", "groq:any"], "GROQ_API_KEY"),
        (["--model", "groq:any", "--api-key-env", "OTHER_KEY"], "OTHER_KEY"),
    ],
)
def test_a_missing_key_names_its_variable(tmp_path: Path, options: list[str], variable: str) -> None:
    """69, and what to set."""
    done = run("chat", *options, said="Hello?", env={**WITHOUT_KEYS, "HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (69, "")
    assert variable in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_key_ends_a_chat_in_a_terminal_too(tmp_path: Path) -> None:
    """No line that could be typed would set it."""
    command = [*AGENTRIO, "chat", "--model", "groq:any", "--no-history"]
    with terminal(command, cwd=tmp_path, **WITHOUT_KEYS) as shown:
        shown.read_next("> ")
        shown.type("Hello?\n")
        assert shown.wait() == 69
    assert "GROQ_API_KEY" in shown.shown


def test_the_key_comes_from_the_variable_that_is_named(tmp_path: Path) -> None:
    """The value is never an option: those can be seen by everybody on the machine."""
    with model_server(tmp_path, TextReply("Hello.")) as server:
        run(*chat_at(server, "--api-key-env", "MINE"), said="Hello?", env={"MINE": "my-key"})
        assert server.record()[0]["headers"]["authorization"] == digest("Bearer my-key")


def test_any_server_of_the_wire_can_be_talked_to(tmp_path: Path) -> None:
    """`compatible` stands for one of which nothing is known; its address must be given."""
    with model_server(tmp_path, TextReply("Hello.")) as server:
        done = run("chat", "--model", "compatible:any", "--base-url", f"{server.base_url}/v1", said="Hello?")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert run("chat", "--model", "compatible:any", said="Hello?").returncode == 2


def test_a_fallback_answers_where_the_model_is_gone(tmp_path: Path) -> None:
    """With its own address; what happened is told beside the answer."""
    with model_server(tmp_path, TextReply("Hello.")) as server:
        done = run(
            *("chat", "--model", "groq:gone", "--fallback", "deepseek:gone", "--fallback", "openai:any"),
            said="Hello?",
            env={
                **{"OPENAI_BASE_URL": f"{server.base_url}/v1", "OPENAI_API_KEY": "a-key"},
                **{"GROQ_API_KEY": "", "DEEPSEEK_API_KEY": ""},
            },
        )
        assert [exchange["path"] for exchange in server.record()] == ["/v1/responses"]
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert done.stderr.count("asking the next model]") == 2
    assert "There is no credential for groq" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--model"),
        (["--model", "nonsense"], "ollama, openrouter"),
        (["--model", "nonsense:x"], "ollama, openrouter"),
        (["--model", "ollama:"], "name-of-a-model"),
        (["--model", "ollama:x", "--base-url", "nonsense"], "it must be http"),
        (["--model", "ollama:x", "--max-tokens", "0"], "no whole number above 0"),
        (["--model", "ollama:x", "--max-tokens", "many"], "no whole number above 0"),
        (["--model", "ollama:x", "--thinking", "hard"], "xhigh"),
        (["--model", "ollama:x", "--fallback", "nonsense:x"], "ollama, openrouter"),
        (["--model", "ollama:x"], "the input is empty"),
    ],
)
def test_wrong_usage_exits_2(options: list[str], says: str) -> None:
    """And says what would be right."""
    done = run("chat", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_without_an_input_it_says_so() -> None:
    """`agentrio chat <&-`."""
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *AGENTRIO, "chat", "--model", "ollama:x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin is closed" in done.stderr


def _piped(server: Server, *options: str) -> subprocess.Popen[bytes]:
    command = [*AGENTRIO, *chat_at(server, *options)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    process.stdin.write(b"A story.")
    process.stdin.close()
    return process


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_leaves_early_stops_the_run_and_is_no_error(tmp_path: Path, options: Sequence[str]) -> None:
    """`agentrio chat ... | head -1`: the server sees its client leave, and nothing is said of a pipe."""
    with model_server(tmp_path, STORY) as server, _piped(server, *options) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        server.record("headers=1")
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(PATIENCE), said) == (141, b"")
        assert server.record("disconnect=1")[0]["ended"] == "client_closed"


def test_ctrl_c_stops_a_piped_run(tmp_path: Path) -> None:
    """What was said so far is on stdout, with the end of its line; the exit code tells that it is not all."""
    with model_server(tmp_path, STORY) as server, _piped(server) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        begun = process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        rest, said = process.stdout.read(), process.stderr.read()
        assert process.wait(PATIENCE) == 130
    assert begun == b"And then. "
    assert rest.endswith(b"\n")
    assert said.startswith(b"[stopped; what was said is kept]")


def test_ctrl_c_while_it_waits_for_its_input(tmp_path: Path) -> None:
    """A pipe that stays silent does not hold it."""
    command = [*AGENTRIO, "chat", "--model", "llamacpp:any"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        _wait_for_handler(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 130


def _wait_for_handler(pid: int) -> None:
    """Until the loop has taken SIGINT over: its thread waits for the input from then on."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    while len(os.listdir(f"/proc/{pid}/task")) < 2:
        pass


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


def test_chat_needs_no_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It works as installed, without the extra."""
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["chat", "--model", "nonsense:x"]) == 2
    assert "ollama" in capsys.readouterr().err
