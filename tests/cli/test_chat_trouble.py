"""What goes wrong around a chat: outputs that can't be written, tools and texts that can't be had, a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from agentrio.testing import Call, CallsReply, Fault, TextReply
from tests.cli.chatting import STORY, TOOLS, chat_at, chatting
from tests.cli.support import AGENTRIO, PATIENCE, Server, model_server, run


def _redirected(server: Server, redirect: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$@" {redirect}', "sh", *AGENTRIO, *chat_at(server, *options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, input="Hello?")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_answer_that_cannot_be_written_stops_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A full disk: the server sees its client leave, and a line says why."""
    with model_server(tmp_path, STORY) as server:
        done = _redirected(server, ">/dev/full", *options)
        left = server.record("disconnect=1")[0]["ended"] if not options else ""
    assert (done.returncode, done.stderr) == (1, "agentrio: the output can't be written: No space left on device\n")
    assert left in {"client_closed", ""}


@pytest.mark.parametrize(
    ("redirect", "code", "answer"),
    [(">&-", 0, ""), ("2>&-", 0, "Hi.\n"), (">&- 2>&-", 0, ""), ("2>/dev/full", 1, "Hi.\n")],
)
def test_streams_that_are_closed_or_full(tmp_path: Path, redirect: str, code: int, answer: str) -> None:
    """Closed is a wish; full is a failure. Neither is a traceback."""
    with model_server(tmp_path, TextReply("Hi.")) as server:
        done = _redirected(server, redirect)
    assert (done.returncode, done.stdout) == (code, answer)
    assert "Traceback" not in done.stderr


def test_kill_leaves_the_terminal_in_order(tmp_path: Path) -> None:
    """At a prompt it has no echo, and a shell that is not told better would stay so."""
    with model_server(tmp_path) as server, chatting(tmp_path, server) as shown:
        shown.signal(signal.SIGTERM)
        assert shown.wait() == 143
        local: int = shown.settings()[3]
        assert local & termios.ECHO
        assert local & termios.ICANON


def test_kill_stops_the_answer(tmp_path: Path) -> None:
    """As Ctrl-C does, and leaves."""
    with model_server(tmp_path, STORY) as server, chatting(tmp_path, server) as shown:
        shown.type("A story.\n")
        shown.read_next("And then. ")
        shown.signal(signal.SIGTERM)
        shown.read_next("[stopped; what was said is kept]")
        assert shown.wait() == 143
        assert server.record("disconnect=1")[0]["ended"] == "client_closed"
    assert shown.shown.endswith("\n")


def test_a_terminal_that_is_closed_stops_the_answer(tmp_path: Path) -> None:
    """As a kill does: a tool that is at work is told, and not cut off."""
    with model_server(tmp_path, STORY) as server, chatting(tmp_path, server) as shown:
        shown.type("A story.\n")
        shown.read_next("And then. ")
        shown.signal(signal.SIGHUP)
        assert shown.wait() == 129
        assert server.record("disconnect=1")[0]["ended"] == "client_closed"
    assert shown.shown.endswith("\n")


def test_signals_that_were_ignored_stay_so(tmp_path: Path) -> None:
    """`nohup agentrio chat ...`, and a script's job in the background, which Ctrl-C is not for."""
    command = ["sh", "-c", 'trap "" HUP INT TERM; exec "$@"', "sh", *AGENTRIO]
    pipe = subprocess.PIPE
    with model_server(tmp_path, STORY) as server:
        with subprocess.Popen([*command, *chat_at(server)], stdin=pipe, stdout=pipe, stderr=pipe) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"A story.")
            process.stdin.close()
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                assert process.stdout.read(10) == b"And then. "
                process.send_signal(number)
            for _ in range(10_000):
                assert process.stdout.read(10) == b"And then. "
            process.kill()


BLOCKS = """
import time
from agentrio import read_tool

@read_tool
async def block() -> str:
    "Waits, as nothing in a loop may."
    print("blocked", flush=True)
    time.sleep(3600)
    return "done"
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_loop_that_is_held_up_can_be_left(tmp_path: Path, number: int) -> None:
    """By a tool that blocks it: one signal more than an orderly end would have needed ends the process."""
    (tmp_path / "stone.py").write_text(BLOCKS)
    call = CallsReply([Call("block", {})])
    with model_server(tmp_path, call) as server, chatting(tmp_path, server, "--tools", "stone:block") as shown:
        shown.type("Go.\n")
        shown.read_next("blocked")
        code = shown.press_until_gone("\x03") if number == signal.SIGINT else shown.signal_until_gone(number)
        assert code == -number


def test_a_loop_that_is_held_up_ends_with_its_terminal(tmp_path: Path) -> None:
    """A while after it was closed: there is nobody any more who could press a key."""
    hurry = "from agentrio.cli.chat import interrupts\ninterrupts.LAST_WORDS = 0.1\n"
    (tmp_path / "stone.py").write_text(hurry + BLOCKS)
    call = CallsReply([Call("block", {})])
    with model_server(tmp_path, call) as server, chatting(tmp_path, server, "--tools", "stone:block") as shown:
        shown.type("Go.\n")
        shown.read_next("blocked")
        shown.signal(signal.SIGHUP)
        assert shown.wait() == -signal.SIGALRM


def test_the_terminal_is_in_order_while_a_tool_holds_up_the_end(tmp_path: Path) -> None:
    """The next signal ends the process, and would leave it as it is."""
    (tmp_path / "boat.py").write_text(TOOLS)
    call = CallsReply([Call("paint", {})])
    with model_server(tmp_path, call) as server, chatting(tmp_path, server, "--tools", "boat:paint") as shown:
        shown.type("Paint it.\n")
        shown.read_next("[paint: painting]")
        shown.type("\x03")
        shown.read_next("[stopped]")
        shown.read_next("> ")
        shown.signal(signal.SIGTERM)
        shown.read_next("closing waits for tool")
        assert shown.settings()[3] & termios.ECHO
        shown.signal(signal.SIGTERM)
        assert shown.wait() == -signal.SIGTERM


def test_ctrl_c_before_the_first_byte(tmp_path: Path) -> None:
    """A server that says nothing is left like one that says much."""
    silent = TextReply("Never.", fault=Fault(stall_before_headers=True))
    with model_server(tmp_path, silent, TextReply("Now.")) as server, chatting(tmp_path, server) as shown:
        shown.type("Hello?\n")
        while not server.record():  # each look is a request, so this is no busy loop
            pass
        shown.type("\x03")
        shown.read_next("[stopped]")
        assert server.record("disconnect=1")[0]["ended"] == "client_closed"
        shown.read_next("> ")
        shown.type("Hello?\n")
        shown.read_next("Now.")
        assert shown.leave() == 0


def test_many_lines_that_are_pasted_are_one_message(tmp_path: Path) -> None:
    """Wide characters and joined ones too; the key Enter sends them. An arrow brings all of them back."""
    text = "one\ntwo 漢字 👨‍👩‍👧\nthree"
    with model_server(tmp_path, TextReply("Read."), TextReply("Again.")) as server:
        with chatting(tmp_path, server) as shown:
            shown.type(f"\x1b[200~{text}\x1b[201~\n")
            shown.read_next("Read.")
            shown.read_next("> ")
            shown.type("\x1b[A\n")
            shown.read_next("Again.")
            assert shown.leave() == 0
        said = [each["body"]["messages"][-1]["content"] for each in server.record()]
    assert said == [text, text]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_json_line_in_a_stopped_run_is_whole(tmp_path: Path, number: int, code: int) -> None:
    """Programs read to the end, whoever stopped it: each line is JSON, and the last tells the end."""
    with model_server(tmp_path, STORY) as server:
        command = [*AGENTRIO, *chat_at(server, "--json")]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("A story.")
            process.stdin.close()
            lines = [process.stdout.readline() for _ in range(8)]
            process.send_signal(number)
            lines += process.stdout.read().splitlines()
            assert process.wait(PATIENCE) == code
    events = [json.loads(line) for line in lines]
    assert events[-1]["type"] == "run_ended"
    assert events[-1]["result"]["status"] == "cancelled"


MODULES = {
    "boat.py": TOOLS,
    "leaves.py": "import sys\nsys.exit(0)\n",
    "asks.py": "import boat\n\nimport no_such_module\n",
    "bare.py": "def tide(): ...\n",
}


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ("boat:tyde", "has no 'tyde'; did you mean 'tide'?"),
        ("boat:nothing", "its tools are tide, paint, leak"),
        ("bare:tyde", "there is no tool in it"),
        ("bare:tide", "is no tool but a function; decorate"),
        ("boat.py:tide", "such as boat:NAME"),
        ("./boat:tide", "such as boat:NAME"),
        ("baot:tide", "(looked for in {here}, and among the packages of {prefix})"),
        ("asks:tide", "No module named 'no_such_module' ({here}/asks.py, line 3)"),
        ("leaves:tide", "can't be imported: SystemExit: 0 ({here}/leaves.py, line 2)"),
    ],
)
def test_tools_that_are_nearly_right(tmp_path: Path, tools: str, says: str) -> None:
    """The error says where to look, and what would be right. A module that exits when it is imported is no success."""
    for name, code in MODULES.items():
        (tmp_path / name).write_text(code)
    done = run("chat", "--model", "llamacpp:any", "--tools", tools, said="Hello.", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert says.format(here=tmp_path, prefix=sys.prefix) in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_the_model_is_told_can_stand_in_a_file(tmp_path: Path) -> None:
    """Long ones do not fit into a command line."""
    (tmp_path / "kind.md").write_text("Be kind.\n", encoding="utf-8")
    with model_server(tmp_path, TextReply("Yes.")) as server:
        assert run(*chat_at(server, "--system", "@kind.md"), said="Hello?", cwd=tmp_path).returncode == 0
        assert server.record()[0]["body"]["messages"][0] == {"role": "system", "content": "Be kind.\n"}


@pytest.mark.parametrize("name", ["nowhere.md", "bytes.md", "", "~nobody-of-that-name/x"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    """It is wrong usage, and never sent as a text."""
    (tmp_path / "bytes.md").write_bytes(b"\xff")
    done = run("chat", "--model", "llamacpp:any", "--system", f"@{name}", said="Hello?", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"agentrio: --system: can't read the file {name!r}: ")
    assert done.stderr.count("\n") == 1


PRINTS = """
import subprocess, sys
from agentrio import read_tool

print("imported")

@read_tool
async def shout() -> str:
    "Is loud."
    print("printed")
    subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
    return "loud"
"""


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_tools_print_is_no_part_of_the_answer(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The next program in the pipe reads what the model says, and whole lines of JSON."""
    (tmp_path / "loud.py").write_text(PRINTS)
    call = CallsReply([Call("shout", {})])
    with model_server(tmp_path, call, TextReply("Done.")) as server:
        done = run(*chat_at(server, "--tools", "loud:shout", *options), said="Go.", cwd=tmp_path)
    assert done.returncode == 0
    if options:
        assert [json.loads(line) for line in done.stdout.splitlines()]
    else:
        assert done.stdout == "Done.\n"
    assert {"imported", "printed", "by a child"} <= set(done.stderr.splitlines())


def test_json_is_utf_8_everywhere(tmp_path: Path) -> None:
    """A letter that the locale does not have is not lost: the format has but one encoding."""
    with model_server(tmp_path, TextReply("café")) as server:
        command = [*AGENTRIO, *chat_at(server, "--json")]
        env = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(command, input=b"Hello?", stdout=subprocess.PIPE, env=env, timeout=PATIENCE)
    assert json.loads(done.stdout.splitlines()[-1])["result"]["text"] == "café"
