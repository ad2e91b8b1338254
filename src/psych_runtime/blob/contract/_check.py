"""What a check of the contract needs from whoever runs it."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from psych_runtime.ports import checks
from psych_runtime.ports.blob import BlobOwner, BlobStore

__all__ = ["OURS", "THEIRS", "Check", "Harness", "put"]

OURS = BlobOwner("acme", "run_01k5a0000000000000000000a0")
THEIRS = BlobOwner("globex", "run_01k5a0000000000000000000a0")  # a Run's id is no secret

type Check = checks.Check[Harness]
"""A named truth about every blob store."""


class Harness(Protocol):
    """One place for blobs, empty, made anew for each check."""

    def open(self) -> AbstractAsyncContextManager[BlobStore]:
        """Open another handle of it."""

    async def advance(self, seconds: float) -> None:
        """Let time pass for it: move its clock on, its stored instants back, or wait.

        A check asks for a few seconds, once.
        """

    async def damage(self, owner: BlobOwner, hash: str) -> None:
        """Change a byte of what is kept, as a broken disk does; the length stays."""


async def put(store: BlobStore, owner: BlobOwner, data: bytes) -> str:
    """Put a blob; return its hash."""
    ref = await store.put(*owner, data, media_type="application/octet-stream")
    return ref.hash
