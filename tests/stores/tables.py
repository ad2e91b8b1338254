"""Tables of one prefix on a SQL server: made once in a test process, emptied for each test.

What the store judges by its clock is moved back where time has to pass; when something happened
stays as it was.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from psych_runtime.ports.store import Store
from psych_runtime.store._server_url import server_options
from psych_runtime.store.migrations import LEDGER
from psych_runtime.store.open import open_store
from psych_runtime.store.sql.mysql.database import MysqlDatabase
from psych_schema.tables import metadata

__all__ = ["MysqlTables", "PostgresqlTables", "SqlTables", "own_prefix"]

_INSTANTS: Final = {"run": ("wake_at", "deadline_at"), "worker": ("lease_until", "since")}
_NAMES: Final = tuple(table.name for table in metadata().sorted_tables)


class SqlTables(ABC):
    """Tables of one prefix; `url` may lead through a pooler, `admin_url` does not."""

    def __init__(self, url: str, admin_url: str, prefix: str) -> None:
        self.url = url
        self.admin_url = admin_url
        self.prefix = prefix
        self._made = False

    @abstractmethod
    async def execute(self, statements: Sequence[str]) -> None:
        """Run statements as the server's superuser."""

    @abstractmethod
    def earlier(self, seconds: float) -> str:
        """Return what is added to an instant to move it back."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        """Open a handle."""
        async with open_store(self.url, prefix=self.prefix) as store:
            yield store

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        earlier = self.earlier(seconds)
        await self.execute(
            [
                f'UPDATE "{self.prefix}{table}" SET '
                + ", ".join(f"{name} = {name} {earlier}" for name in names)
                for table, names in _INSTANTS.items()
            ]
        )

    async def empty(self) -> None:
        """Take all rows out; the first time, make the tables anew."""
        if self._made:
            await self.execute([f'DELETE FROM "{self.prefix}{name}"' for name in _NAMES])
            return
        await self.drop()
        async with self.open() as store:
            await store.migrate()
        self._made = True

    async def drop(self) -> None:
        """Remove the tables."""
        names = (*_NAMES, LEDGER)
        await self.execute([f'DROP TABLE IF EXISTS "{self.prefix}{name}"' for name in names])


class PostgresqlTables(SqlTables):
    """Tables in PostgreSQL."""

    async def execute(self, statements: Sequence[str]) -> None:
        connection = await asyncpg.connect(self.admin_url)
        try:
            await connection.execute(";".join(statements))
        finally:
            await connection.close()

    def earlier(self, seconds: float) -> str:
        return f"- interval '{seconds} seconds'"


class MysqlTables(SqlTables):
    """Tables in a database of the tests' own in MySQL or MariaDB."""

    def __init__(self, server_url: str, database: str, prefix: str) -> None:
        super().__init__(server_url + database, server_url, prefix)
        self._database = database

    async def empty(self) -> None:
        if not self._made:
            await self._run(self.admin_url, [f'CREATE DATABASE IF NOT EXISTS "{self._database}"'])
        await super().empty()

    async def execute(self, statements: Sequence[str]) -> None:
        await self._run(self.url, statements)

    async def _run(self, url: str, statements: Sequence[str]) -> None:
        options = server_options(url, "", scheme="mysql", port=3306)
        database = MysqlDatabase(options._replace(timeout_seconds=60.0))
        try:
            await database.ask(";".join(statements), {})
        finally:
            await database.close()

    def earlier(self, seconds: float) -> str:
        return f"- INTERVAL {round(seconds * 1_000_000)} MICROSECOND"


def own_prefix() -> str:
    """Return a prefix that no other test process uses."""
    return f"t{os.getpid()}_"
