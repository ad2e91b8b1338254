"""Erasing takes what was said and keeps what happened (R-11, ST-6)."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from psych_runtime import (
    ContentErased,
    Erasure,
    InvalidArgument,
    RemainingCopy,
    RunNotFound,
    RunNotSettled,
    StoreUnavailable,
    answer,
    dispatch,
    erase,
    publish,
    records,
    report,
    status,
    stream,
    stream_text,
    verify,
)
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.testing import LogBuilder
from psych_schema.record import Record, RunErased
from psych_schema.spec import AgentSpec, ModelRef
from tests.functional.engine.flaky import Flaky, lost_acknowledgement
from tests.functional.operations.lines import ACME, CALL, OTHER, kept_contents, line, settled
from tests.stores.opening import IN_PROCESS

SPEC = AgentSpec(name="one", instructions="Say a.", model=ModelRef(model="scripted"))


async def said(store: Store, log: LogBuilder) -> list[str]:
    """Return what any reader tells of the words in a Run."""
    shown: list[Record] = await records(store, log.run_id, scope=ACME)
    middle = await records(store, log.run_id, scope=ACME, limit=3)
    streamed = [record async for record in stream(store, log.run_id, scope=ACME)]
    chunks = [chunk.text async for chunk in stream_text(store, log.run_id, scope=ACME)]
    views = (
        await answer(store, log.run_id, scope=ACME),
        await report(store, log.run_id, scope=ACME),
        await status(store, log.run_id, scope=ACME),
    )
    texts = [*chunks, *map(repr, (*shown, *middle, *streamed, *views))]
    return [text for text in texts if "answer 1" in text or "question 1" in text]


async def test_r_11_what_was_said_is_gone_and_what_happened_stays(store: Store) -> None:
    """Usage, times and the chain are as before; who erased and why is in the log."""
    log, other = await settled(store, 1), await settled(store, 2)
    before = await report(store, log.run_id, scope=ACME)
    kept = (await store.header("acme", log.run_id)).head_hash
    assert await said(store, log)

    found = await erase(store, log.run_id, scope=ACME, by="ann", reason="asked to")

    assert found == Erasure(run_ids=(log.run_id,), copies=())
    assert await said(store, log) == []
    assert await kept_contents(store, log) == 0
    assert await kept_contents(store, other) > 0
    *_, last = await records(store, log.run_id, scope=ACME)
    assert isinstance(last, RunErased)
    assert (last.by, last.reason, last.epoch) == ("ann", "asked to", 0)
    after = await report(store, log.run_id, scope=ACME)
    assert (after.totals, after.model_calls) == (before.totals, before.model_calls)
    view = await verify(store, log.run_id, scope=ACME, expected_head=kept)
    assert (view.consistent, view.proven) == (True, True)
    assert view.erased == sum(row.content is not None for row in log.rows)


async def test_r_11_readers_give_no_content_from_the_record_on(store: Store) -> None:
    """Though every content is still there; the erasure then goes on without another record."""
    log = await settled(store, 1)
    log.erase()
    assert log.units()[-1].changes[0].records[0].row.type == "run.erased"
    await store.commit([log.units()[-1]])
    assert await kept_contents(store, log) > 0
    assert await said(store, log) == []

    await erase(store, log.run_id, scope=ACME, by="ann")

    assert await kept_contents(store, log) == 0
    assert (await store.header("acme", log.run_id)).head == len(log.rows)


async def test_r_11_erasing_again_changes_nothing(store: Store) -> None:
    """The second time, twice at once, and by whom it was is the first one's to say."""
    log = await settled(store, 1)
    await asyncio.gather(*[erase(store, log.run_id, scope=ACME, by=by) for by in "abc"])
    rows = await store.read("acme", log.run_id)
    assert [row.type for row in rows].count("run.erased") == 1

    await erase(store, log.run_id, scope=ACME, by="ann")

    assert await store.read("acme", log.run_id) == rows


async def test_r_11_who_comes_second_writes_no_second_record(store: Store) -> None:
    """Though neither had seen the other's when it looked."""
    log = await settled(store, 1)
    flaky = Flaky(store)

    async def overtakes(_: object) -> None:
        await erase(store, log.run_id, scope=ACME, by="bob")

    flaky.faults.once("before", "commit", overtakes)
    await erase(flaky, log.run_id, scope=ACME, by="ann")

    erased = [one for one in await records(store, log.run_id, scope=ACME) if one.seq > 7]
    assert [(one.type, one.by) for one in erased] == [("run.erased", "bob")]
    assert (await verify(store, log.run_id, scope=ACME)).consistent


@pytest.mark.parametrize("when", ["commit", "blank"])
@pytest.mark.parametrize("answered", [False, True])
async def test_r_11_an_erasure_that_broke_off_is_gone_on_with(
    store: Store, when: str, answered: bool
) -> None:
    """Whether the store was away or only its answer was lost."""
    log = await settled(store, 1)
    flaky = Flaky(store)
    flaky.faults.once("after" if answered else "before", when, lost_acknowledgement)
    if when == "blank":
        with pytest.raises(StoreUnavailable):
            await erase(flaky, log.run_id, scope=ACME, by="ann")

    await erase(flaky, log.run_id, scope=ACME, by="ann")

    assert await kept_contents(store, log) == 0
    rows = await store.read("acme", log.run_id)
    assert [row.type for row in rows].count("run.erased") == 1
    assert (await verify(store, log.run_id, scope=ACME)).consistent


async def test_r_11_a_live_run_is_not_erased(store: Store) -> None:
    """The error says which Run has not settled; nothing is written."""
    log = await settled(store, 1, ends=False)
    rows = await store.read("acme", log.run_id)
    for dry_run in (True, False):
        with pytest.raises(RunNotSettled) as caught:
            await erase(store, log.run_id, scope=ACME, by="ann", dry_run=dry_run)
        assert (caught.value.run_id, caught.value.state) == (log.run_id, "running")
        assert caught.value.follows is None
    assert await store.read("acme", log.run_id) == rows


@pytest.mark.parametrize("cascade", [False, True])
async def test_r_11_nothing_is_erased_under_a_live_successor(store: Store, cascade: bool) -> None:
    """It goes on with the conversation; the error names both, whichever of the line it is."""
    first, second = await line(store, 2)
    version = await publish(store, SPEC, scope=ACME)
    live = await dispatch(store, version, scope=ACME, continues=second.run_id)
    for log in (first, second):
        with pytest.raises(RunNotSettled) as caught:
            await erase(store, log.run_id, scope=ACME, by="ann", cascade=cascade)
        assert (caught.value.run_id, caught.value.state) == (live.run_id, "ready")
        assert caught.value.follows == log.run_id
        assert await kept_contents(store, log) > 0
        assert (await store.header("acme", log.run_id)).head == len(log.rows)


async def test_r_11_settled_successors_are_told_or_taken_too(store: Store) -> None:
    """Those before it in the thread have nothing of it."""
    first, second, third = await line(store, 3)
    copies = (RemainingCopy(third.run_id, "successor"),)
    wanted = Erasure(run_ids=(second.run_id,), copies=copies)

    assert await erase(store, second.run_id, scope=ACME, by="ann") == wanted
    left = [await kept_contents(store, log) for log in (first, second, third)]
    assert [count > 0 for count in left] == [True, False, True]

    found = await erase(store, second.run_id, scope=ACME, by="ann", cascade=True)
    assert found == Erasure(run_ids=(second.run_id, third.run_id), copies=())
    left = [await kept_contents(store, log) for log in (first, second, third)]
    assert [count > 0 for count in left] == [True, False, False]


async def test_r_11_nobody_goes_on_with_an_erased_run(store: Store) -> None:
    """There is nothing to go on with: the dispatch is refused, and admits nothing."""
    log = await settled(store, 1)
    version = await publish(store, SPEC, scope=ACME)
    await erase(store, log.run_id, scope=ACME, by="ann")
    with pytest.raises(ContentErased):
        await dispatch(store, version, scope=ACME, continues=log.run_id)
    assert await store.tail("acme", log.run_id) == await store.header("acme", log.run_id)


async def test_r_11_a_dry_run_tells_and_writes_nothing(store: Store) -> None:
    """Also that the parent has its result."""
    parent = await settled(store, 1)
    call = {"run": parent.run_id, "call": CALL}
    child = await settled(store, 2, parent=call, root=parent.run_id, depth=1)
    after = await settled(store, 3, after=child)
    logs = (parent, child, after)
    before = [await store.read("acme", log.run_id) for log in logs]

    found = await erase(store, child.run_id, scope=ACME, by="ann", dry_run=True)
    cascaded = await erase(store, child.run_id, scope=ACME, by="ann", dry_run=True, cascade=True)

    result = RemainingCopy(parent.run_id, "parent")
    successor = RemainingCopy(after.run_id, "successor")
    assert found == Erasure((child.run_id,), (successor, result))
    assert cascaded == Erasure((child.run_id, after.run_id), (result,))
    assert [await store.read("acme", log.run_id) for log in logs] == before


async def test_sec_3_another_tenant_erases_nothing(store: Store) -> None:
    """It cannot tell that there is such a Run."""
    log = await settled(store, 1)
    with pytest.raises(RunNotFound):
        await erase(store, log.run_id, scope=OTHER, by="ann")
    assert await kept_contents(store, log) > 0


@IN_PROCESS
@pytest.mark.parametrize("by", [None, "", "x" * 257, 7])
async def test_r_11_somebody_erases(store: Store, by: object) -> None:
    """Without a name nothing is written."""
    log = await settled(store, 1)
    with pytest.raises(InvalidArgument):
        await erase(store, log.run_id, scope=ACME, by=by)  # type: ignore[arg-type]
    assert (await store.header("acme", log.run_id)).head == len(log.rows)


@IN_PROCESS
@pytest.mark.parametrize("blob", ["blobs", Path("blobs"), MemoryBlobStore])
async def test_r_11_what_is_no_blob_store_is_told_at_once(store: Store, blob: object) -> None:
    """Before anything is written, and what to pass."""
    log = await settled(store, 1)
    with pytest.raises(InvalidArgument, match=r"blob: .*pass a? ?(BlobStore|MemoryBlobStore)"):
        await erase(store, log.run_id, scope=ACME, by="ann", blob=cast("BlobStore", blob))
    assert (await store.header("acme", log.run_id)).head == len(log.rows)


@IN_PROCESS
async def test_r_11_blobs_of_the_run_go_as_well(store: Store) -> None:
    """Those of other Runs stay, also when their bytes are the same."""
    log, other = await settled(store, 1), await settled(store, 2)
    blob = MemoryBlobStore()
    for each in (log, other):
        await blob.put("acme", each.run_id, b"a picture", media_type="image/png")

    await erase(store, log.run_id, scope=ACME, by="ann", dry_run=True, blob=blob)
    assert len(await blob.listed("acme", log.run_id)) == 1
    await erase(store, log.run_id, scope=ACME, by="ann", blob=blob)

    assert await blob.listed("acme", log.run_id) == []
    assert len(await blob.listed("acme", other.run_id)) == 1
