"""A pipe talks to a model: one message, one answer, and an exit code. Wrong usage is told the same way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentrio.cli import main
from agentrio.domain.codec import from_data
from agentrio.domain.events import Event, RunEnded, RunStarted
from agentrio.testing import Call, CallsReply, ErrorReply, RawReply, TextReply, digest
from tests.cli.chatting import STORY, TOOLS, WITHOUT_KEYS, chat_at
from tests.cli.support import AGENTRIO, PATIENCE, Server, model_server, run

NOWHERE = "http://127.0.0.1:1"  # nobody listens at port 1


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


EXITS = """
import sys
from agentrio import read_tool

@read_tool
async def end() -> str:
    "Ends."
    sys.exit("enough")

@read_tool
def end_thread() -> str:
    "Ends."
    sys.exit(3)
"""


@pytest.mark.parametrize(("tool", "says"), [("end", "enough"), ("end_thread", "3")])
def test_a_tool_that_ends_the_program_ends_it_in_order(tmp_path: Path, tool: str, says: str) -> None:
    """It says so, and it is a failure, whatever the tool meant by it. What was said has the end of its line."""
    (tmp_path / "exits.py").write_text(EXITS)
    with model_server(tmp_path, CallsReply([Call(tool, {})], text="I call.")) as server:
        done = run(*chat_at(server, "--tools", f"exits:{tool}"), said="Go.", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "I call.\n")
    assert done.stderr.splitlines()[-1] == f"agentrio: a tool ended the program (SystemExit: {says})"


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


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (ErrorReply(401, message="no such key"), 1, "no such key"),
        (TextReply(["I can't."], stop_reason="refusal"), 1, "agentrio: refused"),
        (ErrorReply(429, headers={"retry-after": "3600"}), 69, "agentrio: error: "),
        (RawReply(b"<html></html>", content_type="text/html"), 69, "answered with a web page, not as a model's server"),
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
    done = run("chat", "--model", "compatible:any", said="Hello?")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "compatible has no address of its own; say with --base-url where any is served" in done.stderr


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


def test_a_message_that_no_request_can_hold_is_refused() -> None:
    """Whoever pipes a book in is told how much is too much."""
    done = run("chat", "--model", "ollama:x", "--max-context-chars", "2000", said="word " * 500)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the message has 2500 characters, and a request has room for 2000" in done.stderr
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


def test_chat_needs_no_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It works as installed, without the extra."""
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["chat", "--model", "nonsense:x"]) == 2
    assert "ollama" in capsys.readouterr().err
