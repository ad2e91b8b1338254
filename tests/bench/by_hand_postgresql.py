"""Keeping records by hand in PostgreSQL: one statement, and so one commit, for each record.

Ten raw connections, prepared statements, nothing of the server's settings changed: the floor
under a program that keeps every step before it goes on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement

from tests.bench.by_hand import Texts

__all__ = ["Keeper", "keeper"]

CONNECTIONS: Final = 10

_TABLES: Final = """
CREATE TABLE hand_run (run_id text PRIMARY KEY, head bigint NOT NULL);
CREATE TABLE hand_record (
    run_id text NOT NULL, seq bigint NOT NULL, body text NOT NULL, PRIMARY KEY (run_id, seq)
);
"""
_BEGIN: Final = """
WITH made AS (INSERT INTO hand_run VALUES ($1, 1) RETURNING run_id, head)
INSERT INTO hand_record SELECT run_id, head, $2 FROM made
"""
_GO_ON: Final = """
WITH moved AS (UPDATE hand_run SET head = head + 1 WHERE run_id = $1 RETURNING run_id, head)
INSERT INTO hand_record SELECT run_id, head, $2 FROM moved
"""


class _Ready(NamedTuple):
    connection: asyncpg.Connection
    begin: "PreparedStatement[asyncpg.Record]"
    go_on: "PreparedStatement[asyncpg.Record]"


class Keeper:
    """A pool of connections that write."""

    def __init__(self, ready: list[_Ready]) -> None:
        self._begun: set[str] = set()
        self._idle: asyncio.LifoQueue[_Ready] = asyncio.LifoQueue()
        for one in ready:
            self._idle.put_nowait(one)

    async def keep(self, run_id: str, texts: Texts) -> None:
        """Write a record; return once it is on the disk."""
        [text] = texts
        one = await self._idle.get()
        try:
            if run_id in self._begun:
                await one.go_on.fetch(run_id, text)
            else:
                self._begun.add(run_id)
                await one.begin.fetch(run_id, text)
        finally:
            self._idle.put_nowait(one)


@asynccontextmanager
async def keeper(url: str) -> AsyncIterator[Keeper]:
    """Make the tables and yield who writes; its connections end with the block."""
    connections = [await asyncpg.connect(url) for _ in range(CONNECTIONS)]
    try:
        await connections[0].execute(_TABLES)
        ready = [
            _Ready(one, await one.prepare(_BEGIN), await one.prepare(_GO_ON)) for one in connections
        ]
        yield Keeper(ready)
    finally:
        for one in connections:
            await one.close()
