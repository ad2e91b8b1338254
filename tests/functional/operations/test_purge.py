"""Purging deletes whole threads that ended, and nothing else (ST-6)."""

from datetime import datetime, timedelta
from typing import Final, cast

import pytest

from psych_runtime import (
    InvalidArgument,
    RunNotFound,
    StoreUnavailable,
    dispatch,
    erase,
    publish,
    purge,
)
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.testing import LogBuilder
from psych_schema.spec import AgentSpec, ModelRef
from tests.functional.engine.flaky import Flaky, lost_acknowledgement
from tests.functional.operations.lines import (
    ACME,
    CALL,
    OTHER,
    START,
    commit,
    line,
    refer,
    settled,
)
from tests.stores.opening import IN_PROCESS

SPEC: Final = AgentSpec(name="one", instructions="Say a.", model=ModelRef(model="scripted"))
LATER: Final = START + timedelta(hours=1)


async def is_there(store: Store, log: LogBuilder) -> bool:
    """Tell whether a Run has a header; if not, nothing else of it may be left."""
    try:
        await store.header(log.tenant, log.run_id)
    except RunNotFound:
        with pytest.raises(RunNotFound):
            await store.read(log.tenant, log.run_id)
        return False
    return True


async def test_st_6_threads_that_ended_before_are_deleted(store: Store) -> None:
    """All their Runs, and no younger or live one, nor another tenant's."""
    old = [await settled(store, 1), *await line(store, 3, first=10)]
    young = await settled(store, 2, hours=2)
    live = await settled(store, 3, ends=False)
    theirs = await settled(store, 4, tenant="globex")

    gone = await purge(store, scope=ACME, before=LATER)

    assert sorted(gone) == sorted(log.run_id for log in old)
    assert [await is_there(store, log) for log in old] == [False] * 4
    assert [await is_there(store, log) for log in (young, live, theirs)] == [True] * 3
    assert await store.tail("acme", old[1].run_id) is None
    assert await purge(store, scope=ACME, before=LATER) == ()
    assert await purge(store, scope=OTHER, before=LATER) == (theirs.run_id,)


async def test_st_6_the_instant_itself_is_not_before(store: Store) -> None:
    """The last record counts, to the microsecond."""
    log = await settled(store, 1)
    last = (await store.header("acme", log.run_id)).head_at
    assert await purge(store, scope=ACME, before=last) == ()
    assert await purge(store, scope=ACME, before=last + timedelta(microseconds=1)) == (log.run_id,)


async def test_st_6_a_thread_goes_as_a_whole_or_not_at_all(store: Store) -> None:
    """One that was gone on with lately, or lives, keeps its beginning."""
    begun = await settled(store, 1)
    lately = await settled(store, 2, after=begun, hours=2)
    [alone] = await line(store, 1, first=10)
    version = await publish(store, SPEC, scope=ACME)
    await dispatch(store, version, scope=ACME, continues=alone.run_id)

    assert await purge(store, scope=ACME, before=LATER) == ()
    assert [await is_there(store, log) for log in (begun, lately, alone)] == [True] * 3


async def test_st_6_every_run_of_a_thread_ended_before(store: Store) -> None:
    """One that was erased lately is not old: its record of that is its last."""
    first, second = await line(store, 2)
    assert await purge(store, scope=ACME, before=START) == ()
    await erase(store, first.run_id, scope=ACME, by="ann")
    assert await purge(store, scope=ACME, before=LATER) == ()
    assert [await is_there(store, log) for log in (first, second)] == [True] * 2


async def test_st_6_what_is_referred_to_stays(store: Store) -> None:
    """The tail of a thread, by a fork; a Run whose parent or child lives."""
    forked = await settled(store, 1)
    await refer(store, forked.header)
    parent = await settled(store, 2, ends=False)
    call = {"run": parent.run_id, "call": CALL}
    child = await settled(store, 3, parent=call, root=parent.run_id, depth=1)
    outlived = await settled(store, 4)
    edit = HeaderChange(opened={parent.run_id: 1})
    change = Change(outlived.run_id, outlived.header.head, None, (), edit)
    await commit(store, Unit("com_1", "acme", (change,)))

    assert await purge(store, scope=ACME, before=LATER) == ()

    ends = Change(parent.run_id, parent.header.head, None, (), HeaderChange(state="settled"))
    await commit(store, Unit("com_2", "acme", (ends,)))
    gone = await purge(store, scope=ACME, before=LATER)
    assert sorted(gone) == sorted([parent.run_id, child.run_id, outlived.run_id])
    assert await is_there(store, forked)


async def test_st_6_a_key_that_admitted_a_purged_run_admits_again(store: Store) -> None:
    """Other keys are known as before."""
    old = await settled(store, 1, key="monday")
    young = await settled(store, 2, key="tuesday", hours=2)

    await purge(store, scope=ACME, before=LATER)

    assert await store.key("acme", "", "monday") is None
    assert await store.key("acme", "", "tuesday") is not None
    version = await publish(store, SPEC, scope=ACME)
    again = await dispatch(store, version, scope=ACME, idempotency_key="monday")
    assert again.created
    assert [await is_there(store, log) for log in (old, young)] == [False, True]


async def test_st_6_a_limit_bounds_one_purge(store: Store) -> None:
    """A thread is not cut; the rest goes the next time."""
    logs = [*await line(store, 3), await settled(store, 20), await settled(store, 30)]
    gone: list[str] = []
    while found := await purge(store, scope=ACME, before=LATER, limit=2):
        assert len(found) <= 4
        gone += found
    assert sorted(gone) == sorted(log.run_id for log in logs)


@IN_PROCESS
async def test_st_6_a_long_thread_goes_from_its_beginning(store: Store) -> None:
    """More Runs than a store deletes at once: what an outage leaves goes the next time."""
    logs = await line(store, 95)
    flaky = Flaky(store)
    flaky.faults.once("after", "delete_runs", lost_acknowledgement)
    with pytest.raises(StoreUnavailable):
        await purge(flaky, scope=ACME, before=LATER)
    assert [await is_there(store, log) for log in logs[89:91]] == [False, True]
    left = tuple(log.run_id for log in logs[90:])
    assert await purge(flaky, scope=ACME, before=LATER) == left


@IN_PROCESS
async def test_st_6_a_long_thread_that_is_gone_on_with_keeps_its_end(store: Store) -> None:
    """Between two parts somebody refers to its tail: nothing behind is deleted."""
    logs = await line(store, 185)
    flaky = Flaky(store)

    async def goes_on(_: object) -> None:
        await refer(store, logs[-1].header)

    flaky.faults.once("after", "delete_runs", goes_on)
    gone = await purge(flaky, scope=ACME, before=LATER)
    assert gone == tuple(log.run_id for log in logs[:90])
    assert [await is_there(store, log) for log in logs[90:]] == [True] * 95


async def test_st_6_a_long_thread_is_deleted_in_parts(store: Store) -> None:
    """All of it."""
    logs = await line(store, 95)
    assert await purge(store, scope=ACME, before=LATER) == tuple(log.run_id for log in logs)
    assert (await store.list_runs("acme")).headers == ()


@IN_PROCESS
async def test_st_6_blobs_of_purged_runs_go_as_well(store: Store) -> None:
    """Those of other Runs stay."""
    old, young = await settled(store, 1), await settled(store, 2, hours=2)
    blob = MemoryBlobStore()
    for each in (old, young):
        await blob.put("acme", each.run_id, b"a picture", media_type="image/png")

    await purge(store, scope=ACME, before=LATER, blob=blob)

    assert await blob.listed("acme", old.run_id) == []
    assert len(await blob.listed("acme", young.run_id)) == 1


@IN_PROCESS
async def test_st_6_what_is_no_blob_store_is_told_at_once(store: Store) -> None:
    """Before anything is deleted."""
    log = await settled(store, 1)
    with pytest.raises(InvalidArgument, match="blob: a str has no delete"):
        await purge(store, scope=ACME, before=LATER, blob=cast("BlobStore", "blobs"))
    assert await is_there(store, log)


@IN_PROCESS
@pytest.mark.parametrize("before", [None, "2026-11-29", datetime(2026, 11, 29)])  # noqa: DTZ001
async def test_st_6_an_instant_has_a_time_zone(store: Store, before: object) -> None:
    """Nothing is deleted for what is none."""
    log = await settled(store, 1)
    with pytest.raises(InvalidArgument):
        await purge(store, scope=ACME, before=before)  # type: ignore[arg-type]
    assert await is_there(store, log)
