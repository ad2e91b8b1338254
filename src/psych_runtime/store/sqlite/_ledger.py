"""Migrations of a SQLite file, in one immediate transaction: two that start at once take turns."""

import sqlite3
from datetime import datetime
from typing import Final

from psych_runtime.store.migrations import (
    LEDGER,
    Applied,
    check_current,
    missing,
    shipped,
    statements,
)
from psych_runtime.store.migrations.script import LEDGER_TABLES
from psych_runtime.store.sqlite._texts import Texts
from psych_schema.base import format_instant

__all__ = ["check", "is_current", "migrate"]

_KNOWN: Final = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"


def _applied(connection: sqlite3.Connection, texts: Texts, prefix: str) -> list[Applied] | None:
    if connection.execute(_KNOWN, (prefix + LEDGER,)).fetchone() == (0,):
        return None
    return [Applied(*row) for row in connection.execute(texts.read_ledger).fetchall()]


def check(connection: sqlite3.Connection, texts: Texts, prefix: str, path: str) -> None:
    """Refuse tables that are not this build's. SchemaMissing, UnsupportedStore."""
    check_current(shipped("sqlite"), _applied(connection, texts, prefix), path)


def is_current(connection: sqlite3.Connection, texts: Texts, prefix: str, path: str) -> bool:
    """Tell whether nothing is left to apply. UnsupportedStore."""
    applied = _applied(connection, texts, prefix)
    return applied is not None and not missing(shipped("sqlite"), applied, path)


def migrate(
    connection: sqlite3.Connection, texts: Texts, prefix: str, path: str, now: datetime
) -> None:
    """Apply what is missing, inside the caller's transaction. UnsupportedStore."""
    left = missing(shipped("sqlite"), _applied(connection, texts, prefix) or (), path)
    if left:
        connection.execute(LEDGER_TABLES["sqlite"].format(name=prefix + LEDGER))
    for migration in left:
        for statement in statements(migration.text, prefix):
            connection.execute(statement)
        row = {
            "number": migration.number,
            "name": migration.name,
            "sha256": migration.sha256,
            "applied_at": format_instant(now),
        }
        connection.execute(texts.insert_migration, row)
