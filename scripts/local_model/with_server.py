"""Run a command beside a real model: ``python scripts/local_model/with_server.py FOLDER COMMAND [ARGUMENT...]``.

The server's URL is in the command's environment as ``AGENTRIO_LOCAL_MODEL_URL``. The exit code is the command's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LAST_WORDS = 10  # seconds for the server to end; then it is killed


def main() -> int:
    """The command's exit code."""
    folder, *command = sys.argv[1:]
    home = Path(folder).resolve()
    with open(home / "server.log", "w") as log:
        server = subprocess.Popen(
            [home / "venv" / "bin" / "python", home / "serve.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert server.stdout is not None  # asked for above
    assert server.stdin is not None
    try:
        url = server.stdout.readline().strip()
        if not url:
            print(f"the model's server did not start; its words are in {home / 'server.log'}", file=sys.stderr)
            return 1
        return subprocess.run(command, env={**os.environ, "AGENTRIO_LOCAL_MODEL_URL": url}).returncode
    finally:
        server.stdin.close()
        try:
            server.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
