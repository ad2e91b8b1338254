"""The port for bytes too large for the log (R-23): kept for one Run, named by their hash.

A contract suite for adapters is `psych_runtime.blob.contract`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, Self

from psych_schema.common import BlobRef

__all__ = [
    "LEFTOVER_SECONDS",
    "MAX_BLOB_BYTES",
    "MAX_RUN_BYTES",
    "MAX_TENANT_BYTES",
    "BlobOwner",
    "BlobStore",
    "Stored",
]

MAX_BLOB_BYTES: Final = 64_000_000
"""The same for every adapter; a multipart upload is never needed."""

MAX_TENANT_BYTES: Final = 512  # of UTF-8: 128 characters, however wide
MAX_RUN_BYTES: Final = 32  # a Run's id has 30

LEFTOVER_SECONDS: Final = 3600.0
"""How old the remains of a `put` must be for a sweep to take them: no put lasts so long."""


class BlobOwner(NamedTuple):
    """Whose blobs they are."""

    tenant: str
    run_id: str


class Stored(NamedTuple):
    """A blob that is kept, and how long ago it was last put.

    `age_seconds` is by the store's own clock where it has one, and never below 0.
    """

    hash: str
    bytes: int
    age_seconds: float


class BlobStore(Protocol):
    """Keeps bytes for Runs, each under its SHA-256, until they are deleted.

    A blob belongs to one Run: what another Run has, even of the same bytes, is another blob, so
    that erasing a Run counts no references. Names are any Unicode, told apart to the last byte.

    Called on any loop, several at a time; a method may await and must not block. Every method
    may raise BlobUnavailable (BlobStoreFull where there is no room), which promises nothing:
    the caller repeats, and repeating any call is safe. BlobStoreUnusable: the place is not as
    it must be; repeating is useless. BlobStoreClosed after `close`. InvalidPayload for a name
    that is no Unicode, InvalidArgument for one that is too long (MAX_TENANT_BYTES,
    MAX_RUN_BYTES) and for a number out of its range. Anything else is a bug of the adapter.
    A hash that is no SHA-256 in lower-case hexadecimal names nothing: no error of its own.
    """

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        """Store `data` durably, whole or not at all; the record that names it follows (R-23).

        Same bytes, same ref, whatever was there before: a blob that has been damaged is whole
        again, and its age begins anew. `media_type` goes into the ref and is kept nowhere else.
        PayloadTooLarge above MAX_BLOB_BYTES, with nothing stored.
        """

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Return bytes [start, stop); fewer only at the end of the blob, None is the end.

        BlobNotFound also for another tenant's or Run's blob: that it exists is not told. A read
        of the whole blob (0, None) checks the hash and raises BlobCorrupt; a part is given as it
        is. InvalidArgument for a number below 0.
        """

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        """Return owners that have a blob, in an order that never changes: at most `limit`.

        The next page is behind `after`, which need not have blobs any more; an empty page is the
        end. `limit` is at least 1, else InvalidArgument.
        """

    async def listed(self, tenant: str, run_id: str) -> list[Stored]:
        """Return what is kept of a Run, sorted by hash; nothing is no error."""

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        """Delete blobs of a Run, all of them for None; return how many were there.

        Absent ones are no error. A `put` under way may land behind it. Nothing here keeps a
        blob for a record that is about to name it: who sweeps a Run that is still written to
        spares what is young, and `put` makes young.
        """

    async def sweep(self) -> None:
        """Delete what a kill inside `put` has left, older than LEFTOVER_SECONDS; never a blob."""

    async def close(self) -> None:
        """End this store, on the loop that used it last; calls under way may fail. Repeatable."""

    async def __aenter__(self) -> Self:
        """Return the store itself."""

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
