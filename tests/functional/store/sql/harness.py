"""Stores through a proxy, and with a spy between a store and its connections."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode, urlsplit

from psych_runtime._system import System
from psych_runtime.ports.store import Store
from psych_runtime.store._notices import Hint, News
from psych_runtime.store._server_url import server_options
from psych_runtime.store.open import open_store
from psych_runtime.store.sql._batch import Batch
from psych_runtime.store.sql._database import Claimable, Database, LogPart, Param, SqlOptions
from psych_runtime.store.sql._rows import Row
from psych_runtime.store.sql.mysql.database import MysqlDatabase
from psych_runtime.store.sql.postgresql.database import PostgresqlDatabase
from psych_runtime.store.sql.store import Opened, SqlStore
from psych_schema.store import RunRow
from tests.functional.store.proxy import Proxy, proxied
from tests.stores.tables import SqlTables

__all__ = ["ForMany", "Spy", "behind", "front_of", "spied", "through"]


def front_of(url: str) -> tuple[str, int]:
    """Return the host and port of a server."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def through(proxy: Proxy, tables: SqlTables, **options: float) -> Store:
    """Return a store on `tables` that reaches its server through `proxy`."""
    parts = urlsplit(tables.url)
    own = urlencode(options)
    url = parts._replace(
        netloc=parts.netloc.replace(f":{parts.port}", f":{proxy.port}"),
        query="&".join(filter(None, (parts.query, own))),
    )
    return open_store(url.geturl(), prefix=tables.prefix)


@asynccontextmanager
async def behind(tables: SqlTables) -> AsyncIterator[Proxy]:
    """Yield a proxy in front of the server of `tables`."""
    async with proxied(*front_of(tables.url)) as proxy:
        yield proxy


class Spy:
    """Passes everything on, and notes what is asked; `answers` may answer instead.

    One that is deaf hears nothing of other processes.
    """

    def __init__(self, inner: Database) -> None:
        self.statements = inner.statements
        self.tells = inner.tells
        self.asked: list[tuple[str, Mapping[str, Param]]] = []
        self.together: list[int] = []
        self.told: list[News] = []
        self.deaf = False
        self.answers: Callable[[str], list[Row] | None] = lambda text: None
        self._inner = inner

    def looks(self) -> list[int]:
        """Return how many Runs each look at heads was for."""
        found: list[int] = []
        for text, values in self.asked:
            if text == self.statements.heads:
                run_ids = values["run_ids"]
                assert isinstance(run_ids, list)
                found.append(len(run_ids))
        return found

    async def ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        self.asked.append((text, values))
        answer = self.answers(text)
        return await self._inner.ask(text, values) if answer is None else answer

    async def commit(self, batch: Batch) -> list[Row]:
        return await self._inner.commit(batch)

    async def read_logs(self, parts: Sequence[LogPart]) -> list[list[Row]]:
        self.together.append(len(parts))
        return await self._inner.read_logs(parts)

    async def claimable(self, values: Mapping[str, Param]) -> Claimable:
        return await self._inner.claimable(values)

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]
    ) -> bool:
        return await self._inner.delete_runs(tenant, headers, keys)

    async def reach(self) -> None:
        await self._inner.reach()

    async def check(self) -> None:
        await self._inner.check()

    async def migrate(self) -> None:
        await self._inner.migrate()

    def hear(
        self,
        name: str,
        heard: Callable[[Sequence[Hint], bool], None],
        hears: Callable[[bool], None],
    ) -> None:
        if not self.deaf:
            self._inner.hear(name, heard, hears)

    async def tell(self, name: str, news: News) -> None:
        self.told.append(news)
        await self._inner.tell(name, news)

    def forget_idle(self) -> None:
        self._inner.forget_idle()

    async def close(self) -> None:
        await self._inner.close()


class _StatementForMany(PostgresqlDatabase):
    async def commit(self, batch: Batch) -> list[Row]:
        return await self._commit_many(batch)


class ForMany:
    """Tables in PostgreSQL; also a unit of its own goes through the statement for many."""

    def __init__(self, tables: SqlTables) -> None:
        self._tables = tables

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        options = server_options(
            self._tables.url, self._tables.prefix, scheme="postgresql", port=5432
        )
        async with SqlStore(Opened(options, _StatementForMany, System())) as store:
            yield store

    async def advance(self, seconds: float) -> None:
        await self._tables.advance(seconds)


@asynccontextmanager
async def spied(tables: SqlTables) -> AsyncIterator[tuple[SqlStore, Spy]]:
    """Yield a store on `tables`, and the spy below it."""
    spies: list[Spy] = []

    def connect(options: SqlOptions) -> Database:
        made = PostgresqlDatabase if tables.url.startswith("postgresql") else MysqlDatabase
        spies.append(Spy(made(options)))
        return spies[-1]

    options = server_options(
        tables.url, tables.prefix, scheme=tables.url.partition("://")[0], port=0
    )
    async with SqlStore(Opened(options, connect, System())) as store:
        yield store, spies[0]
