"""Runs of the runtime itself: a worker, and callers that dispatch and wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import repeat
from typing import Final

from psych_runtime import (
    ModelClient,
    Runtime,
    Scope,
    Store,
    Version,
    Worker,
    dispatch,
    open_store,
    publish,
    wait,
)
from psych_schema.store import RecordRow
from tests.bench.workload import Model, agent, registry

__all__ = ["SCOPE", "Running", "read_log", "running"]

SCOPE: Final = Scope(tenant="bench")


class Running:
    """A store and a worker on it, ready for Runs."""

    def __init__(self, store: Store, worker: Worker, version: Version) -> None:
        self.store = store
        self._worker = worker
        self._version = version

    async def one(self, *, deltas: bool = False) -> str:
        """Dispatch a Run, wait until it has settled, return its id."""
        run = await dispatch(
            self.store,
            self._version,
            scope=SCOPE,
            input={"message": "Where is my order?"},
            deltas=deltas,
        )
        status = await wait(self.store, run.run_id, scope=SCOPE)
        if status.lifecycle != "done":
            raise RuntimeError(f"{run.run_id} is {status.lifecycle}")
        return run.run_id

    async def many(self, runs: int, *, at_once: int) -> None:
        """Execute so many Runs, `at_once` of them at any moment."""
        todo = repeat(None, runs)

        async def caller() -> None:
            for _ in todo:
                await self.one()

        async with asyncio.TaskGroup() as callers:
            for _ in range(min(runs, at_once)):
                callers.create_task(caller())


@asynccontextmanager
async def running(
    url: str,
    *,
    model: ModelClient | None = None,
    turns: int = 2,
    prefix: str = "",
    lease_seconds: float = 6.0,
) -> AsyncIterator[Running]:
    """Open a store and start a worker on it; both are gone afterwards."""
    client = Model(turns) if model is None else model
    async with open_store(url, prefix=prefix) as store:
        await store.migrate()
        runtime = Runtime(store=store, model=client, registry=registry())
        version = await publish(store, agent(turns), scope=SCOPE, check=runtime)
        worker = Worker(runtime, lease_seconds=lease_seconds)
        task = asyncio.create_task(worker.run())
        try:
            yield Running(store, worker, version)
        finally:
            worker.stop()
            await task


async def read_log(turns: int) -> list[RecordRow]:
    """Return the log of a Run of so many turns, pieces of its streams among it."""
    async with running("memory://", turns=turns) as system:
        run_id = await system.one(deltas=True)
        return await system.store.read(SCOPE.tenant, run_id)
