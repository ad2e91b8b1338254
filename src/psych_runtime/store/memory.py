"""The store without a database: for tests, simulations and places without threads or files.

Keeps the same rows as the others, under one lock, since the executor's and the supervisor's
loops may run in two threads (R-21). What it holds is gone with the process.
"""

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Self

from psych_runtime._system import System
from psych_runtime.errors import StoreClosed
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import Arrival, Exclude, Found, Page, Renewed, RunFilter, Unit
from psych_runtime.store._arrivals import Arriving
from psych_runtime.store._memory_rows import MemoryRows
from psych_runtime.store._order import ANY_RUN, NOTHING_EXCLUDED
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = ["MemoryStore"]


class MemoryStore:
    """Implements the store port in memory; `twin()` sees the same rows.

    Every method answers without waiting, except `wait`. After `close` a handle raises
    StoreClosed; the rows live as long as one handle does.
    """

    def __init__(self, system: System | None = None) -> None:
        self._shared = MemoryRows(system or System())
        self._arriving = Arriving(self._shared.arrivals)
        self._closed = False

    @property
    def _rows(self) -> MemoryRows:
        if self._closed:
            raise StoreClosed
        return self._shared

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Apply each unit all or none (R-1)."""
        return self._rows.commit(units)

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Return records behind `after`. Raises RunNotFound."""
        return self._rows.read(tenant, run_id, after, limit)

    async def header(self, tenant: str, run_id: str) -> RunRow:
        """Return the header. Raises RunNotFound."""
        return self._rows.header(tenant, run_id)

    async def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Return the last Run of a thread."""
        return self._rows.tail(tenant, thread)

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        """Return what is known of a request."""
        return self._rows.key(tenant, run_id, key)

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        """Return claimable Runs, tenant by tenant in turns (R-15)."""
        return self._rows.ready(limit, after_tenant, exclude)

    async def overdue(self, limit: int) -> list[RunRow]:
        """Return Runs that a supervisor has to settle."""
        return self._rows.overdue(limit)

    async def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a worker's row; return the store's now."""
        return self._rows.enlist(worker, lease_seconds, build, tools)

    async def workers(self) -> list[WorkerRow]:
        """Return the rows of workers that are not dead."""
        return self._rows.workers()

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        """Prolong the lease; None when the worker is dead or unknown."""
        return self._rows.renew(worker, lease_seconds, run_ids)

    async def held_by(self, worker: str) -> list[RunRow]:
        """Return the running Runs of a worker."""
        return self._rows.held_by(worker)

    async def bury(self, observer: str) -> list[str]:
        """Mark workers dead whose lease is over (R-6)."""
        return self._rows.bury(observer)

    async def sweep(self) -> None:
        """Forget dead workers that no header names."""
        self._rows.sweep()

    def twin(self) -> Self:
        """Return another handle of the same rows."""
        twin = copy.copy(self)
        twin._shared = self._rows
        twin._arriving = Arriving(self._shared.arrivals)
        return twin

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        """Keep a published Spec."""
        self._rows.put_text("version", tenant, hash, document)

    async def version(self, tenant: str, hash: str) -> str | None:
        """Return a published Spec's text."""
        return self._rows.text("version", tenant, hash)

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        """Keep a document."""
        self._rows.put_text("document", tenant, hash, text)

    async def document(self, tenant: str, hash: str) -> str | None:
        """Return a document's text."""
        return self._rows.text("document", tenant, hash)

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        """Return Runs that may have moved; woken by the commit itself, in any loop."""
        rows = self._rows
        with rows.notices.waiting(tenant, heads, over=over) as waiter:
            moved = rows.moved(tenant, heads, over=over)
            if moved:
                return frozenset(moved)
            await waiter.sleep(seconds)
            return frozenset(waiter.woken | rows.moved(tenant, heads, over=over))

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        """Return how many times there may have been work, once it is not `seen`."""
        return await self._arriving.wait(seen, seconds)

    async def list_runs(
        self,
        tenant: str,
        *,
        filter: RunFilter = ANY_RUN,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Return a page of headers, newest first."""
        return self._rows.list_runs(tenant, filter, cursor, limit)

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound how many Runs of a tenant may be running (R-15); None lifts the bound."""
        self._rows.set_cap(tenant, limit)

    async def cap(self, tenant: str) -> CapRow | None:
        """Return a tenant's cap, None when it never had one."""
        return self._rows.cap(tenant)

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        """Return a small value."""
        return self._rows.values.read(tenant, kind, key)

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        """Write a small value where `expect` is its revision."""
        return self._rows.values.put(tenant, kind, key, value, expect)

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        """Delete a small value."""
        return self._rows.values.delete(tenant, kind, key, expect)

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        """Return small values in the order of their keys."""
        return self._rows.values.listed(tenant, kind, prefix, after, limit)

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        """Take contents and salts off (R-11); True when none is left. Raises RunNotFound."""
        return self._rows.blank(tenant, run_id, limit)

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        """Delete Runs that are as they were read, all or none (ST-6)."""
        return self._rows.delete_runs(tenant, headers, keys)

    async def migrate(self) -> None:
        """Do nothing: there are no tables."""
        _ = self._rows

    async def close(self) -> None:
        """End this handle; the others go on."""
        self._closed = True
        self._arriving.close()

    async def __aenter__(self) -> Self:
        """Return the store itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
