"""Sweeping blobs that nothing names any more (R-23)."""

import re
from typing import Final

from psych_runtime.errors import CorruptRow, InvalidArgument, RunNotFound
from psych_runtime.ports.blob import BlobOwner, BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.runtime.requests import check_port, check_store

__all__ = ["sweep"]

_HASH: Final = re.compile('"([0-9a-f]{64})"')
_PAGE: Final = 500


async def sweep(store: Store, blob: BlobStore, *, older_than_seconds: float = 86_400.0) -> int:
    """Delete blobs of Runs that are gone, and of settled Runs what no record names; of all tenants.

    Such blobs are left where a process died between storing one and writing the record that
    names it, or between deleting a Run and its blobs. An erased Run names none. Repeat it at
    leisure, also after an error.

    Args:
        older_than_seconds: younger blobs are left alone: the record that names one may be on
            its way. At least an hour is wise.

    Returns how many blobs it deleted.

    Raises:
        InvalidArgument: `blob` is none, or `older_than_seconds` no such number.
        StoreUnavailable, BlobUnavailable: repeat it.
    """
    check_store(store)
    methods = ("runs", "listed", "delete", "sweep")
    check_port(blob, methods, what="blob", remedy="pass a BlobStore")
    _check_age(older_than_seconds)
    count = 0
    owner: BlobOwner | None = None
    while owners := await blob.runs(after=owner):
        for owner in owners:
            count += await _sweep_run(store, blob, owner, older_than_seconds)
    await blob.sweep()
    return count


def _check_age(seconds: object) -> None:
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
        return
    raise InvalidArgument(what="older_than_seconds", problem="pass a number of seconds, 0 or more")


async def _sweep_run(store: Store, blob: BlobStore, owner: BlobOwner, age_seconds: float) -> int:
    stored = await blob.listed(*owner)
    old = {one.hash for one in stored if one.age_seconds >= age_seconds}
    named = await _named(store, owner) if old else None
    if named is None or not old - named:
        return 0
    return await blob.delete(*owner, sorted(old - named))


async def _named(store: Store, owner: BlobOwner) -> set[str] | None:
    """Return every hash that a Run's records name; None when nobody can tell, or not yet.

    Any text that looks like a hash counts, in a record of whatever build.
    """
    try:
        header = await store.header(*owner)
        if header.state != "settled":
            return None
        found: set[str] = set()
        after = 0
        while rows := await store.read(*owner, after=after, limit=_PAGE):
            for row in rows:
                if row.type == "run.erased":
                    return set()
                found.update(_HASH.findall(row.body), _HASH.findall(row.content or ""))
            after = rows[-1].seq
        return found
    except RunNotFound:
        return set()
    except CorruptRow:
        return None
