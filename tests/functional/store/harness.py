"""Stores for tests: a clock that is moved by hand, and one harness per adapter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from psych_runtime._system import System
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.sqlite._connect import SqliteOptions
from psych_runtime.store.sqlite.store import SqliteStore


class ManualSystem(System):
    """A System whose wall clock moves only when told; safe to read from several threads."""

    def __init__(self) -> None:
        super().__init__()
        self._now = datetime(2026, 11, 29, 20, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


class MemoryHarness:
    """Handles of one in-memory store."""

    def __init__(self) -> None:
        self.system = ManualSystem()
        self._store = MemoryStore(self.system)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        async with self._store.twin() as store:
            yield store

    async def advance(self, seconds: float) -> None:
        self.system.advance(seconds)


class SqliteHarness:
    """Handles of one SQLite file, migrated when it is first opened."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.system = ManualSystem()
        self.options = SqliteOptions(path=str(path), prefix=prefix)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        async with SqliteStore(self.options, self.system) as store:
            await store.migrate()
            yield store

    async def advance(self, seconds: float) -> None:
        self.system.advance(seconds)
