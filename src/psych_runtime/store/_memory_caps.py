"""How many Runs of a tenant are running at once, in the in-memory store (R-15)."""

from collections.abc import Iterable

from psych_runtime.ports.store import UNCAPPED, HeaderChange
from psych_runtime.store.units import enters, leaves
from psych_schema.store import CapRow, RunRow

__all__ = ["MemoryCaps"]


class MemoryCaps:
    """Rows by tenant, of those that have one; the store calls it under its lock."""

    def __init__(self) -> None:
        self._rows: dict[str, CapRow] = {}

    def set(self, tenant: str, limit: int | None) -> None:
        """Set or lift a bound; what is counted stays counted."""
        row = self._rows.get(tenant)
        if row is not None:
            bound = UNCAPPED if limit is None else limit
            self._rows[tenant] = row.model_copy(update={"limit": bound})
        elif limit is not None:
            self._rows[tenant] = CapRow(tenant=tenant, running=0, limit=limit)

    def row(self, tenant: str) -> CapRow | None:
        """Return a tenant's row."""
        return self._rows.get(tenant)

    def room(self, tenant: str) -> int | None:
        """Return how many more Runs may be running; None is any number."""
        row = self._rows.get(tenant)
        return None if row is None else max(0, row.limit - row.running)

    def any(self) -> bool:
        """Tell whether a tenant has a cap."""
        return any(row.limit != UNCAPPED for row in self._rows.values())

    def has_room(self, tenant: str, changes: Iterable[tuple[RunRow, HeaderChange]]) -> bool:
        """Tell whether there is room for each Run of a unit that becomes running."""
        room = self.room(tenant)
        if room is None:
            return True
        entrants = sum(enters(before.state, edit) for before, edit in changes)
        return entrants == 0 or entrants <= room

    def count(self, before: RunRow, edit: HeaderChange) -> dict[str, object]:
        """Count a Run in or out; return what that changes in its header."""
        row = self._rows.get(before.tenant)
        if row is None:
            return {}
        if enters(before.state, edit):
            self._rows[row.tenant] = row.model_copy(update={"running": row.running + 1})
            return {"capped": True}
        if leaves(before.capped, edit):
            left = max(0, row.running - 1)
            self._rows[row.tenant] = row.model_copy(update={"running": left})
            return {"capped": False}
        return {}
