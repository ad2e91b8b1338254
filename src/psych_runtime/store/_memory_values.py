"""The small values of the in-memory store, each call whole under a lock."""

import threading
from itertools import islice

from psych_runtime._system import System
from psych_runtime.store._values import check_range, check_value, first_revision
from psych_schema.store import KvRow

__all__ = ["MemoryValues"]


class MemoryValues:
    """Values by tenant and kind, then by key."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], dict[str, KvRow]] = {}

    def read(self, tenant: str, kind: str, key: str) -> KvRow | None:
        """Return a row."""
        check_value(tenant, kind, key)
        with self._lock:
            return self._rows.get((tenant, kind), {}).get(key)

    def put(self, tenant: str, kind: str, key: str, value: str, expect: int | None) -> KvRow | None:
        """Write a row where `expect` is the revision of what is there."""
        check_value(tenant, kind, key, value)
        with self._lock:
            rows = self._rows.setdefault((tenant, kind), {})
            there = rows.get(key)
            if expect != (None if there is None else there.revision):
                return None
            revision = first_revision(self._system) if expect is None else expect + 1
            row = KvRow(tenant=tenant, kind=kind, key=key, revision=revision, value=value)
            rows[key] = row
            return row

    def delete(self, tenant: str, kind: str, key: str, expect: int | None) -> bool:
        """Delete a row that is there, at `expect` only."""
        check_value(tenant, kind, key)
        with self._lock:
            rows = self._rows.get((tenant, kind), {})
            there = rows.get(key)
            if there is None or expect not in (None, there.revision):
                return False
            del rows[key]
            return True

    def listed(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[KvRow]:
        """Return rows in the order of their keys."""
        check_range(tenant, kind, prefix, after, limit)
        with self._lock:
            rows = sorted(self._rows.get((tenant, kind), {}).items())
        found = (row for key, row in rows if key > after and key.startswith(prefix))
        return list(islice(found, limit))
