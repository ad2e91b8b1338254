"""What the store holds of the process is given back when its handles are closed (R-21)."""

import asyncio
import gc
import threading
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from psych_runtime.errors import StoreClosed
from psych_runtime.store.contract._build import TENANT, admission
from psych_runtime.store.dynamodb._shared import _SHARED
from psych_runtime.store.dynamodb.store import DynamoStore
from tests.functional.store.dynamodb.harness import DynamoHarness

type Use = Callable[[DynamoStore], Awaitable[None]]


def held() -> tuple[list[str], int, int]:
    """Return the threads of this process, its open descriptors, and the stores it shares."""
    gc.collect()
    names = sorted(thread.name for thread in threading.enumerate())
    names = [name for name in names if not name.startswith("asyncio_")]  # the loop's own pool
    return names, sum(1 for _ in Path("/dev/fd").iterdir()), len(_SHARED)


async def _asked(store: DynamoStore) -> None:
    assert await store.workers() == []


async def _many_at_once(store: DynamoStore) -> None:
    await asyncio.gather(*[store.ready(3) for _ in range(10)])


async def _twin_closed_last(store: DynamoStore) -> None:
    twin = store.twin()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.workers()
    assert await twin.workers() == []
    await twin.close()


async def _twin_in_another_loop(store: DynamoStore) -> None:
    twin = store.twin()

    async def supervise() -> None:
        assert await twin.workers() == []
        await twin.close()

    await asyncio.to_thread(lambda: asyncio.run(supervise()))


async def _twin_closed_here(store: DynamoStore) -> None:
    """A twin that works in another thread's loop, which goes on, is closed from this one."""
    twin = store.twin()
    asked, ended = threading.Event(), threading.Event()

    async def supervise() -> None:
        assert await twin.workers() == []
        asked.set()
        await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(supervise()))
    thread.start()
    await asyncio.to_thread(asked.wait)
    await twin.close()
    ended.set()
    await asyncio.to_thread(thread.join)


async def _waits_cut(store: DynamoStore) -> None:
    run_id = await admission(store)
    waiting = asyncio.create_task(store.wait(TENANT, {run_id: 1}, 60.0))
    await asyncio.sleep(0.2)
    waiting.cancel()
    await asyncio.wait([waiting])


async def _closed_while_waited(store: DynamoStore) -> None:
    run_id = await admission(store)
    waiting = asyncio.create_task(store.wait(TENANT, {run_id: 1}, 0.3))
    await asyncio.sleep(0.1)
    await store.close()
    assert await waiting == frozenset()


async def _calls_cut(store: DynamoStore) -> None:
    calls = [asyncio.create_task(store.ready(3)) for _ in range(5)]
    await asyncio.sleep(0.02)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)


@pytest.mark.parametrize(
    "use",
    [
        _asked,
        _many_at_once,
        _twin_closed_last,
        _twin_in_another_loop,
        _twin_closed_here,
        _waits_cut,
        _closed_while_waited,
        _calls_cut,
    ],
)
async def test_r_21_the_last_handle_gives_everything_back(use: Use, harness: DynamoHarness) -> None:
    """However it was used: as many threads, descriptors and shared stores as before."""
    async with harness.open():
        pass
    async with asyncio.TaskGroup() as group:  # the loop's own pool, before counting
        for _ in range(8):
            group.create_task(asyncio.to_thread(threading.Event().wait, 0.05))
    before = held()
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            async with DynamoStore(harness.options) as store:
                await use(store)
            assert held() == before
