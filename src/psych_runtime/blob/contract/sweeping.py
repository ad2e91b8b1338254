"""What a sweep and an erasure need: owners in pages, ages, deletions that may be repeated."""

from typing import Final

from psych_runtime.blob.contract._check import OURS, THEIRS, Harness, put
from psych_runtime.errors import BlobNotFound
from psych_runtime.ports.blob import BlobOwner, BlobStore
from psych_runtime.ports.checks import check, holds, refused, same

__all__ = [
    "a_blob_put_again_is_young_again",
    "a_deletion_takes_what_it_names",
    "a_page_goes_on_behind_an_owner_that_has_gone",
    "a_run_without_blobs_is_no_owner",
    "a_sweep_takes_no_blob",
    "all_of_a_run_is_deleted_and_nothing_else",
    "owners_come_in_pages_that_meet",
    "what_a_run_has_is_listed",
]

_OWNERS: Final = tuple(
    BlobOwner(tenant, f"run_01k5a0000000000000000000a{number}")
    for tenant in ("acme", "Acme", "acme-", "a/b", "", "\U0001f9e0")
    for number in range(3)
)
_PATIENCE_SECONDS: Final = 60.0


async def _pages(store: BlobStore, limit: int) -> list[BlobOwner]:
    found: list[BlobOwner] = []
    while page := await store.runs(after=found[-1] if found else None, limit=limit):
        holds(len(page) <= limit, f"a page of {len(page)}, asked for {limit}")
        holds(not set(page) & set(found), f"a page of {limit} names an owner again")
        found += page
    return found


@check("R-23", methods=("put", "runs"))
async def owners_come_in_pages_that_meet(harness: Harness) -> None:
    """In one order, whatever the size of a page; an owner of many blobs is named once."""
    async with harness.open() as store:
        same(await store.runs(), [], "owners of a place without blobs")
        for owner in _OWNERS:
            for number in range(3):
                await put(store, owner, str(number).encode())
        all_of_them = await store.runs(limit=1000)
        same(sorted(all_of_them), sorted(_OWNERS), "owners")
        for limit in (1, 2, 5, len(_OWNERS), len(_OWNERS) + 1):
            same(await _pages(store, limit), all_of_them, f"owners in pages of {limit}")
        same(await store.runs(after=all_of_them[-1]), [], "behind the last")
    async with harness.open() as later:
        same(await later.runs(limit=1000), all_of_them, "the order for a later handle")


@check("R-23", methods=("put", "runs", "delete"))
async def a_page_goes_on_behind_an_owner_that_has_gone(harness: Harness) -> None:
    """A sweep deletes as it goes, and misses nobody."""
    async with harness.open() as store:
        for owner in _OWNERS:
            await put(store, owner, b"0123456789")
        wanted = await store.runs(limit=1000)
        seen: list[BlobOwner] = []
        while page := await store.runs(after=seen[-1] if seen else None, limit=2):
            for owner in page:
                await store.delete(*owner)
            holds(not set(page) & set(seen), "a page names an owner whose blobs have gone")
            seen += page
        same(seen, wanted, "owners that a sweep has seen")
        same(await store.runs(), [], "owners that are left")


@check("R-23", methods=("put", "runs", "delete", "listed"))
async def a_run_without_blobs_is_no_owner(harness: Harness) -> None:
    """Not one that never had any, nor one whose last blob has gone."""
    async with harness.open() as store:
        same(await store.listed(*OURS), [], "blobs of an unknown Run")
        same(await store.delete(*OURS), 0, "a deletion of an unknown Run's blobs")
        hash = await put(store, OURS, b"0123456789")
        await put(store, THEIRS, b"0123456789")
        await store.delete(*OURS, [hash])
        same(await store.runs(), [THEIRS], "owners")
        same(await store.listed(*OURS), [], "blobs of a Run that had one")


@check("R-23", methods=("put", "listed"))
async def what_a_run_has_is_listed(harness: Harness) -> None:
    """Hash, size and age of each, sorted by hash."""
    async with harness.open() as store:
        blobs = [b"x" * size for size in (0, 1, 10, 1000, 70_000)]
        wanted = sorted([(await put(store, OURS, data), len(data)) for data in blobs])
        found = await store.listed(*OURS)
        same([(blob.hash, blob.bytes) for blob in found], wanted, "blobs")
        ages = [blob.age_seconds for blob in found]
        holds(all(0 <= age < _PATIENCE_SECONDS for age in ages), f"ages of new blobs: {ages}")


@check("R-23", methods=("put", "listed"))
async def a_blob_put_again_is_young_again(harness: Harness) -> None:
    """So that a sweep spares what somebody is about to name."""

    async def age_of(hash: str) -> float:
        return next(blob.age_seconds for blob in await store.listed(*OURS) if blob.hash == hash)

    async with harness.open() as store:
        old = await put(store, OURS, b"old")
        await harness.advance(3)
        new = await put(store, OURS, b"new")
        older = await age_of(old) - await age_of(new)
        holds(older >= 1.5, f"a blob put 3 s before another is {older} s older")
        await put(store, OURS, b"old")
        older = await age_of(old) - await age_of(new)
        holds(older < 1.5, f"a blob that was put again is {older} s older than one before it")


@check("R-23", "ST-6", methods=("put", "read", "delete", "listed"))
async def a_deletion_takes_what_it_names(harness: Harness) -> None:
    """The others stay; what is absent or named twice is no error, nor is doing it again."""
    async with harness.open() as store:
        hashes = [await put(store, OURS, data) for data in (b"one", b"two", b"three")]
        named = [hashes[0], hashes[2], hashes[0], "0" * 64]
        same(await store.delete(*OURS, named), 2, "blobs that were deleted")
        same(await store.delete(*OURS, named), 0, "blobs that were deleted again")
        same(await store.delete(*OURS, []), 0, "blobs that nobody named")
        same([blob.hash for blob in await store.listed(*OURS)], [hashes[1]], "what is left")
        same(await store.read(*OURS, hashes[1]), b"two", "the blob that is left")
        await refused("a deleted blob", BlobNotFound, store.read(*OURS, hashes[0]))
        await put(store, OURS, b"one")
        same(await store.read(*OURS, hashes[0]), b"one", "a blob that was put again")


@check("R-23", "ST-6", methods=("put", "delete", "listed", "runs"))
async def all_of_a_run_is_deleted_and_nothing_else(harness: Harness) -> None:
    """None names everything of the Run; repeating it finds nothing."""
    async with harness.open() as store:
        for number in range(5):
            for owner in _OWNERS:
                await put(store, owner, str(number).encode())
        same(await store.delete(*_OWNERS[1]), 5, "blobs that were deleted")
        same(await store.delete(*_OWNERS[1]), 0, "blobs that were deleted again")
        same(await store.listed(*_OWNERS[1]), [], "what is left of the Run")
        rest = [owner for owner in _OWNERS if owner != _OWNERS[1]]
        same(sorted(await store.runs(limit=1000)), sorted(rest), "owners that are left")
        for owner in rest:
            same(len(await store.listed(*owner)), 5, f"blobs of {owner}")


@check("R-23", methods=("put", "read", "sweep", "runs"))
async def a_sweep_takes_no_blob(harness: Harness) -> None:
    """However old it is: whether a record names it is not known there."""
    async with harness.open() as store:
        await store.sweep()
        hash = await put(store, OURS, b"0123456789")
        await store.sweep()
        await store.sweep()
        same(await store.read(*OURS, hash), b"0123456789", "the blob after sweeps")
        same(await store.runs(), [OURS], "owners after sweeps")
