"""How soon a Run goes on whose worker was killed in the middle of a tool call.

Another worker is alive, and has been for a lease: nobody is declared dead by one who has just
come (R-6).
"""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Annotated

from psych_runtime import Store, ToolRegistry, Version, dispatch, stream, wait
from psych_schema.record import AttemptStarted
from tests.bench.elsewhere import Equipment, published, work
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.processes import Other, another
from tests.bench.running import SCOPE
from tests.bench.servers import postgresql_database
from tests.bench.sizes import Sizes
from tests.bench.workload import Model

__all__ = ["measure"]

_FOR_EVER_SECONDS = 3600.0


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the line of the recovery; two workers live, one of them dies in each round."""
    lease, found = sizes.lease_seconds, []
    async with postgresql_database() as url, published(url) as (store, version):
        patient = f"{url}?timeout_seconds={lease / 3:g}"
        with ExitStack() as processes:

            async def start() -> Other:
                worker = processes.enter_context(another(work, patient, equip, lease))
                await worker.hear()
                return worker

            workers = [await start(), await start()]
            for _ in range(sizes.recoveries):
                guard.look()
                await asyncio.sleep(1.5 * lease)
                holder, seconds = await _recover(store, version, workers)
                found.append(seconds)
                workers.remove(holder)
                workers.append(await start())
    return [
        Line(
            id="recovery",
            title="a Run goes on after kill -9",
            unit="s",
            beside="the lease",
            ours=found,
            yardstick=[lease] * len(found),
            limit=7.0,
        )
    ]


async def _recover(store: Store, version: Version, workers: Sequence[Other]) -> tuple[Other, float]:
    """Kill who executes a new Run; return it, and the seconds until another attempt began."""
    run = await dispatch(store, version, scope=SCOPE, input={"message": "Where is my order?"})
    holder = await _first_to_speak(workers)
    holder.kill()
    killed = time.time()
    attempts = 0
    async for record in stream(store, run.run_id, scope=SCOPE):
        attempts += isinstance(record, AttemptStarted)
        if attempts == 2:
            break
    seconds = time.time() - killed  # the call's outcome is unknown, the model is told, all ends
    await wait(store, run.run_id, scope=SCOPE)
    return holder, seconds


async def _first_to_speak(workers: Sequence[Other]) -> Other:
    """Return the worker whose tool has begun."""
    pipes = {worker.pipe: worker for worker in workers}
    [spoken, *_] = await asyncio.to_thread(wait_for, list(pipes))
    assert isinstance(spoken, Connection)
    spoken.recv()
    return pipes[spoken]


def equip(pipe: Connection) -> Equipment:
    """Return the model, and a tool that says that it has begun and never ends."""
    tools = ToolRegistry()

    async def look_up(order: Annotated[int, "the order's number"]) -> str:
        """Say where an order is."""
        pipe.send(os.getpid())
        await asyncio.sleep(_FOR_EVER_SECONDS)
        return f"order {order}: on its way"

    tools.register(look_up, annotations={"read-only"})
    return Equipment(Model(), tools)
