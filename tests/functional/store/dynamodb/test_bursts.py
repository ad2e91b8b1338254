"""A burst of callers on one handle waits in its own process, and holds up no lease (ST-2, R-5)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from psych_runtime.errors import StoreClosed
from psych_runtime.store.contract._build import TENANT, admission, claim, enlisted, write
from psych_runtime.store.dynamodb.store import DynamoStore
from tests.functional.store.dynamodb.harness import NewHarness
from tests.functional.store.dynamodb.probes import Answer, Call, hooked


@dataclass
class Gate:
    """A hook that counts the calls under way and keeps them while it is shut."""

    under_way: int = 0
    most: int = 0
    calls: int = 0
    is_cut: bool = False  # what was kept is cut off, in place of being let through
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        self.calls += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.open.wait()
            if self.is_cut:
                raise ConnectionResetError
            return await call(**arguments)
        finally:
            self.under_way -= 1

    async def until_kept(self, count: int) -> None:
        """Return once so many calls are kept."""
        while self.under_way < count:
            await asyncio.sleep(0)


async def test_st_2_a_burst_is_under_way_in_turns(new_harness: NewHarness) -> None:
    """Sixteen at once; all two hundred are answered."""
    gate = Gate()
    harness = new_harness(hooked(get_item=gate))
    gate.open.set()
    async with harness.open() as store:
        run_id = await admission(store)
        gate.open.clear()
        burst = [asyncio.create_task(store.header(TENANT, run_id)) for _ in range(200)]
        await gate.until_kept(16)
        gate.open.set()
        found = await asyncio.gather(*burst)
    assert [row.head for row in found] == [1] * 200
    assert gate.most == 16


async def test_r_5_leases_claims_and_deaths_do_not_wait_behind_a_burst(
    new_harness: NewHarness,
) -> None:
    """Through the same handle, while not one call of the burst is answered."""
    gate = Gate()
    harness = new_harness(hooked(get_item=gate))
    gate.open.set()
    async with harness.open() as store:
        worker = await enlisted(store, lease_seconds=100.0)
        run_id = await admission(store)
        gate.open.clear()
        burst = [asyncio.create_task(store.header(TENANT, run_id)) for _ in range(40)]
        await gate.until_kept(16)
        assert await store.renew(worker, lease_seconds=100.0, run_ids=[run_id]) is not None
        [row] = (await store.ready(2)).headers
        await write(store, claim(row, worker))
        assert [held.run_id for held in await store.held_by(worker)] == [run_id]
        assert await store.bury(worker) == []
        assert [row.id for row in await store.workers()] == [worker]
        assert await store.overdue(1) == []
        await store.sweep()
        other = await enlisted(store)
        assert {row.id for row in await store.workers()} == {worker, other}
        assert not any(task.done() for task in burst)
        gate.open.set()
        await asyncio.gather(*burst)


async def test_r_21_a_handle_has_turns_for_each_loop(new_harness: NewHarness) -> None:
    """A burst on one loop holds up nobody on another one."""
    gate = Gate()
    harness = new_harness(hooked(query=gate))
    async with harness.open() as store:
        run_id = await admission(store)
        burst = [asyncio.create_task(store.read(TENANT, run_id)) for _ in range(40)]
        await gate.until_kept(16)
        there = await asyncio.to_thread(asyncio.run, _header_there(store, run_id))
        assert there == 1
        assert not any(task.done() for task in burst)
        gate.open.set()
        await asyncio.gather(*burst)


async def _header_there(store: object, run_id: str) -> int:
    assert isinstance(store, DynamoStore)
    return (await store.header(TENANT, run_id)).head


async def test_r_21_closing_ends_those_who_wait_and_those_under_way(
    new_harness: NewHarness,
) -> None:
    """What is cut off by closing is not sent again over a client that is closed."""
    gate = Gate()
    harness = new_harness(hooked(get_item=gate))
    gate.open.set()
    async with harness.open() as store:
        run_id = await admission(store)
        gate.open.clear()
        gate.calls = 0
        burst = [asyncio.create_task(store.header(TENANT, run_id)) for _ in range(50)]
        await gate.until_kept(16)
        await store.close()
        gate.is_cut = True
        gate.open.set()
        ends = await asyncio.gather(*burst, return_exceptions=True)
    assert [type(end) for end in ends] == [StoreClosed] * 50
    assert gate.calls == 16


async def test_st_2_a_burst_that_is_cancelled_leaves_room_for_the_next(
    new_harness: NewHarness,
) -> None:
    """Those who waited and those under way alike."""
    gate = Gate()
    harness = new_harness(hooked(get_item=gate))
    gate.open.set()
    async with harness.open() as store:
        run_id = await admission(store)
        gate.open.clear()
        for _ in range(3):
            burst = [asyncio.create_task(store.header(TENANT, run_id)) for _ in range(40)]
            await gate.until_kept(16)
            for task in burst:
                task.cancel()
            await asyncio.wait(burst)
            assert gate.under_way == 0
        gate.open.set()
        assert (await store.header(TENANT, run_id)).head == 1
