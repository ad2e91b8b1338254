"""Places for blobs: one harness per adapter."""

import asyncio
import copy
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from psych_runtime._system import System
from psych_runtime.blob._keys import parts_of
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.blob.memory import MemoryBlobStore, _Kept
from psych_runtime.blob.s3 import S3BlobStore
from psych_runtime.ports.blob import BlobOwner, BlobStore


def damaged(data: bytes) -> bytes:
    """Return other bytes of the same length."""
    return bytes([data[0] ^ 1]) + data[1:]


class ManualSystem(System):
    """A System whose time moves only when told."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = 1000.0

    def monotonic(self) -> float:
        return self._seconds

    def advance(self, seconds: float) -> None:
        self._seconds += seconds


class MemoryBlobHarness:
    """Handles that share one dictionary."""

    def __init__(self, kind: type[MemoryBlobStore] = MemoryBlobStore) -> None:
        self.system = ManualSystem()
        self._store = kind(self.system)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[BlobStore]:
        async with copy.copy(self._store) as store:
            yield store

    async def advance(self, seconds: float) -> None:
        self.system.advance(seconds)

    async def damage(self, owner: BlobOwner, hash: str) -> None:
        kept = self._store._runs[owner]
        kept[hash] = _Kept(damaged(kept[hash].data), kept[hash].put_at)


class FileBlobHarness:
    """Handles of one folder."""

    def __init__(self, root: Path, kind: type[FileBlobStore] = FileBlobStore) -> None:
        self.root = root
        self._kind = kind

    def path(self, owner: BlobOwner, hash: str = "") -> Path:
        return self.root.joinpath(*parts_of(owner), hash)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[BlobStore]:
        async with self._kind(self.root) as store:
            yield store

    async def advance(self, seconds: float) -> None:
        for path in self.root.rglob("*"):
            if path.is_file():
                found = path.stat()
                os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))

    async def damage(self, owner: BlobOwner, hash: str) -> None:
        path = self.path(owner, hash)
        path.write_bytes(damaged(path.read_bytes()))


class S3BlobHarness:
    """Handles of one bucket, whose clock nobody moves."""

    def __init__(self, endpoint_url: str, bucket: str, *, prefix: str = "") -> None:
        self.endpoint_url = endpoint_url
        self.bucket = bucket
        self.prefix = prefix

    def store(self) -> S3BlobStore:
        return S3BlobStore(
            self.bucket, prefix=self.prefix, endpoint_url=self.endpoint_url, region="us-east-1"
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[BlobStore]:
        async with self.store() as store:
            yield store

    async def advance(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def damage(self, owner: BlobOwner, hash: str) -> None:
        async with self.store() as store:
            client = await store._client()
            key = store._folder(owner) + hash
            data = damaged(await store.read(*owner, hash))
            await client.put_object(Bucket=self.bucket, Key=key, Body=data)
