"""What is refused: too much, numbers out of range, and calls after the end."""

from psych_runtime.blob.contract._check import OURS, Harness, put
from psych_runtime.errors import BlobStoreClosed, InvalidArgument, PayloadTooLarge
from psych_runtime.ports.blob import MAX_BLOB_BYTES
from psych_runtime.ports.checks import check, refused, same

__all__ = [
    "a_blob_above_the_bound_is_refused",
    "a_closed_store_refuses",
    "a_number_out_of_range_is_refused",
]


@check("LOG-5", methods=("put", "listed", "runs"))
async def a_blob_above_the_bound_is_refused(harness: Harness) -> None:
    """One byte more, alike everywhere, and nothing of it is stored."""
    async with harness.open() as store:
        too_much = store.put(*OURS, bytes(MAX_BLOB_BYTES + 1), media_type="a/b")
        error = await refused("64,000,001 bytes", PayloadTooLarge, too_much)
        same(getattr(error, "size_bytes", None), 64_000_001, "the size that the error names")
        same(getattr(error, "bound_bytes", None), 64_000_000, "the bound that the error names")
        same(await store.listed(*OURS), [], "what is there")
        same(await store.runs(), [], "owners")


@check("LOG-5", methods=("read", "runs"))
async def a_number_out_of_range_is_refused(harness: Harness) -> None:
    """No place is counted from the end, no page is empty by wish."""
    async with harness.open() as store:
        hash = await put(store, OURS, b"0123456789")
        for start, stop in ((-1, None), (-1, 4), (0, -1), (-4, -1)):
            what = f"{start}:{stop}"
            await refused(what, InvalidArgument, store.read(*OURS, hash, start=start, stop=stop))
        for limit in (0, -1):
            await refused(f"a page of {limit}", InvalidArgument, store.runs(limit=limit))


@check("R-23", methods=("put", "read", "runs", "listed", "delete", "sweep", "close"))
async def a_closed_store_refuses(harness: Harness) -> None:
    """Every method, of this handle alone; closing again does nothing."""
    async with harness.open() as other:
        async with harness.open() as store:
            hash = await put(store, OURS, b"0123456789")
            await store.close()
            await store.close()
            await refused("put", BlobStoreClosed, store.put(*OURS, b"x", media_type="a/b"))
            await refused("read", BlobStoreClosed, store.read(*OURS, hash))
            await refused("runs", BlobStoreClosed, store.runs())
            await refused("listed", BlobStoreClosed, store.listed(*OURS))
            await refused("delete", BlobStoreClosed, store.delete(*OURS))
            await refused("sweep", BlobStoreClosed, store.sweep())
        same(await other.read(*OURS, hash), b"0123456789", "the blob for another handle")
