"""Keeping records by hand in MySQL or MariaDB: one packet, and so one commit, for each record."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiomysql

from tests.bench.by_hand import Texts
from tests.bench.servers import mysql_connections

__all__ = ["Keeper", "keeper"]

_CONNECTIONS: Final = 10

_TABLES: Final = """
CREATE TABLE hand_run (run_id VARCHAR(40) PRIMARY KEY, head BIGINT NOT NULL);
CREATE TABLE hand_record (
    run_id VARCHAR(40) NOT NULL, seq BIGINT NOT NULL, body MEDIUMTEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
)
"""
_BEGIN: Final = """
BEGIN;
INSERT INTO hand_run VALUES (%(run_id)s, 1);
INSERT INTO hand_record VALUES (%(run_id)s, 1, %(text)s);
COMMIT
"""
_GO_ON: Final = """
BEGIN;
UPDATE hand_run SET head = LAST_INSERT_ID(head + 1) WHERE run_id = %(run_id)s;
INSERT INTO hand_record VALUES (%(run_id)s, LAST_INSERT_ID(), %(text)s);
COMMIT
"""


class Keeper:
    """A pool of connections that write."""

    def __init__(self, connections: list[aiomysql.Connection]) -> None:
        self._begun: set[str] = set()
        self._idle: asyncio.LifoQueue[aiomysql.Connection] = asyncio.LifoQueue()
        for connection in connections:
            self._idle.put_nowait(connection)

    async def keep(self, run_id: str, texts: Texts) -> None:
        """Write a record; return once it is on the disk."""
        [text] = texts
        statements = _GO_ON if run_id in self._begun else _BEGIN
        self._begun.add(run_id)
        connection = await self._idle.get()
        try:
            async with connection.cursor() as cursor:
                await cursor.execute(statements, {"run_id": run_id, "text": text})
                while await cursor.nextset():
                    continue
        finally:
            self._idle.put_nowait(connection)


@asynccontextmanager
async def keeper(url: str) -> AsyncIterator[Keeper]:
    """Make the tables and yield who writes; its connections end with the block."""
    async with mysql_connections(url, _CONNECTIONS) as connections:
        async with connections[0].cursor() as cursor:
            await cursor.execute(_TABLES)
            while await cursor.nextset():
                continue
        yield Keeper(connections)
