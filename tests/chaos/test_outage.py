"""The server is away for longer than a lease, and comes back (ST-9, R-6)."""

from pathlib import Path

from psych_runtime.api import dispatch, publish
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.store import Exclude, Store
from psych_runtime.store.open import open_store
from psych_schema.common import Scope
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
from tests.chaos.processes import Nursery
from tests.chaos.storm import eventually
from tests.chaos.work import Order, shop

SCOPE = Scope(tenant="acme")
LEASE_SECONDS = 2.0
PROCESSES, WORKERS_EACH = 4, 5
WORKERS = PROCESSES * WORKERS_EACH
BOUND_SECONDS = 40.0


async def admit(store: Store) -> list[Admission]:
    """Admit a Run for each worker; its tools are held."""
    version = await publish(store, shop(), scope=SCOPE)
    admissions = []
    for number in range(WORKERS):
        order = Order(number, 1, held=True)
        made = await dispatch(store, version, scope=SCOPE, input={"message": order.text})
        admissions.append(Admission(order, SCOPE.tenant, (made.run_id,)))
    return admissions


async def contacts(store: Store) -> dict[str, float]:
    """Return each live worker with the length of its unbroken contact, as the store judges it."""
    try:
        now = (await store.ready(1, exclude=Exclude())).now
        rows = await store.workers()
    except StoreUnavailable:
        return {}
    return {row.id: (now - row.since).total_seconds() for row in rows if row.lease_until > now}


async def all_in_contact(store: Store, leases: float) -> bool:
    """Tell whether each worker has been in contact for so long that it may judge deaths."""
    found = await contacts(store)
    return len(found) == WORKERS and min(found.values()) > leases * LEASE_SECONDS


async def go_away(here: ServerPlace, store: Store, outage_seconds: float) -> None:
    """Let the server be away until each worker's lease is long over."""
    before = (await store.ready(1, exclude=Exclude())).now
    await here.take_down()

    async def is_over() -> bool:
        return False

    assert not await eventually(is_over, outage_seconds)
    await here.bring_up()

    async def broken_and_back() -> bool:
        try:
            rows = await store.workers()
        except StoreUnavailable:
            return False
        return len(rows) == WORKERS and all(row.since > before for row in rows)

    assert await eventually(broken_and_back, BOUND_SECONDS)


async def test_st_9_a_restart_with_twenty_live_workers_takes_no_run(tmp_path: Path) -> None:
    """Each of 20 workers sits in a call; after the outage each Run ends in its first attempt."""
    hold = tmp_path / "hold"
    hold.touch()
    async with place("postgresql", tmp_path, lease_seconds=LEASE_SECONDS) as here:
        assert isinstance(here, ServerPlace)
        async with open_store(here.url, prefix=here.prefix) as store:
            with Nursery(tmp_path / "log") as nursery:
                job = Job(
                    str(tmp_path), here.url, here.prefix, LEASE_SECONDS, 1, workers=WORKERS_EACH
                )
                for _ in range(PROCESSES):
                    nursery.start(job)
                admissions = await admit(store)

                async def all_charged() -> bool:
                    return sum(one.tool == "charge" for one in read_effects(tmp_path)) == WORKERS

                assert await eventually(all_charged, BOUND_SECONDS)
                assert await eventually(lambda: all_in_contact(store, 1.0), BOUND_SECONDS)
                before = set(await contacts(store))

                await go_away(here, store, 2.5 * LEASE_SECONDS)
                assert await eventually(lambda: all_in_contact(store, 2.0), BOUND_SECONDS)
                pauses = read_pauses(tmp_path)
                assert set(await contacts(store)) == before, pauses

                hold.unlink()

                async def all_settled() -> bool:
                    ids = [one.run_ids[0] for one in admissions]
                    found = [await store.header(SCOPE.tenant, run_id) for run_id in ids]
                    return all(header.state == "settled" for header in found)

                assert await eventually(all_settled, BOUND_SECONDS)
                epochs = [
                    (await store.header(SCOPE.tenant, one.run_ids[0])).epoch for one in admissions
                ]
                evidence = Evidence(
                    admissions=admissions,
                    logs=await read_logs(store, [SCOPE.tenant]),
                    effects=read_effects(tmp_path),
                    workers=read_workers(tmp_path),
                    lives={one.pid: one.life for one in nursery.processes},
                    lease_seconds=LEASE_SECONDS,
                    ended_alone=nursery.ended_alone(),
                    pauses=pauses,
                )
    verdict = judge(evidence)
    assert epochs == [1] * WORKERS
    assert verdict.faults == []
    assert (verdict.completed, verdict.unknown, verdict.adoptions) == (WORKERS, 0, 0)
    assert verdict.recoveries == []
