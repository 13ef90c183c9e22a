"""The leak check: each counter against a leak that was planted, and against what is no leak."""

from __future__ import annotations

import _thread
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from agentrio.testing import (
    DescriptorCounter,
    LeakCheck,
    LeakError,
    ProcessCounter,
    TaskCounter,
    ThreadCounter,
    no_leaks,
)

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


async def _left_behind() -> None:
    await trio.sleep_forever()


async def test_a_leaked_task_is_named_with_its_stack() -> None:
    """The stack says what it waits for, which is where one begins to look."""
    async with trio.open_nursery() as nursery:
        with pytest.raises(LeakError) as caught:
            async with no_leaks(TaskCounter()):
                nursery.start_soon(_left_behind, name="the culprit")
        nursery.cancel_scope.cancel()

    (leak,) = caught.value.leaks
    assert (leak.kind, leak.name) == ("task", "the culprit")
    assert "in _left_behind" in str(caught.value)


async def test_a_task_that_ends_by_itself_is_no_leak() -> None:
    """A task may need some steps to unwind after its owner has let it go."""
    async with trio.open_nursery() as nursery:

        async def unwind() -> None:
            for _ in range(10):
                await trio.lowlevel.checkpoint()

        async with no_leaks():
            nursery.start_soon(unwind)


async def test_only_tasks_below_the_given_nursery_count() -> None:
    """Beside other work of the test, a runtime is checked by its own nursery."""
    async with trio.open_nursery() as mine, trio.open_nursery() as other:
        async with no_leaks(nursery=mine):
            other.start_soon(_left_behind)
        with pytest.raises(LeakError, match="_left_behind"):
            async with no_leaks(nursery=mine):
                mine.start_soon(_nested)
        mine.cancel_scope.cancel()


async def _nested() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_left_behind)
        await trio.sleep_forever()


async def test_a_leaked_thread_is_named_with_its_stack() -> None:
    """A thread cannot be cancelled, so who started it must be found in the code."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="stuck")
    with pytest.raises(LeakError) as caught:
        async with no_leaks(ThreadCounter()):
            thread.start()
    release.set()
    thread.join()

    (leak,) = caught.value.leaks
    assert (leak.kind, leak.name) == ("thread", "stuck")
    assert "in wait" in leak.origin


async def test_a_thread_below_the_threading_module_is_a_leak_too() -> None:
    """Extensions start such; `threading` lists none of them."""
    begun, release = threading.Event(), threading.Event()

    def stay() -> None:
        begun.set()
        release.wait()

    check = LeakCheck(ThreadCounter())
    _thread.start_new_thread(stay, ())
    begun.wait()
    with pytest.raises(LeakError, match=r"thread: number \d+"):
        await check.check()
    release.set()
    await check.check()


async def test_an_abandoned_worker_thread_is_a_leak_until_it_returns() -> None:
    """A tool that ignores cancellation keeps its thread; only idle workers are Trio's own business."""
    release = threading.Event()
    check = LeakCheck(ThreadCounter())
    with trio.CancelScope() as scope:

        def ignore_cancellation() -> None:
            trio.from_thread.run_sync(scope.cancel)
            release.wait()

        await trio.to_thread.run_sync(ignore_cancellation, abandon_on_cancel=True)
    with pytest.raises(LeakError, match=r"thread: .*ignore_cancellation"):
        await check.check()

    release.set()
    await check.check()


async def test_an_idle_worker_thread_is_no_leak() -> None:
    """Trio keeps a worker for ten seconds in case there is more to do."""
    async with no_leaks(), trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(trio.to_thread.run_sync, threading.get_ident)


@needs_proc
async def test_a_leaked_socket_is_named_with_its_addresses() -> None:
    """The peer's address tells a model connection from a store's."""
    listener = socket.create_server(("127.0.0.1", 0))
    with pytest.raises(LeakError) as caught:
        async with no_leaks(DescriptorCounter()):
            client = socket.create_connection(listener.getsockname())
    address = str(listener.getsockname())
    client.close()
    listener.close()

    (leak,) = caught.value.leaks
    assert leak.kind == "socket"
    assert address in leak.name


@needs_proc
async def test_a_leaked_file_is_named_by_its_path(tmp_path: Path) -> None:
    """An open file keeps disk space and, on some systems, the folder."""
    with pytest.raises(LeakError, match=r"descriptor: .*forgotten") as caught:
        async with no_leaks(DescriptorCounter()):
            number = os.open(tmp_path / "forgotten", os.O_CREAT | os.O_RDWR)
    os.close(number)

    assert [leak.kind for leak in caught.value.leaks] == ["descriptor"]


@needs_proc
async def test_a_socket_that_trio_closes_a_little_later_is_no_leak() -> None:
    """The far end of a closed connection goes away some checkpoints after the near one."""
    async with trio.open_nursery() as nursery:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]

        async def far_end() -> None:
            async with await listener.accept() as stream:
                await stream.receive_some()

        async with no_leaks():
            nursery.start_soon(far_end)
            stream = await trio.testing.open_stream_to_socket_listener(listener)
            await stream.aclose()
        await listener.aclose()


@contextmanager
def _child() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        yield child


def _wait_for_its_end(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # and leave it in the process table


@needs_proc
async def test_a_leaked_child_process_is_named_by_its_command() -> None:
    """A stdio server that outlives its session is a process nobody will ever end."""
    check = LeakCheck(ProcessCounter())
    with _child() as child:
        with pytest.raises(LeakError, match=f"process: pid {child.pid}: .*sys.stdin.read"):
            await check.check()
    await check.check()


@needs_proc
async def test_a_child_that_nobody_waited_for_is_a_leak() -> None:
    """A zombie is an entry in the process table, and a `wait` that was forgotten."""
    check = LeakCheck(ProcessCounter())
    with _child() as child:
        assert child.stdin is not None
        child.stdin.close()
        _wait_for_its_end(child.pid)
        with pytest.raises(LeakError, match="nobody waited for it"):
            await check.check()


@needs_proc
async def test_children_are_found_where_the_kernel_keeps_no_list_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is a build option of the kernel; without it, every process is asked for its parent."""
    monkeypatch.setattr(ProcessCounter, "lists", "self/task/*/no-such-list")
    check = LeakCheck(ProcessCounter())
    with _child() as child:
        assert [leak.name.partition(":")[0] for leak in check.leaks()] == [f"pid {child.pid}"]


async def test_what_cannot_be_counted_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc the check is weaker, and who reads its result must know."""
    monkeypatch.setattr(DescriptorCounter, "folder", Path("/nowhere/fd"))
    monkeypatch.setattr(ProcessCounter, "folder", Path("/nowhere"))
    check = LeakCheck()
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()

    assert len(check.skipped) == 2
    with pytest.raises(LeakError, match="not checked: descriptors, since there is no /nowhere/fd"):
        await check.check()
    release.set()
    thread.join()


async def test_the_blocks_own_exception_passes_unchecked() -> None:
    """It is the better news: a leak after a failure is most often its consequence."""
    async with trio.open_nursery() as nursery:
        with pytest.raises(KeyError, match="mine"):
            async with no_leaks():
                nursery.start_soon(_left_behind)
                raise KeyError("mine")
        nursery.cancel_scope.cancel()


async def test_the_check_needs_no_time(autojump_clock: trio.testing.MockClock) -> None:
    """It settles by steps, so it can stand inside a scene with virtual time and moves nothing there."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        with pytest.raises(LeakError):
            async with no_leaks():
                nursery.start_soon(_left_behind)
        assert trio.current_time() == 0
        nursery.cancel_scope.cancel()


async def test_the_fixture_has_its_baseline_before_the_test(leak_check: LeakCheck) -> None:
    """The fixture checks after the test; what it would find can be asked for at any time."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_left_behind)
        await trio.lowlevel.checkpoint()
        assert any("_left_behind" in leak.name for leak in leak_check.leaks())
        nursery.cancel_scope.cancel()
