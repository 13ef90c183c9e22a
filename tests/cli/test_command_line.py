"""The command line as a Unix tool: exit codes, where things are printed, and no tracebacks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace

import pytest

from agentrio.cli import main
from agentrio.cli.command import Command, Refusal
from tests.cli.support import AGENTRIO, PATIENCE, run


def test_help_names_every_command() -> None:
    """It is the first thing that a newcomer types."""
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "demo" in done.stdout


def test_the_help_of_a_command_names_its_options() -> None:
    """What --json and --fast do is found where one looks for it."""
    done = run("demo", "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout
    assert "--fast" in done.stdout


def test_the_version_is_one_line() -> None:
    """Scripts read it."""
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("agentrio ")
    assert done.stdout.count("\n") == 1


def test_without_a_version_it_says_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Code that runs from its source folder has no metadata, and --version must not fail on that."""
    from importlib import metadata

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert "not installed" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("demo", "--nonsense"), ("demo", "--js")])
def test_wrong_usage_exits_2_and_tells_stderr(arguments: tuple[str, ...]) -> None:
    """2 is usage; stdout stays clean for the next program in the pipe. Abbreviations would break with new options."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: agentrio" in done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """`agentrio demo --json | head -1` prints one line and nothing else."""
    for options in (["--json"], []):
        command = [*AGENTRIO, "demo", "--fast", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline()
            process.stdout.close()
            said = process.stderr.read()
            assert (process.wait(PATIENCE), said) == (141, b"")


PRINTS = """
import sys
from agentrio.cli import entry
from agentrio.cli.command import Command
entry.COMMANDS = (Command("print", "prints", "Prints.", lambda parser: None, lambda options: print("word") or 0),)
sys.exit(entry.main(["print"]))
"""


def test_output_that_nobody_took_is_no_error_at_the_end() -> None:
    """What is still in the buffer when the command has ended is written where a broken pipe is caught."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-c", PRINTS], stdout=writer, stderr=subprocess.PIPE, timeout=PATIENCE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def _told(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def fail(options: Namespace) -> int:
        raise error

    def configure(parser: ArgumentParser) -> None:
        pass

    monkeypatch.setattr("agentrio.cli.entry.COMMANDS", (Command("fail", "fails", "Fails.", configure, fail),))
    return main(["fail"])


def test_a_refusal_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What a command can't do is the user's to mend, and a traceback does not help with that."""
    assert _told(monkeypatch, Refusal("no such thing; make one")) == 1
    assert capsys.readouterr().err == "agentrio: no such thing; make one\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("", [KeyboardInterrupt()])])
def test_ctrl_c_outside_of_a_command_exits_130(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Before a command has taken the signal over, or after it gave it back, Ctrl-C must not show a traceback either.
    Out of a nursery it comes in a group."""
    assert _told(monkeypatch, error) == 130


LOADING = """
import sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "agentrio.cli.command":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Press())
import agentrio.cli
sys.exit(agentrio.cli.main(["models"]))
"""


def test_ctrl_c_while_the_program_is_loaded_exits_130() -> None:
    """The impatient press it before the first line is shown."""
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError(),
        OSError(errno.ENOENT, "no such file"),
        BaseExceptionGroup("", [KeyboardInterrupt(), ZeroDivisionError()]),
        ExceptionGroup("", [BrokenPipeError(), ZeroDivisionError()]),
    ],
)
def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """What nobody expected is raised whole, so that it can be reported; also where something expected came with it."""
    with pytest.raises(type(error)) as raised:
        _told(monkeypatch, error)
    assert raised.value is error


@pytest.mark.parametrize("arguments", ["models", "demo --fast --json", "demo --fast"])
def test_an_output_that_cannot_be_written_is_told(arguments: str) -> None:
    """A full disk is no bug of ours, and what is missing is known by the exit code."""
    done = _in_shell(f"{arguments} >/dev/full")
    assert (done.returncode, done.stderr) == (1, "agentrio: the output can't be written: No space left on device\n")


@pytest.mark.parametrize(
    ("redirected", "code"),
    [("models >&-", 0), ("models >&- 2>&-", 0), ("nonsense 2>&-", 2), ("demo --fast --json >&-", 0), ("--help >&-", 0)],
)
def test_a_stream_that_is_closed_is_no_error(redirected: str, code: int) -> None:
    """Who closed it wanted nothing from it."""
    done = _in_shell(redirected)
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr


def _in_shell(line: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$0" -m agentrio.cli {line}', sys.executable]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def test_a_missing_rich_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """rich is an extra; who has not installed it is told how to, and what works without it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "agentrio.cli.demo.picture", raising=False)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["demo"]) == 1
    said = capsys.readouterr().err
    assert "pip install 'agentrio[cli]'" in said
    assert "--json" in said


def test_a_missing_module_of_ours_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a missing rich is told as one."""
    monkeypatch.setitem(sys.modules, "agentrio.cli.demo.picture", None)
    with pytest.raises(ModuleNotFoundError):
        main(["demo"])
