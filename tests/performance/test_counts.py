"""What a delta, a round and a run cost, in counts that no other program on the machine can change.

Times are measured by ``make bench``; here are scheduler steps, calls of Python functions (trio's, httpx2's and h11's
among them) and blocks of memory that stay with the reader. A number that goes up is a regression until it is shown to
be worth it; then it is changed here, in the commit that needs it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from statistics import median

import attrs
import trio

from agentrio import Agent, Anthropic, Limits, Scripted, SessionHandle, open_runtime, read_tool
from agentrio.events import Event
from agentrio.providers.scripted import FRAGMENT, call
from agentrio.testing.loopback import Call, CallsReply, Pace, Script, TextReply, open_model_server_process

TRIES = 7
LIMITS = Limits(max_rounds=100, max_calls=100)


@attrs.frozen
class Counts:
    """Scheduler steps, calls of Python functions, and blocks of memory that are still in use at the end."""

    steps: float
    calls: float
    blocks: float

    def each(self, less: Counts, number: int) -> Counts:
        """What one of so many costs, by what the same with none of them costs."""
        return Counts(
            (self.steps - less.steps) / number, (self.calls - less.calls) / number, (self.blocks - less.blocks) / number
        )


def steady(tries: list[Counts]) -> Counts:
    """The least steps and calls, for other work on the machine only adds some; of blocks, which the allocator gives
    back when it likes, the median.
    """
    steps, calls = min(one.steps for one in tries), min(one.calls for one in tries)
    return Counts(steps, calls, median(one.blocks for one in tries))


class _Steps(trio.abc.Instrument):
    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


async def counted(work: Callable[[], Awaitable[object]]) -> Counts:
    """The counts of some work, done once before to warm up."""
    await work()
    gc.collect()
    gc.disable()  # a collection would call finalizers of others
    steps, calls = _Steps(), 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    blocks = sys.getallocatedblocks()
    trio.lowlevel.add_instrument(steps)
    sys.setprofile(profile)
    try:
        kept = await work()
    finally:
        sys.setprofile(None)
        trio.lowlevel.remove_instrument(steps)
        gc.enable()
    blocks = sys.getallocatedblocks() - blocks
    del kept
    return Counts(steps.count, calls, blocks)


async def read(session: SessionHandle) -> list[Event]:
    """All events of one run, kept."""
    async with session.run("Hello") as run:
        return [event async for event in run]


@read_tool
async def echo(word: str) -> str:
    """Say it again."""
    return word


@asynccontextmanager
async def scripted(replies: list[object]) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """A run of a scripted model in a new session, as often as it is called."""
    model = Scripted(replies * (2 * TRIES))  # type: ignore[arg-type]  # texts and lists of calls
    async with open_runtime() as runtime:

        async def run() -> list[Event]:
            async with runtime.open_session(Agent(model=model, tools=[echo], limits=LIMITS)) as session:
                return await read(session)

        yield run


async def run_scripted(replies: list[object]) -> Counts:
    """The counts of one run of a scripted model, session included."""
    async with scripted(replies) as run:
        return steady([await counted(run) for _ in range(TRIES)])


async def run_over_loopback(replies: list[TextReply | CallsReply]) -> Counts:
    """The counts of one run over a socket, session included; the server is a process of its own.

    On a machine with other work, what the server sends at once may arrive in two reads, which costs more.
    """
    async with open_model_server_process(Script(replies * (2 * TRIES))) as server, open_runtime() as runtime:
        model = Anthropic("bench-1", api_key="none", base_url=server.base_url)

        async def run() -> list[Event]:
            async with runtime.open_session(Agent(model=model, tools=[echo], limits=LIMITS)) as session:
                return await read(session)

        return steady([await counted(run) for _ in range(TRIES)])


def check(found: Counts, *, steps: float, calls: float, blocks: float, spare: float = 1.1) -> None:
    """Nothing costs more than it did, a tenth aside; the Python versions differ by less."""
    print(f"{found.steps:.2f} steps, {found.calls:.1f} calls, {found.blocks:.2f} blocks")
    assert found.steps <= steps * spare
    assert found.calls <= calls * spare
    assert found.blocks <= blocks * 1.35


async def test_a_delta_that_comes_alone_costs_two_steps() -> None:
    """One of the run, one of its reader: what streaming costs at the pace of a model."""
    found = (await run_scripted(["x" * FRAGMENT * 400])).each(await run_scripted(["x" * FRAGMENT * 100]), 300)
    check(found, steps=1.7, calls=71, blocks=4.2)


async def test_a_round_costs_no_more_in_a_long_run() -> None:
    """A call of a trivial tool, and the model call that follows it; the history grows by two messages each."""
    few, some, many = [await run_scripted([[call("echo", word="x")]] * rounds + ["done"]) for rounds in (10, 30, 50)]
    check(some.each(few, 20), steps=8.6, calls=885, blocks=67)
    assert many.each(some, 20).calls <= some.each(few, 20).calls * 1.1


async def test_a_run_and_its_session() -> None:
    """Opened, one short answer, closed."""
    check(await run_scripted(["Hello."]), steps=12, calls=1150, blocks=134)


async def test_a_delta_over_a_socket_costs_ten_calls() -> None:
    """Chunks that arrive together are one read, one chunk for h11, one batch and one wake."""

    def reply(deltas: int) -> list[TextReply | CallsReply]:
        return [TextReply(("x" * 8,) * deltas, pace=Pace(coalesce=50))]

    found = (await run_over_loopback(reply(2_100))).each(await run_over_loopback(reply(100)), 2_000)
    check(found, steps=0.02, calls=9.6, blocks=3.5, spare=1.25)


async def test_a_round_over_a_socket() -> None:
    """The same round, with a request and its response."""

    def replies(rounds: int) -> list[TextReply | CallsReply]:
        calls = [CallsReply([Call("echo", {"word": "x"})], pace=Pace(coalesce=50)) for _ in range(rounds)]
        return [*calls, TextReply("done", pace=Pace(coalesce=50))]

    found = (await run_over_loopback(replies(25))).each(await run_over_loopback(replies(5)), 20)
    check(found, steps=11.4, calls=2370, blocks=78, spare=1.25)


async def test_a_run_over_a_socket() -> None:
    """Session, request, a short answer."""
    check(
        await run_over_loopback([TextReply("Hello.", pace=Pace(coalesce=50))]),
        steps=15,
        calls=2510,
        blocks=235,
        spare=1.25,
    )
