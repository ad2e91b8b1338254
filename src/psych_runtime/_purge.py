"""Purging: whole threads that ended long ago are deleted, with all that is theirs (ST-6)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from pydantic_core import from_json

from psych_runtime._arguments import check_instant, check_limit, check_scope_type
from psych_runtime._kin import known
from psych_runtime.errors import InvalidArgument, RunNotFound
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import RunFilter, Store
from psych_runtime.runtime.requests import check_blob, check_store
from psych_runtime.store._order import cursor_at
from psych_schema.common import Scope
from psych_schema.store import RunRow

__all__ = ["purge"]

_SETTLED: Final = RunFilter(state="settled")
_AT_ONCE: Final = 90  # Runs of one delete_runs
_ENDED: Final = ("settled", "corrupt")


async def purge(
    store: Store,
    *,
    scope: Scope,
    before: datetime,
    limit: int | None = None,
    blob: BlobStore | None = None,
) -> tuple[str, ...]:
    """Delete the tenant's threads that ended before an instant; return the ids of their Runs.

    A thread goes as a whole: all its Runs have settled, the last record of each is older than
    `before`, and nothing outside refers to it. One with a live parent or child stays. With the
    Runs go their records, keys and places, the idempotency keys that admitted them (which can
    be used again), and their blobs when `blob` is given. Versions and documents stay.

    Repeat it after any error: what is gone is gone, the rest is found again.

    Args:
        before: by the clock of whoever wrote the last record; with a time zone.
        limit: stop once so many Runs are gone; the last thread is taken whole. None is no bound.

    Raises:
        InvalidArgument: `before` or `limit` is none.
        StoreUnavailable, BlobUnavailable: repeat it.
    """
    check_store(store)
    check_blob(blob, "delete")
    check_scope_type(scope)
    _check_before(before)
    if limit is not None:
        check_limit(limit)
    gone: list[str] = []
    cursor: str | None = cursor_at(before)
    while cursor is not None:
        page = await store.list_runs(scope.tenant, filter=_SETTLED, cursor=cursor)
        for row in page.headers:
            if row.referenced or row.head_at >= before:
                continue
            gone += await _delete(store, await _thread(store, row, before), blob)
            if limit is not None and len(gone) >= limit:
                return tuple(gone)
        cursor = page.cursor
    return tuple(gone)


def _check_before(before: object) -> None:
    if before is None:
        raise InvalidArgument(what="before", problem="pass a datetime with a time zone")
    check_instant(before, what="before")


async def _thread(store: Store, last: RunRow, before: datetime) -> list[RunRow]:
    """Return the thread that a Run is the tail of, in order; nothing unless all of it may go."""
    tail = await store.tail(last.tenant, last.thread)
    if tail is None or tail.run_id != last.run_id:
        return []
    rows: list[RunRow] = []
    row: RunRow | None = last
    while row is not None:
        if row.state != "settled" or row.head_at >= before or await _has_live_kin(store, row):
            return []
        rows.append(row)
        row = await known(store, row.tenant, row.previous)
    return rows[::-1]


async def _has_live_kin(store: Store, row: RunRow) -> bool:
    """Tell whether the Run's parent, or a child that outlived it, has not ended."""
    for name in (row.parent, *(name for name in row.open if name.startswith("run_"))):
        kin = await known(store, row.tenant, name)
        if kin is not None and kin.state not in _ENDED:
            return True
    return False


def _parts(rows: Sequence[RunRow]) -> Iterator[Sequence[RunRow]]:
    for first in range(0, len(rows), _AT_ONCE):
        yield rows[first : first + _AT_ONCE]


async def _delete(store: Store, rows: Sequence[RunRow], blob: BlobStore | None) -> list[str]:
    """Delete a thread and return what is gone; it stops where somebody goes on with it.

    A long one goes from its beginning: what a kill leaves is still a thread that ended.
    """
    gone: list[str] = []
    for part in _parts(rows):
        keys = [key for row in part if (key := await _admission_key(store, row)) is not None]
        last = rows[-1]
        if gone and await store.tail(last.tenant, last.thread) != last:
            break
        if not await store.delete_runs(last.tenant, part, keys):
            break
        for row in part:
            gone.append(row.run_id)
            if blob is not None:
                await blob.delete(row.tenant, row.run_id)
    return gone


async def _admission_key(store: Store, row: RunRow) -> str | None:
    """Return the idempotency key that admitted a Run, read as any build wrote it."""
    try:
        found = await store.read(row.tenant, row.run_id, limit=1)
        body: object = from_json(found[0].body) if found else None
    except (RunNotFound, ValueError):
        return None
    key = body.get("key") if isinstance(body, dict) else None
    return key if isinstance(key, str) else None
