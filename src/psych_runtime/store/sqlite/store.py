"""The store in a SQLite file (ST-3): one writer thread per process, one that reads.

Several processes may share a file on one machine. A process that is stopped inside a write
blocks all other writers; that is SQLite's limit.
"""

import copy
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal, Self

from psych_runtime._system import System
from psych_runtime.errors import StoreClosed
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import Arrival, Exclude, Found, Page, Renewed, RunFilter, Unit
from psych_runtime.store._arrivals import Arriving
from psych_runtime.store._order import ANY_RUN, NOTHING_EXCLUDED, decode_cursor
from psych_runtime.store._storable import check_storable, check_unit
from psych_runtime.store._values import check_range, check_value
from psych_runtime.store.sqlite import _ledger, _reads, _removal
from psych_runtime.store.sqlite._caps import Caps
from psych_runtime.store.sqlite._claims import Claims
from psych_runtime.store.sqlite._commits import CommitJob
from psych_runtime.store.sqlite._connect import SqliteOptions
from psych_runtime.store.sqlite._file import SqliteFile, acquire
from psych_runtime.store.sqlite._rows import Value
from psych_runtime.store.sqlite._values import Values
from psych_runtime.store.sqlite._work import Job
from psych_runtime.store.sqlite._workers import Workers
from psych_runtime.store.units import check_cap, check_deletion, check_limit, check_units
from psych_schema.base import format_instant
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = ["SqliteStore"]

_SLACK_SECONDS = 1.0  # beyond the wait for a lock, for a slow disk


class SqliteStore:
    """Implements the store port on a SQLite file; every handle in a process shares its threads.

    `system` gives the store's clock. Raises StoreUnavailable when another process holds the
    lock for longer than the options say, StoreFull, StoreReadOnly; SchemaMissing until
    `migrate` was called; UnsupportedStore for a file that is none of ours.
    """

    def __init__(self, options: SqliteOptions, system: System | None = None) -> None:
        self._shared = acquire(options, system)
        self._arriving = Arriving(self._shared.arrivals)
        self._closed = False

    @property
    def _file(self) -> SqliteFile:
        if self._closed:
            raise StoreClosed
        return self._shared

    async def _read[T](self, run: Callable[[sqlite3.Connection], T]) -> T:
        return await self._ask(Job(run), writes=False)

    async def _write[T](
        self, run: Callable[[sqlite3.Connection], T], after: Callable[[T], None] | None = None
    ) -> T:
        return await self._ask(Job(run, after), writes=True)

    async def _ask[T](self, job: Job[T], *, writes: bool) -> T:
        file = self._file
        file.put(job, writes=writes)
        return await job.answer(file.options.busy_timeout_seconds + _SLACK_SECONDS)

    def _workers(self, connection: sqlite3.Connection) -> Workers:
        return Workers(connection, self._shared.texts, self._shared.system.now())

    def _claims(self, connection: sqlite3.Connection) -> Claims:
        return Claims(connection, self._shared.texts, self._shared.system.now())

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Apply each unit all or none (R-1), in one transaction with whatever else waits."""
        check_units(units)
        for unit in units:
            check_unit(unit)
        file = self._file
        job = CommitJob(units, file.texts, file.system, file.tell)
        return (await self._ask(job, writes=True)).answers

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Return records behind `after`. Raises RunNotFound."""
        if limit is not None:
            check_limit(limit)
        check_storable(tenant, run_id)
        return await self._read(
            lambda c: _reads.read_log(c, self._shared.texts, tenant, run_id, after, limit)
        )

    async def header(self, tenant: str, run_id: str) -> RunRow:
        """Return the header. Raises RunNotFound."""
        check_storable(tenant, run_id)
        return await self._read(lambda c: _reads.read_header(c, self._shared.texts, tenant, run_id))

    async def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Return the last Run of a thread."""
        check_storable(tenant, thread)
        return await self._read(lambda c: _reads.read_tail(c, self._shared.texts, tenant, thread))

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        """Return what is known of a request."""
        check_storable(tenant, run_id, key)
        return await self._read(
            lambda c: _reads.read_key(c, self._shared.texts, tenant, run_id, key)
        )

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        """Return claimable Runs, tenant by tenant in turns (R-15)."""
        check_limit(limit)
        check_storable(after_tenant, *exclude.run_ids, *exclude.versions)
        return await self._read(lambda c: self._claims(c).ready(limit, after_tenant, exclude))

    async def overdue(self, limit: int) -> list[RunRow]:
        """Return Runs that a supervisor has to settle."""
        check_limit(limit)
        return await self._read(lambda c: self._claims(c).overdue(limit))

    async def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a worker's row; return the store's now."""
        check_storable(worker, build, *tools)
        return await self._write(
            lambda c: self._workers(c).enlist(worker, lease_seconds, build, tools)
        )

    async def workers(self) -> list[WorkerRow]:
        """Return the rows of workers that are not dead."""
        return await self._read(lambda c: self._workers(c).rows())

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        """Prolong the lease; None when the worker is dead or unknown."""
        check_storable(worker, *run_ids)
        return await self._write(lambda c: self._workers(c).renew(worker, lease_seconds, run_ids))

    async def held_by(self, worker: str) -> list[RunRow]:
        """Return the running Runs of a worker."""
        check_storable(worker)
        return await self._read(lambda c: self._claims(c).held_by(worker))

    async def bury(self, observer: str) -> list[str]:
        """Mark workers dead whose lease is over (R-6); takes the lock only if there are any."""
        check_storable(observer)
        if not await self._read(lambda c: self._workers(c).lapsed()):
            return []
        shared = self._shared

        def tell(buried: list[str]) -> None:
            if buried:
                shared.arrivals.tell()

        return await self._write(lambda c: self._workers(c).bury(observer), tell)

    async def sweep(self) -> None:
        """Forget dead workers that no header names."""
        await self._write(lambda c: self._workers(c).sweep())

    def twin(self) -> Self:
        """Return another handle of the same file, for another loop."""
        self._file.again()
        twin = copy.copy(self)
        twin._arriving = Arriving(self._shared.arrivals)
        return twin

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        """Keep a published Spec."""
        check_storable(tenant, hash, document)
        shared = self._shared

        def run(connection: sqlite3.Connection) -> None:
            if _reads.read_text(connection, shared.texts.read_version, tenant, hash) is None:
                row: dict[str, Value] = {
                    "tenant": tenant,
                    "hash": hash,
                    "document": document,
                    "created_at": format_instant(shared.system.now()),
                }
                connection.execute(shared.texts.insert_version, row)

        await self._write(run)

    async def version(self, tenant: str, hash: str) -> str | None:
        """Return a published Spec's text."""
        check_storable(tenant, hash)
        file = self._file
        found = file.versions.get(tenant, hash)
        if found is None:
            text = file.texts.read_version
            found = await self._read(lambda c: _reads.read_text(c, text, tenant, hash))
            if found is not None:
                file.versions.put(tenant, hash, found)
        return found

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        """Keep a document."""
        check_storable(tenant, hash, text)
        texts = self._shared.texts

        def run(connection: sqlite3.Connection) -> None:
            if _reads.read_text(connection, texts.read_document, tenant, hash) is None:
                row = {"tenant": tenant, "hash": hash, "kind": kind, "text": text}
                connection.execute(texts.insert_document, row)

        await self._write(run)

    async def document(self, tenant: str, hash: str) -> str | None:
        """Return a document's text."""
        check_storable(tenant, hash)
        text = self._shared.texts.read_document
        return await self._read(lambda c: _reads.read_text(c, text, tenant, hash))

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        """Return Runs that may have moved, by commits of this process or of another."""
        file = self._file
        check_storable(tenant, *heads)
        with file.notices.waiting(tenant, heads, over=over) as waiter:
            if not waiter.woken:
                file.look(heads)  # what another process has written before
                await waiter.sleep(seconds)
            return frozenset(waiter.woken)

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        """Return how many times this process may have made work, once it is not `seen`."""
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
        check_limit(limit)
        check_storable(tenant, filter.state, filter.version, filter.thread, filter.parent)
        before = None if cursor is None else decode_cursor(cursor)
        return await self._read(
            lambda c: _reads.read_page(c, self._shared.texts, tenant, filter, before, limit)
        )

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound how many Runs of a tenant may be running (R-15); None lifts the bound."""
        check_cap(limit)
        check_storable(tenant)
        await self._write(lambda c: Caps(c, self._shared.texts).set(tenant, limit))

    async def cap(self, tenant: str) -> CapRow | None:
        """Return a tenant's cap, None when it never had one."""
        check_storable(tenant)
        return await self._read(lambda c: Caps(c, self._shared.texts).row(tenant))

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        """Return a small value."""
        check_value(tenant, kind, key)
        texts = self._shared.texts
        return await self._read(lambda c: Values(c, texts, tenant, kind).read(key))

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        """Write a small value where `expect` is its revision."""
        check_value(tenant, kind, key, value)
        texts, system = self._shared.texts, self._shared.system
        return await self._write(
            lambda c: Values(c, texts, tenant, kind).put(key, value, expect, system)
        )

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        """Delete a small value."""
        check_value(tenant, kind, key)
        texts = self._shared.texts
        return await self._write(lambda c: Values(c, texts, tenant, kind).delete(key, expect))

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        """Return small values in the order of their keys."""
        check_range(tenant, kind, prefix, after, limit)
        texts = self._shared.texts
        return await self._read(
            lambda c: Values(c, texts, tenant, kind).listed(prefix, after, limit)
        )

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        """Take contents and salts off (R-11); True when none is left. Raises RunNotFound."""
        check_limit(limit)
        check_storable(tenant, run_id)
        texts = self._shared.texts
        return await self._write(lambda c: _removal.blank(c, texts, tenant, run_id, limit))

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        """Delete Runs that are as they were read, all or none (ST-6)."""
        check_deletion(headers)
        check_storable(tenant, *[header.run_id for header in headers], *keys)
        texts = self._shared.texts
        return await self._write(lambda c: _removal.delete_runs(c, texts, tenant, headers, keys))

    async def migrate(self) -> None:
        """Bring the tables to this build's schema (ST-4); takes the lock only if one is missing."""
        file = self._file
        texts, prefix, path = file.texts, file.options.prefix, file.options.path
        looks = Job(lambda c: _ledger.is_current(c, texts, prefix, path), needs_schema=False)
        if await self._ask(looks, writes=False):
            return

        def run(connection: sqlite3.Connection) -> None:
            _ledger.migrate(connection, texts, prefix, path, file.system.now())

        job = Job(run, needs_schema=False)
        file.put(job, writes=True)
        await job.answer(None)

    async def close(self) -> None:
        """End this handle; the last one of a file stops its threads and closes it."""
        if not self._closed:
            self._closed = True
            self._arriving.close()
            await self._shared.release()

    async def __aenter__(self) -> Self:
        """Open the file now, so that what is wrong with it is told here; return the store."""
        try:
            await self._ask(Job(lambda _: None, needs_schema=False), writes=False)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
