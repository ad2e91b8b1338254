"""An execution that is given up: timeouts, cancelling, a pool without room (RUN-7, R-19)."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from psych_runtime.tools.code import CodeExecutor
from psych_runtime.tools.executed import Executed
from psych_schema.record import Failure, ToolResult
from tests.unit.tools.tooling import (
    CALL_ID,
    CONTEXT,
    NOTHING,
    async_tool,
    ran,
    run,
    sync_tool,
)

SOON = 0.02


async def test_run_7_an_async_tool_is_cut_off_at_its_timeout(pool: ThreadPoolExecutor) -> None:
    """It is cancelled and may clean up; what it returns then does not count."""
    seen: list[str] = []

    async def hang() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cleaned up")
        return "late"

    executor = CodeExecutor(pool)
    executed = await executor.execute(async_tool(hang, SOON), NOTHING, CONTEXT)
    assert executed == Executed(
        "timed_out",
        ToolResult(message="probe took longer than 0.02 s and was given up."),
        Failure(code="tool_timeout", transient=False),
    )
    assert seen == ["cleaned up"]
    assert not executor.left_running(CALL_ID)


async def test_run_7_an_async_tool_that_will_not_end_is_left_alone(
    pool: ThreadPoolExecutor,
) -> None:
    """Timed out and cancelled alike; it is known to run until it ends."""
    release = asyncio.Event()
    ended = asyncio.Barrier(3)

    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        await ended.wait()
        return "late"

    executor = CodeExecutor(pool, close_seconds=SOON)
    executed = ran(await executor.execute(async_tool(stubborn, SOON), NOTHING, CONTEXT))
    assert executed.outcome == "timed_out"
    call = asyncio.create_task(executor.execute(async_tool(stubborn), NOTHING, CONTEXT))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert executor.left_running(CALL_ID)
    release.set()
    await ended.wait()
    while executor.left_running(CALL_ID):
        await asyncio.sleep(0)


async def test_run_7_a_sync_tool_is_given_up_at_its_timeout(pool: ThreadPoolExecutor) -> None:
    """Its thread goes on, and what it brings is dropped."""
    release = threading.Event()
    executor = CodeExecutor(pool)
    tool = sync_tool(lambda: release.wait(60), SOON)
    executed = ran(await executor.execute(tool, NOTHING, CONTEXT))
    assert executed.outcome == "timed_out"
    assert executor.left_running(CALL_ID)
    release.set()
    pool.shutdown()
    assert not executor.left_running(CALL_ID)


async def test_run_7_a_call_that_got_no_thread_says_it_was_not_executed() -> None:
    """All threads are taken: it never starts, also not later."""
    release, late = threading.Event(), list[str]()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(release.wait, 60)
        executor = CodeExecutor(pool)
        tool = sync_tool(lambda: late.append("late"), SOON)
        executed = ran(await executor.execute(tool, NOTHING, CONTEXT))
        assert not executor.left_running(CALL_ID)
        release.set()
    assert executed.outcome == "timed_out"
    assert executed.result.message == ("probe was not executed: no thread was free for 0.02 s.")
    assert late == []


async def test_r_19_cancelling_the_call_cancels_an_async_tool(pool: ThreadPoolExecutor) -> None:
    """The tool cleans up first, then the cancellation goes on."""
    started, seen = asyncio.Event(), list[str]()

    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    executor = CodeExecutor(pool)
    call = asyncio.create_task(executor.execute(async_tool(hang), NOTHING, CONTEXT))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert seen == ["cleaned up"]
    assert not executor.left_running(CALL_ID)


async def test_r_19_cancelling_the_call_leaves_a_sync_tool_in_its_thread(
    pool: ThreadPoolExecutor,
) -> None:
    """Its outcome is unknown: code of the call still runs."""
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(60)

    executor = CodeExecutor(pool)
    call = asyncio.create_task(executor.execute(sync_tool(block), NOTHING, CONTEXT))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert executor.left_running(CALL_ID)
    assert not executor.left_running("call_of_somebody_else")
    release.set()
    pool.shutdown()
    assert not executor.left_running(CALL_ID)


async def test_r_19_cancelling_a_call_that_waits_for_a_thread_keeps_it_from_running() -> None:
    """It is aborted, not unknown."""
    release, ran = threading.Event(), list[str]()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(release.wait, 60)
        executor = CodeExecutor(pool)
        tool = sync_tool(lambda: ran.append("late"))
        call = asyncio.create_task(executor.execute(tool, NOTHING, CONTEXT))
        while not executor.left_running(CALL_ID):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not executor.left_running(CALL_ID)
        release.set()
    assert ran == []


async def test_run_9_a_pool_that_shuts_down_is_an_error_not_a_hang() -> None:
    """Before the call, and while it waits for a thread; it was not executed."""
    release = threading.Event()
    pool = ThreadPoolExecutor(1)
    pool.submit(release.wait, 60)
    tool = sync_tool(lambda: "never")
    call = asyncio.create_task(run(tool, pool))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    pool.shutdown(wait=False, cancel_futures=True)
    stopping = Executed(
        "error",
        ToolResult(message="probe was not executed: the worker is stopping."),
        Failure(code="worker_stopping", transient=True),
    )
    assert await call == stopping
    assert await run(tool, pool) == stopping
    release.set()
    pool.shutdown()


async def test_r_9_a_call_that_waited_for_a_thread_asks_again_whether_it_may_start() -> None:
    """The lease ran out meanwhile: nothing is executed, now or later, and the caller is told."""
    release, asked, late = threading.Event(), list[str](), list[str]()

    def may_start() -> bool:
        asked.append(threading.current_thread().name)
        return False

    with ThreadPoolExecutor(1, "tool") as pool:
        pool.submit(release.wait, 60)
        executor = CodeExecutor(pool)
        tool = sync_tool(lambda: late.append("late"))
        call = asyncio.create_task(executor.execute(tool, NOTHING, CONTEXT, may_start=may_start))
        await asyncio.sleep(0)
        assert asked == []
        release.set()
        assert await call is None
    assert late == []
    assert asked == ["tool_0"]


async def test_r_9_an_async_call_asks_right_before_it_starts(pool: ThreadPoolExecutor) -> None:
    """Its neighbour that may start runs."""

    async def work() -> str:
        return "done"

    executor = CodeExecutor(pool)
    tool = async_tool(work)
    assert await executor.execute(tool, NOTHING, CONTEXT, may_start=lambda: False) is None
    assert (
        ran(await executor.execute(tool, NOTHING, CONTEXT, may_start=lambda: True)).outcome == "ok"
    )
