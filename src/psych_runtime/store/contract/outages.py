"""A store that is away or hangs: what goes on, who dies, what readers see (R-6, R-8)."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Final

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import Renewed, Store
from psych_runtime.store.contract._build import (
    TENANT,
    admission,
    change,
    claimed,
    enlisted,
    unit,
    write,
)
from psych_runtime.store.contract._check import Harness
from psych_runtime.store.contract._faults import (
    CALLS,
    Chance,
    Known,
    Steered,
    behind,
    in_doubt,
    same_struck,
)
from psych_runtime.store.faults import FaultyStore

__all__ = [
    "a_lost_hint_costs_latency_only",
    "a_store_that_was_away_has_nothing_half_written",
    "calls_that_hang_land_together",
    "every_call_may_be_asked_again",
    "nobody_who_renews_dies_of_an_outage",
    "readers_behind_faults_see_each_record_once",
]

_LEASE: Final = 100.0
_WORKERS: Final = 20
_RECORDS: Final = 40
_READERS: Final = 3
_TRIES: Final = 1000
_SHORT: Final = 0.005
_LONG: Final = 30.0


async def _known(store: Store) -> Known:
    worker = await enlisted(store, lease_seconds=_LEASE)
    return Known(await claimed(store, worker), worker)


async def _works(answer: Awaitable[object], what: str) -> None:
    """Raise AssertionError when the call raises anything."""
    try:
        await answer
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error


async def _is_done(store: Store, known: Known, beats: int) -> None:
    """Raise AssertionError unless every call of CALLS has been done, and the write once."""
    row = await store.header(TENANT, known.run_id)
    same((row.state, row.worker, row.head), ("running", known.worker, 3), "the header after it")
    same(len(await store.read(TENANT, known.run_id)), 3, "records after it")
    same(await store.version(TENANT, "a" * 64), "{}", "a version that was put")
    same(await store.document(TENANT, "d" * 64), "{}", "a document that was put")
    cap = await store.cap("globex")
    same(cap and (cap.running, cap.limit), (0, 7), "a cap that was set")
    values = {row.value for row in await store.list_values(TENANT, "contract")}
    same(values, {known.worker}, "values that were put")
    (worker,) = await store.workers()
    same(worker.id, known.worker, "the worker that is alive")
    same(worker.beat >= beats, True, f"{worker.beat} beats, at least {beats}")


@check("R-8", "ST-2", methods=tuple(CALLS))
async def a_store_that_was_away_has_nothing_half_written(harness: Harness) -> None:
    """Each method raises StoreUnavailable, nothing has happened, and then each works."""
    async with harness.open() as store:
        known = await _known(store)
        faults = Steered({})
        faulty = FaultyStore(store, faults)
        before = await store.header(TENANT, known.run_id), await store.workers()
        faults.go_away(_LONG)
        for name, call in CALLS.items():
            await in_doubt(call(faulty, known), f"{name} of a store that is away")
        same_struck(faults, away=len(CALLS))
        after = await store.header(TENANT, known.run_id), await store.workers()
        same(after, before, "the header and the workers after an outage")
        same(await store.version(TENANT, "a" * 64), None, "a version that was put in an outage")
        same(await store.cap("globex"), None, "a cap that was set in an outage")
        same(await store.list_values(TENANT, "contract"), [], "values put in an outage")
        faults.go_away(0.0)
        for name, call in CALLS.items():
            await _works(call(faulty, known), f"{name} of a store that is back")
        await _is_done(store, known, 1)
        same_struck(faults, away=len(CALLS))


@check("R-8", "R-20", methods=tuple(CALLS))
async def calls_that_hang_land_together(harness: Harness) -> None:
    """Twice each method at one moment, when the store is back: each is answered, no write twice."""
    async with harness.open() as store:
        known = await _known(store)
        faults = Steered({})
        faulty = FaultyStore(store, faults)
        faults.hang()
        calls = [call(faulty, known) for call in (*CALLS.values(), *CALLS.values())]
        gathered = asyncio.gather(*calls, return_exceptions=True)
        await faults.met(len(calls))
        faults.go_on()
        answers = await gathered
        broken = [answer for answer in answers if isinstance(answer, BaseException)]
        same(broken, [], "what calls that hung have raised")
        same_struck(faults, stalled=2 * len(CALLS))
        same(answers.count([Committed()]), 1, "commits of one place that landed together")
        await _is_done(store, known, 2)


@check("R-20", methods=tuple(CALLS))
async def every_call_may_be_asked_again(harness: Harness) -> None:
    """An answer that is lost costs nothing: the same call again gives what the first one did."""
    async with harness.open() as store:
        known = await _known(store)
        lossy, faults = behind(store, "unanswered")
        for name, call in CALLS.items():
            await in_doubt(call(lossy, known), f"{name}, unanswered")
            await _works(call(store, known), f"{name}, asked again")
        same_struck(faults, unanswered=len(CALLS))
        await _is_done(store, known, 2)


async def _renew(store: Store, worker: str) -> Renewed | None:
    """Renew until there is an answer, as the next beats do; each may bring a death to light."""
    for _ in range(100):
        try:
            return await store.renew(worker, lease_seconds=_LEASE, run_ids=())
        except StoreUnavailable:
            continue
    raise AssertionError("no renewal was answered")


async def _bury(store: Store, worker: str) -> list[str]:
    try:
        return await store.bury(worker)
    except StoreUnavailable:
        return []


class _Fleet:
    """Workers that beat and watch one another through one faulty store."""

    def __init__(self, store: Store, faults: Steered, workers: Sequence[str]) -> None:
        self.faults = faults
        self._handles = {worker: FaultyStore(store, faults) for worker in workers}
        self.lost: list[str] = []

    async def _beat(self, worker: str) -> None:
        handle = self._handles[worker]
        if await _renew(handle, worker) is None:
            self.lost.append(worker)
        await _bury(handle, worker)

    async def beat(self) -> None:
        """Let each of them renew and judge, all at one moment."""
        await asyncio.gather(*[self._beat(worker) for worker in self._handles])

    async def try_to_judge(self) -> None:
        """Let each of them judge a store that is away."""
        for worker, handle in self._handles.items():
            await in_doubt(handle.bury(worker), "deaths of a store that is away")


async def _outage(harness: Harness, fleet: _Fleet, *, hangs: bool) -> None:
    """Let more than two leases pass while the store refuses calls, or while they hang."""
    faults = fleet.faults
    if hangs:
        faults.hang()
        beating = asyncio.create_task(fleet.beat())
        await faults.met(_WORKERS)
        await harness.advance(2.5 * _LEASE)
        faults.go_on()
        await beating
    else:
        faults.go_away(_LONG)
        await fleet.try_to_judge()
        await harness.advance(2.5 * _LEASE)
        faults.go_away(0.0)


@check("ST-9", "R-6", "R-5", methods=("renew", "bury", "workers", "ready", "enlist"))
async def nobody_who_renews_dies_of_an_outage(harness: Harness) -> None:
    """Twenty workers, a store away for two leases, then one that hangs; the silent one dies."""
    async with harness.open() as store:
        workers = [await enlisted(store, lease_seconds=_LEASE) for _ in range(_WORKERS)]
        for worker in workers:
            await claimed(store, worker)
        faults = Steered({"lost": 0.2, "unanswered": 0.2, "delayed": 0.1})
        fleet = _Fleet(store, faults, workers)
        silent = await enlisted(store, lease_seconds=_LEASE)
        orphan = await claimed(store, silent)
        for _ in range(4):
            await harness.advance(20)
            await fleet.beat()
        for hangs in (False, True):
            await _outage(harness, fleet, hangs=hangs)
            await fleet.beat()
            same({row.id for row in await store.workers()}, {*workers, silent}, "workers alive")
        for _ in range(6):
            await harness.advance(20)
            await fleet.beat()
        same(fleet.lost, [], "workers who renewed and were taken for dead")
        same({row.id for row in await store.workers()}, set(workers), "workers alive in the end")
        found = [row.run_id for row in (await store.ready(_WORKERS + 1)).headers]
        same(found, [orphan], "claimable Runs: the silent worker's alone")
        wanted = {"lost", "unanswered", "delayed", "away", "stalled"}
        same(faults.struck.keys(), wanted, "faults that struck")


async def _page(store: Store, run_id: str, after: int) -> list[int]:
    """Wait for news, whether or not the hint comes, then read a page; nothing when it is lost."""
    with suppress(StoreUnavailable):
        await store.wait(TENANT, {run_id: after}, _SHORT)
    try:
        rows = await store.read(TENANT, run_id, after=after, limit=3)
    except StoreUnavailable:
        return []
    return [row.seq for row in rows]


async def _follow(store: Store, run_id: str, after: int) -> list[int]:
    seqs: list[int] = []
    for _ in range(_TRIES):
        last = seqs[-1] if seqs else after
        if last >= _RECORDS:
            break
        seqs += await _page(store, run_id, last)
    return seqs


@check("STR-1", "R-1", methods=("read", "wait", "commit", "twin"))
async def readers_behind_faults_see_each_record_once(harness: Harness) -> None:
    """By pages, in order, from wherever they begin, while the log grows and answers are lost."""
    async with harness.open() as store:
        run_id = await admission(store)
        faults = Steered({"lost": 0.2, "unanswered": 0.2, "delayed": 0.1})
        handles = [FaultyStore(store.twin(), faults) for _ in range(_READERS)]
        reading = [
            asyncio.create_task(_follow(handle, run_id, 10 * place))
            for place, handle in enumerate(handles)
        ]
        chance = Chance(7)
        head = 1
        while head < _RECORDS:
            count = min(1 + int(5 * chance.random()), _RECORDS - head)
            await write(store, unit(change(run_id, head, count=count)))
            head += count
            await asyncio.sleep(0)
        for place, seqs in enumerate(await asyncio.gather(*reading)):
            same(seqs, list(range(10 * place + 1, _RECORDS + 1)), f"what reader {place} has seen")
        for handle in handles:
            await handle.close()
        same(faults.struck.keys(), {"lost", "unanswered", "delayed"}, "faults that struck")


@check("STR-1", methods=("wait", "commit"))
async def a_lost_hint_costs_latency_only(harness: Harness) -> None:
    """Whoever did not hear that a Run moved is told when he asks again, at once."""
    async with harness.open() as store:
        lossy, faults = behind(store, "unanswered")
        run_id = await admission(store)
        for head in range(1, 4):
            waiting = asyncio.create_task(lossy.wait(TENANT, {run_id: head}, _LONG))
            await asyncio.sleep(_SHORT)
            await write(store, unit(change(run_id, head)))
            await in_doubt(waiting, "a hint that is lost")
            found = await store.wait(TENANT, {run_id: head}, _LONG)
            same(found, frozenset({run_id}), f"a Run that moved past {head}, asked again")
        same_struck(faults, unanswered=3)
