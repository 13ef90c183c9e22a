"""What is measured in absolute terms: stops, imports, and how long the loop stands still."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable

import trio

from .contender import Open
from .measure import now, quantile
from .scenarios import Numbers, disconnects, ignore

REPEAT = 30  # stops of each kind
BEFORE = 0.05  # seconds that something is under way before it is stopped
USED = "Agent, Identity, Limits, ToolContext, open_runtime, prompt_layer, read_tool, write_tool"
IMPORTS = {
    "L": "import trio, httpx2, msgspec",
    "SDK": "import anthropic",
    "agentrio": f"from agentrio import {USED}",
}
EVERYTHING = "import agentrio; [getattr(agentrio, name) for name in agentrio.__all__]"


def imports(contender: str) -> Numbers:
    """S7: CPU seconds of importing, each in a process of its own.

    Of agentrio it is what an application with tools uses; ``everything`` is all that is public, providers included.
    """
    numbers = {"cpu": _cpu_of(IMPORTS[contender])}
    if contender == "agentrio":
        numbers["everything"] = _cpu_of(EVERYTHING)
    return numbers


def _cpu_of(statements: str) -> float:
    code = f"import time; start = time.process_time(); {statements}; print(time.process_time() - start)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(run.stdout)


def _summary(name: str, nanoseconds: list[int]) -> Numbers:
    milliseconds = [value / 1e6 for value in nanoseconds]
    return {name: quantile(milliseconds, 0.5), f"{name}_worst": max(milliseconds)}


async def floor_stop(where: str, connect: Open, url: str) -> Numbers:
    """S5a of a bare loop: its task is cancelled. It keeps nothing, so there is no next request."""
    control: list[int] = []
    stopped: list[int] = []
    await disconnects(url)
    async with connect(f"{url}/stop/{where}", ()) as client:
        async with client.session() as session:
            await session.run("again", ignore)  # a first request takes longer
        for _ in range(REPEAT):
            done = trio.Event()
            scope = trio.CancelScope()

            async def run(scope: trio.CancelScope, done: trio.Event) -> None:
                async with client.session() as session:
                    with scope:
                        await session.run("Hello", ignore)
                done.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(run, scope, done)
                await trio.sleep(BEFORE)
                stopped.append(now())
                scope.cancel()
                await done.wait()
                control.append(now() - stopped[-1])
        gone = await _gone(url)
    server = [at - start for at, start in zip(gone, stopped, strict=True)]
    return {**_summary("control", control), **_summary("server", server)}


async def stop(where: str, url: str) -> Numbers:
    """S5a: ``run.stop()`` in mid-stream, on a silent stream, before headers."""
    from .ours import Ours, open_client

    control: list[int] = []
    stopped: list[int] = []
    kept = valid = 0
    await disconnects(url)
    async with open_client(f"{url}/stop/{where}", ()) as client:
        async with client.session() as session:
            await session.run("again", ignore)  # a first request takes longer
        for _ in range(REPEAT):
            async with client.session() as session:
                assert isinstance(session, Ours)
                async with session.handle.run("Hello") as run:
                    await _read_for(BEFORE, run)
                    stopped.append(now())
                    run.stop()
                    async for _event in run:
                        pass
                control.append(now() - stopped[-1])
                assert run.result.status == "cancelled"
                kept += session.handle.value.messages[-1].text.startswith("partial")
                valid += (await session.handle.ask("again")).text == "valid"
        gone = await _gone(url)
    server = [at - start for at, start in zip(gone, stopped, strict=True)]
    return {
        **_summary("control", control),
        **_summary("server", server),
        "lost": REPEAT - kept,
        "invalid": REPEAT - valid,
    }


async def _gone(url: str) -> list[int]:
    """When the server saw each of the stops."""
    gone: list[int] = []
    with trio.move_on_after(2):
        while True:
            await trio.sleep(BEFORE)
            gone += [at for at, _ in await disconnects(url)]
            if len(gone) >= REPEAT:
                break
    assert len(gone) == REPEAT, f"the server saw {len(gone)} disconnects"
    return gone


async def _read_for(seconds: float, run: object) -> None:
    """Read events that long."""
    with trio.move_on_after(seconds):
        async for _ in run:  # type: ignore[attr-defined]  # the stream of a run
            pass


async def stop_in_tool(honours: bool, url: str) -> Numbers:
    """S5b: ``run.stop()`` while a read tool runs, which honours its cancellation or ignores it for 10 s."""
    from .ours import Ours, open_client

    control: list[int] = []
    stopped: list[int] = []
    noticed: list[int] = []
    valid = 0
    release = trio.Event()

    async def work(word: str) -> str:
        """Take long."""
        if honours:
            try:
                await trio.sleep(30)
            except trio.Cancelled:
                noticed.append(now())
                raise
        with trio.move_on_after(10, shield=True):
            await release.wait()
        return word

    async with open_client(f"{url}/stop/tool", (work,)) as client:
        for _ in range(REPEAT):
            async with client.session() as session:
                assert isinstance(session, Ours)
                async with session.handle.run("Hello") as run:
                    await _read_for(BEFORE, run)
                    stopped.append(now())
                    run.stop()
                    async for _event in run:
                        pass
                control.append(now() - stopped[-1])
                assert run.result.status == "cancelled"
                valid += (await session.handle.ask("again")).text == "valid"
        release.set()
    numbers = {**_summary("control", control), "invalid": REPEAT - valid}
    if honours:
        assert len(noticed) == REPEAT
        numbers |= _summary("tool", [at - start for at, start in zip(noticed, stopped, strict=True)])
    return numbers


async def blocked(url: str) -> Numbers:
    """The longest time that a task of a fresh process waits for its turn while the first session runs."""
    from .ours import open_client

    assert "anthropic" not in sys.modules
    gaps: list[float] = []

    async def beat() -> None:
        last = trio.current_time()
        while True:
            await trio.sleep(0.001)
            gaps.append(trio.current_time() - last)
            last = trio.current_time()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        await trio.sleep(0.05)
        async with open_client(f"{url}/text/20/8", ()) as client, client.session() as session:
            await session.run("Hello", ignore)
        await trio.sleep(0.05)
        nursery.cancel_scope.cancel()
    assert "anthropic" in sys.modules
    return {"gap": max(gaps)}


Own = Callable[[str], Awaitable[Numbers]]


def _stop(where: str) -> Own:
    return lambda url: stop(where, url)


def _stop_in_tool(honours: bool) -> Own:
    return lambda url: stop_in_tool(honours, url)


PLACES = ("stream", "silent", "before-headers")

OWN: dict[str, Own] = {
    **{f"S5a-{where}": _stop(where) for where in PLACES},
    "S5b-honours": _stop_in_tool(True),
    "S5b-ignores": _stop_in_tool(False),
    "blocked": blocked,
}
