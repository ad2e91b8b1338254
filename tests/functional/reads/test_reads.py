"""status, answer, report, state, records, list_runs: one tenant's Runs, read and never written."""

from collections.abc import Awaitable, Callable

import pytest

from psych_runtime import answer, list_runs, records, report, state, status
from psych_runtime.core.canonical import canonical_text, spec_hash
from psych_runtime.errors import CorruptLog, InvalidPayload, NewerRecord, PsychError, RunNotFound
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.common import Scope
from psych_schema.spec import AgentSpec, CodeTool, ModelRef
from psych_schema.store import RunRow
from tests.functional.reads.logs import ACME, OTHER, append, lived, mark_corrupt
from tests.stores.opening import EVERYWHERE

SPEC = AgentSpec(
    name="biller",
    instructions="Bill.",
    model=ModelRef(model="any"),
    tools=(CodeTool(name="charge"), CodeTool(name="look")),
)

type Read = Callable[[Store, str, Scope], Awaitable[object]]


def _read(name: str) -> Read:
    reads = {
        "status": status,
        "answer": answer,
        "report": report,
        "state": state,
        "records": records,
    }

    async def read(store: Store, run_id: str, scope: Scope) -> object:
        found: object = await reads[name](store, run_id, scope=scope)
        return found

    return read


ALL = ["status", "answer", "report", "state", "records"]


async def billing(store: Store) -> LogBuilder:
    """Commit a Run of a published Version that needs charge and look."""
    hash = spec_hash(SPEC)
    await store.put_version("acme", hash, canonical_text(SPEC))
    log = LogBuilder()
    log.admit("hi", version=hash)
    await log.commit_to(store)
    return log


@pytest.mark.parametrize("name", ALL)
async def test_sec_4_another_tenants_run_looks_like_none(store: Store, name: str) -> None:
    """Every read takes its tenant from the scope."""
    log = lived()
    await log.commit_to(store)

    with pytest.raises(RunNotFound) as caught:
        await _read(name)(store, log.run_id, OTHER)
    assert caught.value.run_id == log.run_id


@pytest.mark.parametrize("name", ALL)
async def test_reads_change_nothing(store: Store, name: str) -> None:
    """Header and rows are as they were."""
    log = lived()
    await log.commit_to(store)
    before = await store.header("acme", log.run_id)

    await _read(name)(store, log.run_id, ACME)

    assert await store.header("acme", log.run_id) == before
    assert await store.read("acme", log.run_id) == log.rows


async def test_the_views_of_a_settled_run(store: Store) -> None:
    """One log, three questions."""
    log = lived()
    await log.commit_to(store)

    assert (await status(store, log.run_id, scope=ACME)).lifecycle == "done"
    assert (await answer(store, log.run_id, scope=ACME)).text == "It is 42."
    assert [
        call.recovered for call in (await report(store, log.run_id, scope=ACME)).tool_calls
    ] == [True]


async def test_tok_5_the_report_from_a_store_is_that_of_the_log(store: Store) -> None:
    """Nothing of it is kept anywhere else."""
    log = lived()
    await log.commit_to(store)
    found = await report(store, log.run_id, scope=ACME)

    assert found.head_hash == log.header.head_hash
    assert found.totals.usage.input_tokens == 20
    assert [one.ended for one in found.attempts] == ["taken", "settled"]


async def test_state_is_the_fold_of_the_log(store: Store) -> None:
    """With every object that it ever had."""
    log = lived()
    await log.commit_to(store)

    found = await state(store, log.run_id, scope=ACME)

    assert found.phase == "settled"
    assert found.position == log.state.position
    assert dict(found.objects) == dict(log.state.objects)


@EVERYWHERE
async def test_records_come_in_order_from_anywhere(store: Store) -> None:
    """after and limit cut, without a wait."""
    log = lived()
    await log.commit_to(store)
    whole = [entry.record for entry in log.entries]

    assert await records(store, log.run_id, scope=ACME) == whole
    assert await records(store, log.run_id, scope=ACME, after=3, limit=2) == whole[3:5]
    assert await records(store, log.run_id, scope=ACME, after=len(whole)) == []


@EVERYWHERE
async def test_pub_3_status_says_which_tool_no_live_worker_has(store: Store) -> None:
    """The Version's grants against the tools of those that are alive."""
    log = await billing(store)
    await store.enlist("wrk_a", lease_seconds=6.0, build="1", tools=["code:look"])

    blocked = await status(store, log.run_id, scope=ACME)
    await store.enlist("wrk_b", lease_seconds=6.0, build="1", tools=["code:charge", "code:look"])
    queued = await status(store, log.run_id, scope=ACME)

    assert blocked.lifecycle == "blocked"
    assert blocked.blocked_on is not None
    assert blocked.blocked_on.message == "no live worker has tool charge"
    assert queued.lifecycle == "queued"


async def test_pub_3_status_without_workers_is_queued(store: Store) -> None:
    """Nobody is alive, nobody lacks anything."""
    log = await billing(store)

    assert (await status(store, log.run_id, scope=ACME)).lifecycle == "queued"


async def test_pub_3_status_of_a_version_that_is_not_there_is_queued(store: Store) -> None:
    """What it needs is unknown, so nothing is said of it."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    await store.enlist("wrk_a", lease_seconds=6.0, build="1", tools=[])

    assert (await status(store, log.run_id, scope=ACME)).lifecycle == "queued"


async def test_run_13_status_of_a_version_that_a_newer_build_published_is_queued(
    store: Store,
) -> None:
    """A Spec that this build cannot read is no error of the Run."""
    await store.put_version("acme", "f" * 64, '{"kind":"swarm"}')
    log = LogBuilder()
    log.admit("hi", version="f" * 64)
    await log.commit_to(store)
    await store.enlist("wrk_a", lease_seconds=6.0, build="1", tools=[])

    assert (await status(store, log.run_id, scope=ACME)).lifecycle == "queued"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("status", None),
        ("answer", None),
        ("report", None),
        ("state", CorruptLog),
        ("records", CorruptLog),
    ],
)
async def test_log_3_views_show_an_unreadable_log_and_the_rest_refuses_it(
    store: Store, name: str, error: type[PsychError] | None
) -> None:
    """A view of a broken Run says that it is broken; a list of records does not skip one."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    await append(store, log, type="turn.started", body='{"broken":true}')

    if error is None:
        found = await _read(name)(store, log.run_id, ACME)
        lifecycle = getattr(found, "lifecycle", None) or getattr(found, "status", None)
        assert lifecycle == "failed"
    else:
        with pytest.raises(error):
            await _read(name)(store, log.run_id, ACME)


async def test_log_3_status_of_a_run_marked_corrupt_says_so(store: Store) -> None:
    """The header's state and the reason of the fold."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    await mark_corrupt(store, log)

    found = await status(store, log.run_id, scope=ACME)

    assert (found.state, found.lifecycle) == ("corrupt", "failed")
    assert found.blocked_on is not None
    assert found.blocked_on.code == "corrupt_log"
    with pytest.raises(CorruptLog):
        await state(store, log.run_id, scope=ACME)


@EVERYWHERE
@pytest.mark.parametrize("form", ["", "B261129200001000000?"])
async def test_log_4_a_newer_record_is_shown_as_blocked_and_refused_as_newer(
    store: Store, form: str
) -> None:
    """An old reader knows that it is old, whatever form the row is kept in."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    body = '{"v":2,"epoch":0,"at":"2026-11-29T20:00:01.000000Z","type":"future.thing"}'
    await append(store, log, type="future.thing", body=form + body, version=2)

    found = await status(store, log.run_id, scope=ACME)

    assert found.lifecycle == "blocked"
    assert found.blocked_on is not None
    assert found.blocked_on.code == "newer_record"
    for read in (state, records):
        with pytest.raises(NewerRecord):
            await read(store, log.run_id, scope=ACME)


class _Growing(MemoryStore):
    """Commits more of a log between a reader's header and its log."""

    more: LogBuilder | None = None

    async def header(self, tenant: str, run_id: str) -> RunRow:
        found = await super().header(tenant, run_id)
        if self.more is not None:
            log, self.more = self.more, None
            for unit in log.units()[1:]:
                await self.commit([unit])
        return found


async def test_st_7_a_view_is_of_one_moment() -> None:
    """The log is read up to the head of the header, not further."""
    store = _Growing()
    log = lived()
    await store.commit(log.units()[:1])
    store.more = log

    first = await status(store, log.run_id, scope=ACME)
    second = await status(store, log.run_id, scope=ACME)

    assert (first.lifecycle, first.head, first.turn, first.ended) == ("queued", 1, 0, None)
    assert second.lifecycle == "done"


@EVERYWHERE
async def test_st_5_list_runs_is_filtered_and_paged(store: Store) -> None:
    """Newest first, one tenant's, and a cursor that ends."""
    logs = [lived(first_id=1000 * n) for n in range(1, 4)]
    for log in logs:
        await log.commit_to(store)
    fresh = LogBuilder(system=CountingSystem(first_id=9000))
    fresh.admit("hi")
    await fresh.commit_to(store)

    settled = await list_runs(store, scope=ACME, state="settled", limit=2)
    rest = await list_runs(store, scope=ACME, state="settled", limit=2, cursor=settled.cursor)
    ready = await list_runs(store, scope=ACME, state="ready")

    found = [header.run_id for header in settled.headers + rest.headers]
    assert sorted(found) == sorted(log.run_id for log in logs)
    assert rest.cursor is None
    assert [header.run_id for header in ready.headers] == [fresh.run_id]
    assert (await list_runs(store, scope=OTHER)).headers == ()


@EVERYWHERE
async def test_st_5_list_runs_filters_by_thread_and_version(store: Store) -> None:
    """Each filter alone, and both together."""
    log = lived()
    await log.commit_to(store)
    version = log.header.version

    by_thread = await list_runs(store, scope=ACME, thread=log.run_id)
    by_version = await list_runs(store, scope=ACME, version=version)
    by_both = await list_runs(store, scope=ACME, version=version, thread="another")
    by_parent = await list_runs(store, scope=ACME, parent=log.run_id)

    assert [one.run_id for one in by_thread.headers] == [log.run_id]
    assert by_version == by_thread
    assert by_both.headers == by_parent.headers == ()


async def test_st_5_list_runs_refuses_a_foreign_cursor(store: Store) -> None:
    """A cursor is the page before's, unchanged."""
    with pytest.raises(InvalidPayload):
        await list_runs(store, scope=ACME, cursor="page two")
