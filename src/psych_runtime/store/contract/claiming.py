"""Which Runs are claimable, in which order, and which must be settled (R-15, engine.md)."""

import asyncio
from datetime import timedelta
from typing import Final

from psych_runtime.ports.answers import Committed
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import After, Exclude, Found, HeaderChange, Store
from psych_runtime.store.contract._build import (
    START,
    TENANT,
    admission,
    admit,
    change,
    claim,
    claimed,
    enlisted,
    new_id,
    now_of,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness

__all__ = [
    "a_claimed_run_is_no_longer_claimable",
    "a_tenants_runs_come_by_priority_then_time",
    "held_by_gives_the_running_runs_of_a_worker",
    "overdue_are_aborted_and_late_runs_that_nobody_holds",
    "racing_workers_claim_everything_in_three_rounds",
    "tenants_take_turns_behind_the_cursor",
    "what_a_worker_cannot_run_is_left_out",
    "what_is_claimable_is_found_and_nothing_else",
]

_WORKERS: Final = 5
_SLOTS: Final = 6
_ROUNDS: Final = 3


async def _ready(store: Store, exclude: Exclude = Exclude(), *, limit: int = 50) -> set[str]:
    found = await store.ready(limit, exclude=exclude)
    return {row.run_id for row in found.headers}


async def _edited(store: Store, edit: HeaderChange) -> str:
    run_id = await admission(store)
    await write(store, unit(change(run_id, 1, edit=edit)))
    return run_id


@check("R-15", methods=("ready", "commit", "enlist"))
async def what_is_claimable_is_found_and_nothing_else(harness: Harness) -> None:
    """Ready and suspended ones when due, running ones whose worker has no row; no settled one."""
    async with harness.open() as store:
        worker = await enlisted(store)
        fresh = await admission(store)
        parked = await _edited(store, HeaderChange(wake_at=After(50)))
        asleep = await _edited(store, HeaderChange(state="suspended", wake_at=After(50)))
        await _edited(store, HeaderChange(state="suspended"))
        await _edited(store, HeaderChange(state="settled"))
        await _edited(store, HeaderChange(state="settled", wake_at=After(-50)))
        await _edited(store, HeaderChange(state="corrupt"))
        await claimed(store, worker)
        orphan = await claimed(store, new_id("wrk"))
        due = await _edited(store, HeaderChange(state="suspended", wake_at=After(-1)))
        same(await _ready(store), {fresh, orphan, due}, "claimable Runs")
        await harness.advance(60)
        wanted = {fresh, orphan, due, parked, asleep}
        same(await _ready(store), wanted, "claimable Runs after a minute")


@check("R-15", methods=("ready", "commit"))
async def a_claimed_run_is_no_longer_claimable(harness: Harness) -> None:
    """Nor is one that was parked for later, until it is ready again."""
    async with harness.open() as store:
        worker = await enlisted(store)
        run_id = await admission(store)
        await write(store, claim(await store.header(TENANT, run_id), worker))
        same(await _ready(store), set(), "claimable Runs after a claim")
        back = HeaderChange(state="ready", worker=None)
        await write(store, unit(change(run_id, 2, fence=1, edit=back)))
        same(await _ready(store), {run_id}, "claimable Runs after it was handed over")
        parked = HeaderChange(wake_at=After(50))
        await write(store, unit(change(run_id, 3, edit=parked)))
        same(await _ready(store), set(), "claimable Runs after a park")
        await write(store, unit(change(run_id, 4, edit=HeaderChange(wake_at=None))))
        same(await _ready(store), {run_id}, "claimable Runs after it was woken")


@check("R-15", methods=("ready",))
async def a_tenants_runs_come_by_priority_then_time(harness: Harness) -> None:
    """Higher first, then wake_at, a Run without one by created_at; orphans among them."""
    async with harness.open() as store:
        now = await now_of(store)
        ages = {"one": 500, "two": 400, "three": 300, "four": 200, "five": 100}
        when = {name: now - timedelta(seconds=age) for name, age in ages.items()}
        names: dict[str, str] = {}

        async def put(name: str, **columns: object) -> None:
            names[await admission(store, columns=columns)] = name

        await put("five", created_at=when["five"])
        await put("three", created_at=START, wake_at=when["three"])
        await put("one", created_at=when["one"])
        await put("high", created_at=now, priority=9)
        await put("four", created_at=START, wake_at=when["four"], state="suspended")
        await put("two", created_at=when["two"], state="running", worker=new_id("wrk"))
        await put("middle", created_at=now, priority=5, wake_at=when["four"])
        wanted = ["high", "middle", "one", "two", "three", "four", "five"]
        for limit in (50, 7, 4, 3, 1):
            found = await store.ready(limit)
            order = [names[row.run_id] for row in found.headers]
            same(order, wanted[:limit], f"the first {limit} claimable Runs")


@check("R-15", methods=("ready",))
async def tenants_take_turns_behind_the_cursor(harness: Harness) -> None:
    """A tenant with many Runs does not starve the others; the cursor wraps around."""
    async with harness.open() as store:
        for tenant, count in (("b", 30), ("a", 2), ("d", 2), ("c", 1)):
            for _ in range(count):
                await admission(store, tenant=tenant)

        async def turn(limit: int, after: str) -> list[str]:
            return [row.tenant for row in (await store.ready(limit, after_tenant=after)).headers]

        for after, wanted in (
            ("", ["a", "b", "c", "d"]),
            ("a", ["b", "c", "d", "a"]),
            ("b", ["c", "d", "a", "b"]),
            ("bb", ["c", "d", "a", "b"]),
            ("d", ["a", "b", "c", "d"]),
            ("z", ["a", "b", "c", "d"]),
        ):
            found = await turn(8, after)
            same(list(dict.fromkeys(found)), wanted, f"tenants after {after!r}")
            same(len(found), 8, f"Runs after {after!r}")
            for tenant, least in (("a", 2), ("b", 2), ("c", 1), ("d", 2)):
                same(found.count(tenant) >= least, True, f"a share for {tenant} after {after!r}")
            same(await turn(2, after), wanted[:2], f"the first two after {after!r}")
        same(len(await turn(50, "")), 35, "all of them")


@check("R-15", "R-16", methods=("ready",))
async def what_a_worker_cannot_run_is_left_out(harness: Harness) -> None:
    """Runs in hand, Versions it cannot run, newer schemas; they do not use up the limit."""
    async with harness.open() as store:
        await claimed(store, new_id("wrk"))
        (orphan,) = await _ready(store)
        mine = [await admission(store) for _ in range(3)]
        strange = await admission(store, columns={"version": "e" * 64})
        newer = await admission(store, columns={"schema_version": 7})
        usable = await admission(
            store, columns={"schema_version": 6, "created_at": await now_of(store)}
        )
        everything = {orphan, *mine, strange, newer, usable}
        same(await _ready(store), everything, "claimable Runs")
        same(
            await _ready(store, Exclude(run_ids=(*mine, orphan))),
            {strange, newer, usable},
            "Runs not in hand",
        )
        same(
            await _ready(store, Exclude(versions=("e" * 64,))),
            everything - {strange},
            "Versions that can run",
        )
        found = await _ready(store, Exclude(schema_version_above=6))
        same(found, everything - {newer}, "Runs of no newer schema")
        exclude = Exclude((*mine, orphan), ("e" * 64, "d" * 64), 6)
        same(await _ready(store, exclude, limit=1), {usable}, "the one Run that can be run")


@check("R-15", "ADM-3", methods=("ready", "commit", "twin"))
async def racing_workers_claim_everything_in_three_rounds(harness: Harness) -> None:
    """Each Run is claimed once, by workers that start at different tenants.

    All look before one claims, so that in each round every Run that is offered is offered to two:
    whoever wins, each tenant's first one is taken. Workers that look at the same Runs need more.
    """
    async with harness.open() as store:
        tenants = [f"tenant {place:02}" for place in range(_WORKERS * _SLOTS // 2)]
        made = {tenant: [admit(tenant=tenant) for _ in range(_ROUNDS)] for tenant in tenants}
        await write(store, *[unit(each, tenant=name) for name, all in made.items() for each in all])
        workers = [await enlisted(store) for _ in range(_WORKERS)]
        twins = [store.twin() for _ in workers]
        claimed: list[str] = []

        async def looks(place: int) -> Found:
            return await twins[place].ready(_SLOTS, after_tenant=tenants[place * _SLOTS // 2])

        async def claims(place: int, found: Found) -> None:
            sent = [claim(row, workers[place]) for row in found.headers]
            answers = await twins[place].commit(sent)
            for row, answer in zip(found.headers, answers, strict=True):
                if answer == Committed():
                    claimed.append(row.run_id)

        for _ in range(_ROUNDS):
            seen = await asyncio.gather(*map(looks, range(_WORKERS)))
            await asyncio.gather(*map(claims, range(_WORKERS), seen))
        for twin in twins:
            await twin.close()
        wanted = sorted(each.run_id for all in made.values() for each in all)
        same(sorted(claimed), wanted, f"Runs claimed in {_ROUNDS} rounds")
        same((await store.ready(len(wanted))).headers, (), "claimable Runs after that")


@check("RUN-7", "R-19", methods=("overdue", "commit"))
async def overdue_are_aborted_and_late_runs_that_nobody_holds(harness: Harness) -> None:
    """A live holder settles its own; what has ended is left alone."""
    async with harness.open() as store:
        worker, gone = await enlisted(store), new_id("wrk")
        late = await admission(store, deadline_seconds=50)
        await admission(store, deadline_seconds=500)
        await admission(store)
        aborted = await _edited(store, HeaderChange(state="suspended", abort="requested"))
        await _edited(store, HeaderChange(state="settled", abort="forced"))
        await _edited(store, HeaderChange(state="corrupt", abort="forced"))
        held, orphan = await claimed(store, worker), await claimed(store, gone)
        await write(store, unit(change(held, 2, edit=HeaderChange(abort="forced"))))
        await write(store, unit(change(orphan, 2, edit=HeaderChange(abort="forced"))))
        ended = await admission(store, deadline_seconds=50)
        await write(store, unit(change(ended, 1, edit=HeaderChange(state="settled"))))

        async def overdue(limit: int) -> set[str]:
            return {row.run_id for row in await store.overdue(limit)}

        same(await overdue(50), {aborted, orphan}, "overdue Runs")
        await harness.advance(60)
        same(await overdue(50), {aborted, orphan, late}, "overdue Runs after a minute")
        same(len(await overdue(2)), 2, "overdue Runs up to a limit")


@check("R-5", methods=("held_by", "commit"))
async def held_by_gives_the_running_runs_of_a_worker(harness: Harness) -> None:
    """In all tenants; not what it let go, settled or lost to another."""
    async with harness.open() as store:
        worker, other = await enlisted(store), await enlisted(store)
        mine = await claimed(store, worker)
        theirs = await claimed(store, worker, tenant="globex")
        await claimed(store, other)
        lost, settled, drained = [await claimed(store, worker) for _ in range(3)]
        taken = HeaderChange(worker=other, epoch=2)
        await write(store, unit(change(lost, 2, fence=1, edit=taken)))
        await write(store, unit(change(settled, 2, fence=1, edit=HeaderChange(state="settled"))))
        handed = HeaderChange(state="ready", worker=None)
        await write(store, unit(change(drained, 2, fence=1, edit=handed)))
        found = await store.held_by(worker)
        same({row.run_id for row in found}, {mine, theirs}, "Runs that a worker holds")
        wanted = [await store.header(row.tenant, row.run_id) for row in found]
        same(found, wanted, "their headers")
        same(await store.held_by(new_id("wrk")), [], "Runs of nobody")
