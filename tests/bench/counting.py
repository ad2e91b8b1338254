"""How often a driver was asked: counted where the stores call it, in this process."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import aiomysql
import asyncpg
from aiobotocore.client import AioBaseClient

__all__ = ["Counter", "counting"]


class Counter:
    """Counts from any thread; connections that are opened meanwhile are counted."""

    def __init__(self) -> None:
        self._seen: list[None] = []  # appending is one step for every thread

    @property
    def count(self) -> int:
        """How often so far."""
        return len(self._seen)

    def see(self, *_: object) -> None:
        """Count one."""
        self._seen.append(None)


@contextmanager
def counting() -> Iterator[Counter]:
    """Count statements of SQLite and PostgreSQL, packets to MySQL, requests to DynamoDB."""
    counter = Counter()
    connect_sqlite, connect_postgresql = sqlite3.connect, asyncpg.connect
    connect_mysql, call = aiomysql.connect, AioBaseClient._make_api_call

    def to_sqlite(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect_sqlite(*args, **options)
        connection.set_trace_callback(counter.see)
        return connection

    async def to_postgresql(*args: Any, **options: Any) -> asyncpg.Connection:
        connection: asyncpg.Connection = await connect_postgresql(*args, **options)
        connection.add_query_logger(counter.see)
        return connection

    async def to_mysql(**options: Any) -> aiomysql.Connection:
        connection = await connect_mysql(**options)
        query = connection.query

        async def counted(*args: Any, **more: Any) -> None:
            counter.see()
            await query(*args, **more)

        connection.query = counted
        return connection

    async def to_dynamodb(client: AioBaseClient, *args: Any, **options: Any) -> object:
        counter.see()
        answer: object = await call(client, *args, **options)
        return answer

    with ExitStack() as patches:
        patches.enter_context(patch.object(sqlite3, "connect", to_sqlite))
        patches.enter_context(patch.object(asyncpg, "connect", to_postgresql))
        patches.enter_context(patch.object(aiomysql, "connect", to_mysql))
        patches.enter_context(patch.object(AioBaseClient, "_make_api_call", to_dynamodb))
        yield counter
