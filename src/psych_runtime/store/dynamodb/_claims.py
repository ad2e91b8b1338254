"""Which Runs may be claimed or must be settled (R-15).

What an index says is a hint: each Run is read, consistently, before it is given. Beside the
index stand the Runs that this process wrote lately, since an index lags.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Final

from psych_runtime.ports.store import Exclude, Found
from psych_runtime.store._order import TENANT_WINDOW, claim_key, excluded, take_fairly
from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._items import cap_of, claim_sort, due_of
from psych_runtime.store.dynamodb._names import Key, escaped, key_of, unescaped
from psych_runtime.store.dynamodb._shards import FIRST, LAST, Entry, Walk, behind
from psych_runtime.store.dynamodb._wire import text_of
from psych_runtime.store.dynamodb._workers import dead_holders, held_runs
from psych_runtime.store.units import check_limit
from psych_schema.base import format_instant
from psych_schema.dynamodb import cap_key
from psych_schema.store import RunRow

__all__ = ["held_by", "overdue", "ready"]

_QUERIED: Final = 100


async def ready(ask: Ask, limit: int, after_tenant: str, exclude: Exclude) -> Found:
    """Return claimable Runs, tenants in turns."""
    check_limit(limit)
    check_storable(after_tenant, *exclude.run_ids, *exclude.versions)
    now = ask.system.now()
    dead = await dead_holders(ask)
    held = await held_runs(ask, dead)
    look = _Look(ask, limit, exclude, now, dead)
    return Found(now, await look.find(after_tenant, held), look.capped)


class _Tenant:
    """One tenant's claimable Runs: those that were verified, and where more may be."""

    def __init__(self, name: str, walks: Sequence[Walk]) -> None:
        self.name = name
        self.walks = walks
        self.room: int | None = None  # None: no cap, or not known yet
        self.found: list[RunRow] = []
        self.waiting = 0  # of those found, how many the cap counts when they are claimed

    async def next(self) -> Entry | None:
        """Return the next entry; where the cap has no room left, only what a dead worker holds."""
        while True:
            await Walk.fill_all(self.walks)
            heads = [walk for walk in self.walks if walk.entries]
            if not heads:
                return None
            entry = min(heads, key=lambda walk: walk.entries[0].sort).entries.pop(0)
            if entry.held or self.has_room:
                return entry
            self.walks = [Walk(each for each in walk.entries if each.held) for walk in self.walks]

    @property
    def has_room(self) -> bool:
        return self.room is None or self.waiting < self.room


class _Look:
    """One look for work."""

    def __init__(
        self, ask: Ask, limit: int, exclude: Exclude, now: datetime, dead: frozenset[str]
    ) -> None:
        self._ask = ask
        self._limit = limit
        self._exclude = exclude
        self._now = now
        self._dead = dead
        self._tenants: list[_Tenant] = []
        self._seen: set[str] = set()

    @property
    def capped(self) -> bool:
        """Whether a tenant that was looked at has a cap."""
        return any(tenant.room is not None for tenant in self._tenants)

    async def find(self, after_tenant: str, held: Iterable[RunRow]) -> tuple[RunRow, ...]:
        """Return Runs of the tenants behind the cursor, then of those up to it."""
        own = [Entry.of(claim_sort(row), row, held=True) for row in held]
        own += [
            Entry.of(claim_sort(row), row)
            for row in self._ask.shared.lately(self._ask.moment)
            if self._is_claimable(row) and row.state != "running"
        ]
        own.sort()
        start = behind(escaped(after_tenant)) if after_tenant else FIRST
        spans = [(start, LAST), (FIRST, start)] if after_tenant else [(FIRST, LAST)]
        for low, high in spans:
            walks = [self._walk(shard, low, high) for shard in range(self._ask.shards)]
            walks.append(Walk(entry for entry in own if low <= entry.sort < high))
            while await self._next_tenants(walks):
                await self._verify_each(self._limit, most=1)
        await self._verify_each(self._limit, most=self._limit)
        taken = (iter(sorted(tenant.found, key=claim_key)) for tenant in self._tenants)
        return take_fairly(taken, self._limit)

    def _walk(self, shard: int, low: str, high: str) -> Walk:
        due = format_instant(self._now)
        return Walk(ask=self._ask, shard=shard, low=low, high=high, due=due)

    async def _next_tenants(self, walks: Sequence[Walk]) -> bool:
        """Take in as many tenants as are missing; False: none is, or there are no more."""
        missing = min(self._limit, TENANT_WINDOW) - sum(1 for each in self._tenants if each.found)
        for count in range(missing):
            await Walk.fill_all(walks)
            heads = [walk.entries[0] for walk in walks if walk.entries]
            if not heads:
                return count > 0
            first = min(heads)
            block = first.block
            own = [w.cut(block) for w in walks if w.entries and w.entries[0].sort.startswith(block)]
            self._tenants.append(_Tenant(first.tenant, own))
        return missing > 0

    async def _verify_each(self, limit: int, most: int) -> None:
        """Read entries of the tenants in turns, until `limit` are found, `most` of each."""
        while (missing := limit - sum(len(each.found) for each in self._tenants)) > 0:
            drawn = await self._draw(missing, most)
            if not drawn:
                return
            await self._verify(drawn)

    async def _draw(self, count: int, most: int) -> list[tuple[_Tenant, Entry]]:
        """Take entries in turns, first from tenants of whom the fewest are found."""
        turn = [(len(each.found), place) for place, each in enumerate(self._tenants)]
        heapify(turn)
        drawn: list[tuple[_Tenant, Entry]] = []
        while turn and len(drawn) < count:
            has, place = heappop(turn)
            if has >= most:
                break
            tenant = self._tenants[place]
            entry = await self._next_of(tenant)
            if entry is not None:
                drawn.append((tenant, entry))
                heappush(turn, (has + 1, place))
        return drawn

    async def _next_of(self, tenant: _Tenant) -> Entry | None:
        exclude = self._exclude
        above = exclude.schema_version_above
        while (entry := await tenant.next()) is not None:
            if entry.run_id in self._seen or entry.run_id in exclude.run_ids:
                continue
            if entry.version in exclude.versions:
                continue
            if above is not None and entry.schema_version > above:
                continue
            self._seen.add(entry.run_id)
            return entry
        return None

    async def _verify(self, drawn: Sequence[tuple[_Tenant, Entry]]) -> None:
        """Keep those that are claimable as they are now, and that the tenant's cap has room for."""
        ask = self._ask
        new = {tenant.name for tenant, _ in drawn if tenant.room is None and not tenant.found}
        caps: list[tuple[str, Key]] = [
            (ask.tables.item, key_of(cap_key(tenant=name))) for name in sorted(new)
        ]
        headers = await ask.headers((entry.run_id for _, entry in drawn), *caps)
        room = {row.tenant: max(0, row.limit - row.running) for row in map(cap_of, headers.beside)}
        for tenant, entry in drawn:
            tenant.room = room.get(tenant.name, tenant.room)
            row = headers.rows.get(entry.run_id)
            if row is None or row.tenant != tenant.name or excluded(row, self._exclude):
                continue
            if not self._is_claimable(row) or not (tenant.has_room or row.state == "running"):
                continue
            tenant.waiting += row.state != "running"
            tenant.found.append(row)

    def _is_claimable(self, row: RunRow) -> bool:
        match row.state:
            case "ready":
                return row.wake_at is None or row.wake_at <= self._now
            case "suspended":
                return row.wake_at is not None and row.wake_at <= self._now
            case "running":
                return row.worker in self._dead
            case _:
                return False


async def overdue(ask: Ask, limit: int) -> list[RunRow]:
    """Return Runs that no live worker holds and that are aborted or past their deadline."""
    check_limit(limit)
    now = ask.system.now()
    dead = await dead_holders(ask)
    found: dict[str, RunRow] = {}
    own = [
        row.run_id
        for row in ask.shared.lately(ask.moment)
        if (due := due_of(row)) is not None and due <= now
    ]
    await _take_overdue(ask, own, now, dead, found)

    async def walk(shard: int) -> None:
        high = behind(format_instant(now))
        within = Range(ask.tables.run, "due", f"{shard:02}", "0", high)
        last = None
        while len(found) < limit:
            page = await ask.query(within, limit=_QUERIED, start=last)
            names = [text_of(item, "due_sk").partition("#")[2] for item in page.items]
            await _take_overdue(ask, map(unescaped, names), now, dead, found)
            last = page.last
            if last is None:
                return

    await asyncio.gather(*[walk(shard) for shard in range(ask.shards)])
    return list(found.values())[:limit]


async def _take_overdue(
    ask: Ask,
    run_ids: Iterable[str],
    now: datetime,
    dead: frozenset[str],
    found: dict[str, RunRow],
) -> None:
    wanted = [run_id for run_id in run_ids if run_id not in found]
    for row in (await ask.headers(wanted)).rows.values() if wanted else ():
        due = due_of(row)
        if due is None or (row.abort is None and due > now):
            continue
        if row.state != "running" or row.worker in dead:
            found[row.run_id] = row


async def held_by(ask: Ask, worker: str) -> list[RunRow]:
    """Return the running Runs of a worker.

    What another process wrote for it less than the index's lag ago may be missing.
    """
    check_storable(worker)
    found = await held_runs(ask, frozenset((worker,)))
    return sorted(found, key=lambda row: row.run_id)
