"""Serve the model beside this file on 127.0.0.1: ``venv/bin/python serve.py [PORT]``.

Prints its URL as the first line of stdout once it can be asked. Ends with its stdin, or at SIGTERM. It knows no key,
and lets every web page ask it, so it listens nowhere else. What it writes of itself goes to stderr.

This file is copied into the folder of the model, and is run by the Python there.
"""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

os.environ.setdefault("LLAMA_SERVER_SLOTS_DEBUG", "1")  # /slots then tells which generations run

import xllamacpp  # type: ignore[import-not-found]  # in the model's own venv; reads the line above

HERE = Path(__file__).parent
SLOTS = 4
CONTEXT = 2048  # tokens for each slot
THREADS = 1  # with as many as there are cores, llama.cpp spins against everything else that runs


def parameters(port: int) -> "xllamacpp.CommonParams":
    """How the server is to run."""
    found = xllamacpp.CommonParams()
    found.model.path = str(HERE / "model.gguf")
    found.model_alias = ["smollm2-135m"]
    found.hostnames = ["127.0.0.1"]
    found.port = port
    found.n_parallel = SLOTS
    found.n_ctx = SLOTS * CONTEXT
    found.kv_unified = False
    found.n_gpu_layers = 0
    found.warmup = False
    found.cpuparams.n_threads = found.cpuparams_batch.n_threads = THREADS
    found.use_jinja = True
    found.chat_template = (HERE / "tools.jinja").read_text()
    found.endpoint_slots = True
    return found


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Serve until told to end."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    told = os.dup(1)
    os.dup2(2, 1)  # the server writes to stdout what is not for our reader
    server = xllamacpp.Server(parameters(int(sys.argv[1]) if len(sys.argv) > 1 else free_port()))
    os.write(told, f"{server.listening_address}\n".encode())
    threading.Thread(target=_watch_stdin, args=(stopped,), daemon=True).start()
    while not stopped.wait(0.2):
        pass
    os._exit(0)  # generations that still run would hold the exit


def _watch_stdin(stopped: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    stopped.set()


if __name__ == "__main__":
    main()
