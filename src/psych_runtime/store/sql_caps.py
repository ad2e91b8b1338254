"""Statements about caps: how many Runs of a tenant may be running at once (R-15).

Read by a change only that takes a Run into running or out of it.
"""

from sqlalchemy import Select, Update, bindparam, select, update

from psych_schema.tables import tables

__all__ = ["CapStatements"]


class CapStatements:
    """What counting says; a row is inserted by `LogStatements.insert_row`."""

    def __init__(self, prefix: str) -> None:
        self._t = tables(prefix)

    def read_cap(self) -> Select[*tuple[object, ...]]:
        """Read a tenant's cap. No row: it never had one."""
        c = self._t.cap.c
        return select(*c).where(c.tenant == bindparam("tenant"))

    def find_cap(self) -> Select[*tuple[object, ...]]:
        """Find a tenant that has a cap."""
        c = self._t.cap.c
        return select(c.tenant).where(c.limit < bindparam("uncapped"))

    def limit_cap(self) -> Update:
        """Set the limit; what is counted stays. 0 rows: the tenant has no row."""
        cap = self._t.cap
        found = update(cap).where(cap.c.tenant == bindparam("in_tenant"))
        return found.values(limit=bindparam("new_limit"))

    def count_cap(self) -> Update:
        """Write how many Runs are counted, as judged in the same transaction."""
        cap = self._t.cap
        found = update(cap).where(cap.c.tenant == bindparam("in_tenant"))
        return found.values(running=bindparam("now_running"))
