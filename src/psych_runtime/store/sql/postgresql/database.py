"""One handle's connections to PostgreSQL, through asyncpg (ST-2, ST-3)."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, cast

import asyncpg

from psych_runtime.errors import StoreError, UnsupportedStore
from psych_runtime.store._notices import Hint, News
from psych_runtime.store.sql._batch import CAP_REACHED, Batch
from psych_runtime.store.sql._database import Claimable, LogPart, Param, SqlOptions
from psych_runtime.store.sql._failures import unsent
from psych_runtime.store.sql._pool import Pool
from psych_runtime.store.sql._rows import Row, header_values, instant_of
from psych_runtime.store.sql._statement import load, load_statements, numbered
from psych_runtime.store.sql.postgresql import _ledger
from psych_runtime.store.sql.postgresql._commit import commit_text
from psych_runtime.store.sql.postgresql._failures import (
    DRIVER_ERRORS,
    leaves_usable,
    translate,
)
from psych_runtime.store.sql.postgresql._listener import Listener
from psych_runtime.store.sql.postgresql._message import is_of, read_message, written
from psych_runtime.store.sql.postgresql._single import single
from psych_schema.base import format_instant
from psych_schema.store import RunRow

__all__ = ["PostgresqlDatabase"]

_PACKAGE: Final = "psych_runtime.store.sql.postgresql"
_OLDEST: Final = (14, 0)
_NOTIFY: Final = "SELECT pg_notify(:channel, told) FROM unnest(CAST(:texts AS text[])) AS told"
_KEPT_STATEMENTS: Final = 200  # prepared ones that a connection keeps
_KEPT_TENANTS: Final = 4096


class PostgresqlDatabase:
    """Connections of one loop; behind a transaction pooler nothing of a session is relied on."""

    def __init__(self, options: SqlOptions) -> None:
        self.statements = load_statements(_PACKAGE, options.prefix)
        pieces = load(_PACKAGE, "statements.sql", options.prefix)
        self._claimable, self._delete_runs = pieces["claimable"], pieces["delete_runs"]
        self._read_logs = pieces["read_logs"]
        self.tells = True
        self._options = options
        self._pool: Pool[asyncpg.Connection] = Pool(
            options.pool_size,
            connect=self._connect,
            drop=lambda connection: connection.terminate(),
            usable=lambda connection: not connection.is_closed(),
        )
        self._counted: set[str] = set()  # tenants for whose Runs it takes the statement for many
        self._listener = Listener(f"psych_{options.prefix}", self._connect)

    async def _connect(self) -> asyncpg.Connection:
        options = self._options
        milliseconds = str(int(options.timeout_seconds * 1000))
        settings = {
            "application_name": "psych-runtime",
            "default_transaction_isolation": "read committed",
            "jit": "off",  # plans with a recursion look dearer than they are
            "enable_seqscan": "off",  # plans are kept that were made when tables were small
            "statement_timeout": milliseconds,  # also when the client was stopped meanwhile
            "idle_in_transaction_session_timeout": milliseconds,
        }
        try:
            connection = await asyncpg.connect(
                options.url,
                timeout=options.timeout_seconds,
                statement_cache_size=0 if options.pooled else _KEPT_STATEMENTS,
                max_cached_statement_lifetime=0,
                server_settings={} if options.pooled else settings,
            )
        except TimeoutError:
            raise
        except Exception as error:
            raise unsent(translate(error, options.where)) from None
        version = connection.get_server_version()
        if (version.major, version.minor) < _OLDEST:
            connection.terminate()
            raise UnsupportedStore(
                problem=f"{options.where} runs PostgreSQL {version.major}.{version.minor}",
                remedy="use PostgreSQL 14 or newer",
            )
        return connection

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        """Lend a connection whose errors are the port's."""
        try:
            async with self._pool.connection() as connection:
                yield connection
        except (StoreError, TimeoutError):
            raise
        except Exception as error:
            raise translate(error, self._options.where) from None

    async def ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        """Run one statement."""
        statement = numbered(text)
        arguments = [values[name] for name in statement.names]
        pooled = self._options.pooled
        connection = await self._pool.take()
        try:
            if pooled:
                seconds = self._options.timeout_seconds
                rows = await _in_transaction(connection, seconds, statement.text, arguments)
            else:
                rows = await connection.fetch(statement.text, *arguments)
        except BaseException as error:
            if leaves_usable(error) and not pooled:
                self._pool.give(connection)
            else:
                self._pool.drop(connection)
            if isinstance(error, TimeoutError) or not isinstance(error, Exception):
                raise
            raise translate(error, self._options.where) from None
        self._pool.give(connection)
        return cast("list[Row]", rows)

    async def commit(self, batch: Batch) -> list[Row]:
        """Commit a batch in one statement; a unit of its own that is not plain may take two."""
        one = single(self._options.prefix, batch)
        if one is None or (one.moves and one.tenant in self._counted):
            return await self._commit_many(batch)
        if await self.ask(one.text, one.values):
            return []
        refusals = await self._commit_many(batch)
        if one.moves and all(row[1] == CAP_REACHED for row in refusals):
            if len(self._counted) >= _KEPT_TENANTS:
                self._counted.clear()
            self._counted.add(one.tenant)
        return refusals

    async def _commit_many(self, batch: Batch) -> list[Row]:
        text = commit_text(
            self._options.prefix,
            admits=bool(batch.admissions),
            names=bool(batch.keys),
            moves=batch.moves,
        )
        return await self.ask(text, _values(batch))

    async def read_logs(self, parts: Sequence[LogPart]) -> list[list[Row]]:
        """Read many logs in one statement."""
        values: dict[str, Param] = {
            "tenants": [part.tenant for part in parts],
            "run_ids": [part.run_id for part in parts],
            "afters": [part.after for part in parts],
            "limits": [part.limit for part in parts],
        }
        found: list[list[Row]] = [[] for _ in parts]
        for row in await self.ask(self._read_logs, values):
            found[int(str(row[0])) - 1].append(row[1:])
        return found

    async def claimable(self, values: Mapping[str, Param]) -> Claimable:
        """Find tenants, their Runs, and those of the dead in one statement."""
        rows = await self.ask(self._claimable, values)
        return Claimable(
            now=instant_of(rows[0][0]),
            share=int(str(rows[0][1])),
            capped=bool(rows[0][2]),
            waiting=[row[4:] for row in rows if row[3] is False],
            orphans=[row[4:] for row in rows if row[3] is True],
        )

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]
    ) -> bool:
        """Delete Runs in one statement."""
        given = [
            {name: getattr(header, name) for name in ("run_id", "head", "state", "referenced")}
            for header in headers
        ]
        values: dict[str, Param] = {
            "tenant": tenant,
            "headers": json.dumps(given),
            "count": len(headers),
            "keys": keys,
        }
        rows = await self.ask(self._delete_runs, values)
        return bool(rows[0][0])

    async def reach(self) -> None:
        """Open a connection, unless there is one."""
        async with self._connection():
            return

    async def check(self) -> None:
        """Look at the ledger."""
        async with self._connection() as connection:
            await _ledger.check(connection, self._options)

    async def migrate(self) -> None:
        """Apply what is missing, under an advisory lock."""
        async with self._connection() as connection:
            await _ledger.migrate(connection, self._options)

    def hear(
        self,
        name: str,
        heard: Callable[[Sequence[Hint], bool], None],
        hears: Callable[[bool], None],
    ) -> None:
        """Listen on a connection of its own, unless a pooler stands between."""

        def read(text: str) -> None:
            message = None if is_of(name, text) else read_message(text)
            if message is not None:
                heard(message.hints, message.work)

        if not self._options.pooled:
            self._listener.start(read, hears)

    async def tell(self, name: str, news: News) -> None:
        """Notify whoever listens; outside the commit, since a notification in it locks all."""
        values: dict[str, Param] = {
            "channel": self._listener.channel,
            "texts": written(name, news),
        }
        await self.ask(_NOTIFY, values)

    def forget_idle(self) -> None:
        """Drop idle connections."""
        self._pool.forget_idle()

    async def close(self) -> None:
        """End every connection in order."""
        await self._listener.stop()
        for connection in self._pool.take_all():
            try:
                await connection.close(timeout=self._options.timeout_seconds)
            except (*DRIVER_ERRORS, OSError, TimeoutError):
                connection.terminate()


async def _in_transaction(
    connection: asyncpg.Connection, seconds: float, text: str, arguments: Sequence[Param]
) -> list[asyncpg.Record]:
    """Keep the pooler at one server connection; the server ends it when the client is gone."""
    milliseconds = int(seconds * 1000)
    await connection.execute(
        "BEGIN ISOLATION LEVEL READ COMMITTED; "
        "SET LOCAL jit = off; SET LOCAL enable_seqscan = off; "
        f"SET LOCAL statement_timeout = {milliseconds}; "
        f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"
    )
    rows = await connection.fetch(text, *arguments)
    await connection.execute("COMMIT")
    return rows


def _values(batch: Batch) -> dict[str, Param]:
    values: dict[str, Param] = {
        "changes": json.dumps(batch.changes, separators=(",", ":")),
        "units": [number for number, _ in batch.records],
        "run_ids": [row.run_id for _, row in batch.records],
        "seqs": [row.seq for _, row in batch.records],
        "tenants": [row.tenant for _, row in batch.records],
        "types": [row.type for _, row in batch.records],
        "bodies": [row.body for _, row in batch.records],
        "contents": [row.content for _, row in batch.records],
        "salts": [row.salt for _, row in batch.records],
    }
    if batch.admissions:
        values["admissions"] = json.dumps(
            [
                {
                    "unit": number,
                    "doubled": doubled,
                    "deadline_after": admit.deadline_seconds,
                    **_columns(admit.header),
                }
                for number, admit, doubled in batch.admissions
            ]
        )
    if batch.keys:
        values["keys"] = json.dumps(
            [{"unit": number, "place": place, **vars(row)} for number, place, row in batch.keys]
        )
    return values


def _columns(header: RunRow) -> dict[str, str | int | float | None]:
    """Return a header's columns as JSON has them."""
    columns: dict[str, str | int | float | None] = {}
    for name, value in header_values(header).items():
        columns[name] = (
            value if isinstance(value, str | int | float | None) else format_instant(value)
        )
    return columns
