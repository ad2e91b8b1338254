"""Whose a blob is: tenants and Runs see their own alone, whatever they are called."""

from typing import Final

from psych_runtime.blob.contract._check import OURS, THEIRS, Harness, put
from psych_runtime.errors import BlobNotFound, InvalidArgument, InvalidPayload
from psych_runtime.ports.blob import MAX_RUN_BYTES, MAX_TENANT_BYTES, BlobOwner, BlobStore
from psych_runtime.ports.checks import check, refused, same

__all__ = [
    "a_hash_that_is_none_names_nothing",
    "a_name_that_is_too_long_is_refused",
    "another_runs_blob_looks_missing",
    "another_tenants_blob_looks_missing",
    "names_are_told_apart_to_the_last_byte",
    "what_is_no_unicode_is_refused",
]

_AWKWARD: Final = (
    "",
    ".",
    "..",
    "../x",
    "../globex",
    "/",
    "/etc/passwd",
    "a/b",
    "a//b",
    "a\\b",
    "a",
    "A",
    "a ",
    " a",
    "a.",
    "a%2fb",
    "n-a",
    "e-",
    "e-ae",
    "ae",
    "con",
    "nul.txt",
    "~root",
    "$HOME",
    "*",
    "?x=1#y",
    "a:b",
    "a\0b",
    "a\nb",
    "\u00e9",
    "e\u0301",
    "\u202ea",
    "\U0001f9e0",
    "\uffff",
    "\ufeffa",
    "a" * 100,
    "a" * 101,
    "A" * 101,
    "a" * MAX_TENANT_BYTES,
    "\U0001f9e0" * (MAX_TENANT_BYTES // 4),
    "\U0001f9e0" * (MAX_TENANT_BYTES // 4 - 1) + "\U0001f9e1",
)


@check("SEC-3", "R-23", methods=("put", "read", "listed", "delete", "runs"))
async def another_tenants_blob_looks_missing(harness: Harness) -> None:
    """Who knows Run and hash, and has another tenant, sees and changes nothing."""
    async with harness.open() as store:
        hash = await put(store, OURS, b"0123456789")
        for wrong in ("globex", "ACME", "acme ", "", ".", "../acme", "acme/"):
            await _sees_nothing(store, BlobOwner(wrong, OURS.run_id), hash)
        same(await store.read(*OURS, hash), b"0123456789", "the blob after foreign calls")
        same(await put(store, THEIRS, b"0123456789"), hash, "their hash of the same bytes")
        same(await store.delete(*THEIRS), 1, "their blobs that were deleted")
        same(await store.read(*OURS, hash), b"0123456789", "our blob after their deletion")
        same(await store.runs(), [OURS], "owners")


@check("SEC-3", "R-23", methods=("put", "read", "listed", "delete"))
async def another_runs_blob_looks_missing(harness: Harness) -> None:
    """A blob belongs to one Run of its tenant; the same bytes elsewhere are another blob."""
    async with harness.open() as store:
        hash = await put(store, OURS, b"0123456789")
        other = OURS._replace(run_id="run_01k5a0000000000000000000a1")
        for wrong in (other.run_id, OURS.run_id[:-1], OURS.run_id.upper(), "", "."):
            await _sees_nothing(store, OURS._replace(run_id=wrong), hash)
        await put(store, other, b"0123456789")
        same(await store.delete(*OURS), 1, "blobs that were deleted")
        same(await store.read(*other, hash), b"0123456789", "the same bytes of another Run")
        await refused("a blob that was deleted", BlobNotFound, store.read(*OURS, hash))


async def _sees_nothing(store: BlobStore, wrong: BlobOwner, hash: str) -> None:
    what = f"a blob as {wrong.tenant!r}, {wrong.run_id!r}"
    error = await refused(what, BlobNotFound, store.read(*wrong, hash))
    same(getattr(error, "hash", None), hash, "the blob that the error names")
    missing = await refused(what, BlobNotFound, store.read(*wrong, "0" * 64))
    told = str(error).replace(hash, "") == str(missing).replace("0" * 64, "")
    same(told, True, "a foreign blob and none say the same")
    same(await store.listed(*wrong), [], f"a list: {what}")
    same(await store.delete(*wrong), 0, f"a deletion: {what}")
    same(await store.delete(*wrong, [hash]), 0, f"a deletion by hash: {what}")


@check("SEC-3", "LOG-5", methods=("put", "read", "runs", "listed", "delete"))
async def names_are_told_apart_to_the_last_byte(harness: Harness) -> None:
    """Names that file systems fold, resolve, reserve, shorten or split stay apart."""
    owners = [BlobOwner(tenant, OURS.run_id) for tenant in _AWKWARD]
    owners += [BlobOwner("acme", name) for name in _AWKWARD if len(name.encode()) <= MAX_RUN_BYTES]
    async with harness.open() as store:
        hashes = [await put(store, owner, repr(owner).encode()) for owner in owners]
        found = await store.runs(limit=1000)
        same(sorted(found), sorted(owners), "owners")
        same(len(found), len(set(found)), "owners that are named once")
        for owner, hash in zip(owners, hashes, strict=True):
            same([blob.hash for blob in await store.listed(*owner)], [hash], f"blobs of {owner}")
            same(await store.read(*owner, hash), repr(owner).encode(), f"the blob of {owner}")
        for owner, hash in zip(owners[::2], hashes[::2], strict=True):
            same(await store.delete(*owner, [hash]), 1, f"a deletion of {owner}")
        same(sorted(await store.runs(limit=1000)), sorted(owners[1::2]), "owners that are left")


@check("LOG-5", methods=("put", "read", "runs", "listed", "delete"))
async def what_is_no_unicode_is_refused(harness: Harness) -> None:
    """A lone surrogate, wherever a name is given."""
    lone = "a\ud83d"
    async with harness.open() as store:
        hash = await put(store, OURS, b"0123456789")
        for wrong in (BlobOwner(lone, OURS.run_id), BlobOwner("acme", lone)):
            what = f"as {wrong!r}"
            await refused(what, InvalidPayload, store.put(*wrong, b"", media_type="a/b"))
            await refused(what, InvalidPayload, store.read(*wrong, hash))
            await refused(what, InvalidPayload, store.listed(*wrong))
            await refused(what, InvalidPayload, store.delete(*wrong))
            await refused(what, InvalidPayload, store.runs(after=wrong))
        await refused("a type", InvalidPayload, store.put(*OURS, b"x", media_type=lone))
        await refused("a hash", InvalidPayload, store.read(*OURS, lone))
        await refused("hashes", InvalidPayload, store.delete(*OURS, [hash, lone]))
        same([blob.hash for blob in await store.listed(*OURS)], [hash], "what is there")


@check("LOG-5", methods=("put", "read", "runs", "listed", "delete"))
async def a_name_that_is_too_long_is_refused(harness: Harness) -> None:
    """By its bytes, and alike everywhere, so that no place decides."""
    wide = "\U0001f9e0" * (MAX_TENANT_BYTES // 4)
    longest = BlobOwner(wide, "r" * MAX_RUN_BYTES)
    async with harness.open() as store:
        hash = await put(store, longest, b"0123456789")
        same(await store.read(*longest, hash), b"0123456789", "a blob under the longest names")
        for wrong in (longest._replace(tenant=wide + "a"), longest._replace(run_id="r" * 33)):
            what = f"{len(wrong.tenant)} and {len(wrong.run_id)} characters"
            await refused(what, InvalidArgument, store.put(*wrong, b"", media_type="a/b"))
            await refused(what, InvalidArgument, store.read(*wrong, hash))
            await refused(what, InvalidArgument, store.listed(*wrong))
            await refused(what, InvalidArgument, store.delete(*wrong))
            await refused(what, InvalidArgument, store.runs(after=wrong))
        same(await store.runs(), [longest], "owners")


@check("SEC-3", methods=("put", "read", "delete"))
async def a_hash_that_is_none_names_nothing(harness: Harness) -> None:
    """Paths, prefixes and other spellings of a hash reach no blob."""
    async with harness.open() as store:
        hash = await put(store, OURS, b"0123456789")
        theirs = await put(store, THEIRS, b"another")
        for wrong in (
            "",
            ".",
            "..",
            f"./{hash}",
            f"../{OURS.run_id}/{hash}",
            f"../../{THEIRS.tenant}/{THEIRS.run_id}/{theirs}",
            hash.upper(),
            hash[:-1],
            f"{hash}/",
            f"{hash}\n",
            f"{hash}0",
            f" {hash}",
            "*",
            "z" * 64,
            "\u0663" * 64,
        ):
            await refused(f"hash {wrong!r}", BlobNotFound, store.read(*OURS, wrong))
            same(await store.delete(*OURS, [wrong]), 0, f"a deletion of {wrong!r}")
        same(await store.read(*OURS, hash), b"0123456789", "the blob after it")
        same(await store.read(*THEIRS, theirs), b"another", "their blob after it")
