"""Blobs in files: written beside their place, synced, renamed, and the folders synced (R-23).

A blob is there whole or not at all, whenever the process is killed. Several processes may share
a root, also over a network file system with atomic renames. IO is done in threads.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from psych_runtime._system import System
from psych_runtime.blob import _folders
from psych_runtime.blob._asked import (
    check_data,
    check_limit,
    check_range,
    checked_owner,
    intact,
    ref_of,
)
from psych_runtime.blob._file_errors import translate
from psych_runtime.blob._keys import is_hash, owner_of, parts_of
from psych_runtime.errors import (
    BlobNotFound,
    BlobStoreClosed,
    BlobStoreUnusable,
    BlobUnavailable,
)
from psych_runtime.ports.blob import LEFTOVER_SECONDS, BlobOwner, Stored
from psych_schema.common import BlobRef

__all__ = ["FileBlobStore"]

_ATTEMPTS: Final = 20  # each lost to a deletion that took the empty folder away


class FileBlobStore:
    """Implements the blob port in a folder, one file for each blob, readable by this user alone.

    Args:
        root: made with the first `put` where it does not exist. It may be a link itself; links
            inside it are not followed.
        system: gives the clock that ages are by. Where the root is on another machine, both
            clocks must agree better than a sweep is patient.

    Raises:
        BlobStoreUnusable: this system cannot open files relative to a folder (Windows).
    """

    def __init__(self, root: str | Path, *, system: System | None = None) -> None:
        if os.open not in os.supports_dir_fd:
            raise BlobStoreUnusable(
                problem="blobs in files need a POSIX system", remedy="use S3BlobStore"
            )
        self._root = Path(root).absolute()
        self._system = system or System()
        self._closed = False

    async def _in_thread[T](self, run: Callable[[], T]) -> T:
        if self._closed:
            raise BlobStoreClosed
        try:
            return await asyncio.to_thread(run)
        except OSError as error:
            raise translate(error, self._root) from error

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        """Store the bytes durably (R-23); BlobStoreFull on a full disk or at a quota."""
        owner = checked_owner(tenant, run_id, media_type)
        check_data(data)
        return await self._in_thread(lambda: self._put(owner, data, media_type))

    def _put(self, owner: BlobOwner, data: bytes, media_type: str) -> BlobRef:
        ref = ref_of(data, media_type)
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                self._write(owner, ref.hash, data)
                return ref
        raise BlobUnavailable(problem=f"{self._root}: folders vanish as they are made")

    def _write(self, owner: BlobOwner, hash: str, data: bytes) -> None:
        with _folders.opened(self._root, parts_of(owner), make=True) as folders:
            assert folders is not None
            leftover = self._system.salt() + _folders.LEFTOVER_SUFFIX
            try:
                _folders.write_new(leftover, data, folders[-1])
                self._rename(leftover, hash, folders[-1])
            except OSError:
                with suppress(OSError):
                    _folders.remove(leftover, folders[-1])
                raise
            _folders.sync(folders)

    def _rename(self, leftover: str, hash: str, folder: int) -> None:
        os.replace(leftover, hash, src_dir_fd=folder, dst_dir_fd=folder)

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Return a part of a blob, or all of it. Raises BlobNotFound, BlobCorrupt."""
        owner = checked_owner(tenant, run_id, hash)
        check_range(start, stop)
        return await self._in_thread(lambda: self._read(owner, hash, start, stop))

    def _read(self, owner: BlobOwner, hash: str, start: int, stop: int | None) -> bytes:
        with _folders.opened(self._root, parts_of(owner)) as folders:
            known = folders is not None and is_hash(hash)
            file = _folders.open_file(hash, folders[-1]) if folders and known else None
            if file is None:
                raise BlobNotFound(run_id=owner.run_id, hash=hash)
            with open(file, "rb") as opened:  # noqa: PTH123 (a descriptor)
                if start == 0 and stop is None:
                    return intact(opened.read(), owner, hash)
                size = os.fstat(file).st_size
                start = min(start, size)
                opened.seek(start)
                return opened.read(max(0, min(size if stop is None else stop, size) - start))

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        """Return a page of owners, sorted by where their blobs are."""
        check_limit(limit)
        last = parts_of(checked_owner(*after)) if after else ()
        return await self._in_thread(lambda: self._runs(last, limit))

    def _runs(self, after: tuple[str, ...], limit: int) -> list[BlobOwner]:
        page: list[BlobOwner] = []
        with _folders.opened(self._root, ()) as folders:
            for path in _folders.owners(folders[0], after) if folders else ():
                owner = owner_of(path)
                if owner is not None:
                    page.append(owner)
                if len(page) == limit:
                    break
        return page

    async def listed(self, tenant: str, run_id: str) -> list[Stored]:
        """Return what is kept of a Run."""
        owner = checked_owner(tenant, run_id)
        return await self._in_thread(lambda: self._listed(owner))

    def _listed(self, owner: BlobOwner) -> list[Stored]:
        now = self._system.now().timestamp()
        with _folders.opened(self._root, parts_of(owner)) as folders:
            found = _folders.blobs_in(folders[-1]) if folders else []
        return [Stored(name, size, max(0.0, now - changed_at)) for name, size, changed_at in found]

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        """Delete blobs of a Run durably; return how many were there.

        All of them: also what a kill has left of them.
        """
        owner = checked_owner(tenant, run_id, *(hashes or ()))
        return await self._in_thread(lambda: self._delete(owner, hashes))

    def _delete(self, owner: BlobOwner, hashes: Sequence[str] | None) -> int:
        parts = parts_of(owner)
        with _folders.opened(self._root, parts) as folders:
            if not folders:
                return 0
            folder = folders[-1]
            names = [hash for hash in hashes or () if is_hash(hash)]
            if hashes is None:
                names = [found.name for found in _folders.blobs_in(folder)]
                for leftover in _folders.leftovers_in(folder):
                    _folders.remove(leftover.name, folder)
            count = sum(_folders.remove(name, folder) for name in names)
            os.fsync(folder)
            for part, above in zip(reversed(parts), reversed(folders[:-1]), strict=True):
                _folders.remove_empty(part, above)
        return count

    async def sweep(self) -> None:
        """Delete old remains of a put, and folders that are empty."""
        oldest = self._system.now().timestamp() - LEFTOVER_SECONDS
        await self._in_thread(lambda: self._sweep(oldest))

    def _sweep(self, oldest: float) -> None:
        with _folders.opened(self._root, ()) as folders:
            if folders:
                _folders.sweep_below(folders[0], oldest)

    async def close(self) -> None:
        """End this store; it holds nothing open between calls."""
        self._closed = True

    async def __aenter__(self) -> Self:
        """Return the store itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
