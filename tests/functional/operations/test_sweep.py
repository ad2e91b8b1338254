"""Sweeping deletes blobs that nothing names, and no other (R-23)."""

from typing import cast

import pytest

from psych_runtime import InvalidArgument, purge, sweep
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.store.contract._build import Text, sealed
from psych_runtime.testing import LogBuilder
from tests.functional.operations.lines import ACME, START, commit, settled
from tests.stores.opening import IN_PROCESS

NAMED, ORPHAN = b"named by a record", b"named by nobody"


async def with_blobs(
    store: Store, blob: MemoryBlobStore, number: int, *, ends: bool = True
) -> LogBuilder:
    """Write a Run with two blobs, one of which its last record names."""
    log = await settled(store, number, ends=ends)
    refs = [
        await blob.put("acme", log.run_id, data, media_type="text/plain")
        for data in (NAMED, ORPHAN)
    ]
    head = log.header.head
    content = '{"blob":' + refs[0].model_dump_json() + "}"
    record = sealed(log.run_id, head + 1, text=Text(content=content, salt="0" * 32))
    change = Change(log.run_id, head, None, (record,), HeaderChange())
    await commit(store, Unit(f"com_{number:026d}", "acme", (change,)))
    return log


async def kept(blob: MemoryBlobStore, log: LogBuilder) -> set[bytes]:
    """Return the blobs that are left of a Run."""
    stored = await blob.listed("acme", log.run_id)
    return {await blob.read("acme", log.run_id, one.hash) for one in stored}


async def test_r_23_blobs_that_no_record_names_go(store: Store) -> None:
    """What is named stays; so does all of a Run that still lives, and may name it yet."""
    blob = MemoryBlobStore()
    log, live = await with_blobs(store, blob, 1), await with_blobs(store, blob, 2, ends=False)

    assert await sweep(store, blob, older_than_seconds=0) == 1

    assert await kept(blob, log) == {NAMED}
    assert await kept(blob, live) == {NAMED, ORPHAN}
    assert await sweep(store, blob, older_than_seconds=0) == 0


async def test_r_23_blobs_of_runs_that_are_gone_go(store: Store) -> None:
    """Whatever was named: the records are gone, too."""
    blob = MemoryBlobStore()
    log = await with_blobs(store, blob, 1)
    await purge(store, scope=ACME, before=START.replace(year=2027))
    assert await kept(blob, log) == {NAMED, ORPHAN}

    assert await sweep(store, blob, older_than_seconds=0) == 2
    assert await blob.runs() == []


async def test_r_23_blobs_of_an_erased_run_go(store: Store) -> None:
    """Its bodies may name them still."""
    blob = MemoryBlobStore()
    log = await with_blobs(store, blob, 1)
    last = sealed(log.run_id, log.header.head + 2)
    row = last.row.model_copy(update={"type": "run.erased"})
    change = Change(log.run_id, row.seq - 1, None, (last._replace(row=row),), HeaderChange())
    await commit(store, Unit("com_1", "acme", (change,)))

    assert await sweep(store, blob, older_than_seconds=0) == 2
    assert await kept(blob, log) == set()


@IN_PROCESS
async def test_r_23_young_blobs_are_left_alone(store: Store) -> None:
    """The record that names one may be on its way; a day is what one has by default."""
    blob = MemoryBlobStore()
    ref = await blob.put("acme", "run_" + "9" * 26, ORPHAN, media_type="text/plain")

    assert await sweep(store, blob) == 0

    assert [one.hash for one in await blob.listed("acme", "run_" + "9" * 26)] == [ref.hash]
    assert await sweep(store, blob, older_than_seconds=0) == 1


@IN_PROCESS
async def test_r_23_every_page_of_owners_is_swept(store: Store) -> None:
    """More Runs than one page has, of several tenants."""
    blob = MemoryBlobStore()
    for place in range(250):
        tenant = ("acme", "globex")[place % 2]
        await blob.put(tenant, f"run_{place:026d}", ORPHAN, media_type="text/plain")
    assert await sweep(store, blob, older_than_seconds=0) == 250
    assert await blob.runs() == []


@IN_PROCESS
@pytest.mark.parametrize("blob", ["blobs", None])
async def test_r_23_what_is_no_blob_store_is_told(store: Store, blob: object) -> None:
    """There must be one to sweep."""
    with pytest.raises(InvalidArgument, match=r"blob: .* has no runs.*pass a BlobStore"):
        await sweep(store, cast("BlobStore", blob))
