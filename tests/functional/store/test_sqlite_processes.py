"""Several processes and one SQLite file: races, kills, locks, wake-ups."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.store.contract._build import TENANT, admission, admit, change, unit, write
from psych_runtime.store.open import open_store
from psych_runtime.store.sqlite._connect import SqliteOptions
from psych_runtime.store.sqlite.store import SqliteStore
from tests.functional.store.processes import go, next_line, started, url_of

_EACH = 40
_LOOK = "PRAGMA data_version"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


async def _migrated(path: Path) -> str:
    async with open_store(url_of(path)) as store:
        await store.migrate()
        return await admission(store)


async def test_r_1_two_processes_write_one_log(path: Path) -> None:
    """Each position is written once, each process gets its share, no record is lost."""
    run_id = await _migrated(path)
    with started(path, "race", run_id, str(_EACH)) as process:
        said = [await asyncio.to_thread(next_line, process) for _ in range(2)]
    assert [line.split()[0] for line in said] == [str(_EACH), str(_EACH)]
    async with open_store(url_of(path)) as store:
        rows = await store.read(TENANT, run_id)
        assert [row.seq for row in rows] == list(range(1, 2 * _EACH + 2))
        assert (await store.header(TENANT, run_id)).head == 2 * _EACH + 1


async def test_run_1_kill_9_leaves_whole_units(path: Path) -> None:
    """Whatever was answered is there; what was not is there whole or not at all."""
    await _migrated(path)
    with started(path, "kill", "0", "1", "7", "40") as process:
        said = [(await asyncio.to_thread(next_line, process)).split() for _ in range(4)]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    async with open_store(url_of(path)) as store:
        for one, two, answered in said:
            heads = [(await store.header(TENANT, run_id)).head for run_id in (one, two)]
            assert heads[0] == heads[1] >= int(answered)
            assert heads[0] % 4 == 1  # both units of a call were in one transaction
            for run_id in (one, two):
                rows = await store.read(TENANT, run_id)
                assert [row.seq for row in rows] == list(range(1, heads[0] + 1))
            answers = await store.commit([unit(change(one, heads[0]), change(two, heads[0]))])
            assert answers == [Committed()]


async def test_st_3_a_lock_of_another_process_is_unavailable(path: Path) -> None:
    """Nothing is written, reads go on, and the next commit after it succeeds."""
    run_id = await _migrated(path)
    async with open_store(url_of(path, "?busy_timeout_seconds=0.2")) as store:
        with started(path, "lock") as process:
            assert await asyncio.to_thread(next_line, process) == "locked"
            units = [unit(change(run_id, 1))]
            refused = await asyncio.gather(
                store.commit(units), store.commit([unit(admit())]), return_exceptions=True
            )
            assert [type(error) for error in refused] == [StoreUnavailable] * 2
            assert "locked" in str(refused[0])
            assert (await store.header(TENANT, run_id)).head == 1
            waiting = asyncio.create_task(store.commit(units))
            go(process)
            await asyncio.to_thread(process.wait)
            assert await waiting == [Committed()]
        assert len((await store.list_runs(TENANT)).headers) == 1


async def test_st_3_a_lock_that_is_let_go_in_time_is_not_noticed(path: Path) -> None:
    """The commit waits for it, and commits that come meanwhile join its transaction."""
    run_id = await _migrated(path)
    async with open_store(url_of(path, "?busy_timeout_seconds=30")) as store:
        with started(path, "lock") as process:
            assert await asyncio.to_thread(next_line, process) == "locked"
            first = asyncio.create_task(store.commit([unit(change(run_id, 1))]))
            second = asyncio.create_task(store.commit([unit(change(run_id, 2))]))
            assert (await store.header(TENANT, run_id)).head == 1
            go(process)
            assert await first == await second == [Committed()]


async def test_str_1_a_commit_of_another_process_ends_a_wait(path: Path) -> None:
    """Every waiter of this process, with one look at the file."""
    run_id = await _migrated(path)
    async with open_store(url_of(path)) as store:
        other = await admission(store)
        with started(path, "append", run_id) as process:
            assert await asyncio.to_thread(next_line, process) == "ready"
            twin = store.twin()
            waits = [
                asyncio.create_task(handle.wait(TENANT, {run_id: 1, other: 1}, 60))
                for handle in (store, twin, store)
            ]
            go(process)
            assert await asyncio.gather(*waits) == [frozenset({run_id})] * 3
            await twin.close()


async def test_str_1_one_statement_asks_for_every_run_that_is_waited_for(path: Path) -> None:
    """A look for a hundred and one Runs costs what it costs for one."""
    first = await _migrated(path)
    others = [admit() for _ in range(100)]
    run_ids = [first, *[one.run_id for one in others]]
    asked: list[str] = []

    async def all_were_asked_for() -> list[str]:
        """Wait for it, and for two looks that found nothing new; return what asked for heads."""
        while True:
            found = [text for text in asked if text != _LOOK]
            named = all(any(one in text for text in found) for one in run_ids)
            if named and asked[-2:] == [_LOOK] * 2:
                return found
            await asyncio.sleep(0.001)

    async with SqliteStore(SqliteOptions(path=str(path))) as store:
        await write(store, *map(unit, others))
        await store._read(lambda connection: connection.set_trace_callback(asked.append))
        with started(path, "append", first) as process:
            assert await asyncio.to_thread(next_line, process) == "ready"
            waits = [asyncio.create_task(store.wait(TENANT, {one: 1}, 60)) for one in run_ids]
            await all_were_asked_for()
            asked.clear()
            go(process)
            assert await waits[0] == frozenset({first})
        [text] = await all_were_asked_for()
        assert text.count("SELECT") == 2  # the other one unpacks the ids
        assert [waiting.done() for waiting in waits[1:]] == [False] * 100
        for waiting in waits:
            waiting.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def test_st_4_two_processes_migrate_at_once(path: Path) -> None:
    """One does it, the other finds it done; neither fails."""
    with started(path, "migrate") as process:
        assert [await asyncio.to_thread(next_line, process) for _ in range(2)] == ["0", "0"]
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT number, name FROM psych_migration").fetchall()
    connection.close()
    assert found == [(1, "initial"), (2, "capped")]
