"""How soon a Run goes on whose worker was killed in the middle of a tool call, on each store.

Another worker is alive, and has been for a lease: nobody is declared dead by one who has just
come (R-6).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from psych_runtime import Store, Version, dispatch, stream, wait
from psych_schema.record import AttemptStarted
from tests.bench.dynamodb_server import dynamodb_place
from tests.bench.elsewhere import published, work
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.holding import equip
from tests.bench.processes import Other, another
from tests.bench.running import SCOPE
from tests.bench.servers import mysql_database, postgresql_database
from tests.bench.sizes import Sizes

__all__ = ["measure"]

_MORE_SECONDS: Final = 1.0  # than the lease
_APART_SECONDS: Final = 0.7  # between two deaths: whoever takes a Run has ended it by the next


class _Where(NamedTuple):
    """A store; its workers are to be told within half a lease that it does not answer."""

    id: str
    name: str
    url: str
    workers_url: str
    prefix: str = ""


class _Crew(NamedTuple):
    """A store, and workers that wait for its Runs, each in a process of its own."""

    where: _Where
    store: Store
    version: Version
    workers: Sequence[Other]


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the line of each store that several processes can share.

    All of them are watched at once: nearly all of the time goes by while a lease does.
    """
    lease = sizes.lease_seconds
    async with _places(lease) as places, AsyncExitStack() as opened:
        crews = [await opened.enter_async_context(_crew(where, sizes)) for where in places]
        for crew in crews:
            for worker in crew.workers:
                await worker.hear()
        await asyncio.sleep(1.5 * lease)
        found = await asyncio.gather(*[_recoveries(crew, guard) for crew in crews])
    return [
        Line(
            id=f"{crew.where.id}_recovery",
            title=f"a Run on {crew.where.name} goes on after kill -9, at worst",
            unit="s",
            beside="the lease",
            ours=seconds,
            yardstick=[lease] * len(seconds),
            limit=lease + _MORE_SECONDS,
            at_worst=True,
        )
        for crew, seconds in zip(crews, found, strict=True)
    ]


@asynccontextmanager
async def _places(lease: float) -> AsyncIterator[Sequence[_Where]]:
    with TemporaryDirectory(prefix="psych-bench-") as folder:
        file = f"sqlite:///{folder}/runs.db"
        async with (
            postgresql_database() as postgresql,
            mysql_database("mysql") as mysql,
            mysql_database("mariadb") as mariadb,
            dynamodb_place() as dynamodb,
        ):
            servers = (
                ("postgresql", "PostgreSQL", postgresql),
                ("mysql", "MySQL", mysql),
                ("mariadb", "MariaDB", mariadb),
            )
            hasty = dynamodb.url_for(lease)
            yield (
                _Where("sqlite", "SQLite", file, file),
                *(
                    _Where(id, name, url, f"{url}?timeout_seconds={lease / 3:g}")
                    for id, name, url in servers
                ),
                _Where("dynamodb", "DynamoDB", dynamodb.url, hasty, dynamodb.prefix),
            )


@asynccontextmanager
async def _crew(where: _Where, sizes: Sizes) -> AsyncIterator[_Crew]:
    """Start one worker more than will die; they are not heard yet."""
    async with published(where.url, where.prefix) as (store, version):
        with ExitStack() as processes:
            workers = []
            for _ in range(sizes.recoveries + 1):
                working = another(
                    work,
                    where.workers_url,
                    equip,
                    prefix=where.prefix,
                    lease_seconds=sizes.lease_seconds,
                    concurrency=1,
                )
                workers.append(processes.enter_context(working))
            yield _Crew(where, store, version, workers)


async def _recoveries(crew: _Crew, guard: Guard) -> list[float]:
    """Kill all workers but one, shortly one after another, each in a Run of its own."""
    held = [await _held(crew, guard) for _ in crew.workers[1:]]
    async with asyncio.TaskGroup() as group:
        watched = []
        for run_id, holder in held:
            holder.kill()
            watched.append(group.create_task(_seconds(crew.store, run_id)))
            await asyncio.sleep(_APART_SECONDS)
    return [one.result() for one in watched]


async def _held(crew: _Crew, guard: Guard) -> tuple[str, Other]:
    """Return a new Run, and the worker that is in the middle of its call."""
    guard.look()
    asked = {"message": "Where is my order?"}
    run = await dispatch(crew.store, crew.version, scope=SCOPE, input=asked)
    return run.run_id, await _first_to_speak(crew.workers)


async def _seconds(store: Store, run_id: str) -> float:
    """Return how long from now it takes until another attempt begins."""
    begun, attempts = time.monotonic(), 0
    async for record in stream(store, run_id, scope=SCOPE):
        attempts += isinstance(record, AttemptStarted)
        if attempts == 2:
            break
    seconds = time.monotonic() - begun
    await wait(store, run_id, scope=SCOPE)  # the call is unknown, the model is told, all ends
    return seconds


async def _first_to_speak(workers: Sequence[Other]) -> Other:
    """Return the worker whose tool has begun."""
    pipes = {worker.pipe: worker for worker in workers}
    [spoken, *_] = await asyncio.to_thread(wait_for, list(pipes))
    assert isinstance(spoken, Connection)
    spoken.recv()
    return pipes[spoken]
