"""Opening a client: shared by all who wait for it, and harmless to cancel at any moment (R-21)."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import pytest

from psych_runtime.errors import StoreClosed
from psych_runtime.store.dynamodb._client import DynamoClient, DynamoOptions, opener
from psych_runtime.store.dynamodb._lines import Lines

CLIENT = cast("DynamoClient", object())


class Door:
    """What opens clients, and tells what became of them."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.may_open = asyncio.Event()
        self.failure: Exception | None = None

    async def __call__(self) -> AbstractAsyncContextManager[DynamoClient]:
        self.told.append("asked")
        await self.may_open.wait()
        if self.failure is not None:
            raise self.failure
        return self._client()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[DynamoClient]:
        self.told.append("opened")
        yield CLIENT
        self.told.append("closed")


async def _until(told: list[str], length: int) -> None:
    while len(told) < length:
        await asyncio.sleep(0)


async def test_r_21_a_caller_who_is_cancelled_leaves_the_opening_to_the_others() -> None:
    """It is opened once, for whoever is still there and for whoever comes later."""
    door = Door()
    lines = Lines(door)
    first, second = (asyncio.create_task(lines.line().client()) for _ in range(2))
    await _until(door.told, 1)
    first.cancel()
    await asyncio.wait((first,))
    door.may_open.set()
    assert await second is CLIENT
    assert await lines.line().client() is CLIENT
    await lines.close()
    assert first.cancelled()
    assert door.told == ["asked", "opened", "closed"]


async def test_st_2_an_opening_that_fails_is_told_to_all_and_tried_anew_by_the_next() -> None:
    """Nobody of those who waited tries again by himself."""
    door = Door()
    lines = Lines(door)
    waiting = [asyncio.create_task(lines.line().client()) for _ in range(3)]
    await _until(door.told, 1)
    door.failure = ConnectionResetError()
    door.may_open.set()
    assert await asyncio.gather(*waiting, return_exceptions=True) == [door.failure] * 3
    assert door.told == ["asked"]
    door.failure = None
    assert await lines.line().client() is CLIENT
    await lines.close()
    assert door.told == ["asked", "asked", "opened", "closed"]


async def test_r_21_closing_ends_an_opening() -> None:
    """Whoever waits for it is told that the handle is closed."""
    door = Door()
    lines = Lines(door)
    waiting = asyncio.create_task(lines.line().client())
    await _until(door.told, 1)
    await lines.close()
    with pytest.raises(StoreClosed):
        await waiting
    with pytest.raises(StoreClosed):
        lines.line()
    assert door.told == ["asked"]


class _AtOnce(ThreadPoolExecutor):
    """Runs what is submitted before it returns, so that a test knows each step."""

    def submit[**P, R](self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        done: Future[R] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


async def test_r_21_cancelling_the_opening_of_a_client_leaves_nothing_behind() -> None:
    """At each of its first steps: no coroutine that nobody awaits, no session that stays open."""
    asyncio.get_running_loop().set_default_executor(_AtOnce())
    options = DynamoOptions(region="us-east-1", endpoint_url="http://127.0.0.1:1")

    async def enter() -> None:
        async with await opener(options)():
            await asyncio.Event().wait()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for steps in range(1, 6):
            entering = asyncio.create_task(enter())
            for _ in range(steps):
                await asyncio.sleep(0)
            entering.cancel()
            await asyncio.wait((entering,))
            assert entering.cancelled()
            del entering
            gc.collect()
    assert [str(each.message) for each in told] == []
