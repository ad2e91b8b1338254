"""Migrations of a MySQL or MariaDB database, one process at a time (ST-4).

DDL commits by itself there: every statement can be repeated, so that a migration that was cut
short is applied again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from psych_runtime.errors import SchemaMissing, StoreUnavailable
from psych_runtime.store.migrations import (
    LEDGER,
    Applied,
    check_current,
    missing,
    shipped,
    statements,
)
from psych_runtime.store.migrations.script import COLLATIONS, LEDGER_TABLES
from psych_runtime.store.sql._database import SqlOptions
from psych_runtime.store.sql._rows import Row
from psych_runtime.store.sql.mysql._driver import Connection, run
from psych_runtime.store.sql.mysql._failures import translate
from psych_runtime.store.sql.mysql._literal import literal

__all__ = ["check", "migrate"]

_READ: Final = 'SELECT number, name, sha256 FROM "{name}" ORDER BY number'
_WAIT_SECONDS: Final = 600

type Run = Callable[[str], Awaitable[list[Sequence[Row]]]]


async def check(run_packet: Run, options: SqlOptions) -> None:
    """Refuse tables that are not this build's. SchemaMissing, UnsupportedStore."""
    check_current(shipped("mysql"), await _applied(run_packet, options), options.where)


async def _applied(run_packet: Run, options: SqlOptions) -> list[Applied] | None:
    try:
        sets = await run_packet(_READ.format(name=options.prefix + LEDGER))
    except SchemaMissing:
        return None
    return [Applied(int(str(row[0])), str(row[1]), str(row[2])) for row in sets[0]]


async def migrate(connection: Connection, options: SqlOptions) -> None:
    """Apply what is missing; whoever comes second waits. UnsupportedStore."""

    async def ask(text: str) -> list[Sequence[Row]]:
        try:
            return await run(connection, text)
        except Exception as error:
            raise translate(error, options.where) from None

    name = options.prefix + LEDGER
    lock = f"CONCAT('{name}.', SHA2(DATABASE(), 256))"
    ((held,),) = (await ask(f"SELECT GET_LOCK(LEFT({lock}, 64), {_WAIT_SECONDS})"))[0]
    if held != 1:
        problem = f"{options.where}: another process migrates for more than {_WAIT_SECONDS} s"
        raise StoreUnavailable(problem=problem)
    applied = await _applied(ask, options)
    left = missing(shipped("mysql"), applied or (), options.where)
    if left:
        await ask(LEDGER_TABLES["mysql"].format(name=name))
    for migration in left:
        for statement in statements(migration.text, options.prefix):
            await ask(statement.replace("{binary}", _collation(connection)))
        told = migration.number, migration.name, migration.sha256
        row = ", ".join(literal(value) for value in told)
        await ask(f'INSERT INTO "{name}" VALUES ({row}, NOW(6))')
    await ask(f"SELECT RELEASE_LOCK(LEFT({lock}, 64))")


def _collation(connection: Connection) -> str:
    """Return the collation that compares byte by byte and pads nothing."""
    mariadb = "mariadb" in connection.get_server_info().lower()
    return COLLATIONS["mariadb" if mariadb else "mysql"]
