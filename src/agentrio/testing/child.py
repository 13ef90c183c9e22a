"""A server in a child process: it says where it listens in its first line, and ends when its stdin does."""

from __future__ import annotations

import trio

__all__ = ["end", "first_line"]

READ_SIZE = 65536  # bytes


async def first_line(process: trio.Process) -> str | None:
    """Return the first line of its stdout, which must be a pipe; None where it ended before there was one."""
    assert process.stdout is not None
    line = bytearray()
    while not line.endswith(b"\n"):
        data = await process.stdout.receive_some(READ_SIZE)
        if not data:
            return None
        line += data
    return line.decode().strip()


async def end(process: trio.Process, seconds: float) -> None:
    """Close its stdin and wait for its end, shielded; after so many seconds it is killed, and waited for as long."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + seconds):
        if process.stdin is not None:
            await process.stdin.aclose()
        await process.wait()
    if process.returncode is None:
        process.kill()
    with trio.CancelScope(shield=True, deadline=trio.current_time() + seconds):
        await process.wait()
        if process.stdout is not None:
            await process.stdout.aclose()
