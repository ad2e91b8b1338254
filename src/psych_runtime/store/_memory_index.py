"""Where the in-memory store finds Runs without looking at all of them.

Settled Runs are only in the list of their tenant, so that claims stay cheap however many there
are. The clock is passed in; an instant that was due once is checked again when it is read.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Final

from psych_runtime.store._order import Position, claim_key
from psych_schema.store import RunRow

__all__ = ["INDEXED", "MemoryIndex"]

INDEXED: Final = frozenset({"state", "worker", "wake_at", "deadline_at", "abort"})
"""Columns whose change moves a Run in the index."""

_ENDED: Final = ("settled", "corrupt")

type _Key = tuple[int, datetime, str]


class MemoryIndex:
    """Run ids by what they are looked up by; the rows stay with the store."""

    def __init__(self, runs: Mapping[str, RunRow]) -> None:
        self._runs = runs
        self._ready: dict[str, list[_Key]] = {}
        self._sleeping: list[tuple[datetime, str]] = []
        self._deadlines: list[tuple[datetime, str]] = []
        self._aborted: dict[str, None] = {}
        self._held: dict[str, dict[str, None]] = {}
        self._listed: dict[str, list[Position]] = {}

    def add(self, header: RunRow) -> None:
        """Take in a new Run."""
        insort(
            self._listed.setdefault(header.tenant, []), Position(header.created_at, header.run_id)
        )
        self._enter(header)

    def remove(self, header: RunRow) -> None:
        """Forget a Run that is deleted."""
        _discard(self._listed[header.tenant], Position(header.created_at, header.run_id))
        self._leave(header)

    def move(self, before: RunRow, after: RunRow) -> None:
        """Follow a change of an indexed column."""
        self._leave(before)
        self._enter(after)

    def _enter(self, header: RunRow) -> None:
        run_id = header.run_id
        if header.worker is not None:
            self._held.setdefault(header.worker, {})[run_id] = None
        if header.state in _ENDED:
            return
        if header.state == "ready" and header.wake_at is None:
            insort(self._ready.setdefault(header.tenant, []), claim_key(header))
        elif header.state != "running" and header.wake_at is not None:
            insort(self._sleeping, (header.wake_at, run_id))
        if header.deadline_at is not None:
            insort(self._deadlines, (header.deadline_at, run_id))
        if header.abort is not None:
            self._aborted[run_id] = None

    def _leave(self, header: RunRow) -> None:
        run_id = header.run_id
        if header.worker is not None:
            held = self._held[header.worker]
            del held[run_id]
            if not held:
                del self._held[header.worker]
        if header.state in _ENDED:
            return
        if header.state != "running":
            if header.wake_at is not None:
                _discard(self._sleeping, (header.wake_at, run_id))
            ready = self._ready.get(header.tenant, [])
            _discard(ready, claim_key(header))
            if not ready:
                self._ready.pop(header.tenant, None)
        if header.deadline_at is not None:
            _discard(self._deadlines, (header.deadline_at, run_id))
        self._aborted.pop(run_id, None)

    def claimable(
        self,
        now: datetime,
        after_tenant: str,
        live: Collection[str],
        wanted: Callable[[RunRow], bool],
        room: Callable[[str], int | None],
    ) -> Iterator[Iterator[RunRow]]:
        """Give each tenant's claimable Runs in order, tenants from behind the cursor on.

        `live` are the workers that are not dead; what others hold is claimable. Of a tenant's
        `wanted` Runs that wait, no more are given than it has `room` for; None is no bound.
        """
        self._wake(now)
        orphans: dict[str, list[_Key]] = {}
        for worker in self._held.keys() - live:
            for header in self.held(worker):
                orphans.setdefault(header.tenant, []).append(claim_key(header))
        tenants = sorted(self._ready.keys() | orphans.keys())
        start = bisect_right(tenants, after_tenant)
        for tenant in tenants[start:] + tenants[:start]:
            waiting = filter(wanted, self._waiting(now, tenant))
            held = filter(wanted, self._rows(sorted(orphans.get(tenant, []))))
            yield merge(islice(waiting, room(tenant)), held, key=claim_key)

    def _wake(self, now: datetime) -> None:
        due = bisect_right(self._sleeping, now, key=lambda entry: entry[0])
        for _, run_id in self._sleeping[:due]:
            header = self._runs[run_id]
            insort(self._ready.setdefault(header.tenant, []), claim_key(header))
        del self._sleeping[:due]

    def _waiting(self, now: datetime, tenant: str) -> Iterator[RunRow]:
        for header in self._rows(self._ready.get(tenant, ())):
            if header.wake_at is None or header.wake_at <= now:
                yield header

    def _rows(self, keys: Iterable[_Key]) -> Iterator[RunRow]:
        for _, _, run_id in keys:
            yield self._runs[run_id]

    def overdue(self, now: datetime, live: Collection[str]) -> Iterator[RunRow]:
        """Give Runs that are aborted or past their deadline and that no live worker holds."""
        late = bisect_right(self._deadlines, now, key=lambda entry: entry[0])
        found = dict.fromkeys(run_id for _, run_id in self._deadlines[:late])
        for run_id in found | self._aborted:
            header = self._runs[run_id]
            if header.state != "running" or header.worker not in live:
                yield header

    def held(self, worker: str) -> Iterator[RunRow]:
        """Give the running Runs of a worker."""
        for run_id in self._held.get(worker, ()):
            header = self._runs[run_id]
            if header.state == "running":
                yield header

    def named(self, worker: str) -> bool:
        """Tell whether a header names this worker."""
        return worker in self._held

    def newest_first(self, tenant: str, before: Position | None) -> Iterator[RunRow]:
        """Give a tenant's Runs from behind a position on."""
        listed = self._listed.get(tenant, [])
        end = len(listed) if before is None else bisect_left(listed, before)
        for place in range(end - 1, -1, -1):
            yield self._runs[listed[place].run_id]


def _discard[T: tuple[object, ...]](entries: list[T], entry: T) -> None:
    place = bisect_left(entries, entry)
    if place < len(entries) and entries[place] == entry:
        del entries[place]
