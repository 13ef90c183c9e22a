"""The recipe for Ctrl-C of the page on stopping, in a process of its own and with the real signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import ROOT, blocks

PATIENCE = 60  # seconds; a watchdog for a process that hangs

WORKING = """
@read_tool
async def dig() -> str:
    "Digs, for long."
    print("READY", flush=True)
    await trio.sleep_forever()
    return ""

trio.run(program, Agent(model=Scripted([[call("dig")]]), tools=[dig]))
print("left")
"""

IDLE = """
async def talk(session):
    print("READY", flush=True)
    await trio.sleep_forever()

trio.run(program, Agent(model=Scripted(["Hi."])))
print("left")
"""


@pytest.mark.parametrize(
    ("scene", "printed"), [(WORKING, "cancelled Ctrl-C\nleft\n"), (IDLE, "left\n")], ids=["working", "idle"]
)
def test_the_recipe_for_ctrl_c_stops_the_run_or_leaves(tmp_path: Path, scene: str, printed: str) -> None:
    """A run is stopped and the program goes on to its end; with nothing to stop it is left."""
    page = (ROOT / "docs/stopping.md").read_text("utf-8")
    shown = blocks(page)
    (recipe,) = [block.code for block in shown if "signal.SIGINT" in block.code]
    script = tmp_path / "program.py"
    script.write_text(shown[0].code + recipe + scene, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            assert [process.stdout.readline(), process.stdout.readline()] == ["succeeded None\n", "READY\n"]
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (told, process.returncode) == (printed, 0)
