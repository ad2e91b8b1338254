"""Blobs without a place: for tests, simulations and Runs that need not outlive the process."""

import threading
from collections.abc import Sequence
from typing import NamedTuple, Self

from psych_runtime._system import System
from psych_runtime.blob._asked import (
    check_data,
    check_limit,
    check_range,
    checked_owner,
    intact,
    ref_of,
)
from psych_runtime.blob._keys import parts_of
from psych_runtime.errors import BlobNotFound, BlobStoreClosed
from psych_runtime.ports.blob import BlobOwner, Stored
from psych_schema.common import BlobRef

__all__ = ["MemoryBlobStore"]


class _Kept(NamedTuple):
    data: bytes
    put_at: float


class MemoryBlobStore:
    """Implements the blob port in memory, under one lock, for any loops and threads.

    Every method answers without waiting. What it holds is gone with the process.
    """

    def __init__(self, system: System | None = None) -> None:
        self._system = system or System()
        self._runs: dict[BlobOwner, dict[str, _Kept]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise BlobStoreClosed

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        """Keep the bytes (R-23)."""
        self._check_open()
        owner = checked_owner(tenant, run_id, media_type)
        check_data(data)
        ref = ref_of(data, media_type)
        kept = _Kept(bytes(data), self._system.monotonic())
        with self._lock:
            self._runs.setdefault(owner, {})[ref.hash] = kept
        return ref

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Return a part of a blob, or all of it. Raises BlobNotFound, BlobCorrupt."""
        self._check_open()
        owner = checked_owner(tenant, run_id, hash)
        check_range(start, stop)
        with self._lock:
            kept = self._runs.get(owner, {}).get(hash)
        if kept is None:
            raise BlobNotFound(run_id=run_id, hash=hash)
        whole = start == 0 and stop is None
        return intact(kept.data, owner, hash) if whole else kept.data[start:stop]

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        """Return a page of owners."""
        self._check_open()
        check_limit(limit)
        last = parts_of(checked_owner(*after)) if after else ()
        with self._lock:
            paths = sorted((parts_of(owner), owner) for owner in self._runs)
        return [owner for parts, owner in paths if parts > last][:limit]

    async def listed(self, tenant: str, run_id: str) -> list[Stored]:
        """Return what is kept of a Run."""
        self._check_open()
        owner = checked_owner(tenant, run_id)
        now = self._system.monotonic()
        with self._lock:
            blobs = sorted(self._runs.get(owner, {}).items())
        return [Stored(hash, len(data), max(0.0, now - put_at)) for hash, (data, put_at) in blobs]

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        """Forget blobs of a Run; return how many were there."""
        self._check_open()
        owner = checked_owner(tenant, run_id, *(hashes or ()))
        with self._lock:
            blobs = self._runs.get(owner, {})
            gone = blobs.keys() if hashes is None else blobs.keys() & set(hashes)
            rest = {hash: kept for hash, kept in blobs.items() if hash not in gone}
            if rest:
                self._runs[owner] = rest
            else:
                self._runs.pop(owner, None)
            return len(gone)

    async def sweep(self) -> None:
        """Do nothing: a kill leaves nothing at all."""
        self._check_open()

    async def close(self) -> None:
        """End this store."""
        self._closed = True

    async def __aenter__(self) -> Self:
        """Return the store itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
