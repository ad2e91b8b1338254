"""Deaths between machines whose clocks differ (R-6, R-14)."""

from collections.abc import Mapping

from botocore.exceptions import ReadTimeoutError

from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import enlisted
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness
from tests.functional.store.dynamodb.probes import Answer, Call, hooked

_LEASE = 100.0


async def _beat(store: Store, worker: str) -> None:
    answer = await store.renew(worker, lease_seconds=_LEASE, run_ids=())
    assert answer is not None


async def test_r_14_a_death_is_observed_whatever_the_dead_ones_clock_said(
    harness: DynamoHarness,
) -> None:
    """One whose clock was an hour ahead has a lease that seems to run for an hour."""
    there = harness.elsewhere()
    await there.advance(3600)
    async with harness.open() as store, there.open() as ahead:
        observer, worker = await enlisted(store), await enlisted(ahead)
        assert await store.bury(observer) == []
        for _ in range(2):
            await harness.advance(40)
            await _beat(store, observer)
            assert await store.bury(observer) == []
        await harness.advance(40)
        await _beat(store, observer)
        assert await store.bury(observer) == [worker]


async def test_r_14_a_worker_whose_clock_is_behind_lives_while_it_beats(
    harness: DynamoHarness,
) -> None:
    """By its row its lease is over since an hour; every beat shows that it is not."""
    here = harness.elsewhere()
    await here.advance(3600)
    async with harness.open() as behind, here.open() as store:
        observer, worker = await enlisted(store), await enlisted(behind)
        for _ in range(6):
            await here.advance(45)
            await harness.advance(45)
            await _beat(store, observer)
            await _beat(behind, worker)
            assert await store.bury(observer) == []
        assert {row.id for row in await store.workers()} == {observer, worker}


async def test_r_6_a_process_that_has_just_begun_has_observed_nobody(
    harness: DynamoHarness,
) -> None:
    """The silence before it came is not its own lease."""
    here = harness.elsewhere()
    async with harness.open() as store:
        worker = await enlisted(store)
        async with here.open() as fresh:
            await here.advance(1000)
            observer = await enlisted(fresh)
            for deaths in ([], [], [worker]):
                await here.advance(50)
                await _beat(fresh, observer)
                assert await fresh.bury(observer) == deaths


async def test_r_5_a_beat_whose_answer_was_lost_is_counted_once(new_harness: NewHarness) -> None:
    """Nor is a worker that was enlisted unheard enlisted twice, or a death counted by nobody."""
    lost: set[str] = set()

    async def lose_once(call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments)
        name = str(arguments.get("UpdateExpression", "put"))
        if name not in lost:
            lost.add(name)
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        return answer

    harness = new_harness(hooked(update_item=lose_once, put_item=lose_once))
    async with harness.open() as store:
        lost.clear()
        observer, worker = await enlisted(store), await enlisted(store)
        assert [row.beat for row in await store.workers()] == [0, 0]
        for beat in (1, 2, 3):
            await harness.advance(40)
            await _beat(store, observer)
            beats = {row.id: row.beat for row in await store.workers()}
            assert beats == {observer: beat, worker: 0}
        assert await store.bury(observer) == [worker]
        assert len(lost) == 3
