"""The holding clock: virtual time that waits for threads."""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

from agentrio.testing import HoldingClock


async def test_idle_time_is_jumped_over(holding_clock: HoldingClock) -> None:
    """A test of a day's back-off must take no day."""
    await trio.sleep(86_400)

    assert trio.current_time() >= 86_400
    assert holding_clock.jumps >= 1


async def test_deadlines_fire_in_their_order(holding_clock: HoldingClock) -> None:
    """Each jump goes to the next deadline only, so what is due first happens first."""
    seen: list[int] = []

    async def note(seconds: int) -> None:
        await trio.sleep(seconds)
        seen.append(seconds)

    async with trio.open_nursery() as nursery:
        for seconds in (30, 10, 20):
            nursery.start_soon(note, seconds)

    assert seen == [10, 20, 30]


async def test_no_timeout_fires_while_a_thread_is_at_work(holding_clock: HoldingClock) -> None:
    """With Trio's own autojump clock the one-second timeout fires here, long before the thread is done."""
    release = threading.Event()
    ticks: list[float] = []

    async def tick() -> None:
        await trio.sleep(0.5)
        ticks.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        with trio.fail_after(1):
            trio.lowlevel.current_trio_token().run_sync_soon(threading.Timer(0.05, release.set).start)
            await trio.to_thread.run_sync(release.wait)
        assert trio.current_time() == 0
        assert ticks == []

    assert ticks == [0.5]


async def test_trios_own_clock_fires_that_timeout() -> None:
    """The reason for this clock; if this fails, Trio has learnt to hold and the clock can go."""
    release = threading.Event()

    def run() -> None:
        trio.run(wait, clock=trio.testing.MockClock(autojump_threshold=0))

    async def wait() -> None:
        with trio.move_on_after(1) as scope:
            await trio.to_thread.run_sync(release.wait, abandon_on_cancel=True)
        assert scope.cancelled_caught

    await trio.to_thread.run_sync(run)
    release.set()


async def test_an_abandoned_thread_no_longer_holds(holding_clock: HoldingClock) -> None:
    """A tool that ignores cancellation is left behind, and the rest of the test goes on."""
    release = threading.Event()
    with trio.CancelScope() as scope:

        def ignore_cancellation() -> None:
            trio.from_thread.run_sync(scope.cancel)
            release.wait()

        await trio.to_thread.run_sync(ignore_cancellation, abandon_on_cancel=True)

    await trio.sleep(60)
    release.set()


@pytest.mark.parametrize("abandon", [False, True])
async def test_a_thread_that_waits_for_the_loop_does_not_hold(holding_clock: HoldingClock, abandon: bool) -> None:
    """It waits for time to pass: each would wait for the other for ever."""

    def work() -> str:
        trio.from_thread.run(trio.sleep, 60)
        return "rested"

    assert await trio.to_thread.run_sync(work, abandon_on_cancel=abandon) == "rested"
    assert trio.current_time() >= 60


async def test_a_thread_at_work_holds_though_another_waits(holding_clock: HoldingClock) -> None:
    """Also where the one that waits was abandoned, and would not hold anyway."""
    release = threading.Event()
    asked = trio.Event()

    def ask() -> None:
        trio.from_thread.run_sync(asked.set)
        trio.from_thread.run(trio.sleep, 60)

    async def wait() -> None:
        await trio.to_thread.run_sync(ask, abandon_on_cancel=True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for _ in range(2):
            async with trio.open_nursery() as abandoned:
                abandoned.start_soon(wait)
                await asked.wait()
                abandoned.cancel_scope.cancel()
        with trio.fail_after(1):
            trio.lowlevel.current_trio_token().run_sync_soon(threading.Timer(0.05, release.set).start)
            await trio.to_thread.run_sync(release.wait)
        assert trio.current_time() == 0


async def test_hold_keeps_the_clock_for_work_that_trio_does_not_count(holding_clock: HoldingClock) -> None:
    """A foreign thread, or another process, is not seen by the clock; the test says so itself."""
    done = trio.Event()
    token = trio.lowlevel.current_trio_token()
    thread = threading.Thread(target=lambda: token.run_sync_soon(done.set))

    with holding_clock.hold(), trio.fail_after(1):
        threading.Timer(0.05, thread.start).start()
        await done.wait()

    assert trio.current_time() == 0


def test_time_can_pass_while_a_thread_is_in_flight() -> None:
    """A timeout over a blocked thread is testable: it needs time that passes although the thread holds."""
    release = threading.Event()

    async def main() -> None:
        with trio.move_on_after(0.02) as scope:
            await trio.to_thread.run_sync(release.wait, abandon_on_cancel=True)
        assert scope.cancelled_caught
        release.set()

    trio.run(main, clock=HoldingClock(rate_while_held=1.0))


async def test_jump_goes_forward_while_held(holding_clock: HoldingClock) -> None:
    """The deterministic way to the same: the test says when the timeout is due."""
    release = threading.Event()

    async def late() -> None:
        await trio.testing.wait_all_tasks_blocked()
        holding_clock.jump(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(late)
        with trio.move_on_after(10) as scope:
            await trio.to_thread.run_sync(release.wait, abandon_on_cancel=True)
    release.set()

    assert scope.cancelled_caught


async def test_waiting_for_all_tasks_blocked_goes_before_a_jump(holding_clock: HoldingClock) -> None:
    """Tests order their scenes with it; a jump in between would fire what the test did not ask for yet."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 5)
        for _ in range(5):
            await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == 0


async def test_loopback_sockets_are_no_idleness(holding_clock: HoldingClock) -> None:
    """Two ends in one loop: bytes that are under way must not look like nothing to do."""
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    async with trio.open_nursery() as nursery, listener:
        nursery.start_soon(_echo, listener)
        client = await trio.testing.open_stream_to_socket_listener(listener)
        async with client:
            with trio.fail_after(0.001):
                for _ in range(200):
                    await client.send_all(b"x" * 1000)
                    await client.receive_some(1000)


async def _echo(listener: trio.SocketListener) -> None:
    async with await listener.accept() as stream:
        async for data in stream:
            await stream.send_all(data)


@pytest.mark.parametrize("wrong", [{"idle": 0.0}, {"idle": -1.0}, {"rate_while_held": -1.0}])
def test_a_wrong_setting_is_refused(wrong: dict[str, float]) -> None:
    """A threshold of zero would quietly change who wakes first."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        HoldingClock(**wrong)
