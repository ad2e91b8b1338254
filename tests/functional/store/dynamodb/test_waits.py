"""Waits: one request for all of them, and none while nobody waits."""

import asyncio

from psych_runtime.ports.store import HeaderChange
from psych_runtime.store.contract._build import TENANT, admission, change, unit, write
from tests.functional.store.dynamodb.harness import NewHarness
from tests.functional.store.dynamodb.probes import Counting


async def test_r_19_a_hundred_waits_are_one_request(new_harness: NewHarness) -> None:
    """At first and at each look; a commit of another process ends the one that it is for."""
    counting = Counting()
    harness = new_harness()
    async with harness.open() as store:
        runs = [await admission(store) for _ in range(100)]
        async with harness.elsewhere(counting.wrap).open() as other:
            await other.header(TENANT, runs[0])
            counting.calls.clear()
            waits = [asyncio.create_task(other.wait(TENANT, {run_id: 1}, 30.0)) for run_id in runs]
            while counting.calls["batch_get_item"] < 3:
                await asyncio.sleep(0.01)
            before = counting.calls["batch_get_item"]
            await write(store, unit(change(runs[7], 1)))
            assert await waits[7] == frozenset({runs[7]})
            assert counting.calls["batch_get_item"] <= before + 3
            assert set(counting.calls) == {"batch_get_item"}
            for waiting in waits:
                waiting.cancel()
            await asyncio.wait(waits)
            counting.calls.clear()
            await asyncio.sleep(0.3)
            assert counting.calls == {}


async def test_r_19_a_wait_for_more_than_a_request_holds_is_split(new_harness: NewHarness) -> None:
    """DynamoDB gives a hundred items at once."""
    counting = Counting()
    harness = new_harness(counting.wrap)
    async with harness.open() as store:
        run_id = await admission(store)
        counting.calls.clear()
        heads = {run_id: 0} | {f"run_{number:026}": 0 for number in range(249)}
        assert await store.wait(TENANT, heads, 30.0) == frozenset({run_id})
        assert counting.calls == {"batch_get_item": 3}


async def test_str_1_a_wait_for_the_end_is_ended_by_another_process(
    new_harness: NewHarness,
) -> None:
    """Its looks show commits that end nothing, and wake nobody until the Run is over."""
    counting = Counting()
    harness = new_harness()
    async with harness.open() as store, harness.elsewhere(counting.wrap).open() as other:
        run_id = await admission(store)
        waiting = asyncio.create_task(other.wait(TENANT, {run_id: 1}, 30.0, over=True))
        await write(store, unit(change(run_id, 1)))
        while counting.calls["batch_get_item"] < 4:
            await asyncio.sleep(0.01)
        assert not waiting.done()
        await write(store, unit(change(run_id, 2, edit=HeaderChange(state="settled"))))
        assert await waiting == frozenset({run_id})
        assert await other.wait(TENANT, {run_id: 1}, 30.0, over=True) == frozenset({run_id})
