"""The server is away for longer than a lease, and comes back (ST-9, R-6)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from psych_runtime.api import Dispatched, Version, dispatch, publish
from psych_runtime.ports.store import Exclude, Store
from psych_runtime.runtime.commit import ask_surely
from psych_runtime.store.open import open_store
from psych_schema.common import Scope
from psych_schema.store import WorkerRow
from tests.chaos.evidence import (
    Admission,
    Evidence,
    read_effects,
    read_logs,
    read_pauses,
    read_workers,
)
from tests.chaos.judge import judge
from tests.chaos.nursery import Job
from tests.chaos.places import ServerPlace, place
from tests.chaos.storm import eventually
from tests.chaos.work import Order, shop
from tests.processes.nursery import Nursery

SCOPE = Scope(tenant="acme")
LEASE_SECONDS = 6.0  # a shorter one is sometimes missed where many tests share two processors
OUTAGE_SECONDS = 8.0
PROCESSES, WORKERS_EACH = 4, 5
WORKERS = PROCESSES * WORKERS_EACH
BOUND_SECONDS = 40.0


@dataclass
class Crowd:
    """20 workers, each in the middle of a call that is held."""

    folder: Path
    here: ServerPlace
    store: Store
    nursery: Nursery[Job]
    admissions: list[Admission] = field(default_factory=list)

    async def begin(self) -> None:
        """Start the workers, admit a Run for each, and wait until all may judge deaths (R-6)."""
        (self.folder / "hold").touch()
        url, prefix = self.here.url, self.here.prefix
        job = Job(str(self.folder), url, prefix, LEASE_SECONDS, 1, workers=WORKERS_EACH)
        for _ in range(PROCESSES):
            self.nursery.start(job)
        version = await ask_surely(lambda: publish(self.store, shop(), scope=SCOPE))
        for number in range(WORKERS):
            order = Order(number, 1, held=True)
            made = await ask_surely(partial(self._dispatch, order, version))
            self.admissions.append(Admission(order, SCOPE.tenant, (made.run_id,)))
        assert await eventually(self._all_charged, BOUND_SECONDS)
        assert await eventually(lambda: self.in_contact(WORKERS), BOUND_SECONDS)

    async def _dispatch(self, order: Order, version: Version) -> Dispatched:
        return await dispatch(
            self.store,
            version,
            scope=SCOPE,
            input={"message": order.text},
            idempotency_key=f"order-{order.number}",
        )

    async def _all_charged(self) -> bool:
        effects = read_effects(self.folder)
        return sum(one.tool == "charge" for one in effects) == WORKERS

    async def live(self) -> tuple[datetime, list[WorkerRow]]:
        """Return the store's now, and the workers that are alive by it."""
        now = (await ask_surely(lambda: self.store.ready(1, exclude=Exclude()))).now
        rows = await ask_surely(self.store.workers)
        return now, [row for row in rows if row.lease_until > now]

    async def in_contact(self, many: int, since: datetime | None = None) -> bool:
        """Tell whether `many` workers have been in contact for a lease that began after `since`.

        Each of them has then had time to bury whom it takes for dead.
        """
        now, rows = await self.live()
        whole = [(now - row.since).total_seconds() > 1.3 * LEASE_SECONDS for row in rows]
        broken = [since is None or row.since > since for row in rows]
        return len(rows) == many and all(whole) and all(broken)

    async def go_away(self, *, kill_a_process: bool = False) -> datetime:
        """Let the server be away until every lease is long over; return when it went."""
        now, _ = await self.live()
        await self.here.take_down()
        if kill_a_process:
            self.nursery.processes[0].kill()
        await asyncio.sleep(OUTAGE_SECONDS)
        await self.here.bring_up()
        return now

    async def end(self) -> Evidence:
        """Let the calls go on; return what is left when all Runs have settled."""
        (self.folder / "hold").unlink()
        assert await eventually(self._all_settled, BOUND_SECONDS)
        return Evidence(
            admissions=self.admissions,
            logs=await read_logs(self.store, [SCOPE.tenant]),
            effects=read_effects(self.folder),
            workers=read_workers(self.folder),
            lives={one.pid: one.life for one in self.nursery.processes},
            lease_seconds=LEASE_SECONDS,
            ended_alone=self.nursery.ended_alone(),
            pauses=read_pauses(self.folder),
        )

    async def _all_settled(self) -> bool:
        states = await self.states()
        return all(state == "settled" for state, _ in states)

    async def states(self) -> list[tuple[str, int]]:
        """Return the state and epoch of each Run."""
        ids = [one.run_ids[0] for one in self.admissions]
        ask = [partial(self.store.header, SCOPE.tenant, run_id) for run_id in ids]
        headers = [await ask_surely(one) for one in ask]
        return [(header.state, header.epoch) for header in headers]


@asynccontextmanager
async def at_work(folder: Path) -> AsyncIterator[Crowd]:
    """Yield 20 workers in the middle of their calls."""
    async with place("postgresql", folder, lease_seconds=LEASE_SECONDS) as here:
        assert isinstance(here, ServerPlace)
        async with open_store(here.url, prefix=here.prefix) as store:
            with Nursery[Job]("tests.chaos.nursery", folder / "log") as nursery:
                crowd = Crowd(folder, here, store, nursery)
                await crowd.begin()
                yield crowd


async def test_st_9_a_restart_with_twenty_live_workers_takes_no_run(tmp_path: Path) -> None:
    """Each of 20 workers sits in a call; after the outage each Run ends in its first attempt."""
    async with at_work(tmp_path) as crowd:
        before = {row.id for _, rows in [await crowd.live()] for row in rows}
        went = await crowd.go_away()
        assert await eventually(lambda: crowd.in_contact(WORKERS, went), BOUND_SECONDS)
        after = {row.id for _, rows in [await crowd.live()] for row in rows}
        evidence = await crowd.end()
        states = await crowd.states()
    verdict = judge(evidence)
    assert after == before, evidence.pauses
    assert states == [("settled", 1)] * WORKERS, evidence.pauses
    assert verdict.faults == []
    assert (verdict.completed, verdict.unknown, verdict.adoptions) == (20, 0, 0)
    assert len(evidence.effects) == 60


async def test_st_9_who_died_during_the_restart_is_found_out(tmp_path: Path) -> None:
    """Its neighbour: 5 of the 20 are killed meanwhile, and only their Runs are taken over."""
    async with at_work(tmp_path) as crowd:
        went = await crowd.go_away(kill_a_process=True)
        alive = WORKERS - WORKERS_EACH
        assert await eventually(lambda: crowd.in_contact(alive, went), BOUND_SECONDS)
        evidence = await crowd.end()
        states = await crowd.states()
    verdict = judge(evidence)
    assert sorted(states) == [("settled", 1)] * 15 + [("settled", 2)] * 5, evidence.pauses
    assert verdict.faults == []
    assert len(verdict.recoveries) == 5
    assert (verdict.completed, verdict.unknown) == (20, 5)
