"""Statements about the ledger of migrations (ST-4).

The ledger is the runner's own: it must be readable before there is any other table, and in a
database that a newer build has migrated.
"""

from sqlalchemy import Insert, Select, bindparam, column, insert, select, table

from psych_runtime.store.migrations import LEDGER

__all__ = ["LedgerStatements"]


class LedgerStatements:
    """What a migration says about itself."""

    def __init__(self, prefix: str) -> None:
        self.name = prefix + LEDGER
        self._table = table(
            self.name, column("number"), column("name"), column("sha256"), column("applied_at")
        )

    def read_ledger(self) -> Select[*tuple[object, ...]]:
        """Read number, name and hash of what was applied."""
        c = self._table.c
        return select(c.number, c.name, c.sha256).order_by(c.number)

    def insert_migration(self) -> Insert:
        """Write what is being applied."""
        names = ("number", "name", "sha256", "applied_at")
        return insert(self._table).values({name: bindparam(name) for name in names})
