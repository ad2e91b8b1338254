"""What is put comes back: whole, in parts, to another handle, and never damaged."""

import asyncio
import hashlib
from typing import Final

from psych_runtime.blob.contract._check import OURS, THEIRS, Harness, put
from psych_runtime.errors import BlobCorrupt, BlobError, BlobNotFound
from psych_runtime.ports.blob import BlobOwner
from psych_runtime.ports.checks import check, holds, refused, same

__all__ = [
    "a_blob_that_is_damaged_is_not_given_out",
    "a_damaged_blob_is_whole_again_when_put",
    "a_part_is_what_a_slice_is",
    "a_put_that_has_returned_is_seen_by_every_handle",
    "bytes_come_back_as_put",
    "many_put_the_same_bytes_at_once",
    "puts_and_deletions_at_once_leave_whole_blobs",
    "the_same_bytes_have_one_ref",
]

_EMPTY: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_TEN: Final = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"

_BLOBS: Final = (
    b"",
    b"\0",
    bytes(range(256)),
    b"\r\n\n\r\x1a\xff\xfe\xef\xbb\xbf",
    "\U0001f9e0 e\u0301".encode(),
    b"<Error><Code>NoSuchKey</Code></Error>",
    bytes(range(251)) * 20_000,
)


@check("R-23", "LOG-5", methods=("put", "read"))
async def bytes_come_back_as_put(harness: Harness) -> None:
    """Nothing, every byte there is, line ends, and five megabytes."""
    async with harness.open() as store:
        for data in _BLOBS:
            ref = await store.put(*OURS, data, media_type="image/png")
            wanted = (hashlib.sha256(data).hexdigest(), len(data), "image/png")
            same((ref.hash, ref.bytes, ref.media_type), wanted, "a ref")
        for data in _BLOBS:
            hash = hashlib.sha256(data).hexdigest()
            holds(await store.read(*OURS, hash) == data, f"a blob of {len(data)} bytes changed")


@check("R-23", methods=("put", "listed"))
async def the_same_bytes_have_one_ref(harness: Harness) -> None:
    """However often they are put, they are there once; the hash is SHA-256."""
    async with harness.open() as store:
        refs = [await store.put(*OURS, b"0123456789", media_type="a/b") for _ in range(3)]
        same(refs[1:], refs[:1] * 2, "refs of the same bytes")
        same(refs[0].hash, _TEN, "the hash of ten digits")
        same(await put(store, OURS, b""), _EMPTY, "the hash of nothing")
        found = [(blob.hash, blob.bytes) for blob in await store.listed(*OURS)]
        same(found, [(_TEN, 10), (_EMPTY, 0)], "what is listed")


@check("R-23", methods=("put", "read"))
async def a_part_is_what_a_slice_is(harness: Harness) -> None:
    """Fewer bytes only at the end, none behind it; also of a blob without bytes."""
    async with harness.open() as store:
        hash, empty = await put(store, OURS, b"0123456789"), await put(store, OURS, b"")
        for start, stop, wanted in (
            (0, None, b"0123456789"),
            (0, 10, b"0123456789"),
            (0, 4, b"0123"),
            (4, 4, b""),
            (4, 5, b"4"),
            (4, None, b"456789"),
            (4, 99, b"456789"),
            (9, 10, b"9"),
            (9, 2**63, b"9"),
            (10, None, b""),
            (10, 11, b""),
            (99, 100, b""),
            (2**70, 2**71, b""),
            (6, 3, b""),
            (0, 0, b""),
            (5, 0, b""),
        ):
            same(await store.read(*OURS, hash, start=start, stop=stop), wanted, f"{start}:{stop}")
        for start, stop in ((0, None), (0, 0), (0, 1), (1, 2), (1, None)):
            part = await store.read(*OURS, empty, start=start, stop=stop)
            same(part, b"", f"{start}:{stop} of nothing")
        for start, stop in ((0, 0), (0, 4), (4, 2), (99, 100)):
            missing = store.read(*OURS, "0" * 64, start=start, stop=stop)
            await refused(f"{start}:{stop} of what is not there", BlobNotFound, missing)


@check("R-23", methods=("put", "read", "close", "__aenter__", "__aexit__"))
async def a_put_that_has_returned_is_seen_by_every_handle(harness: Harness) -> None:
    """One that was open before, one that is opened when the writer has gone."""
    async with harness.open() as reader:
        await refused("a blob before it is put", BlobNotFound, reader.read(*OURS, _TEN))
        async with harness.open() as writer:
            await put(writer, OURS, b"0123456789")
            same(await reader.read(*OURS, _TEN), b"0123456789", "a blob for another handle")
            await writer.close()
        async with harness.open() as later:
            same(await later.read(*OURS, _TEN), b"0123456789", "a blob for a later handle")


@check("R-23", methods=("put", "read"))
async def a_blob_that_is_damaged_is_not_given_out(harness: Harness) -> None:
    """A read of the whole says so, naming it; the neighbours are as they were."""
    async with harness.open() as store:
        hash, other = await put(store, OURS, b"0123456789"), await put(store, OURS, b"another")
        theirs = await put(store, THEIRS, b"0123456789")
        await harness.damage(OURS, hash)
        error = await refused("a damaged blob", BlobCorrupt, store.read(*OURS, hash))
        same(getattr(error, "hash", None), hash, "the blob that the error names")
        same(getattr(error, "run_id", None), OURS.run_id, "the Run that the error names")
        same(await store.read(*OURS, other), b"another", "the blob beside it")
        same(await store.read(*THEIRS, theirs), b"0123456789", "another tenant's same bytes")


@check("R-23", methods=("put", "read", "listed"))
async def a_damaged_blob_is_whole_again_when_put(harness: Harness) -> None:
    """A put never takes what is there for what it was given."""
    async with harness.open() as store:
        hash = await put(store, OURS, b"0123456789")
        await harness.damage(OURS, hash)
        same(await put(store, OURS, b"0123456789"), hash, "the ref of the same bytes")
        same(await store.read(*OURS, hash), b"0123456789", "the blob")
        same(len(await store.listed(*OURS)), 1, "blobs")


@check("R-23", methods=("put", "read", "listed"))
async def many_put_the_same_bytes_at_once(harness: Harness) -> None:
    """Two handles, the same and different blobs: each is there once, and whole."""
    blobs = [bytes([byte]) * 50_000 for byte in range(4)] * 4
    async with harness.open() as one, harness.open() as other:
        stores = [one, other] * (len(blobs) // 2)
        hashes = await asyncio.gather(
            *(put(store, OURS, data) for store, data in zip(stores, blobs, strict=True))
        )
        same(len(set(hashes)), 4, "different hashes")
        found = [blob.hash for blob in await one.listed(*OURS)]
        same(found, sorted(set(hashes)), "what is there")
        for hash, data in zip(hashes, blobs, strict=True):
            holds(await other.read(*OURS, hash) == data, "a blob that many have put is another")


@check("R-23", methods=("put", "read", "delete", "sweep"))
async def puts_and_deletions_at_once_leave_whole_blobs(harness: Harness) -> None:
    """A deletion that empties a place takes no put with it: each ends well, in some order."""

    async def put_and_read(owner: BlobOwner) -> None:
        hash = await put(store, owner, b"0123456789")
        try:
            same(await store.read(*owner, hash), b"0123456789", "a blob amid deletions")
        except BlobNotFound:
            return  # deleted in between

    async with harness.open() as store, harness.open() as other:
        for _ in range(5):
            calls = [put_and_read(OURS) for _ in range(4)]
            ends = [other.delete(*OURS), other.delete(*OURS, [_TEN]), other.sweep()]
            for error in await asyncio.gather(*calls, *ends, return_exceptions=True):
                if isinstance(error, BlobError):
                    raise AssertionError(f"a call amid others: {error}") from error
                if isinstance(error, BaseException):
                    raise error
        await put(store, OURS, b"0123456789")
        same(await other.read(*OURS, _TEN), b"0123456789", "a blob put after all deletions")
