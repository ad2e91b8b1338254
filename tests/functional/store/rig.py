"""A loop, a clock and one SQLite file for many short examples."""

import asyncio
import sqlite3
from collections.abc import Awaitable
from datetime import datetime
from pathlib import Path

from psych_runtime._system import System
from psych_runtime.store._kept import Kept
from psych_runtime.store.contract._build import START
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.sqlite._connect import SqliteOptions
from psych_runtime.store.sqlite._failures import translate
from psych_runtime.store.sqlite._work import Job
from psych_runtime.store.sqlite.store import SqliteStore
from psych_schema.tables import metadata


class Clock(System):
    """A System whose wall clock moves only when told."""

    def __init__(self) -> None:
        super().__init__()
        self.instant = START

    def now(self) -> datetime:
        return self.instant


class InlineSqlite(SqliteStore):
    """A SqliteStore that does each job at once, where it is asked: threads cost most of the time.

    Jobs, statements and transactions are the store's; nothing waits for the disk.
    """

    connection: sqlite3.Connection

    async def _ask[T](self, job: Job[T], *, writes: bool) -> T:
        options = self._file.options
        try:
            self.connection.execute("BEGIN IMMEDIATE" if writes else "SELECT 1")
            job.execute(self.connection)
            if writes:
                self.connection.execute("COMMIT")
        except Exception as error:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            job.fail(translate(error, options.path))
        job.finish()
        job.settle()
        return await job.answer(None)


class Rig:
    """A loop, a clock, and one SQLite file that is emptied for each example."""

    def __init__(self, path: Path, *, memory: type[MemoryStore] = MemoryStore) -> None:
        self.clock = Clock()
        self.memory = memory
        self._options = SqliteOptions(path=str(path))
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")
        self._runner = asyncio.Runner()
        self.sqlite: SqliteStore = self.run(self._opened())

    async def _opened(self) -> SqliteStore:
        store = SqliteStore(self._options, self.clock)
        await store.migrate()
        return store

    def run[T](self, awaitable: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await awaitable

        return self._runner.run(awaited())

    def do_without_threads(self) -> None:
        """Let the store do its jobs in the loop's own thread from now on."""
        threaded = self.sqlite
        inline = InlineSqlite(self._options, self.clock)
        inline.connection = self._connection
        self.run(threaded.close())
        self.sqlite = inline

    def empty(self) -> None:
        """Take all rows out, and set the clock back."""
        self.clock.instant = START
        self._connection.execute("BEGIN")
        for table in metadata().sorted_tables:
            self._connection.execute(f'DELETE FROM "{table.name}"')
        self._connection.execute("COMMIT")
        shared = self.sqlite._shared
        shared.versions = Kept()  # nothing else takes Versions or Runs away behind a store's back
        shared.notices._told.clear()

    def close(self) -> None:
        self.run(self.sqlite.close())
        self._runner.close()
        self._connection.close()
