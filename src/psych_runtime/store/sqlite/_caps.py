"""How many Runs of a tenant are running at once, inside a transaction (R-15)."""

import sqlite3

from psych_runtime.ports.store import UNCAPPED
from psych_runtime.store.sqlite._rows import Value, cap_of
from psych_runtime.store.sqlite._texts import Texts
from psych_schema.store import CapRow

__all__ = ["Caps"]


class Caps:
    """The rows of caps as one transaction sees and writes them."""

    def __init__(self, connection: sqlite3.Connection, texts: Texts) -> None:
        self._execute = connection.execute
        self._texts = texts
        self._without: set[str] = set()  # tenants that have no row

    def row(self, tenant: str) -> CapRow | None:
        """Return a tenant's row."""
        if tenant in self._without:
            return None
        row = self._execute(self._texts.read_cap, {"tenant": tenant}).fetchone()
        if row is None:
            self._without.add(tenant)
            return None
        return cap_of(row)

    def room(self, tenant: str) -> int | None:
        """Return how many more Runs may be running; None is any number."""
        row = self.row(tenant)
        return None if row is None else max(0, row.limit - row.running)

    def any(self) -> bool:
        """Tell whether a tenant has a cap."""
        return self._execute(self._texts.find_cap, {"uncapped": UNCAPPED}).fetchone() is not None

    def set(self, tenant: str, limit: int | None) -> None:
        """Set or lift a bound; what is counted stays counted."""
        bound = UNCAPPED if limit is None else limit
        names: dict[str, Value] = {"in_tenant": tenant, "new_limit": bound}
        known = self._execute(self._texts.limit_cap, names).rowcount
        if not known and limit is not None:
            row: dict[str, Value] = {"tenant": tenant, "running": 0, "limit": limit}
            self._execute(self._texts.insert_cap, row)
            self._without.discard(tenant)

    def count(self, tenant: str, change: int) -> bool:
        """Count a Run in or out; False when the tenant has no row, and nothing is counted."""
        row = self.row(tenant)
        if row is None:
            return False
        names: dict[str, Value] = {
            "in_tenant": tenant,
            "now_running": max(0, row.running + change),
        }
        self._execute(self._texts.count_cap, names)
        return True
