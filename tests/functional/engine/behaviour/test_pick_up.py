"""Runs are picked up by a hint, never by a poll: workers here look by themselves once an hour."""

import asyncio
import sys

import pytest

from psych_runtime import administrator
from psych_runtime._system import System
from psych_runtime.api import Version, publish
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Arrival, Store
from psych_runtime.runtime.takeover import Claim, claim_unit
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing.fake_model import FakeModel
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    run_to_end,
    runtime,
)
from tests.stores.kinds import EVERY_STORE, tables_of

HOUR = 3600.0


@pytest.fixture(params=EVERY_STORE)
def kind(request: pytest.FixtureRequest) -> str:
    """Each store in turn."""
    name: str = request.param
    return name


def _answers(count: int) -> FakeModel:
    model = FakeModel()
    for _ in range(count):
        model.turn(text="Done.")
    return model


async def test_r_15_a_dispatch_wakes_an_idle_worker(store: Store, crew: Crew) -> None:
    """Twice, so that the second is no luck of the first look."""
    worker = await crew.start(runtime(store, _answers(2)), poll_seconds=HOUR)
    for _ in range(2):
        await run_to_end(store, await admit(store, agent()))
        await eventually(lambda: not worker.in_hand())


async def test_r_15_a_slot_that_is_free_takes_what_waits(store: Store, crew: Crew) -> None:
    """A worker with one slot comes to the end of a queue without looking for it by the clock."""
    runs = [await admit(store, agent()) for _ in range(5)]
    await crew.start(runtime(store, _answers(5)), concurrency=1, poll_seconds=HOUR)
    for run_id in runs:
        await run_to_end(store, run_id)


async def test_r_15_a_place_below_the_cap_is_taken_at_once(store: Store, crew: Crew) -> None:
    """What a cap kept back comes when a Run of its tenant ends, though slots were free before."""
    await administrator(store).set_cap(ACME.tenant, 1)
    runs = [await admit(store, agent()) for _ in range(3)]
    await crew.start(runtime(store, _answers(3)), poll_seconds=HOUR)
    for run_id in runs:
        await run_to_end(store, run_id)


async def test_run_14_a_parked_run_goes_on_when_its_time_comes() -> None:
    """The worker that parked it remembers when; nobody has to look meanwhile."""
    store, crew = MemoryStore(), Crew()
    model = FakeModel().raises_transient(429, retry_after_seconds=5.2).turn(text="Whole.")
    await crew.start(runtime(store, model), poll_seconds=HOUR)
    run_id = await admit(store, agent())
    assert (await run_to_end(store, run_id)).epoch == 2
    await crew.close()


async def test_r_5_a_dead_workers_run_is_taken_when_its_death_is_seen(
    store: Store, crew: Crew
) -> None:
    """The supervisor that buries it wakes its own executor."""
    system = System()
    dead = system.new_id("wrk")
    run_id = await admit(store, agent())
    await store.enlist(dead, lease_seconds=0.3, build="test", tools=())
    header = await store.header(ACME.tenant, run_id)
    claim = claim_unit(header, Claim.of(header, worker=dead, crashes=0), system=system)
    assert await store.commit([claim]) == [Committed()]
    await crew.start(runtime(store, _answers(1)), lease_seconds=1.0, poll_seconds=HOUR)
    assert (await run_to_end(store, run_id)).epoch == 2


class Nameless(Flaky):
    """Tells of work as other processes do: without saying what."""

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        return (await super().arrival(seen, seconds))._replace(admitted=None)


async def test_r_15_work_that_comes_during_a_look_is_looked_for_again() -> None:
    """The look did not see it, and nobody tells of it twice."""
    store, crew = Nameless(MemoryStore()), Crew()
    runs: list[str] = []

    async def meanwhile(_: object) -> None:
        runs.append(await admit(store, agent()))
        for _ in range(10):  # until the worker has heard of it
            await asyncio.sleep(0)

    store.faults.once("after", "ready", meanwhile)
    await crew.start(runtime(store, _answers(1)), poll_seconds=HOUR)
    await eventually(lambda: runs)
    await run_to_end(store, runs[0])
    await crew.close()


async def test_r_15_a_look_that_failed_is_made_when_the_store_answers() -> None:
    """The next renewal says so; nobody waits for the poll."""
    store, crew = Flaky(MemoryStore()), Crew()
    run_id = await admit(store, agent())

    async def away(_: object) -> None:
        raise StoreUnavailable(problem="just now")

    store.faults.once("before", "ready", away)
    await crew.start(runtime(store, _answers(1)), poll_seconds=HOUR)
    await run_to_end(store, run_id)
    await crew.close()


ELSEWHERE = """
import asyncio, sys
from psych_runtime import Scope, dispatch, open_store

async def main() -> None:
    url, prefix, version = sys.argv[1:]
    async with open_store(url, prefix=prefix) as store:
        made = await dispatch(store, version, scope=Scope(tenant="acme"), input={"message": "Go."})
        print(made.run_id)

asyncio.run(main())
"""


async def test_r_15_a_dispatch_of_another_process_wakes_a_worker() -> None:
    """PostgreSQL passes the message on; the worker would look by itself in an hour."""
    crew = Crew()
    tables = tables_of("postgresql")
    await tables.empty()
    async with tables.open() as store:
        version: Version = await publish(store, agent(), scope=ACME)
        worker = await crew.start(runtime(store, _answers(2)), poll_seconds=HOUR)
        for _ in range(2):
            command = [sys.executable, "-c", ELSEWHERE, tables.url, tables.prefix, version.hash]
            process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            told, _ = await process.communicate()
            await run_to_end(store, told.decode().strip())
            await eventually(lambda: not worker.in_hand())
        await crew.close()
