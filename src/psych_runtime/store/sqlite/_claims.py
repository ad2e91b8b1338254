"""Which Runs may be claimed or must be settled, in the reader's thread (R-15).

Every statement walks an index and is read no further than needed.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import merge
from itertools import islice

from psych_runtime.ports.store import Exclude, Found
from psych_runtime.store._order import claim_key, excluded, take_fairly
from psych_runtime.store.sqlite._caps import Caps
from psych_runtime.store.sqlite._reads import snapshot
from psych_runtime.store.sqlite._rows import Value, header_of
from psych_runtime.store.sqlite._texts import Texts
from psych_schema.base import format_instant
from psych_schema.store import RunRow

__all__ = ["Claims"]

_ABOVE_ALL = 1 << 31  # higher than any priority


class Claims:
    """One look for work; `now` is the store's clock."""

    def __init__(self, connection: sqlite3.Connection, texts: Texts, now: datetime) -> None:
        self._connection = connection
        self._texts = texts
        self._now = now
        self._now_text = format_instant(now)

    def ready(self, limit: int, after_tenant: str, exclude: Exclude) -> Found:
        """Return claimable Runs, tenants in turns."""
        with snapshot(self._connection):
            orphans = self._orphans()
            wanted = (
                self._runs(tenant, orphans.get(tenant, ()), exclude)
                for tenant in self._tenants(after_tenant, sorted(orphans))
            )
            taken = take_fairly(wanted, limit)
            return Found(self._now, taken, Caps(self._connection, self._texts).any())

    def overdue(self, limit: int) -> list[RunRow]:
        """Return Runs that no live worker holds and that are aborted or late."""
        with snapshot(self._connection):
            live = self._live()
            found = {
                header.run_id: header
                for text in (self._texts.find_late, self._texts.find_aborted)
                for header in islice(self._unheld(text, live), limit)
            }
        return list(found.values())[:limit]

    def held_by(self, worker: str) -> list[RunRow]:
        """Return the running Runs of a worker."""
        return list(self._select(self._texts.find_held, {"worker": worker}))

    def _unheld(self, text: str, live: frozenset[str]) -> Iterator[RunRow]:
        for header in self._select(text, {}):
            if header.state != "running" or header.worker not in live:
                yield header

    def _live(self) -> frozenset[str]:
        rows = self._connection.execute(self._texts.live_workers).fetchall()
        return frozenset(worker for (worker,) in rows)

    def _orphans(self) -> dict[str, list[RunRow]]:
        """Return what dead or missing workers hold, by tenant and in order."""
        live = self._live()
        orphans: dict[str, list[RunRow]] = {}
        worker = self._next(self._texts.next_held_worker, {"after": ""})
        while worker is not None:
            if worker not in live:
                for header in self._select(self._texts.find_held, {"worker": worker}):
                    orphans.setdefault(header.tenant, []).append(header)
            worker = self._next(self._texts.next_held_worker, {"after": worker})
        for headers in orphans.values():
            headers.sort(key=claim_key)
        return orphans

    def _tenants(self, cursor: str, orphaned: list[str]) -> Iterator[str]:
        """Give tenants behind the cursor in order, then those up to it."""
        tenant = self._next_tenant(cursor, orphaned)
        while tenant is not None:
            yield tenant
            tenant = self._next_tenant(tenant, orphaned)
        tenant = self._next_tenant("", orphaned)
        while tenant is not None and tenant <= cursor:
            yield tenant
            tenant = self._next_tenant(tenant, orphaned)

    def _next_tenant(self, after: str, orphaned: list[str]) -> str | None:
        names: dict[str, Value] = {"after": after, "now": self._now_text}
        candidates = [tenant for tenant in orphaned if tenant > after][:1]
        for text in (self._texts.next_ready_tenant, self._texts.next_due_tenant):
            tenant = self._next(text, names)
            if tenant is not None:
                candidates.append(tenant)
        return min(candidates, default=None)

    def _next(self, text: str, names: dict[str, Value]) -> str | None:
        row: tuple[str] | None = self._connection.execute(text, names).fetchone()
        return None if row is None else row[0]

    def _runs(self, tenant: str, orphans: Iterable[RunRow], exclude: Exclude) -> Iterator[RunRow]:
        """Give a tenant's Runs in order: of those that wait, as many as its cap has room for."""
        room = Caps(self._connection, self._texts).room(tenant)
        waiting = (row for row in self._waiting(tenant) if not excluded(row, exclude))
        held = (row for row in orphans if not excluded(row, exclude))
        return merge(islice(waiting, room), held, key=claim_key)

    def _waiting(self, tenant: str) -> Iterator[RunRow]:
        """Give a tenant's ready and due Runs, priority by priority."""
        priority = self._next_priority(tenant, _ABOVE_ALL)
        while priority is not None:
            names: dict[str, Value] = {
                "tenant": tenant,
                "priority": priority,
                "now": self._now_text,
            }
            yield from merge(
                self._select(self._texts.find_ready, names),
                self._select(self._texts.find_ready_due, names),
                self._select(self._texts.find_suspended_due, names),
                key=claim_key,
            )
            priority = self._next_priority(tenant, priority)

    def _next_priority(self, tenant: str, below: int) -> int | None:
        names: dict[str, Value] = {"tenant": tenant, "below": below}
        found: list[int] = []
        for text in (self._texts.next_ready_priority, self._texts.next_suspended_priority):
            row: tuple[int] | None = self._connection.execute(text, names).fetchone()
            if row is not None:
                found.append(row[0])
        return max(found, default=None)

    def _select(self, text: str, names: dict[str, Value]) -> Iterator[RunRow]:
        cursor = self._connection.execute(text, {"now": self._now_text, **names})
        try:
            for row in cursor:
                yield header_of(row)
        finally:
            cursor.close()
