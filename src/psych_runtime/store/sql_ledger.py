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
        self._columns = [column(name) for name in ("number", "name", "sha256", "applied_at")]
        self._table = table(self.name, *self._columns)

    def read_ledger(self) -> Select[*tuple[object, ...]]:
        """Read number, name and hash of what was applied."""
        return select(*self._columns[:3]).order_by(self._columns[0])

    def insert_migration(self) -> Insert:
        """Write what is being applied."""
        return insert(self._table).values({c.name: bindparam(c.name) for c in self._columns})
