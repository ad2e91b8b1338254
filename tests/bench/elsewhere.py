"""A worker in another process, and what it needs to find there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from time import process_time
from typing import NamedTuple

from psych_runtime import (
    ModelClient,
    Runtime,
    Store,
    ToolRegistry,
    Version,
    Worker,
    open_store,
    publish,
)
from tests.bench.running import SCOPE
from tests.bench.workload import agent, registry

__all__ = ["Equipment", "published", "work"]


class Equipment(NamedTuple):
    """What a worker executes Runs with."""

    model: ModelClient
    tools: ToolRegistry


async def work(
    pipe: Connection,
    url: str,
    equip: Callable[[Connection], Equipment],
    *,
    prefix: str = "",
    lease_seconds: float = 6.0,
    concurrency: int = 64,
) -> None:
    """Be a worker until None comes; another word is answered with the CPU seconds so far."""
    model, tools = equip(pipe)
    async with open_store(url, prefix=prefix) as store:
        worker = Worker(
            Runtime(store=store, model=model, registry=tools),
            lease_seconds=lease_seconds,
            concurrency=concurrency,
        )
        running = asyncio.create_task(worker.run())
        pipe.send("ready")
        while await asyncio.to_thread(pipe.recv) is not None:
            pipe.send(process_time())
        running.cancel()
        await asyncio.wait((running,))


@asynccontextmanager
async def published(url: str, prefix: str = "") -> AsyncIterator[tuple[Store, Version]]:
    """Make the tables and publish the agent; yield the store and the Version."""
    async with open_store(url, prefix=prefix) as store:
        await store.migrate()
        yield store, await publish(store, agent(), scope=SCOPE, check=registry())
