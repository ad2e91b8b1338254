"""stream: every committed record once, in order, whatever the reader or the store does."""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from psych_runtime import records, stream
from psych_runtime.errors import CorruptLog, NewerRecord, RunNotFound, StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store
from psych_runtime.testing import LogBuilder
from psych_schema.record import Record, TurnStarted
from tests.functional.reads.faulty import DeafStore, FlakyStore
from tests.functional.reads.logs import ACME, OTHER, append, commit, lived, mark_corrupt
from tests.stores.opening import EVERYWHERE


async def read_all(store: Store, log: LogBuilder, after: int = 0) -> list[Record]:
    return [record async for record in stream(store, log.run_id, scope=ACME, after=after)]


def written(log: LogBuilder) -> list[Record]:
    return [entry.record for entry in log.entries]


@EVERYWHERE
async def test_str_1_a_settled_run_is_streamed_whole_and_ends(store: Store) -> None:
    """Exactly what was committed, as it was committed."""
    log = lived()
    await log.commit_to(store)

    assert await read_all(store, log) == written(log)


@EVERYWHERE
async def test_str_1_a_reader_cut_at_any_record_goes_on_behind_it(store: Store) -> None:
    """Every cut: nothing is lost, nothing comes twice."""
    log = lived()
    await log.commit_to(store)
    whole = written(log)

    for cut in range(len(whole) + 1):
        assert await read_all(store, log, after=cut) == whole[cut:]


@EVERYWHERE
async def test_str_1_a_reader_sees_records_as_they_are_committed(store: Store) -> None:
    """It began before the first turn, and ends with the Run."""
    log = lived()
    first, *rest = log.units()
    await commit(store, first)
    async with store.twin() as twin:
        reader = asyncio.create_task(read_all(twin, log))
        for unit in rest:
            await commit(store, unit)
            await asyncio.sleep(0)

        assert await reader == written(log)


READER = """
import asyncio, sys
from psych_runtime import Scope, open_store, stream

async def main(url, run_id):
    async with open_store(url) as store:
        async for record in stream(store, run_id, scope=Scope(tenant="acme")):
            print(record.seq, record.type, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_str_1_a_reader_in_another_process_follows_live(tmp_path: Path) -> None:
    """Each record is committed only once the reader has told of the one before it."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    log = lived()
    first, *rest = log.units()
    async with open_store(url) as store:
        await store.migrate()
        await commit(store, first)
        reader = await asyncio.create_subprocess_exec(
            sys.executable, "-c", READER, url, log.run_id, stdout=asyncio.subprocess.PIPE
        )
        assert reader.stdout is not None
        told = [await reader.stdout.readline()]
        for unit in rest:
            await commit(store, unit)
            told.append(await reader.stdout.readline())
        assert await reader.wait() == 0

    assert [line.decode().split() for line in told] == [
        [str(record.seq), record.type] for record in written(log)
    ]


@EVERYWHERE
async def test_str_1_a_reader_that_is_ahead_waits_for_its_record(store: Store) -> None:
    """`after` may name a record that does not exist yet."""
    log = lived()
    units = log.units()
    for unit in units[:2]:
        await commit(store, unit)
    reader = asyncio.create_task(read_all(store, log, after=5))
    for unit in units[2:]:
        await commit(store, unit)

    assert await reader == written(log)[5:]


@EVERYWHERE
async def test_str_1_a_log_of_several_pages_is_read_to_its_end(store: Store) -> None:
    """Page boundaries are the reader's own affair."""
    log = LogBuilder(records_per_unit=90)
    log.admit("hi")
    log.claim()
    for _ in range(340):
        log.turn()
    log.settle()
    await log.commit_to(store)

    seqs = [record.seq for record in await read_all(store, log)]

    assert len(seqs) > 1000
    assert seqs == list(range(1, len(seqs) + 1))


async def test_str_1_lost_hints_cost_latency_only() -> None:
    """Every wait is bounded, and the reader looks again by itself."""
    store = DeafStore()
    log = lived()
    first, *rest = log.units()
    await commit(store, first)
    reader = asyncio.create_task(read_all(store, log))
    for unit in rest:
        await commit(store, unit)
        await asyncio.sleep(0)

    assert await reader == written(log)
    assert store.waits
    assert all(seconds == 2.0 for seconds in store.waits)


async def test_str_1_a_store_that_is_away_loses_and_doubles_nothing() -> None:
    """Every third call finds nobody there, wherever it falls."""
    store = FlakyStore(period=3)
    log = lived()
    first, *rest = log.units()
    await commit(store, first)
    reader = asyncio.create_task(read_all(store, log))
    for unit in rest:
        await commit(store, unit)
        await asyncio.sleep(0)

    assert await reader == written(log)
    assert store.failures > 0


async def test_str_1_reads_that_do_not_follow_are_told_of_a_store_that_is_away() -> None:
    """Only those who wait anyway wait for the store."""
    store = FlakyStore(period=1)
    log = lived()
    await log.commit_to(store)

    with pytest.raises(StoreUnavailable):
        await records(store, log.run_id, scope=ACME)


@EVERYWHERE
async def test_str_2_a_reader_that_goes_away_cancels_nothing(store: Store) -> None:
    """The Run is as it was, and the next reader sees all of it."""
    log = lived()
    units = log.units()
    for unit in units[:3]:
        await commit(store, unit)
    before = await store.header("acme", log.run_id)
    async with aclosing(stream(store, log.run_id, scope=ACME)) as reading:
        async for _ in reading:
            break
    waiting = asyncio.create_task(read_all(store, log))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert await store.header("acme", log.run_id) == before
    for unit in units[3:]:
        await commit(store, unit)
    assert await read_all(store, log) == written(log)


async def test_str_2_a_reader_that_never_reads_delays_nothing(store: Store) -> None:
    """A stream holds nothing between two records."""
    log = lived()
    first, *rest = log.units()
    await commit(store, first)
    async with aclosing(stream(store, log.run_id, scope=ACME)) as idle:
        assert await anext(idle) == written(log)[0]
        for unit in rest:
            await commit(store, unit)

        assert await read_all(store, log) == written(log)


@EVERYWHERE
async def test_stream_of_an_erased_run_ends_with_the_erasure(store: Store) -> None:
    """run.erased is the one record behind the end."""
    log = lived()
    log.erase()
    await log.commit_to(store)

    assert [record.type for record in await read_all(store, log)][-2:] == [
        "run.settled",
        "run.erased",
    ]


async def test_sec_4_another_tenants_run_is_not_found(store: Store) -> None:
    """As if it did not exist."""
    log = lived()
    await log.commit_to(store)

    with pytest.raises(RunNotFound) as caught:
        await anext(stream(store, log.run_id, scope=OTHER))
    assert caught.value.run_id == log.run_id


@EVERYWHERE
async def test_log_3_a_run_marked_corrupt_ends_the_stream_with_the_reason(store: Store) -> None:
    """What can be read comes first; the reason is the fold's."""
    log = LogBuilder()
    log.admit("hi")
    log.claim()
    await log.commit_to(store)
    illegal = log.draft(TurnStarted, turn=7, purpose="answer")
    body = illegal.model_copy(
        update={"seq": 3, "epoch": 1, "commit": "com_x", "prev": log.header.head_hash}
    )
    await append(store, log, type=illegal.type, body=body.model_dump_json(exclude_none=True))
    await mark_corrupt(store, log)
    seen: list[str] = []

    async def read() -> None:
        async for record in stream(store, log.run_id, scope=ACME):
            seen.append(record.type)  # noqa: PERF401  a comprehension would lose what came first

    with pytest.raises(CorruptLog) as caught:
        await read()

    assert seen == ["run.admitted", "attempt.started", "turn.started"]
    assert (caught.value.reason, caught.value.seq) == ("turn_follows", 3)


@EVERYWHERE
async def test_log_3_a_reader_that_waits_learns_that_the_run_is_corrupt(store: Store) -> None:
    """The mark moves no head; the waiting reader finds it nevertheless."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    reader = asyncio.create_task(read_all(store, log))
    await asyncio.sleep(0)
    await mark_corrupt(store, log)

    with pytest.raises(CorruptLog) as caught:
        await reader
    assert (caught.value.reason, caught.value.seq) == ("marked_corrupt", 1)


@EVERYWHERE
async def test_log_3_a_row_that_nobody_can_read_ends_the_stream(store: Store) -> None:
    """Whatever its header says."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    await append(store, log, type="turn.started", body='{"v":1,"broken":true}')

    with pytest.raises(CorruptLog) as caught:
        await read_all(store, log)
    assert (caught.value.reason, caught.value.seq) == ("unreadable", 2)


@EVERYWHERE
async def test_log_6_a_row_that_does_not_follow_the_one_before_ends_the_stream(
    store: Store,
) -> None:
    """Its `prev` is the hash of another body."""
    log = LogBuilder()
    log.admit("hi")
    log.claim()
    await log.commit_to(store)
    forged = log.draft(TurnStarted, turn=1, purpose="answer").model_copy(
        update={"seq": 3, "epoch": 1, "commit": "com_x", "prev": "0" * 64}
    )
    await append(store, log, type=forged.type, body=forged.model_dump_json(exclude_none=True))

    with pytest.raises(CorruptLog) as caught:
        await read_all(store, log)
    assert (caught.value.reason, caught.value.seq) == ("prev_does_not_fit", 3)


@pytest.mark.parametrize("form", ["", "B261129200001000000?"])
async def test_log_4_a_newer_record_ends_the_stream_with_the_version_it_needs(
    store: Store, form: str
) -> None:
    """The log is not corrupt: this build is old."""
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    body = '{"v":2,"epoch":0,"at":"2026-11-29T20:00:01.000000Z","type":"future.thing"}'
    await append(store, log, type="future.thing", body=form + body, version=2)

    with pytest.raises(NewerRecord) as caught:
        await read_all(store, log)
    assert (caught.value.seq, caught.value.needs_version) == (2, 2)


async def test_stream_asks_an_idle_store_rarely() -> None:
    """A Run in which nothing happens costs a read and a header for each bounded wait."""
    store = FlakyStore(period=10**9)
    log = LogBuilder()
    log.admit("hi")
    await log.commit_to(store)
    reader = asyncio.create_task(read_all(store, log))
    while not store.calls["wait"]:
        await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader

    assert store.calls == {"read": 1, "header": 1, "wait": 1}


async def test_stream_works_from_a_handle_of_another_loop() -> None:
    """Threads of the consumer read with their own twin."""
    store = MemoryStore()
    log = lived()
    await log.commit_to(store)
    twin = store.twin()

    found = await asyncio.to_thread(lambda: asyncio.run(read_all(twin, log)))
    await twin.close()

    assert found == written(log)
