"""What the sharded index gives is what one list in memory gives (R-15)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from psych_runtime.ports.store import After, Exclude, HeaderChange, RunFilter, Store, Unit
from psych_runtime.store.contract._build import (
    admit,
    change,
    claim,
    new_id,
    now_of,
    unit,
    write,
)
from psych_runtime.store.contract._faults import Chance
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import RunRow
from tests.functional.store.dynamodb.harness import NewHarness
from tests.functional.store.dynamodb.probes import Counting

LATER = datetime(2030, 1, 1, tzinfo=UTC)
TENANTS = ("acme", "b%", "b%23", "beta", "b\xe9ta", "globex", "z\U0001f9e0")


async def _fill(stores: Sequence[Store], chance: Chance, count: int) -> None:
    """Admit Runs of many kinds, the same in each store."""
    now = await now_of(stores[0])
    dead = [new_id("wrk") for _ in range(3)]

    def pick(count: int) -> int:
        return int(chance.random() * count)

    async def both(made: Unit) -> None:
        for store in stores:
            await write(store, made)

    for _ in range(count):
        tenant = TENANTS[pick(len(TENANTS))]
        columns: dict[str, object] = {
            "priority": pick(10),
            "created_at": now - timedelta(seconds=pick(1000)),
            "version": f"{pick(3)}" * 64,
            "schema_version": 1 + pick(3),
        }
        made = admit(tenant=tenant, columns=columns)
        run_id = made.run_id
        await both(unit(made, tenant=tenant))
        edit = (
            None,
            HeaderChange(wake_at=After(-float(pick(500)))),
            HeaderChange(wake_at=After(10.0 + pick(100))),
            HeaderChange(state="suspended", wake_at=After(-float(pick(500)))),
            HeaderChange(state="suspended", wake_at=After(10.0 + pick(100))),
            HeaderChange(state="settled"),
        )[pick(6)]
        if edit is not None:
            await both(unit(change(run_id, 1, edit=edit, tenant=tenant), tenant=tenant))
        elif pick(2):
            await both(claim(await stores[0].header(tenant, run_id), dead[pick(3)]))


@pytest.mark.parametrize("shards", [1, 8])
async def test_r_15_the_index_gives_what_a_list_gives(new_harness: NewHarness, shards: int) -> None:
    """For each cursor, limit and exclusion; also when some are due only later."""
    harness = new_harness(shards=shards)
    memory = MemoryStore(harness.system)
    chance = Chance(shards)
    async with harness.open() as writer, harness.elsewhere().open() as store:
        await _fill((writer, memory), chance, 70)
        await writer.set_cap("globex", 2)
        await memory.set_cap("globex", 2)
        excludes = (
            Exclude(),
            Exclude(versions=("1" * 64,)),
            Exclude(schema_version_above=2),
        )
        for seconds in (0.0, 60.0):
            await harness.advance(seconds)
            for after in ("", "acme", "b%23", "z\U0001f9e0"):
                for limit in (1, 9, 200):
                    for exclude in excludes:
                        wanted = await memory.ready(limit, after_tenant=after, exclude=exclude)
                        found = await writer.ready(limit, after_tenant=after, exclude=exclude)
                        assert _ids(found.headers) == _ids(wanted.headers)
            wanted_late = {row.run_id for row in await memory.overdue(500)}
            assert {row.run_id for row in await writer.overdue(500)} == wanted_late
        for tenant in TENANTS:
            for wanted_filter in (RunFilter(), RunFilter(state="settled")):
                listed = await memory.list_runs(tenant, filter=wanted_filter, limit=7)
                page = await store.list_runs(tenant, filter=wanted_filter, limit=7)
                assert page == listed


def _ids(headers: Sequence[RunRow]) -> list[str]:
    return [header.run_id for header in headers]


async def test_r_15_what_is_not_due_is_passed_over(new_harness: NewHarness) -> None:
    """Three hundred parked Runs before one that is ready cost a few queries, no read each."""
    counting = Counting()
    harness = new_harness(shards=1)
    async with harness.open() as store:
        parked = [
            unit(admit(columns={"priority": 9, "wake_at": LATER + timedelta(seconds=place)}))
            for place in range(300)
        ]
        for start in range(0, 300, 50):
            await write(store, *parked[start : start + 50])
        ready = admit(columns={"priority": 0})
        await write(store, unit(ready))
        async with harness.elsewhere(counting.wrap).open() as other:
            await other.workers()
            counting.calls.clear()
            assert _ids((await other.ready(5)).headers) == [ready.run_id]
            assert counting.calls["query"] <= 6
            assert counting.calls["batch_get_item"] == 1
