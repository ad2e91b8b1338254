"""The rows of the in-memory store: plain methods, each of them whole under one lock.

The same rows as in a database, so that nothing passes here that another store would refuse.
"""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice

from psych_runtime import errors
from psych_runtime._system import System
from psych_runtime.ports.answers import (
    Answer,
    CapReached,
    Committed,
    KeyTaken,
    LeaseLost,
    RunNotFound,
    SeqConflict,
    ThreadTaken,
)
from psych_runtime.ports.store import (
    Admit,
    Change,
    Exclude,
    Found,
    Page,
    Renewed,
    RunFilter,
    Unit,
)
from psych_runtime.store._arrivals import Arrivals
from psych_runtime.store._memory_caps import MemoryCaps
from psych_runtime.store._memory_index import INDEXED, MemoryIndex
from psych_runtime.store._memory_values import MemoryValues
from psych_runtime.store._memory_workers import MemoryWorkers
from psych_runtime.store._notices import Notices
from psych_runtime.store._order import (
    decode_cursor,
    encode_cursor,
    excluded,
    matches,
    seen,
    take_fairly,
)
from psych_runtime.store._storable import check_storable, check_unit
from psych_runtime.store.units import (
    OVER,
    admitted,
    changed,
    check_cap,
    check_deletion,
    check_limit,
    check_units,
    is_as_seen,
    news_of,
)
from psych_schema.store import CapRow, KeyRow, RecordRow, RunRow, WorkerRow

__all__ = ["MemoryRows"]


class MemoryRows:
    """What all handles of one in-memory store share."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.notices = Notices()
        self.arrivals = Arrivals()
        self.values = MemoryValues(system)
        self._lock = threading.Lock()
        self._runs: dict[str, RunRow] = {}
        self._logs: dict[str, list[RecordRow]] = {}
        self._keys: dict[tuple[str, str], dict[str, KeyRow]] = {}
        self._threads: dict[tuple[str, str], dict[int, str]] = {}
        self._tails: dict[tuple[str, str], tuple[int, str]] = {}
        self._caps = MemoryCaps()
        self._workers = MemoryWorkers()
        self._texts: dict[tuple[str, str, str], str] = {}
        self._index = MemoryIndex(self._runs)

    def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Judge and apply each unit (R-1), then wake whoever waits for its Runs."""
        check_units(units)
        for unit in units:
            check_unit(unit)
        landed: list[Unit] = []
        with self._lock:
            answers: list[Answer] = []
            for unit in units:
                answer = self._judge(unit)
                if answer is None:
                    self._apply(unit)
                    landed.append(unit)
                    answer = Committed()
                answers.append(answer)
        news = news_of(landed)
        self.notices.announce(news)
        self.arrivals.hear(news)
        return answers

    def _judge(self, unit: Unit) -> Answer | None:
        fence: Answer | None = None
        head: Answer | None = None
        for change in unit.changes:
            header = self._runs.get(change.run_id)
            if isinstance(change, Admit):
                if header is not None:
                    head = head or SeqConflict(change.run_id)
                continue
            if header is None or header.tenant != unit.tenant:
                return RunNotFound(change.run_id)
            if change.fence is not None and change.fence != header.epoch:
                fence = fence or LeaseLost(change.run_id)
            if change.expect_head != header.head:
                head = head or SeqConflict(change.run_id)
        return fence or head or self._judge_names(unit) or self._judge_cap(unit)

    def _judge_names(self, unit: Unit) -> Answer | None:
        for key in unit.keys:
            known = self._keys.get((unit.tenant, key.run_id), {}).get(key.key)
            if known is not None:
                return KeyTaken(known.key, known.digest, known.receipt)
        places: set[tuple[str, int]] = set()
        for change in unit.changes:
            if isinstance(change, Admit):
                place = thread, position = change.header.thread, change.header.position
                if position in self._threads.get((unit.tenant, thread), ()) or place in places:
                    return ThreadTaken(*place)
                places.add(place)
        return None

    def _judge_cap(self, unit: Unit) -> Answer | None:
        changes = (change for change in unit.changes if isinstance(change, Change))
        pairs = ((self._runs[change.run_id], change.header) for change in changes)
        return None if self._caps.has_room(unit.tenant, pairs) else CapReached(unit.tenant)

    def _apply(self, unit: Unit) -> None:
        for change in unit.changes:
            if isinstance(change, Admit):
                self._admit(change)
            else:
                self._change(change)
        for key in unit.keys:
            self._keys.setdefault((unit.tenant, key.run_id), {})[key.key] = key

    def _admit(self, admit: Admit) -> None:
        header = admitted(admit, self.system.now())
        run_id, thread = header.run_id, (header.tenant, header.thread)
        self._runs[run_id] = header
        self._logs[run_id] = [sealed.row for sealed in admit.records]
        self._threads.setdefault(thread, {})[header.position] = run_id
        place = (header.position, run_id)
        self._tails[thread] = max(self._tails.get(thread, place), place)
        self._index.add(header)

    def _change(self, change: Change) -> None:
        before = self._runs[change.run_id]
        columns = changed(before, change, self.system.now())
        columns |= self._caps.count(before, change.header)
        after = before.model_copy(update=columns)
        self._runs[change.run_id] = after
        self._logs[change.run_id].extend([sealed.row for sealed in change.records])
        if not INDEXED.isdisjoint(columns):
            self._index.move(before, after)

    def read(self, tenant: str, run_id: str, after: int, limit: int | None) -> list[RecordRow]:
        """Return records behind `after`: logs are gapless, so seq tells the place."""
        if limit is not None:
            check_limit(limit)
        with self._lock:
            self._header(tenant, run_id)
            first = max(0, after)
            return self._logs[run_id][first : None if limit is None else first + limit]

    def header(self, tenant: str, run_id: str) -> RunRow:
        """Return a header of this tenant."""
        with self._lock:
            return self._header(tenant, run_id)

    def _header(self, tenant: str, run_id: str) -> RunRow:
        check_storable(tenant, run_id)
        header = self._runs.get(run_id)
        if header is None or header.tenant != tenant:
            raise errors.RunNotFound(run_id=run_id)
        return header

    def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Return the last Run of a thread."""
        check_storable(tenant, thread)
        with self._lock:
            last = self._tails.get((tenant, thread))
            return None if last is None else self._runs[last[1]]

    def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        """Return a key row."""
        check_storable(tenant, run_id, key)
        return self._keys.get((tenant, run_id), {}).get(key)

    def moved(self, tenant: str, heads: Mapping[str, int], *, over: bool) -> set[str]:
        """Return Runs of this tenant that are past the given heads, and over if asked for."""
        check_storable(tenant, *heads)
        with self._lock:
            found = {run_id: self._runs.get(run_id) for run_id in heads}
        return {
            run_id
            for run_id, header in found.items()
            if header is not None
            and header.tenant == tenant
            and header.head > heads[run_id]
            and (header.state in OVER or not over)
        }

    def ready(self, limit: int, after_tenant: str, exclude: Exclude) -> Found:
        """Return claimable Runs (R-15)."""
        check_limit(limit)
        check_storable(after_tenant, *exclude.run_ids, *exclude.versions)
        with self._lock:
            now = self.system.now()
            tenants = self._index.claimable(
                now,
                after_tenant,
                self._workers.live,
                lambda header: not excluded(header, exclude),
                self._caps.room,
            )
            return Found(now, take_fairly(tenants, limit), self._caps.any())

    def overdue(self, limit: int) -> list[RunRow]:
        """Return Runs that a supervisor has to settle."""
        check_limit(limit)
        with self._lock:
            return list(islice(self._index.overdue(self.system.now(), self._workers.live), limit))

    def list_runs(self, tenant: str, wanted: RunFilter, cursor: str | None, limit: int) -> Page:
        """Return a page of a tenant's Runs."""
        check_limit(limit)
        check_storable(tenant, wanted.state, wanted.version, wanted.thread, wanted.parent)
        before = None if cursor is None else decode_cursor(cursor)
        with self._lock:
            found = (
                header
                for header in self._index.newest_first(tenant, before)
                if matches(header, wanted)
            )
            headers = tuple(islice(found, limit))
            more = len(headers) == limit and next(found, None) is not None
        return Page(headers, encode_cursor(headers[-1]) if more else None)

    def enlist(
        self, worker: str, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a worker's row; return the store's now."""
        check_storable(worker, build, *tools)
        with self._lock:
            now = self.system.now()
            self._workers.enlist(worker, lease_seconds, build, tools, now)
            return now

    def workers(self) -> list[WorkerRow]:
        """Return the rows of workers that are not dead."""
        with self._lock:
            return self._workers.alive()

    def renew(self, worker: str, lease_seconds: float, run_ids: Sequence[str]) -> Renewed | None:
        """Prolong a lease and tell about Runs."""
        check_storable(worker, *run_ids)
        with self._lock:
            now = self.system.now()
            if not self._workers.renew(worker, lease_seconds, now):
                return None
            found = [self._runs[run_id] for run_id in run_ids if run_id in self._runs]
        return Renewed(now, {header.run_id: seen(header, now) for header in found})

    def held_by(self, worker: str) -> list[RunRow]:
        """Return the running Runs of a worker."""
        check_storable(worker)
        with self._lock:
            return list(self._index.held(worker))

    def bury(self, observer: str) -> list[str]:
        """Mark workers dead (R-6)."""
        check_storable(observer)
        with self._lock:
            buried = self._workers.bury(observer, self.system.now())
        if buried:
            self.arrivals.tell()
        return buried

    def sweep(self) -> None:
        """Forget dead workers that no header names."""
        with self._lock:
            self._workers.sweep(self._index.named)

    def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound how many Runs of a tenant may be running."""
        check_cap(limit)
        check_storable(tenant)
        with self._lock:
            self._caps.set(tenant, limit)

    def cap(self, tenant: str) -> CapRow | None:
        """Return a tenant's cap."""
        check_storable(tenant)
        return self._caps.row(tenant)

    def blank(self, tenant: str, run_id: str, limit: int) -> bool:
        """Take contents and salts off; True when none is left."""
        check_limit(limit)
        with self._lock:
            self._header(tenant, run_id)
            log = self._logs[run_id]
            left = (at for at, row in enumerate(log) if (row.content, row.salt) != (None, None))
            for at in islice(left, limit):
                log[at] = log[at].model_copy(update={"content": None, "salt": None})
            return next(left, None) is None

    def delete_runs(self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]) -> bool:
        """Delete Runs that are as they were seen, all or none."""
        check_deletion(headers)
        check_storable(tenant, *[header.run_id for header in headers], *keys)
        with self._lock:
            now = [self._runs.get(header.run_id) for header in headers]
            if not all(map(partial(is_as_seen, tenant), now, headers)):
                return False
            for header in headers:
                self._delete(self._runs[header.run_id])
            for key in keys:
                self._keys.get((tenant, ""), {}).pop(key, None)
            return True

    def _delete(self, header: RunRow) -> None:
        self._index.remove(header)
        del self._runs[header.run_id], self._logs[header.run_id]
        self._keys.pop((header.tenant, header.run_id), None)
        thread = header.tenant, header.thread
        places = self._threads[thread]
        del places[header.position]
        if places:
            self._tails[thread] = max(places.items())
        else:
            del self._threads[thread], self._tails[thread]

    def put_text(self, table: str, tenant: str, hash: str, text: str) -> None:
        """Keep a text by its hash, once."""
        check_storable(tenant, hash, text)
        self._texts.setdefault((table, tenant, hash), text)

    def text(self, table: str, tenant: str, hash: str) -> str | None:
        """Return a text by its hash."""
        check_storable(tenant, hash)
        return self._texts.get((table, tenant, hash))
