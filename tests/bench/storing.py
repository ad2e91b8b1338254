"""Whole Runs on every store, each beside the same by hand with the same means."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench import by_hand_dynamodb, by_hand_mysql, by_hand_postgresql
from tests.bench.by_hand import ByHand, in_memory
from tests.bench.by_hand_sqlite import Writer
from tests.bench.dynamodb_server import LEASE_SECONDS, dynamodb_place
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.running import running
from tests.bench.servers import mysql_database, postgresql_database
from tests.bench.sizes import Sizes
from tests.bench.throughput import Amount, Place, lines
from tests.bench.workload import Model

__all__ = [
    "on_dynamodb",
    "on_mariadb",
    "on_memory",
    "on_mysql",
    "on_postgresql",
    "on_postgresql_new",
    "on_sqlite",
]

_ELEVEN: Final = "by hand, eleven commits"
_FLOOR: Final = {"one": 1.5, "rate_64": 1.0, "cpu_64": 2.5}
_TWICE: Final = {"one": 2.0, "rate_16": 2.0, "rate_64": 2.0}


async def on_memory(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of the in-memory store."""
    place = Place("memory", "in memory", "by hand, records in lists")
    by_hand = ByHand(Model(), in_memory({}))
    async with running("memory://") as ours:
        return await lines(place, ours, by_hand, _amount(sizes), guard)


async def on_sqlite(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of a SQLite file."""
    place = Place("sqlite", "on SQLite", "by hand, six transactions", {"rate_16": 2.0})
    with TemporaryDirectory(prefix="psych-bench-") as folder:
        async with (
            _writer(Path(folder) / "by_hand.db") as by_hand,
            running(f"sqlite:///{folder}/ours.db") as ours,
        ):
            return await lines(place, ours, by_hand, _amount(sizes), guard)


async def on_postgresql(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of PostgreSQL."""
    place = Place("postgresql", "on PostgreSQL", f"{_ELEVEN}, PostgreSQL", _FLOOR)
    return await _on_postgresql(place, "postgres", sizes, guard)


async def on_postgresql_new(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of PostgreSQL 18."""
    place = Place("postgresql_18", "on PostgreSQL 18", f"{_ELEVEN}, PostgreSQL 18")
    return await _on_postgresql(place, "postgres_new", sizes, guard)


async def _on_postgresql(place: Place, server: str, sizes: Sizes, guard: Guard) -> Sequence[Line]:
    async with postgresql_database(server) as url, by_hand_postgresql.keeper(url) as keeper:
        by_hand = ByHand(Model(), keeper.keep, apart=True)
        async with running(url) as ours:
            return await lines(place, ours, by_hand, _on_server(sizes), guard)


async def on_mysql(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of MySQL."""
    return await _on_mysql(Place("mysql", "on MySQL", f"{_ELEVEN}, MySQL", _TWICE), sizes, guard)


async def on_mariadb(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of MariaDB."""
    place = Place("mariadb", "on MariaDB", f"{_ELEVEN}, MariaDB", _TWICE)
    return await _on_mysql(place, sizes, guard)


async def _on_mysql(place: Place, sizes: Sizes, guard: Guard) -> Sequence[Line]:
    async with mysql_database(place.id) as url, by_hand_mysql.keeper(url) as keeper:
        by_hand = ByHand(Model(), keeper.keep, apart=True)
        async with running(url) as ours:
            return await lines(place, ours, by_hand, _on_server(sizes), guard)


async def on_dynamodb(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the lines of DynamoDB's emulator, where every request is dear: fewer Runs do."""
    place = Place("dynamodb", "on DynamoDB", "by hand, eleven transactions, DynamoDB", _TWICE)
    async with dynamodb_place() as where:
        table = await by_hand_dynamodb.make_table(where, "hand")
        by_hand = ByHand(Model(), by_hand_dynamodb.Keeper(where.client, table).keep, apart=True)
        amount = replace(_on_server(sizes), rounds=sizes.slow_rounds, runs=sizes.slow_runs)
        opening = running(where.url, prefix=where.prefix, lease_seconds=LEASE_SECONDS)
        async with opening as ours:
            return await lines(place, ours, by_hand, amount, guard)


@asynccontextmanager
async def _writer(path: Path) -> AsyncIterator[ByHand]:
    writer = Writer(path)
    try:
        yield ByHand(Model(), writer.keep)
    finally:
        await asyncio.to_thread(writer.close)


def _amount(sizes: Sizes) -> Amount:
    return Amount(sizes.run_rounds, sizes.runs, sizes.concurrencies)


def _on_server(sizes: Sizes) -> Amount:
    return Amount(sizes.server_rounds, sizes.runs, sizes.concurrencies)
