"""The store in DynamoDB (ST-3): on demand, with no server of one's own.

Every process may use the same tables. What decides anything is read consistently; indexes, which
lag, only say where to look. Instants are the caller's clock (R-14): keep the clocks of all
machines within a second or two.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, Literal, Self

from psych_runtime._system import System
from psych_runtime.errors import SchemaMissing, StoreClosed, StoreUnavailable
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import (
    Arrival,
    Change,
    Exclude,
    Found,
    Page,
    Renewed,
    RunFilter,
    Unit,
)
from psych_runtime.store._arrivals import Arriving
from psych_runtime.store._notices import News
from psych_runtime.store._order import ANY_RUN, NOTHING_EXCLUDED, decode_cursor
from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb import (
    _caps,
    _claims,
    _ledger,
    _log,
    _reads,
    _removal,
    _texts,
    _values,
    _workers,
)
from psych_runtime.store.dynamodb._asking import Ask
from psych_runtime.store.dynamodb._client import DynamoOptions, Opener, opener
from psych_runtime.store.dynamodb._commit import commit
from psych_runtime.store.dynamodb._failures import Again, translate
from psych_runtime.store.dynamodb._items import where_run
from psych_runtime.store.dynamodb._lines import Lines
from psych_runtime.store.dynamodb._names import Tables, fits
from psych_runtime.store.dynamodb._shared import Lease, Shared, acquire
from psych_runtime.store.dynamodb._watch import Watch
from psych_runtime.store.dynamodb._wire import integer_of, text_of
from psych_runtime.store.units import OVER
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = ["DynamoStore"]

_MIGRATION_SECONDS: Final = 300.0
_HEAD: Final = ("run_id", "tenant", "head", "state")


class DynamoStore:
    """Implements the store port on three DynamoDB tables; each loop has a client of its own.

    `system` gives the clock. `make_client` is what opens a client; None takes the usual AWS
    chain. Raises StoreUnavailable when nobody answered in time, StoreDenied for credentials that
    are wrong or allow too little, SchemaMissing until `migrate` was called, UnsupportedStore for
    tables that are not ours, PayloadTooLarge for what no item or transaction takes.
    """

    def __init__(
        self,
        options: DynamoOptions,
        system: System | None = None,
        *,
        make_client: Opener | None = None,
    ) -> None:
        _ledger.check_options(options.shards)
        shared, lease = acquire(options, system)
        self._options = options
        self._make_client = make_client or opener(options)
        self._begin(shared, lease)

    def _begin(self, shared: Shared, lease: Lease) -> None:
        self._shared = shared
        self._lease = lease
        self._tables = Tables.under(self._options.prefix)
        self._lines = Lines(self._make_client)
        self._arriving = Arriving(shared.arrivals)
        self._watches: dict[asyncio.AbstractEventLoop, Watch] = {}
        self._closed = False

    async def _new_ask(self, seconds: float | None = None, *, for_worker: bool = False) -> Ask:
        """Return what asks; the time runs from when there is a client."""
        if self._closed:
            raise StoreClosed
        line = self._lines.line()
        try:
            client = await line.client()
        except Exception as error:  # one place says what it means
            failure = translate(error, "opening a client")
        else:
            patience = self._options.patience_seconds if seconds is None else seconds
            turns = line.turns(for_worker=for_worker)
            return Ask(client, turns, self._tables, self._shared, patience)
        if isinstance(failure, Again):
            raise StoreUnavailable(problem=failure.problem)
        raise failure

    async def _ask(self, *, for_worker: bool = False) -> Ask:
        """Return what asks for one call; the first one looks whether the tables are ours.

        `for_worker`: what leases and attempts live by, which does not wait for others' bursts.
        """
        ask = await self._new_ask(for_worker=for_worker)
        if self._shared.shards is None:
            self._shared.shards = await _ledger.check(ask)
        return ask

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Apply each unit all or none (R-1), each in a transaction of its own."""
        return await commit(await self._ask(for_worker=_by_worker(units)), units)

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Return records behind `after`. Raises RunNotFound."""
        return await _log.read_log(await self._ask(), tenant, run_id, after, limit)

    async def header(self, tenant: str, run_id: str) -> RunRow:
        """Return the header. Raises RunNotFound."""
        return await _log.read_header(await self._ask(), tenant, run_id)

    async def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Return the last Run of a thread."""
        return await _reads.read_tail(await self._ask(), tenant, thread)

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        """Return what is known of a request."""
        return await _reads.read_key(await self._ask(), tenant, run_id, key)

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        """Return claimable Runs, tenant by tenant in turns (R-15)."""
        return await _claims.ready(await self._ask(for_worker=True), limit, after_tenant, exclude)

    async def overdue(self, limit: int) -> list[RunRow]:
        """Return Runs that a supervisor has to settle."""
        return await _claims.overdue(await self._ask(for_worker=True), limit)

    async def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a worker's row; return the caller's now."""
        return await _workers.enlist(
            await self._ask(for_worker=True), worker, lease_seconds, build, tools
        )

    async def workers(self) -> list[WorkerRow]:
        """Return the rows of workers that are not dead."""
        return await _workers.workers(await self._ask(for_worker=True))

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        """Prolong the lease; None when the worker is dead or unknown."""
        return await _workers.renew(
            await self._ask(for_worker=True), worker, lease_seconds, run_ids
        )

    async def held_by(self, worker: str) -> list[RunRow]:
        """Return the running Runs of a worker, each as it is now.

        What another process wrote for it a moment ago may be missing: an index finds them.
        """
        return await _claims.held_by(await self._ask(for_worker=True), worker)

    async def bury(self, observer: str) -> list[str]:
        """Mark workers dead that were silent for one lease by our own clock (R-6, R-14)."""
        return await _workers.bury(await self._ask(for_worker=True), observer)

    async def sweep(self) -> None:
        """Forget dead workers that no header names, and finish what a deletion has left."""
        ask = await self._ask(for_worker=True)
        await _workers.sweep(ask)
        await _removal.finish(ask)

    def twin(self) -> Self:
        """Return another handle of the same tables, for another loop."""
        if self._closed:
            raise StoreClosed
        twin = self.__class__.__new__(self.__class__)
        twin._options = self._options
        twin._make_client = self._make_client
        twin._begin(self._shared, self._lease.again())
        return twin

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        """Keep a published Spec."""
        columns = {"created_at": self._shared.system.now()}
        await _texts.keep_text(await self._ask(), "version", tenant, hash, document, columns)

    async def version(self, tenant: str, hash: str) -> str | None:
        """Return a published Spec's text."""
        return await _texts.read_text(await self._ask(), "version", tenant, hash)

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        """Keep a document."""
        await _texts.keep_text(await self._ask(), "document", tenant, hash, text, {"kind": kind})

    async def document(self, tenant: str, hash: str) -> str | None:
        """Return a document's text."""
        return await _texts.read_text(await self._ask(), "document", tenant, hash)

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        """Return Runs that may have moved, by commits of this process or of another."""
        await self._ask()
        check_storable(tenant, *heads)
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop)
        if watch is None:
            watch = self._watches[loop] = Watch(self._look, self._shared.notices)
        return await watch.wait(tenant, heads, seconds, over=over)

    async def _look(self, run_ids: Iterable[str], consistent: bool) -> News:
        ask = await self._ask()
        keys = [(self._tables.run, where_run(run_id)) for run_id in run_ids if fits(run_id)]
        found = await ask.get_many(keys, consistent=consistent, columns=_HEAD)
        items = [
            ((text_of(item, "tenant"), text_of(item, "run_id")), item)
            for item in found.get(self._tables.run, ())
        ]
        heads = {name: integer_of(item, "head") for name, item in items}
        over = frozenset(name for name, item in items if text_of(item, "state") in OVER)
        return News(heads, over=over)

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
        """Return a page of headers, newest first.

        What another process admitted a moment ago may be missing. Where a filter leaves nearly
        everything out, a page may be short; its cursor leads on.
        """
        before = None if cursor is None else decode_cursor(cursor)
        return await _reads.list_runs(await self._ask(), tenant, filter, before, limit)

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound how many Runs of a tenant may be running (R-15); None lifts the bound."""
        await _caps.set_cap(await self._ask(), tenant, limit)

    async def cap(self, tenant: str) -> CapRow | None:
        """Return a tenant's cap, None when it never had one."""
        return await _caps.read_cap(await self._ask(), tenant)

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        """Return a small value."""
        return await _values.read_value(await self._ask(), tenant, kind, key)

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        """Write a small value where `expect` is its revision."""
        return await _values.put_value(await self._ask(), tenant, kind, key, value, expect)

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        """Delete a small value."""
        return await _values.delete_value(await self._ask(), tenant, kind, key, expect)

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        """Return small values in the order of their keys."""
        return await _values.list_values(await self._ask(), tenant, kind, prefix, after, limit)

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        """Take contents and salts off (R-11); True when none is left. Raises RunNotFound."""
        return await _log.blank(await self._ask(), tenant, run_id, limit)

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        """Delete Runs that are as they were read, all or none (ST-6).

        They are gone together; their records, keys and places are taken away behind that, by
        the next `sweep` when this process ends in between.
        """
        return await _removal.delete_runs(await self._ask(), tenant, headers, keys)

    async def migrate(self) -> None:
        """Make the tables that are missing, on demand, and wait until they can be used (ST-4)."""
        ask = await self._new_ask(_MIGRATION_SECONDS)
        options = self._options
        self._shared.shards = await _ledger.migrate(ask, options.prefix, options.shards)

    async def close(self) -> None:
        """End this handle; the other handles of the same tables go on."""
        if self._closed:
            return
        self._closed = True
        self._arriving.close()
        try:
            watch = self._watches.pop(asyncio.get_running_loop(), None)
            if watch is not None:
                await watch.close()
            await self._lines.close()
        finally:
            self._lease.release()

    async def __aenter__(self) -> Self:
        """Ask once, so that a wrong address or credentials are told here; return the store."""
        try:
            with suppress(SchemaMissing):
                await self._ask()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()


def _by_worker(units: Iterable[Unit]) -> bool:
    """Tell whether a worker commits: nobody else has a fence (R-2)."""
    changes = (change for unit in units for change in unit.changes)
    return any(isinstance(change, Change) and change.fence is not None for change in changes)
