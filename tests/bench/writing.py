"""What a Run makes a store do: commits, statements, bytes of PostgreSQL's log."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import asyncpg

from tests.bench.counting import Counter, counting
from tests.bench.dynamodb_server import LEASE_SECONDS, dynamodb_place
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import in_turn_async
from tests.bench.running import SCOPE, Running, running
from tests.bench.servers import mysql_database, postgresql_database
from tests.bench.sizes import Sizes

__all__ = ["measure"]

_AT_ONCE: Final = (1, 64)
_COMMITS: Final = 5.0  # the claim and four
_LOG_KILOBYTES: Final = 10.0
_WRITTEN: Final = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"


class _Where(NamedTuple):
    id: str
    name: str
    unit: str
    url: str
    prefix: str = ""
    lease_seconds: float = 6.0


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return commits and bytes of PostgreSQL, then what each store's driver is asked."""
    found: list[Line] = []
    async with postgresql_database() as url, running(url) as system:
        found.append(await _commits(system, sizes))
        found.append(await _log_bytes(system, url, sizes, guard))
    async with _places() as places:
        for where in places:
            found += await _statements(where, sizes, guard)
    return found


async def _commits(system: Running, sizes: Sizes) -> Line:
    """Return how many commits the logs of Runs name, besides that of the admission."""
    run_ids = [await system.one() for _ in range(sizes.counted_runs // 4)]
    counts = []
    for run_id in run_ids:
        rows = await system.store.read(SCOPE.tenant, run_id)
        counts.append(len({json.loads(row.body)["commit"] for row in rows}) - 1.0)
    title = "of a Run after its admission"
    return Line(id="commits", title=title, unit="commits", ours=counts, limit=_COMMITS)


async def _log_bytes(system: Running, url: str, sizes: Sizes, guard: Guard) -> Line:
    """Return what PostgreSQL logs for a Run; nobody else may be writing on that server."""
    watcher = await asyncpg.connect(url)
    runs = sizes.runs

    async def written() -> float:
        before = await watcher.fetchval(_WRITTEN)
        await system.many(runs, at_once=64)
        return float(await watcher.fetchval(_WRITTEN) - before) / runs / 1e3

    try:
        [kilobytes] = await in_turn_async(guard, sizes.counted_rounds, written)
    finally:
        await watcher.close()
    return Line(
        id="postgresql_wal",
        title="log of a Run on PostgreSQL, 64 at once",
        unit="kB",
        ours=kilobytes,
        limit=_LOG_KILOBYTES,
    )


@asynccontextmanager
async def _places() -> AsyncIterator[Sequence[_Where]]:
    with TemporaryDirectory(prefix="psych-bench-") as folder:
        async with (
            postgresql_database() as postgresql,
            mysql_database("mysql") as mysql,
            mysql_database("mariadb") as mariadb,
            dynamodb_place() as dynamodb,
        ):
            yield (
                _Where("sqlite", "SQLite", "statements", f"sqlite:///{folder}/ours.db"),
                _Where("postgresql", "PostgreSQL", "statements", postgresql),
                _Where("mysql", "MySQL", "packets", mysql),
                _Where("mariadb", "MariaDB", "packets", mariadb),
                _Where(
                    "dynamodb",
                    "DynamoDB",
                    "requests",
                    dynamodb.url,
                    dynamodb.prefix,
                    LEASE_SECONDS,
                ),
            )


async def _statements(where: _Where, sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return what a Run asks of the driver: dispatch, worker, supervisor and `wait` together."""
    with counting() as counter:
        opening = running(where.url, prefix=where.prefix, lease_seconds=where.lease_seconds)
        async with opening as system:
            await system.one()
            found = []
            for at_once in _AT_ONCE:
                count = partial(_count, system, counter, sizes, at_once)
                [counts] = await in_turn_async(guard, sizes.counted_rounds, count)
                line = Line(
                    id=f"{where.id}_asked_{at_once}",
                    title=f"of a Run on {where.name}, {at_once} at once",
                    unit=where.unit,
                    ours=counts,
                )
                found.append(line)
    return found


async def _count(system: Running, counter: Counter, sizes: Sizes, at_once: int) -> float:
    runs = sizes.counted_runs if at_once > 1 else max(1, sizes.counted_runs // 8)
    before = counter.count
    await system.many(runs, at_once=at_once)
    return (counter.count - before) / runs
