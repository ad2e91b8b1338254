"""LISTEN and NOTIFY of PostgreSQL alone: from a raw connection to one of another process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from time import monotonic

import asyncpg

from tests.bench.processes import Other, another

__all__ = ["BESIDE", "Notifier", "notifier"]

BESIDE = "LISTEN/NOTIFY alone, from process to process"

_CHANNEL = "bench"


class Notifier:
    """A connection that notifies, and the process that listens."""

    def __init__(self, connection: asyncpg.Connection, listener: Other) -> None:
        self._connection = connection
        self._listener = listener

    async def times(self, count: int) -> list[float]:
        """Notify so many times; return how long each took to be heard, in ms."""
        found = []
        for _ in range(count):
            begun = monotonic()
            await self._connection.execute("SELECT pg_notify($1, '')", _CHANNEL)
            found.append((await self._listener.seconds() - begun) * 1e3)
        return found


@asynccontextmanager
async def notifier(url: str) -> AsyncIterator[Notifier]:
    """Open the connection and start the process."""
    with another(_listen, url) as listener:
        await listener.hear()
        connection = await asyncpg.connect(url)
        try:
            yield Notifier(connection, listener)
        finally:
            await connection.close()


async def _listen(pipe: Connection, url: str) -> None:
    """Say when a notification was heard, until None comes."""
    connection = await asyncpg.connect(url)
    try:
        await connection.add_listener(_CHANNEL, lambda *_: pipe.send(monotonic()))
        pipe.send("listening")
        await asyncio.to_thread(pipe.recv)
    finally:
        await connection.close()
