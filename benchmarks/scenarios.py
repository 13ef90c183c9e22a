"""What is measured: each scenario works the same for all contenders and returns plain numbers.

CPU is that of the whole client process, user and system, in seconds unless the key says otherwise.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TypeAlias

import trio

from .contender import Conversation, History, Open
from .measure import cpu, now, quantile, rss, settled

Numbers: TypeAlias = dict[str, float]
Scenario: TypeAlias = Callable[[Open, str], Awaitable[Numbers]]

RUNS = 200  # of S1
STREAM = 20_000  # deltas of S2
PACED = 2_000  # deltas of S2p
ROUNDS = 50  # of S3
OLD_ROUNDS = 10  # of S3h
CALLS = 64  # of S4
IDEAL = 0.050  # seconds that the calls of S4 take side by side
OFFERED = 10_000  # deltas a second of S6, over all sessions
EACH = 100  # deltas of a session of S6
IDLE = 200  # sessions of S7
SLOW = 0.005  # seconds that the reader of S8 takes for an event
SLOW_FOR = 3.0  # seconds that S8 reads

WORDS = "The ferry from Oslo leaves at ten; the one from Bergen is late today, and nobody on the pier knows why. "


def history(messages: int) -> History:
    """Old messages, about a hundred characters each."""
    return [("user" if number % 2 == 0 else "assistant", f"{number} {WORDS}") for number in range(messages)]


def ignore(text: str) -> None:
    """A reader that keeps nothing."""


async def one_shot(connect: Open, url: str) -> Numbers:
    """S1: many runs of 20 deltas, each in a session of its own."""
    async with connect(f"{url}/text/20/8", ()) as client:

        async def run() -> None:
            pieces: list[str] = []
            async with client.session() as session:
                answer = await session.run("Hello", pieces.append)
            assert answer == "".join(pieces) == "x" * 160

        await _times(20, run)
        start = settled()
        await _times(RUNS, run)
        return {"cpu": (cpu() - start) / RUNS}


async def _times(count: int, run: Callable[[], Awaitable[None]]) -> None:
    for _ in range(count):
        await run()


async def stream(connect: Open, url: str) -> Numbers:
    """S2: one run of 20,000 deltas that come as fast as they can."""
    async with connect(f"{url}/text/{STREAM}/8", ()) as client, client.session() as session:
        await session.run("Hello", ignore)
        pieces: list[str] = []
        start = settled()
        answer = await session.run("Hello", pieces.append)
        spent = cpu() - start
        assert len(pieces) == STREAM
        assert len(answer) == STREAM * 8
        return {"cpu": spent / STREAM}


async def paced(connect: Open, url: str) -> Numbers:
    """S2p: one delta a millisecond, each a read of its own."""
    async with connect(f"{url}/paced/{PACED}/1000", ()) as client, client.session() as session:
        stamps: list[float] = []
        delays: list[float] = []
        sent: list[int] = []

        def seen(text: str) -> None:
            stamps.append(cpu())
            sent.append(int(text, 16))
            delays.append((now() - sent[-1]) / 1e9)

        await session.run("Hello", seen)
        skip = PACED // 10  # the connection, and what is warmed up
        spent = (stamps[-1] - stamps[skip]) / (PACED - 1 - skip)
        bursts = sum(later - earlier < 300_000 for earlier, later in itertools.pairwise(sent))
        late = sum(delay > 0.001 for delay in delays)
        return {"cpu": spent, "disturbed": float(max(bursts, late) > PACED // 5)}


async def rounds(connect: Open, url: str) -> Numbers:
    """S3: 50 rounds of one trivial call."""
    stamps: list[float] = []

    async def echo(word: str) -> str:
        """Say it again."""
        stamps.append(cpu())
        return word

    spent = {"early": 0.0, "late": 0.0, "cpu": 0.0}
    async with connect(f"{url}/tools/{ROUNDS}", (echo,)) as client:
        for number in range(4):
            stamps.clear()
            async with client.session() as session:
                start = settled()
                await session.run("Hello", ignore)
                whole = cpu() - start
            assert len(stamps) == ROUNDS
            if number:  # the first one warms up
                spent["cpu"] += whole / ROUNDS / 3
                spent["early"] += (stamps[9] - stamps[0]) / 9 / 3
                spent["late"] += (stamps[49] - stamps[40]) / 9 / 3
    return spent


def old_rounds(messages: int) -> Scenario:
    """S3h: ten rounds on a history, in a session that has run before; ``first`` is its whole first run.

    Whoever keeps what it has encoded does so in the first run.
    """

    async def scenario(connect: Open, url: str) -> Numbers:
        async def echo(word: str) -> str:
            """Say it again."""
            return word

        first: list[float] = []
        later: list[float] = []
        async with connect(f"{url}/tools/{OLD_ROUNDS}", (echo,)) as client:
            for _ in range(4):
                async with client.session(history(messages)) as session:
                    start = settled()
                    await session.run("Hello", ignore)
                    middle = cpu()
                    await session.run("Hello", ignore)
                    first.append(middle - start)
                    later.append(cpu() - middle)
        return {"cpu": sum(later[1:]) / 3 / OLD_ROUNDS, "first": min(first[1:])}

    return scenario


async def parallel(connect: Open, url: str) -> Numbers:
    """S4: one response with 64 calls of 40 and 50 ms."""
    begun: list[float] = []
    ended: list[float] = []

    async def slow(word: str) -> str:
        """Take 40 ms."""
        return await work(0.040, word)

    async def slower(word: str) -> str:
        """Take 50 ms."""
        return await work(IDEAL, word)

    async def work(seconds: float, word: str) -> str:
        begun.append(time.perf_counter())
        await trio.sleep(seconds)
        ended.append(time.perf_counter())
        return word

    walls: list[float] = []
    spent: list[float] = []
    async with connect(f"{url}/calls/{CALLS}", (slow, slower)) as client:
        for _ in range(6):
            begun.clear()
            ended.clear()
            async with client.session() as session:
                start = settled()
                assert await session.run("Hello", ignore) == "in order"
                spent.append(cpu() - start)
            walls.append(max(ended) - min(begun))
    return {"cpu": sum(spent[1:]) / 5, "wall": min(walls[1:])}


def crowd(sessions: int) -> Scenario:
    """S6: sessions that stream at once, 10,000 deltas a second between them."""

    async def scenario(connect: Open, url: str) -> Numbers:
        microseconds = sessions * 1_000_000 // OFFERED
        delays: list[float] = []
        finished = 0
        live = 0

        def seen(text: str) -> None:
            nonlocal live
            delays.append((now() - int(text, 16)) / 1e9)
            if len(delays) == sessions * EACH // 2:
                live = rss()

        async with connect(f"{url}/paced/{EACH}/{microseconds}", ()) as client:

            async def run() -> None:
                nonlocal finished
                async with client.session() as session:
                    await session.run("Hello", seen)
                finished += 1

            await run()
            delays.clear()
            finished = 0
            start, before = settled(), rss()
            async with trio.open_nursery() as nursery:
                for _ in range(sessions):
                    nursery.start_soon(run)
            spent = cpu() - start
        assert len(delays) == sessions * EACH
        return {
            "cpu": spent / (sessions * EACH),
            "cpu_total": spent,
            "rss": (live - before) / sessions,
            "p50": quantile(delays, 0.5),
            "p99": quantile(delays, 0.99),
            "unfinished": sessions - finished,
        }

    return scenario


async def idle(connect: Open, url: str) -> Numbers:
    """S7: memory of sessions that have run, hold 50 messages and wait."""
    async with connect(f"{url}/text/4/24", ()) as client, AsyncExitStack() as stack:

        async def opened() -> Conversation:
            session = await stack.enter_async_context(client.session(history(48)))
            await session.run("Hello", ignore)
            return session

        kept = [await opened() for _ in range(20)]
        gc.collect()
        before = rss()
        kept += [await opened() for _ in range(IDLE)]
        gc.collect()
        return {"rss": (rss() - before) / IDLE}


async def slow_reader(connect: Open, url: str) -> Numbers:
    """S8: a reader that takes 5 ms an event, on a stream of 8 MB that comes as fast as it is taken."""
    async with connect(f"{url}/text/50000/64", ()) as client, client.session() as session:
        seen: list[str] = []
        gc.collect()
        before = most = rss()

        async def sample() -> None:
            nonlocal most
            while True:
                most = max(most, rss())
                await trio.sleep(0.01)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sample)
            with trio.move_on_after(SLOW_FOR):
                await session.run("Hello", seen.append, SLOW)
            nursery.cancel_scope.cancel()
    await trio.sleep(0.2)
    sent = (await disconnects(url))[-1][1]
    return {"growth": most - before, "read": len(seen), "ahead": sent / 162 - len(seen)}


async def disconnects(url: str) -> list[tuple[int, int]]:
    """What the server saw: when a client hung up in the middle of a response, and the bytes it had been sent."""
    import msgspec

    host, _, port = url.rpartition("/")[2].partition(":")
    async with await trio.open_tcp_stream(host, int(port)) as connection:
        await connection.send_all(b"GET /gone HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer or answer[-1:] != b"]":
            answer += await connection.receive_some(65536)
    return msgspec.json.decode(answer.partition(b"\r\n\r\n")[2], type=list[tuple[int, int]])


FOR_ALL: dict[str, Scenario] = {
    "S1": one_shot,
    "S2": stream,
    "S2p": paced,
    "S3": rounds,
    "S3h-0": old_rounds(0),
    "S3h-500": old_rounds(500),
    "S3h-1000": old_rounds(1000),
    "S3h-2000": old_rounds(2000),
    "S4": parallel,
    "S6-200": crowd(200),
    "S6-1000": crowd(1000),
    "S7-idle": idle,
    "S8": slow_reader,
}
NAMES: Sequence[str] = tuple(FOR_ALL)
STREAMING: Sequence[str] = ("S1", "S2", "S2p", "S3", "S3h-0", "S3h-500", "S3h-1000", "S3h-2000")
"""What is measured on each wire; the rest is the same on all, and measured on the Messages wire."""


def split(name: str) -> tuple[str, str]:
    """The wire and the scenario of a name such as ``chat/S1``; without a wire it is the Messages wire."""
    wire, _, scenario = name.rpartition("/")
    return wire or "messages", scenario
