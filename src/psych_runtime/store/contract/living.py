"""Leases, deaths and the store's own time (R-5, R-6, R-14)."""

from datetime import timedelta
from typing import Final

from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import REMAINING, After, HeaderChange, Renewed, Store
from psych_runtime.store.contract._build import (
    TENANT,
    admission,
    change,
    claimed,
    enlisted,
    new_id,
    now_of,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness, near

__all__ = [
    "a_burial_is_an_arrival",
    "a_dead_row_stays_while_a_header_names_it",
    "a_dead_worker_never_renews",
    "a_dead_workers_runs_are_claimable",
    "a_late_renewal_breaks_the_contact",
    "a_renewal_prolongs_the_lease_and_beats",
    "a_renewal_tells_of_the_runs_passed",
    "a_suspended_run_keeps_what_remained",
    "a_worker_is_enlisted_alive",
    "a_worker_whose_lease_runs_is_not_buried",
    "nobody_dies_after_the_store_was_away",
    "the_store_computes_deadlines",
]

_LEASE: Final = 100.0
_LONG: Final = 5.0  # for what comes at once


async def _renew(store: Store, worker: str, *run_ids: str) -> Renewed | None:
    return await store.renew(worker, lease_seconds=_LEASE, run_ids=run_ids)


async def _alive(store: Store) -> set[str]:
    return {row.id for row in await store.workers()}


@check("R-5", methods=("enlist", "workers"))
async def a_worker_is_enlisted_alive(harness: Harness) -> None:
    """Its row says when and what it is; enlisting again changes nothing of that."""
    async with harness.open() as store:
        worker = new_id("wrk")
        tools = ("charge", "\U0001f9e0")
        for _ in range(2):
            now = await store.enlist(worker, lease_seconds=_LEASE, build="b1", tools=tools)
            near(now, await now_of(store), "the store's now")
            (row,) = await store.workers()
            same((row.id, row.build, row.tools, row.dead), (worker, "b1", tools, False), "its row")
            same(row.lease_seconds, _LEASE, "its lease")
            near(row.lease_until, now + timedelta(seconds=_LEASE), "the end of its lease")
            near(row.since, now, "since when it is in contact")


@check("R-5", methods=("renew", "workers"))
async def a_renewal_prolongs_the_lease_and_beats(harness: Harness) -> None:
    """Each renewal counts one beat; an unbroken contact keeps its beginning."""
    async with harness.open() as store:
        worker = await enlisted(store, lease_seconds=_LEASE)
        (before,) = await store.workers()
        for beat in (1, 2, 3):
            await harness.advance(40)
            answer = await _renew(store, worker)
            assert answer is not None
            (row,) = await store.workers()
            same(row.beat, before.beat + beat, "the beats")
            near(row.lease_until, answer.now + timedelta(seconds=_LEASE), "the end of its lease")
            near(row.since, answer.now - timedelta(seconds=40 * beat), "the unbroken contact")


@check("R-6", methods=("renew", "workers"))
async def a_late_renewal_breaks_the_contact(harness: Harness) -> None:
    """When less than half the lease was left, `since` is now."""
    async with harness.open() as store:
        worker = await enlisted(store, lease_seconds=_LEASE)
        await harness.advance(60)
        answer = await _renew(store, worker)
        assert answer is not None
        (row,) = await store.workers()
        near(row.since, answer.now, "the contact after a late renewal")


@check("R-5", "R-19", methods=("renew",))
async def a_renewal_tells_of_the_runs_passed(harness: Harness) -> None:
    """Epoch, head, abort, overdue, in any tenant; nothing of Runs that do not exist."""
    async with harness.open() as store:
        worker = await enlisted(store)
        plain = await claimed(store, worker)
        theirs = await claimed(store, worker, tenant="globex")
        aborted = await admission(store)
        edit = HeaderChange(abort="requested", epoch=5)
        await write(store, unit(change(aborted, 1, edit=edit)))
        late = await admission(store, deadline_seconds=10)
        await harness.advance(20)
        answer = await _renew(store, worker, plain, theirs, aborted, late, new_id())
        assert answer is not None
        wanted = {
            plain: (1, 2, False, False),
            theirs: (1, 2, False, False),
            aborted: (5, 2, True, False),
            late: (0, 1, False, True),
        }
        same({run_id: tuple(seen) for run_id, seen in answer.seen.items()}, wanted, "what is seen")


@check("R-5", "R-6", methods=("bury", "renew", "enlist", "workers"))
async def a_dead_worker_never_renews(harness: Harness) -> None:
    """Neither by renewing nor by enlisting again; nor does one that was never enlisted."""
    async with harness.open() as store:
        observer, worker = await enlisted(store), await enlisted(store)
        await harness.advance(60)
        await _renew(store, observer)
        await harness.advance(60)
        await _renew(store, observer)
        same(await store.bury(observer), [], "deaths before one lease of contact")
        await harness.advance(45)
        await _renew(store, observer)
        same(await store.bury(observer), [], "deaths before one lease of contact is over")
        await harness.advance(45)
        await _renew(store, observer)
        await harness.advance(20)
        same(await store.bury(observer), [worker], "deaths after one lease of contact")
        same(await store.bury(observer), [], "deaths a second time")
        same(await _renew(store, worker), None, "the dead worker's renewal")
        await store.enlist(worker, lease_seconds=_LEASE, build="contract", tools=())
        same(await _renew(store, worker), None, "its renewal after it enlisted again")
        same(await _renew(store, new_id("wrk")), None, "the renewal of an unknown worker")
        same(await _alive(store), {observer}, "workers alive")


@check("R-6", methods=("bury", "renew"))
async def nobody_dies_after_the_store_was_away(harness: Harness) -> None:
    """A minute away: whoever comes back first may not declare the others dead, nor himself."""
    async with harness.open() as store:
        workers = [await enlisted(store) for _ in range(3)]
        for _ in range(4):
            await harness.advance(30)
            for worker in workers:
                await _renew(store, worker)
        await harness.advance(300)
        same(await store.bury(workers[0]), [], "deaths by an observer whose lease is over")
        await _renew(store, workers[0])
        same(await store.bury(workers[0]), [], "deaths by an observer who was away")
        same(await store.bury(new_id("wrk")), [], "deaths by nobody")
        for worker in workers:
            same(await _renew(store, worker) is None, False, "a renewal after the store was away")
        same(await _alive(store), set(workers), "workers alive")


@check("R-6", methods=("bury", "renew"))
async def an_observer_who_was_away_for_half_his_lease_buries_nobody(harness: Harness) -> None:
    """Also while his lease runs: the others were away as long, and lapse by that alone."""
    async with harness.open() as store:
        worker, observer = await enlisted(store), await enlisted(store)
        for _ in range(4):
            await harness.advance(30)
            await _renew(store, worker)
            await _renew(store, observer)
        await harness.advance(30)
        await _renew(store, observer)
        await harness.advance(80)
        same(await store.bury(observer), [], "deaths by an observer with a fifth of his lease left")
        await _renew(store, observer)
        same(await store.bury(observer), [], "deaths by an observer who is back")
        same(await _renew(store, worker) is None, False, "a renewal after the store was away")


@check("R-6", methods=("bury", "renew"))
async def a_worker_whose_lease_runs_is_not_buried(harness: Harness) -> None:
    """However long ago it was enlisted, and also at the last moment."""
    async with harness.open() as store:
        observer, worker = await enlisted(store), await enlisted(store)
        for _ in range(5):
            await harness.advance(40)
            await _renew(store, observer)
            await _renew(store, worker)
        for _ in range(2):
            await harness.advance(45)
            await _renew(store, observer)
            same(await store.bury(observer), [], "deaths while its lease runs")
        await harness.advance(20)
        same(await store.bury(observer), [worker], "deaths when its lease is over")


@check("R-5", "R-15", methods=("bury", "arrival"))
async def a_burial_is_an_arrival(harness: Harness) -> None:
    """What the dead held may be claimed; where nobody died, nothing has come."""
    async with harness.open() as store:
        observer, worker = await enlisted(store), await enlisted(store)
        seen = (await store.arrival(-1, 0)).seen
        for _ in range(3):
            same(await store.bury(observer), [], "deaths while both leases run")
            same((await store.arrival(seen, 0)).seen, seen, "the count when nobody died")
            await harness.advance(45)
            await _renew(store, observer)
        same(await store.bury(observer), [worker], "deaths")
        same(
            (await store.arrival(seen, _LONG)).seen != seen,
            True,
            "a count that a burial has changed",
        )


@check("R-5", "RUN-1", methods=("bury", "ready", "held_by"))
async def a_dead_workers_runs_are_claimable(harness: Harness) -> None:
    """Not when its lease is over, but when it was declared dead; its header stays as it was."""
    async with harness.open() as store:
        observer, worker = await enlisted(store), await enlisted(store)
        run_id = await claimed(store, worker)
        before = await store.header(TENANT, run_id)
        for _ in range(3):
            await harness.advance(45)
            await _renew(store, observer)
        same((await store.ready(9)).headers, (), "claimable Runs before the death")
        same(await store.bury(observer), [worker], "deaths")
        same((await store.ready(9)).headers, (before,), "claimable Runs after the death")
        same(await store.held_by(worker), [before], "what the dead worker holds")


@check("R-5", methods=("sweep", "bury", "workers"))
async def a_dead_row_stays_while_a_header_names_it(harness: Harness) -> None:
    """Then it goes; living rows stay."""
    async with harness.open() as store:
        observer, worker, idle = [await enlisted(store) for _ in range(3)]
        run_id = await claimed(store, worker)
        for _ in range(3):
            await harness.advance(45)
            await _renew(store, observer)
        same(await store.bury(observer), sorted((worker, idle)), "deaths")
        await store.sweep()
        # a row that is gone could be enlisted again: only then does the id renew
        for dead, comes_back in ((idle, True), (worker, False)):
            await store.enlist(dead, lease_seconds=_LEASE, build="contract", tools=())
            same(await _renew(store, dead) is not None, comes_back, f"a swept row of {dead}")
        taken = HeaderChange(worker=observer, epoch=2)
        await write(store, unit(change(run_id, 2, fence=1, edit=taken)))
        await store.sweep()
        await store.enlist(worker, lease_seconds=_LEASE, build="contract", tools=())
        same(await _alive(store), {observer, worker, idle}, "workers after the last sweep")


@check("RUN-7", "R-14", methods=("commit", "header"))
async def the_store_computes_deadlines(harness: Harness) -> None:
    """From its own now, at admission and at waking; the writer's clock does not matter."""
    async with harness.open() as store:
        run_id = await admission(store, deadline_seconds=1000)
        without = await admission(store)
        now = await now_of(store)
        row = await store.header(TENANT, run_id)
        near(row.deadline_at, now + timedelta(seconds=1000), "the deadline of an admission")
        same((await store.header(TENANT, without)).deadline_at, None, "no deadline")
        await harness.advance(300)
        edit = HeaderChange(wake_at=After(30), deadline_at=After(60))
        await write(store, unit(change(run_id, 1, edit=edit)))
        now = await now_of(store)
        row = await store.header(TENANT, run_id)
        near(row.wake_at, now + timedelta(seconds=30), "a wake_at after 30 s")
        near(row.deadline_at, now + timedelta(seconds=60), "a deadline after 60 s")
        exact = row.created_at + timedelta(microseconds=123_457)
        await write(store, unit(change(run_id, 2, edit=HeaderChange(wake_at=exact))))
        same((await store.header(TENANT, run_id)).wake_at, exact, "a wake_at as given")


@check("RUN-7", "R-14", methods=("commit", "header"))
async def a_suspended_run_keeps_what_remained(harness: Harness) -> None:
    """`Remaining` is deadline less now, at least 0; waking gives it back."""
    async with harness.open() as store:
        one = await admission(store, deadline_seconds=1000)
        two = await admission(store, deadline_seconds=10)
        none = await admission(store)
        await harness.advance(300)
        edit = HeaderChange(state="suspended", deadline_at=None, remaining_seconds=REMAINING)
        await write(store, *[unit(change(run_id, 1, edit=edit)) for run_id in (one, two, none)])
        row = await store.header(TENANT, one)
        same(row.deadline_at, None, "the deadline of a suspended Run")
        left = row.remaining_seconds or 0.0
        same(690 < left <= 700, True, f"{left} s remaining of 1000 after 300")
        same((await store.header(TENANT, two)).remaining_seconds, 0.0, "remaining of a late Run")
        found = (await store.header(TENANT, none)).remaining_seconds
        same(found, None, "remaining without a deadline")
        await harness.advance(5000)
        same(await store.overdue(9), [], "overdue while suspended")
        edit = HeaderChange(state="ready", deadline_at=After(left), remaining_seconds=None)
        await write(store, unit(change(one, 2, edit=edit)))
        row = await store.header(TENANT, one)
        same(row.remaining_seconds, None, "remaining after waking")
        wanted = await now_of(store) + timedelta(seconds=700)
        near(row.deadline_at, wanted, "the deadline after waking")
