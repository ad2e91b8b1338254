"""wait: until a Run is where one wants it, or the time is over."""

import asyncio
from typing import Literal

import pytest

from psych_runtime import wait
from psych_runtime.errors import CorruptLog, RunNotFound, StoreUnavailable, WaitTimeout
from psych_runtime.ports.store import Store
from psych_runtime.testing import LogBuilder
from tests.functional.reads.faulty import DeafStore, FlakyStore
from tests.functional.reads.logs import ACME, OTHER, commit, lived, mark_corrupt
from tests.stores.opening import EVERYWHERE

type Until = Literal["settled", "suspended"] | int


def asking() -> LogBuilder:
    """Return a Run that is suspended on a question."""
    log = LogBuilder()
    log.admit("hi")
    log.claim()
    [call] = log.turn(["ask"])
    log.start(call)
    log.wait("question", call=call)
    log.suspend()
    return log


async def test_wait_returns_at_once_for_a_settled_run(store: Store) -> None:
    """The status is that of the end."""
    log = lived()
    await log.commit_to(store)

    found = await wait(store, log.run_id, scope=ACME)

    assert found.lifecycle == "done"
    assert found.ended is not None
    assert found.ended.state == "completed"


@EVERYWHERE
async def test_wait_returns_when_the_run_settles(store: Store) -> None:
    """Whoever settles it, from whichever handle."""
    log = lived()
    first, *rest = log.units()
    await commit(store, first)
    waiting = asyncio.create_task(wait(store, log.run_id, scope=ACME))
    for unit in rest:
        assert not waiting.done()
        async with store.twin() as twin:
            await commit(twin, unit)

    assert (await waiting).head == len(log.entries)


@EVERYWHERE
async def test_wait_until_suspended_returns_when_somebody_is_asked(store: Store) -> None:
    """The status names what is asked."""
    log = asking()
    await log.commit_to(store)

    found = await wait(store, log.run_id, scope=ACME, until="suspended")

    assert found.lifecycle == "waiting"
    assert [one.kind for one in found.pending_waits] == ["question"]


async def test_wait_until_suspended_returns_when_the_run_settles(store: Store) -> None:
    """It will not be suspended any more."""
    log = lived()
    await log.commit_to(store)

    assert (await wait(store, log.run_id, scope=ACME, until="suspended")).lifecycle == "done"


@EVERYWHERE
async def test_run_14_wait_until_suspended_does_not_count_a_parked_retry(store: Store) -> None:
    """Nobody is asked for anything: it goes on by itself."""
    log = LogBuilder()
    log.admit("hi")
    log.claim()
    log.begin_turn()
    log.fail(log.ask())
    log.suspend(wake_at=log.header.head_at)
    await log.commit_to(store)

    with pytest.raises(WaitTimeout):
        await wait(store, log.run_id, scope=ACME, until="suspended", timeout_seconds=0)


@EVERYWHERE
async def test_wait_until_a_seq_returns_when_the_log_is_there(store: Store) -> None:
    """The record itself may be any."""
    log = lived()
    units = log.units()
    for unit in units[:3]:
        await commit(store, unit)
    waiting = asyncio.create_task(wait(store, log.run_id, scope=ACME, until=4))
    await asyncio.sleep(0)
    assert not waiting.done()
    await commit(store, units[3])

    assert (await waiting).head == 4


async def test_wait_until_a_seq_that_never_comes_returns_at_the_end(store: Store) -> None:
    """Nothing follows run.settled."""
    log = lived()
    await log.commit_to(store)

    found = await wait(store, log.run_id, scope=ACME, until=10_000)

    assert found.head == len(log.entries)


@pytest.mark.parametrize(
    ("until", "name"), [("settled", "settled"), ("suspended", "suspended"), (9, "at seq 9")]
)
async def test_wait_gives_up_after_its_time(store: Store, until: Until, name: str) -> None:
    """0 looks once; the error says for what it waited."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)

    with pytest.raises(WaitTimeout) as caught:
        await wait(store, log.run_id, scope=ACME, until=until, timeout_seconds=0)
    assert (caught.value.run_id, caught.value.until) == (log.run_id, name)
    assert caught.value.timeout_seconds == 0


async def test_wait_survives_lost_hints() -> None:
    """Each wait of the store is bounded, also by the time that is left."""
    store = DeafStore()
    log = lived()
    first, *rest = log.units()
    await commit(store, first)
    waiting = asyncio.create_task(wait(store, log.run_id, scope=ACME, timeout_seconds=60))
    for unit in rest:
        await commit(store, unit)
        await asyncio.sleep(0)

    assert (await waiting).lifecycle == "done"
    assert all(seconds <= 2.0 for seconds in store.waits)


async def test_wait_survives_a_store_that_is_away() -> None:
    """It is asked again, within the time."""
    store = FlakyStore(period=2)
    log = lived()
    await log.commit_to(store)

    assert (await wait(store, log.run_id, scope=ACME, timeout_seconds=60)).lifecycle == "done"
    assert store.failures > 0


async def test_wait_says_when_it_was_the_store_that_kept_it() -> None:
    """No WaitTimeout: nobody knows where the Run stands."""
    store = FlakyStore(period=1)
    log = lived()
    await log.commit_to(store)

    with pytest.raises(StoreUnavailable):
        await wait(store, log.run_id, scope=ACME, timeout_seconds=0)


@EVERYWHERE
async def test_log_3_wait_for_a_corrupt_run_raises(store: Store) -> None:
    """It will never get there."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    await mark_corrupt(store, log)

    with pytest.raises(CorruptLog) as caught:
        await wait(store, log.run_id, scope=ACME)
    assert caught.value.run_id == log.run_id


async def test_sec_4_wait_for_another_tenants_run_raises(store: Store) -> None:
    """As if it did not exist."""
    log = lived()
    await log.commit_to(store)

    with pytest.raises(RunNotFound):
        await wait(store, log.run_id, scope=OTHER)
