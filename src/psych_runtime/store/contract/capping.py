"""Caps: how many Runs of a tenant are running at once, counted in the units themselves (R-15)."""

import asyncio
from collections.abc import Sequence
from typing import Final

from psych_runtime.ports.answers import (
    Answer,
    CapReached,
    Committed,
    LeaseLost,
    SeqConflict,
    ThreadTaken,
)
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import UNCAPPED, After, Exclude, HeaderChange, Store, Unit
from psych_runtime.store.contract._build import (
    TENANT,
    admission,
    admit,
    change,
    claim,
    claimed,
    enlisted,
    key_row,
    new_id,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness
from psych_schema.store import RunRow

__all__ = [
    "a_cap_counts_from_when_it_is_set",
    "a_cap_is_never_exceeded_by_racing_workers",
    "a_full_cap_refuses_a_unit_and_writes_nothing",
    "a_lifted_cap_goes_on_counting",
    "a_takeover_takes_no_room",
    "ready_gives_as_many_as_there_is_room_for",
]

_WORKERS: Final = 4
_RUNS: Final = 50
_CAP: Final = 2
_TRIES: Final = 2000
_OTHER: Final = "globex"
_SETTLED: Final = HeaderChange(state="settled", worker=None)


async def _taking(store: Store, run_id: str, worker: str = "wrk_1") -> Unit:
    """Return the unit by which a worker takes a Run as it is now."""
    return claim(await store.header(TENANT, run_id), worker)


async def _take(store: Store, run_id: str) -> Answer:
    [answer] = await store.commit([await _taking(store, run_id)])
    return answer


async def _leave(store: Store, run_id: str, edit: HeaderChange = _SETTLED) -> None:
    """Let a Run be running no more."""
    head = (await store.header(TENANT, run_id)).head
    count = 0 if edit.state == "corrupt" else 1
    await write(store, unit(change(run_id, head, edit=edit, count=count)))


async def _same_cap(store: Store, running: int, limit: int, when: str) -> None:
    row = await store.cap(TENANT)
    found = None if row is None else (row.tenant, row.running, row.limit)
    same(found, (TENANT, running, limit), f"the cap {when}")


class _Race:
    """Workers that claim and settle a tenant's Runs until there are none left."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.most = 0
        self.done = 0

    async def work(self, store: Store, worker: str) -> None:
        """Claim what is offered, hold it for a moment and settle it."""
        for _ in range(_TRIES):
            if self.done == _RUNS:
                return
            rows = (await store.ready(2 * _CAP)).headers
            same(len(rows) <= _CAP, True, "claimable Runs within the cap")
            taken = await self._claim(store, worker, rows)
            await asyncio.sleep(0)
            for row in taken:
                self.running.remove(row.run_id)
                ends = change(row.run_id, row.head + 1, fence=row.epoch + 1, edit=_SETTLED)
                await write(store, unit(ends))
                self.done += 1
            await asyncio.sleep(0)
        raise AssertionError(f"{self.done} of {_RUNS} Runs settled in {_TRIES} tries")

    async def _claim(self, store: Store, worker: str, rows: Sequence[RunRow]) -> list[RunRow]:
        """Return what a worker has claimed; it is running from now on."""
        answers = await store.commit([claim(row, worker) for row in rows])
        taken: list[RunRow] = []
        for row, answer in zip(rows, answers, strict=True):
            lost = CapReached(TENANT), LeaseLost(row.run_id), SeqConflict(row.run_id)
            same(answer == Committed() or answer in lost, True, f"{answer} to a claim")
            if answer == Committed():
                taken.append(row)
        self.running |= {row.run_id for row in taken}
        self.most = max(self.most, len(self.running))
        return taken


@check("R-15", "R-1", methods=("set_cap", "cap", "ready", "commit", "twin"))
async def a_cap_is_never_exceeded_by_racing_workers(harness: Harness) -> None:
    """Four workers, fifty Runs, a cap of two: never three at once, and all of them settle."""
    async with harness.open() as store:
        await store.set_cap(TENANT, _CAP)
        run_ids = [await admission(store) for _ in range(_RUNS)]
        workers = [await enlisted(store) for _ in range(_WORKERS)]
        twins = [store.twin() for _ in workers]
        race = _Race()
        pairs = zip(twins, workers, strict=True)
        await asyncio.gather(*[race.work(twin, worker) for twin, worker in pairs])
        for twin in twins:
            await twin.close()
        same(race.most <= _CAP, True, f"at most {_CAP} Runs running at once, not {race.most}")
        same(race.done, _RUNS, "Runs that settled")
        rows = [await store.header(TENANT, run_id) for run_id in run_ids]
        same({(row.state, row.capped) for row in rows}, {("settled", False)}, "their headers")
        await _same_cap(store, 0, _CAP, "when all have settled")


@check("R-15", "R-1", methods=("set_cap", "cap", "commit", "header", "read", "key"))
async def a_full_cap_refuses_a_unit_and_writes_nothing(harness: Harness) -> None:
    """Whatever else is in it, of one tenant only, and after every other reason to refuse it."""
    async with harness.open() as store:
        await store.set_cap(TENANT, 2)
        one, two, three = [await admission(store) for _ in range(3)]
        both = unit(*(await _taking(store, one)).changes, *(await _taking(store, two)).changes)
        same(await store.commit([both]), [Committed()], "a unit that there is room for")
        await _same_cap(store, 2, 2, "when it is full")
        same((await store.header(TENANT, one)).capped, True, "capped in a header that is counted")
        before = await store.header(TENANT, three)
        refused = (await _taking(store, three))._replace(keys=(key_row("k"),))
        same(await store.commit([refused]), [CapReached(TENANT)], "the answer to one more")
        same(await store.header(TENANT, three), before, "the header after it")
        same(len(await store.read(TENANT, three)), 1, "the log after it")
        same(await store.key(TENANT, "", "k"), None, "the key of the unit")
        place = {"thread": before.thread, "position": before.position}
        mixed = unit(*refused.changes, admit(columns=place))
        taken = ThreadTaken(before.thread, before.position)
        same(await store.commit([mixed]), [taken], "a unit with another reason, too")
        await claimed(store, "wrk_1", tenant=_OTHER)
        same(await store.cap(_OTHER), None, "the cap of another tenant")
        await write(store, unit(change(three, 1), admit()), unit(change(one, 2, fence=1)))
        await _leave(store, one)
        four = await admission(store)
        pair = unit(*(await _taking(store, three)).changes, *(await _taking(store, four)).changes)
        same(await store.commit([pair]), [CapReached(TENANT)], "two at once with room for one")
        same((await store.header(TENANT, three)).state, "ready", "the first of the two")
        units = [await _taking(store, three), await _taking(store, four)]
        wanted = [Committed(), CapReached(TENANT)]
        same(await store.commit(units), wanted, "two units of one call with room for one")
        await _same_cap(store, 2, 2, "when it is full again")


@check("R-15", "R-5", methods=("set_cap", "cap", "commit", "ready", "header"))
async def a_takeover_takes_no_room(harness: Harness) -> None:
    """A Run of a dead worker has its room already: it is offered and taken when there is none."""
    async with harness.open() as store:
        await store.set_cap(TENANT, 1)
        run_id = await claimed(store, new_id("wrk"))
        await admission(store)
        worker = await enlisted(store)
        found = await store.ready(9)
        same([row.run_id for row in found.headers], [run_id], "claimable Runs of a full cap")
        same(await _take(store, run_id), Committed(), "the answer to a takeover")
        await _same_cap(store, 1, 1, "after a takeover")
        same((await store.header(TENANT, run_id)).capped, True, "capped after a takeover")
        retaken = HeaderChange(state="running", worker=worker, epoch=3)
        await write(store, unit(change(run_id, 3, fence=2, edit=retaken)))
        await _same_cap(store, 1, 1, "after another one")
        await _leave(store, run_id)
        await _same_cap(store, 0, 1, "when it has settled")


@check("R-15", methods=("set_cap", "cap", "commit"))
async def a_cap_counts_from_when_it_is_set(harness: Harness) -> None:
    """What was running before is neither counted nor stopped, nor does its end make room."""
    async with harness.open() as store:
        same(await store.cap(TENANT), None, "a cap that nobody has set")
        old, one, two = (
            await claimed(store, "wrk_1"),
            await admission(store),
            await admission(store),
        )
        await store.set_cap(TENANT, 1)
        await _same_cap(store, 0, 1, "when it is set")
        same(await _take(store, one), Committed(), "the answer to the first claim")
        same(await _take(store, two), CapReached(TENANT), "the answer to the second one")
        await write(store, unit(change(old, 2, fence=1)))
        await _leave(store, old)
        await _same_cap(store, 1, 1, "when what was not counted has settled")
        same(await _take(store, two), CapReached(TENANT), "the answer to a third claim")
        await _leave(store, one)
        same(await _take(store, two), Committed(), "the answer when there is room")
        await store.set_cap(TENANT, 0)
        await _leave(store, two)
        same(await _take(store, await admission(store)), CapReached(TENANT), "a cap of none")
        await _same_cap(store, 0, 0, "of none")


@check("R-15", methods=("set_cap", "cap", "commit"))
async def a_lifted_cap_goes_on_counting(harness: Harness) -> None:
    """So that the next one is exact, whichever way a Run stops running."""
    async with harness.open() as store:
        await store.set_cap(TENANT, None)
        same(await store.cap(TENANT), None, "a cap that was lifted before it was set")
        run_ids = [await admission(store) for _ in range(5)]
        await store.set_cap(TENANT, 1)
        same(await _take(store, run_ids[0]), Committed(), "the answer to a claim")
        await store.set_cap(TENANT, None)
        await _same_cap(store, 1, UNCAPPED, "that was lifted")
        for run_id in run_ids[1:4]:
            same(await _take(store, run_id), Committed(), "the answer without a bound")
        await store.set_cap(TENANT, 2)
        await _same_cap(store, 4, 2, "that is lower than what is running")
        same(await _take(store, run_ids[4]), CapReached(TENANT), "the answer with a bound again")
        ways = (
            HeaderChange(state="ready", worker=None, wake_at=After(50)),
            HeaderChange(state="suspended", worker=None),
            HeaderChange(state="corrupt"),
        )
        for left, (run_id, way) in enumerate(zip(run_ids, ways, strict=False)):
            await _leave(store, run_id, way)
            await _same_cap(store, 3 - left, 2, f"when a Run is {way.state}")
            same((await store.header(TENANT, run_id)).capped, False, f"capped when {way.state}")
        same(await _take(store, run_ids[4]), Committed(), "the answer when there is room")
        await _same_cap(store, 2, 2, "at the end")


@check("R-15", methods=("set_cap", "ready", "commit"))
async def ready_gives_as_many_as_there_is_room_for(harness: Harness) -> None:
    """The first ones, of those that a worker can use; other tenants' as ever."""
    async with harness.open() as store:
        worker = await enlisted(store)
        low, high, middle = [
            await admission(store, columns={"priority": each}) for each in (0, 9, 5)
        ]
        parked = await admission(store)
        due = HeaderChange(state="suspended", wake_at=After(-1))
        await write(store, unit(change(parked, 1, edit=due)))
        theirs = {await admission(store, tenant=_OTHER) for _ in range(3)}
        await store.set_cap(TENANT, 2)

        async def ready(exclude: Exclude = Exclude()) -> list[str]:
            found = (await store.ready(50, exclude=exclude)).headers
            others = {row.run_id for row in found if row.tenant == _OTHER}
            same(others, theirs, "claimable Runs of a tenant without a cap")
            return [row.run_id for row in found if row.tenant == TENANT]

        same(await ready(), [high, middle], "claimable Runs with room for two")
        without = Exclude(run_ids=(high, middle))
        same(set(await ready(without)), {low, parked}, "claimable Runs besides those in hand")
        await write(store, claim(await store.header(TENANT, high), worker))
        same(await ready(), [middle], "claimable Runs with room for one")
        await write(store, claim(await store.header(TENANT, middle), worker))
        same(await ready(), [], "claimable Runs without room")
        await store.set_cap(TENANT, None)
        same(set(await ready()), {low, parked}, "claimable Runs when the cap is lifted")
