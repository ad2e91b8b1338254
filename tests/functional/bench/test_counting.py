"""What the drivers are asked is counted where they are called."""

import sqlite3
from contextlib import closing

import asyncpg

from tests.bench.counting import counting
from tests.bench.dynamodb_server import dynamodb_place
from tests.bench.servers import mysql_connections
from tests.services import start_server


def test_bench_statements_of_sqlite_are_counted() -> None:
    """Those of connections that were opened meanwhile, each once."""
    with closing(sqlite3.connect(":memory:")) as before, counting() as counter:
        before.execute("SELECT 1")
        with closing(sqlite3.connect(":memory:")) as meanwhile:
            meanwhile.execute("SELECT 1").fetchall()
            meanwhile.execute("SELECT 2").fetchall()
        assert counter.count == 2


async def test_bench_statements_to_postgresql_are_counted() -> None:
    """However they are sent."""
    with counting() as counter:
        connection = await asyncpg.connect(start_server("postgres").url)
        await connection.fetch("SELECT $1::int", 1)
        await connection.execute("SELECT 1")
        await connection.close()
    assert counter.count == 2


async def test_bench_packets_to_mysql_are_counted() -> None:
    """A packet of several statements is one."""
    with counting() as counter:
        async with mysql_connections(start_server("mysql").url, 1) as [connection]:
            opened = counter.count
            async with connection.cursor() as cursor:
                await cursor.execute("SELECT 1; SELECT 2")
                while await cursor.nextset():
                    continue
    assert counter.count - opened == 1


async def test_bench_requests_to_dynamodb_are_counted() -> None:
    """Also those whose answer is an error."""
    async with dynamodb_place() as place:
        with counting() as counter:
            await place.client.describe_endpoints()
        assert counter.count == 1
