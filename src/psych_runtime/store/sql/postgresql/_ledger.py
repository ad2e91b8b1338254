"""Migrations of a PostgreSQL database, in one transaction under an advisory lock (ST-4)."""

import zlib
from typing import Final

import asyncpg

from psych_runtime.store.migrations import (
    LEDGER,
    Applied,
    check_current,
    missing,
    shipped,
    statements,
)
from psych_runtime.store.migrations.script import LEDGER_TABLES
from psych_runtime.store.sql._database import SqlOptions

__all__ = ["check", "migrate"]

_READ: Final = 'SELECT number, name, sha256 FROM "{name}" ORDER BY number'
_WRITE: Final = 'INSERT INTO "{name}" (number, name, sha256, applied_at) VALUES ($1, $2, $3, now())'


async def check(connection: asyncpg.Connection, options: SqlOptions) -> None:
    """Refuse tables that are not this build's. SchemaMissing, UnsupportedStore."""
    applied: list[Applied] | None
    async with connection.transaction(isolation="read_committed"):
        applied = await _applied(connection, options)
    check_current(shipped("postgresql"), applied, options.where)


async def _applied(connection: asyncpg.Connection, options: SqlOptions) -> list[Applied] | None:
    name = options.prefix + LEDGER
    if await connection.fetchval("SELECT to_regclass($1)", f'"{name}"') is None:
        return None
    return [Applied(*row) for row in await connection.fetch(_READ.format(name=name))]


async def migrate(connection: asyncpg.Connection, options: SqlOptions) -> None:
    """Apply what is missing; whoever comes second waits. UnsupportedStore."""
    name = options.prefix + LEDGER
    async with connection.transaction(isolation="read_committed"):
        await connection.execute(
            "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
        )
        await connection.execute("SELECT pg_advisory_xact_lock($1)", zlib.crc32(name.encode()))
        applied = await _applied(connection, options)
        left = missing(shipped("postgresql"), applied or (), options.where)
        if left:
            await connection.execute(LEDGER_TABLES["postgresql"].format(name=name))
        for migration in left:
            for statement in statements(migration.text, options.prefix):
                await connection.execute(statement)
            row = (migration.number, migration.name, migration.sha256)
            await connection.execute(_WRITE.format(name=name), *row)
