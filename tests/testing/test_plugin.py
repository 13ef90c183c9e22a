"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio
import trio.testing

PATHS = os.pathsep.join(path for path in sys.path if path)
ENVIRONMENT = {**os.environ, "PYTHONPATH": PATHS, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
WITH_TRIO = ("-p", "pytest_trio.plugin", "-o", "trio_mode=true")


async def _pytest(folder: Path, source: str, *options: str) -> str:
    path = folder / "test_scene.py"
    path.write_text("import threading\nimport trio\nfrom agentrio.testing import *\n" + source)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "agentrio.testing.plugin", *options]
    done = await trio.run_process(
        [*command, "--rootdir", str(folder), "-q", str(path)], env=ENVIRONMENT, check=False, capture_stdout=True
    )
    return done.stdout.decode()


async def test_a_test_that_leaks_fails_by_the_fixture(tmp_path: Path) -> None:
    """The check runs after the test, so no test needs to end with it."""
    said = await _pytest(
        tmp_path,
        "release = threading.Event()\n"
        "async def test_leaky(leak_check):\n"
        "    threading.Thread(target=release.wait, name='the culprit', daemon=True).start()\n"
        "async def test_clean(leak_check, holding_clock, model_server):\n"
        "    async with model_server([TextReply('x')]):\n"
        "        await trio.sleep(1000)\n",
        *WITH_TRIO,
    )

    assert "LeakError: 1 leaked:" in said
    assert "thread: the culprit" in said
    assert "1 failed, 1 passed" in said


async def test_without_pytest_trio_only_the_leak_check_is_missed(tmp_path: Path) -> None:
    """Clock and server are of use to whoever calls `trio.run` in a test; and the one that is not, says so."""
    said = await _pytest(
        tmp_path,
        "def test_clock(holding_clock, model_server):\n"
        "    async def main():\n"
        "        async with model_server([TextReply('x')]):\n"
        "            await trio.sleep(1000)\n"
        "    trio.run(main, clock=holding_clock)\n"
        "def test_check(leak_check):\n"
        "    pass\n",
    )

    assert "leak_check spans a Trio test: install pytest-trio" in said
    assert "1 passed, 1 error" in said


async def test_the_plugin_loads_no_sdk_and_no_server() -> None:
    """It is loaded into each pytest of whoever has agentrio installed."""
    code = (
        "import sys, agentrio.testing.plugin, agentrio.testing\n"
        "heavy = {'anthropic', 'openai', 'httpx2', 'h11', 'cattrs', 'agentrio.testing.loopback'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
        "assert 'open_model_server' in dir(agentrio.testing)\n"
        "agentrio.testing.open_model_server\n"
        "assert not {'anthropic', 'openai', 'httpx2'} & sys.modules.keys()\n"
        "try: agentrio.testing.nonsense\n"
        "except AttributeError as error: assert 'nonsense' in str(error)\n"
        "else: raise AssertionError\n"
        "assert all(hasattr(agentrio.testing, name) for name in agentrio.testing.__all__)\n"
    )
    await trio.run_process([sys.executable, "-c", code], env=ENVIRONMENT)
