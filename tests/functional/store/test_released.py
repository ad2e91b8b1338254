"""What a store holds of the process is given back when its last handle is closed."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from psych_runtime import (
    AgentSpec,
    ModelRef,
    Runtime,
    Scope,
    UnsupportedStore,
    Worker,
    dispatch,
    open_store,
    publish,
    session,
    wait,
)
from psych_runtime.errors import RegistrationError
from psych_runtime.testing import FakeModel
from psych_runtime.tools.registry import ToolRegistry

ACME = Scope(tenant="acme")
SPEC = AgentSpec(name="one", instructions="Say a.", model=ModelRef(model="scripted"))

type Use = Callable[[str], Awaitable[None]]


def held() -> tuple[list[str], int]:
    """Return the threads of this process by name, and how many descriptors it has open."""
    gc.collect()
    names = sorted(thread.name for thread in threading.enumerate())
    names = [name for name in names if not name.startswith("asyncio_")]  # the loop's own pool
    return names, sum(1 for _ in Path("/dev/fd").iterdir())


async def _opened(url: str) -> None:
    store = open_store(url)
    await store.migrate()
    await store.close()


async def _entered_twice(url: str) -> None:
    async with open_store(url) as one, open_store(url) as two:
        await one.migrate()
        assert await two.workers() == []


async def _twin_in_another_loop(url: str) -> None:
    async with open_store(url) as store:
        await store.migrate()
        twin = store.twin()

        async def supervise() -> None:
            assert await twin.workers() == []
            await twin.close()

        await asyncio.to_thread(lambda: asyncio.run(supervise()))


async def _twin_closed_last(url: str) -> None:
    store = open_store(url)
    await store.migrate()
    twin = store.twin()
    await store.close()
    assert await twin.workers() == []
    await twin.close()


async def _cancelled_while_closing(url: str) -> None:
    store = open_store(url)
    await store.migrate()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    for thread in threading.enumerate():
        if thread.name.startswith("psych-sqlite"):
            await asyncio.to_thread(thread.join, 10.0)


async def _session(url: str) -> None:
    async with session(FakeModel().turn(text="a"), store=url) as made:
        assert (await made.ask(SPEC, "x")).text == "a"


async def _session_refused(url: str) -> None:
    with pytest.raises(RegistrationError):
        async with session(FakeModel(), store=url, policy=None, tools=[3]):
            raise AssertionError
    with pytest.raises(UnsupportedStore):
        async with session(FakeModel(), store=url.replace("runs.db", "nowhere/runs.db")):
            raise AssertionError


async def _session_cut(url: str) -> None:
    entered = asyncio.Event()

    async def use() -> None:
        async with session(FakeModel(), store=url):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await entered.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def _worker(url: str, *, threads: bool = True) -> None:
    async with open_store(url) as store:
        await store.migrate()
        runtime = Runtime(store=store, model=FakeModel().turn(text="a"), registry=ToolRegistry())
        version = await publish(store, SPEC, scope=ACME, check=runtime)
        run = await dispatch(store, version, scope=ACME, input={"message": "x"})
        worker = Worker(runtime, threads=threads)
        running = asyncio.create_task(worker.run())
        found = await wait(store, run.run_id, scope=ACME)
        assert found.lifecycle == "done"
        worker.stop()
        await running


async def _worker_without_threads(url: str) -> None:
    await _worker(url, threads=False)


async def _worker_cancelled(url: str) -> None:
    async with open_store(url) as store:
        await store.migrate()
        runtime = Runtime(store=store, model=FakeModel(), registry=ToolRegistry())
        running = asyncio.create_task(Worker(runtime).run())
        while not await store.workers():
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.parametrize(
    "use",
    [
        _opened,
        _entered_twice,
        _twin_in_another_loop,
        _twin_closed_last,
        _cancelled_while_closing,
        _session,
        _session_refused,
        _session_cut,
        _worker,
        _worker_without_threads,
        _worker_cancelled,
    ],
)
async def test_r_21_the_last_handle_gives_threads_and_descriptors_back(
    use: Use, tmp_path: Path
) -> None:
    """However a file was used: as many of both as before, for each of several files."""
    before = held()
    for place in range(3):
        directory = tmp_path / str(place)
        directory.mkdir()
        await use(f"sqlite:///{directory / 'runs.db'}")
        assert held() == before
