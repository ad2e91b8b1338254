"""Reading what is found by its name: threads and keys; and a tenant's list of Runs."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

from psych_runtime.ports.store import Page, RunFilter
from psych_runtime.store._order import Position, cursor_behind, encode_cursor, matches
from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._items import key_row_of
from psych_runtime.store.dynamodb._names import escaped, key_of, month_of, months_key, unescaped
from psych_runtime.store.dynamodb._wire import Item, text_of
from psych_runtime.store.units import check_limit
from psych_schema.base import format_instant, parse_instant
from psych_schema.dynamodb import key_key, run_list_key, thread_key
from psych_schema.store import KeyRow, RunRow

__all__ = ["list_runs", "read_key", "read_tail"]

_TAILS: Final = 4  # places read at once: what deleted Runs left behind is passed over
_LOOKED_AT: Final = 2000  # Runs that one page of a filtered list looks at
_QUERIED: Final = 1000  # of them at once


async def read_tail(ask: Ask, tenant: str, thread: str) -> RunRow | None:
    """Return the header at the highest position of a thread."""
    check_storable(tenant, thread)
    names = thread_key(tenant=tenant, thread=thread, position=0)
    key_of(names)
    within = Range(ask.tables.item, None, names["pk"])
    last: Item | None = None
    while True:
        page = await ask.query(within, limit=_TAILS, start=last, forward=False)
        run_ids = [text_of(item, "run_id") for item in page.items]
        rows = (await ask.headers(run_ids)).rows
        for run_id in run_ids:
            row = rows.get(run_id)
            if row is not None and row.tenant == tenant and row.thread == thread:
                return row
        last = page.last
        if last is None:
            return None


async def read_key(ask: Ask, tenant: str, run_id: str, key: str) -> KeyRow | None:
    """Return what is known of a request."""
    check_storable(tenant, run_id, key)
    where = key_of(key_key(tenant=tenant, run_id=run_id, key=key))
    item = await ask.get(ask.tables.item, where)
    return None if item is None else key_row_of(item)


async def list_runs(
    ask: Ask, tenant: str, wanted: RunFilter, before: Position | None, limit: int
) -> Page:
    """Return a page of a tenant's Runs, newest first.

    Where a filter leaves nearly everything out, a page may be short; its cursor leads on.
    """
    check_limit(limit)
    check_storable(tenant, wanted.state, wanted.version, wanted.thread, wanted.parent)
    found: list[RunRow] = []
    looked_at = 0
    async for places in _List(ask, tenant, wanted, before, limit).newest_first():
        rows = (await ask.headers(place.run_id for place in places)).rows
        for place in places:
            row = rows.get(place.run_id)
            if row is not None and row.tenant == tenant and matches(row, wanted):
                if len(found) == limit:
                    return Page(tuple(found), encode_cursor(found[-1]))
                found.append(row)
        looked_at += len(places)
        if looked_at >= _LOOKED_AT and found:
            return Page(tuple(found), cursor_behind(places[-1]))
    return Page(tuple(found), None)


class _List:
    """The places of a tenant's Runs behind `before`: those of the index, and our own latest."""

    def __init__(
        self, ask: Ask, tenant: str, wanted: RunFilter, before: Position | None, limit: int
    ) -> None:
        self._ask = ask
        self._tenant = tenant
        self._wanted = wanted
        self._before = before
        self._limit = limit
        self._own = {
            Position(row.created_at, row.run_id)
            for row in ask.shared.lately(ask.moment)
            if row.tenant == tenant
        }

    async def newest_first(self) -> AsyncIterator[list[Position]]:
        """Give the places in parts, each sorted and behind the part before."""
        months = await self._months() | {month_of(place.created_at) for place in self._own}
        after = self._wanted.created_after
        for month in sorted(months, reverse=True):
            if self._before is not None and month > month_of(self._before.created_at):
                continue
            if after is not None and month < month_of(after):
                return
            async for part in self._of_month(month):
                yield part

    async def _months(self) -> set[int]:
        ask = self._ask
        item = await ask.get(ask.tables.item, key_of(months_key(tenant=self._tenant)))
        kept = None if item is None else item["months"].get("NS")
        return {int(month) for month in kept} if isinstance(kept, list | set | tuple) else set()

    async def _of_month(self, month: int) -> AsyncIterator[list[Position]]:
        names = run_list_key(tenant=self._tenant, bucket=month, created_at=_ANY, run_id="")
        within = Range(self._ask.tables.run, "list", names["list_pk"], "0", self._high(month))
        own = {place for place in self._own if month_of(place.created_at) == month}
        last: Item | None = None
        while True:
            limit = min(_QUERIED, self._limit + 1)
            page = await self._ask.query(within, limit=limit, start=last, forward=False)
            last = page.last
            part = {_place(item) for item in page.items if self._may_match(item)}
            end = _place(page.items[-1]) if last is not None and page.items else None
            part |= {place for place in own if end is None or place >= end}
            own -= part
            behind = [each for each in part if self._before is None or each < self._before]
            if behind:
                yield sorted(behind, reverse=True)
            if last is None:
                return

    def _high(self, month: int) -> str:
        if self._before is None or month_of(self._before.created_at) != month:
            return "~"
        return f"{format_instant(self._before.created_at)}#{escaped(self._before.run_id)}"

    def _may_match(self, item: Item) -> bool:
        return self._wanted.version in (None, text_of(item, "version"))


_ANY: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _place(item: Item) -> Position:
    created_at, _, run_id = text_of(item, "list_sk").partition("#")
    return Position(parse_instant(created_at), unescaped(run_id))
