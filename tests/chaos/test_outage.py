"""The server is away for longer than a lease, and comes back (ST-9, R-6)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

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
from tests.chaos.places import NetPlace, place
from tests.chaos.storm import eventually
from tests.chaos.work import Order, shop
from tests.processes.nursery import Nursery

SCOPE = Scope(tenant="acme")
LEASE_SECONDS = 6.0  # a shorter one is sometimes missed where many tests share two processors
OUTAGE_SECONDS = 6.2  # and what it takes to stop and start
PROCESSES = 5  # one of them dies
EACH = {"postgresql": 5, "mysql": 5, "mariadb": 5, "dynamodb": 2}
"""How many workers a process has; the emulator answers one request after another."""
BOUND_SECONDS = 40.0


@dataclass
class Crowd:
    """Workers, each in the middle of a call that is held; so many in `each` process."""

    each: int
    folder: Path
    here: NetPlace
    store: Store
    nursery: Nursery[Job]
    admissions: list[Admission] = field(default_factory=list)

    async def begin(self) -> None:
        """Admit a Run for each worker, start the workers, and wait until each has one.

        In this order: workers that look for Runs are a load, those that have one wait.
        """
        (self.folder / "hold").touch()
        version = await ask_surely(lambda: publish(self.store, shop(), scope=SCOPE))
        for number in range(PROCESSES * self.each):
            order = Order(number, 1, held=True)
            made = await ask_surely(partial(self._dispatch, order, version))
            self.admissions.append(Admission(order, SCOPE.tenant, (made.run_id,)))
        url, prefix = self.here.url, self.here.prefix
        job = Job(str(self.folder), url, prefix, LEASE_SECONDS, 1, workers=self.each)
        for _ in range(PROCESSES):
            self.nursery.start(job)
        assert await eventually(self._all_charged, BOUND_SECONDS)

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
        return sum(one.tool == "charge" for one in effects) == len(self.admissions)

    async def live(self) -> tuple[datetime, list[WorkerRow]]:
        """Return the store's now, and the workers that are alive by it."""
        now = (await ask_surely(lambda: self.store.ready(1, exclude=Exclude()))).now
        rows = await ask_surely(self.store.workers)
        return now, [row for row in rows if row.lease_until > now]

    async def outage(self) -> datetime:
        """Let the server be away until every lease is over; return when it went.

        Meanwhile a process is killed, which nobody can see.
        """
        now, _ = await self.live()
        await self.here.take_down()
        self.nursery.processes[0].kill()
        await asyncio.sleep(OUTAGE_SECONDS)
        await self.here.bring_up()
        return now

    async def have_judged(self, since: datetime) -> bool:
        """Tell whether those that live have been in contact for a lease begun after `since`.

        Each of them has then had time to bury whom it takes for dead.
        """
        now, rows = await self.live()
        whole = [(now - row.since).total_seconds() > LEASE_SECONDS + 1.0 for row in rows]
        alive = (PROCESSES - 1) * self.each
        return len(rows) == alive and all(whole) and all(row.since > since for row in rows)

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
        return all(state == "settled" for state, _ in states.values())

    async def states(self) -> dict[str, tuple[str, int]]:
        """Return the state and epoch of each Run."""
        ids = [one.run_ids[0] for one in self.admissions]
        ask = [partial(self.store.header, SCOPE.tenant, run_id) for run_id in ids]
        headers = [await ask_surely(one) for one in ask]
        return {header.run_id: (header.state, header.epoch) for header in headers}


@asynccontextmanager
async def at_work(kind: str, folder: Path) -> AsyncIterator[Crowd]:
    """Yield workers in the middle of their calls."""
    async with place(kind, folder, lease_seconds=LEASE_SECONDS) as here:
        assert isinstance(here, NetPlace)
        async with open_store(here.url, prefix=here.prefix) as store:
            with Nursery[Job]("tests.chaos.nursery", folder / "log") as nursery:
                crowd = Crowd(EACH[kind], folder, here, store, nursery)
                await crowd.begin()
                yield crowd


@pytest.mark.parametrize("kind", EACH)
async def test_st_9_r_6_an_outage_takes_runs_from_those_only_that_died_in_it(
    kind: str, tmp_path: Path
) -> None:
    """The live workers keep theirs, which end in their first attempt; a process was killed."""
    async with at_work(kind, tmp_path) as crowd:
        dead = crowd.nursery.processes[0].pid
        before = {row.id for _, rows in [await crowd.live()] for row in rows}
        went = await crowd.outage()
        assert await eventually(lambda: crowd.have_judged(went), BOUND_SECONDS)
        after = {row.id for _, rows in [await crowd.live()] for row in rows}
        evidence = await crowd.end()
        states = await crowd.states()
    verdict = judge(evidence)
    each, all_of_them = EACH[kind], PROCESSES * EACH[kind]
    gone = {one.id for one in evidence.workers if one.pid == dead}
    lost = {one.run_id for one in evidence.effects if one.pid == dead}
    assert (len(before), after) == (all_of_them, before - gone), evidence.pauses
    assert (len(states), len(lost)) == (all_of_them, each)
    assert states == {run_id: ("settled", 1 + (run_id in lost)) for run_id in states}
    assert verdict.faults == []
    assert (len(verdict.recoveries), verdict.adoptions) == (each, 0)
    assert (verdict.completed, verdict.unknown) == (all_of_them, each)
    assert sum(one.run_id not in lost for one in evidence.effects) == 3 * (all_of_them - each)
