"""Blob stores that break one promise each: the contract must notice every one of them."""

import asyncio
from collections.abc import Sequence
from typing import Final

from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.errors import (
    BlobCorrupt,
    BlobNotFound,
    BlobStoreClosed,
    InvalidArgument,
    InvalidPayload,
    PayloadTooLarge,
)
from psych_runtime.ports.blob import BlobOwner, Stored
from psych_schema.common import BlobRef


class ForgetsBytes(MemoryBlobStore):
    """Answers before anything is stored."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        return await MemoryBlobStore().put(tenant, run_id, data, media_type=media_type)


class TranslatesLines(MemoryBlobStore):
    """Opens its files as text."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        text = data.replace(b"\r\n", b"\n")
        return await super().put(tenant, run_id, text, media_type=media_type)


class ForgetsTypes(MemoryBlobStore):
    """Gives every ref the same media type."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        return await super().put(tenant, run_id, data, media_type="application/octet-stream")


class SaltsHashes(MemoryBlobStore):
    """Gives the same bytes a new name each time."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        salted = data + len(await self.listed(tenant, run_id)).to_bytes()
        return await super().put(tenant, run_id, salted, media_type=media_type)


class KeepsTheFirst(MemoryBlobStore):
    """Takes what is there for what it was given, without looking."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        scratch = MemoryBlobStore()
        ref = await scratch.put(tenant, run_id, data, media_type=media_type)
        if ref.hash in {blob.hash for blob in await self.listed(tenant, run_id)}:
            return ref
        return await super().put(tenant, run_id, data, media_type=media_type)


class StoresThenJudges(MemoryBlobStore):
    """Finds out that a blob was too large when a part of it is there."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        if len(data) > 1_000_000:
            await super().put(tenant, run_id, data[:1_000_000], media_type=media_type)
        return await super().put(tenant, run_id, data, media_type=media_type)


class IsPutInTwoSteps(MemoryBlobStore):
    """Lets a deletion come between the making of a folder and its use."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        ref = await super().put(tenant, run_id, data, media_type=media_type)
        await asyncio.sleep(0)
        if ref.hash not in {blob.hash for blob in await self.listed(tenant, run_id)}:
            raise BlobNotFound(run_id=run_id, hash=ref.hash)
        return ref


class IncludesTheStop(MemoryBlobStore):
    """Takes a range as HTTP does."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        stop = None if stop is None else stop + 1
        return await super().read(tenant, run_id, hash, start=start, stop=stop)


class RefusesBehindTheEnd(MemoryBlobStore):
    """Takes a range that it cannot give for a blob that is not there."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        data = await super().read(tenant, run_id, hash, start=start, stop=stop)
        if start and not data:
            raise BlobNotFound(run_id=run_id, hash=hash)
        return data


class AsksNothingForNothing(MemoryBlobStore):
    """Answers an empty range without looking whether the blob is there."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        if stop is not None and 0 <= stop <= start:
            return b""
        return await super().read(tenant, run_id, hash, start=start, stop=stop)


class CountsFromTheEnd(MemoryBlobStore):
    """Reads negative numbers as Python does."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        try:
            return await super().read(tenant, run_id, hash, start=start, stop=stop)
        except InvalidArgument:
            return (await super().read(tenant, run_id, hash))[start:stop]


class TrustsTheDisk(MemoryBlobStore):
    """Never looks at the hash."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        try:
            return await super().read(tenant, run_id, hash, start=start, stop=stop)
        except BlobCorrupt:
            return await super().read(tenant, run_id, hash, start=0, stop=1 << 30)


class HidesDamage(MemoryBlobStore):
    """Says that a damaged blob is not there."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        try:
            return await super().read(tenant, run_id, hash, start=start, stop=stop)
        except BlobCorrupt:
            raise BlobNotFound(run_id=run_id, hash=hash) from None


class LeaksTenants(MemoryBlobStore):
    """Has one folder for all tenants."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        for known in (tenant, "acme"):
            try:
                return await super().read(known, run_id, hash, start=start, stop=stop)
            except BlobNotFound:
                continue
        raise BlobNotFound(run_id=run_id, hash=hash)


class LeaksRuns(MemoryBlobStore):
    """Has one folder for all Runs of a tenant."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        for owner in (BlobOwner(tenant, run_id), *await self.runs()):
            try:
                if owner.tenant == tenant:
                    return await super().read(*owner, hash, start=start, stop=stop)
            except BlobNotFound:
                continue
        raise BlobNotFound(run_id=run_id, hash=hash)


class FoldsHashes(MemoryBlobStore):
    """Looks names up as a file system without cases does."""

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        return await super().read(tenant, run_id, hash.lower(), start=start, stop=stop)


class _Renames(MemoryBlobStore):
    """Keeps tenants under other names."""

    def kept(self, tenant: str) -> str:
        raise NotImplementedError

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        return await super().put(self.kept(tenant), run_id, data, media_type=media_type)

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        return await super().read(self.kept(tenant), run_id, hash, start=start, stop=stop)

    async def listed(self, tenant: str, run_id: str) -> list[Stored]:
        return await super().listed(self.kept(tenant), run_id)


class FoldsCase(_Renames):
    """Keeps tenants as a file system without cases does."""

    def kept(self, tenant: str) -> str:
        return tenant.lower()


class ReplacesSlashes(_Renames):
    """Makes file names of tenants, and two of them one."""

    def kept(self, tenant: str) -> str:
        return tenant.replace("/", "_")


class ReplacesSurrogates(_Renames):
    """Keeps what is no Unicode as something else."""

    def kept(self, tenant: str) -> str:
        return tenant.encode(errors="replace").decode()


class CutsNames(_Renames):
    """Keeps as much of a name as fits."""

    def kept(self, tenant: str) -> str:
        return tenant.encode()[:512].decode(errors="ignore")


class RefusesTypesLate(MemoryBlobStore):
    """Lets anything be a media type."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        try:
            return await super().put(tenant, run_id, data, media_type=media_type)
        except InvalidPayload:
            return await super().put(tenant, run_id, data, media_type="a/b")


class TakesAnything(MemoryBlobStore):
    """Knows no bound."""

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        try:
            return await super().put(tenant, run_id, data, media_type=media_type)
        except PayloadTooLarge:
            return await super().put(tenant, run_id, b"", media_type=media_type)


class SkipsAnOwner(MemoryBlobStore):
    """Begins a page one too late."""

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        page = await super().runs(after=after, limit=limit + 1)
        return page[1:] if after else page[:limit]


class RepeatsAnOwner(MemoryBlobStore):
    """Begins a page with the last owner of the page before."""

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        page = await super().runs(after=after, limit=limit)
        return page or ([after] if after in await super().runs(limit=1000) else [])


class OverfillsPages(MemoryBlobStore):
    """Gives more than was asked for."""

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        return await super().runs(after=after, limit=limit + 1)


class LosesItsPlace(MemoryBlobStore):
    """Finds no page behind an owner that has gone."""

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        if after is not None and after not in await super().runs(limit=1000):
            return []
        return await super().runs(after=after, limit=limit)


class NamesEmptyOwners(MemoryBlobStore):
    """Leaves the folder when the last blob has gone."""

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        count = await super().delete(tenant, run_id, hashes)
        if count:
            self._runs.setdefault(BlobOwner(tenant, run_id), {})
        return count


class ListsUnsorted(MemoryBlobStore):
    """Lists in the order of arrival, backwards."""

    async def listed(self, tenant: str, run_id: str) -> list[Stored]:
        return (await super().listed(tenant, run_id))[::-1]


class KnowsNoAge(MemoryBlobStore):
    """Takes every blob for a new one."""

    async def listed(self, tenant: str, run_id: str) -> list[Stored]:
        blobs = await super().listed(tenant, run_id)
        return [blob._replace(age_seconds=0.0) for blob in blobs]


class DeletesTooMuch(MemoryBlobStore):
    """Deletes a Run's blobs when one is named."""

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        return await super().delete(tenant, run_id, None if hashes else hashes)


class DeletesForTheTenant(MemoryBlobStore):
    """Deletes the blobs of all Runs of a tenant."""

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        count = await super().delete(tenant, run_id, hashes)
        for owner in await self.runs(limit=1000):
            if owner.tenant == tenant and hashes is None:
                await super().delete(*owner)
        return count


class TakesNoneForEmpty(MemoryBlobStore):
    """Deletes everything when nothing is named."""

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        return await super().delete(tenant, run_id, hashes or None)


class CountsWhatIsNamed(MemoryBlobStore):
    """Says that it deleted what was not there."""

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        count = await super().delete(tenant, run_id, hashes)
        return count if hashes is None else len(hashes)


class DeletesNothing(MemoryBlobStore):
    """Counts, and leaves everything where it is."""

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        there = {blob.hash for blob in await self.listed(tenant, run_id)}
        return len(there if hashes is None else there & set(hashes))


class SweepsBlobs(MemoryBlobStore):
    """Takes blobs for leftovers."""

    async def sweep(self) -> None:
        self._runs.clear()


class OutlivesItself(MemoryBlobStore):
    """Goes on after it was closed."""

    def _check_open(self) -> None:
        return None


class ClosesOnce(MemoryBlobStore):
    """Cannot be closed again."""

    async def close(self) -> None:
        if self._closed:
            raise BlobStoreClosed
        await super().close()


class ClosesForAll(MemoryBlobStore):
    """Takes its blobs with it when one handle is closed."""

    async def close(self) -> None:
        await super().close()
        self._runs.clear()


BROKEN: Final[tuple[tuple[type[MemoryBlobStore], str], ...]] = (
    (ForgetsBytes, "bytes_come_back_as_put"),
    (ForgetsBytes, "many_put_the_same_bytes_at_once"),
    (TranslatesLines, "bytes_come_back_as_put"),
    (ForgetsTypes, "bytes_come_back_as_put"),
    (SaltsHashes, "the_same_bytes_have_one_ref"),
    (KeepsTheFirst, "a_damaged_blob_is_whole_again_when_put"),
    (KeepsTheFirst, "a_blob_put_again_is_young_again"),
    (StoresThenJudges, "a_blob_above_the_bound_is_refused"),
    (TakesAnything, "a_blob_above_the_bound_is_refused"),
    (IsPutInTwoSteps, "puts_and_deletions_at_once_leave_whole_blobs"),
    (IncludesTheStop, "a_part_is_what_a_slice_is"),
    (RefusesBehindTheEnd, "a_part_is_what_a_slice_is"),
    (AsksNothingForNothing, "a_part_is_what_a_slice_is"),
    (CountsFromTheEnd, "a_number_out_of_range_is_refused"),
    (TrustsTheDisk, "a_blob_that_is_damaged_is_not_given_out"),
    (HidesDamage, "a_blob_that_is_damaged_is_not_given_out"),
    (LeaksTenants, "another_tenants_blob_looks_missing"),
    (LeaksRuns, "another_runs_blob_looks_missing"),
    (FoldsHashes, "a_hash_that_is_none_names_nothing"),
    (FoldsCase, "names_are_told_apart_to_the_last_byte"),
    (ReplacesSlashes, "names_are_told_apart_to_the_last_byte"),
    (ReplacesSurrogates, "what_is_no_unicode_is_refused"),
    (RefusesTypesLate, "what_is_no_unicode_is_refused"),
    (CutsNames, "a_name_that_is_too_long_is_refused"),
    (SkipsAnOwner, "owners_come_in_pages_that_meet"),
    (OverfillsPages, "owners_come_in_pages_that_meet"),
    (RepeatsAnOwner, "owners_come_in_pages_that_meet"),
    (LosesItsPlace, "a_page_goes_on_behind_an_owner_that_has_gone"),
    (NamesEmptyOwners, "a_run_without_blobs_is_no_owner"),
    (ListsUnsorted, "what_a_run_has_is_listed"),
    (KnowsNoAge, "a_blob_put_again_is_young_again"),
    (DeletesTooMuch, "a_deletion_takes_what_it_names"),
    (TakesNoneForEmpty, "a_deletion_takes_what_it_names"),
    (CountsWhatIsNamed, "a_deletion_takes_what_it_names"),
    (DeletesNothing, "a_deletion_takes_what_it_names"),
    (DeletesNothing, "another_runs_blob_looks_missing"),
    (DeletesForTheTenant, "all_of_a_run_is_deleted_and_nothing_else"),
    (SweepsBlobs, "a_sweep_takes_no_blob"),
    (OutlivesItself, "a_closed_store_refuses"),
    (ClosesOnce, "a_closed_store_refuses"),
    (ClosesForAll, "a_closed_store_refuses"),
    (ClosesForAll, "a_put_that_has_returned_is_seen_by_every_handle"),
)
"""A broken store, and the check that must notice it."""
