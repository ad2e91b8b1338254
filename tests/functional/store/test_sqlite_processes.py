"""Several processes and one SQLite file: races, kills, locks, wake-ups."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.store.contract._build import TENANT, admission, admit, change, unit
from psych_runtime.store.open import open_store
from tests.functional.store.processes import go, next_line, started, url_of

_EACH = 40


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


async def test_st_4_two_processes_migrate_at_once(path: Path) -> None:
    """One does it, the other finds it done; neither fails."""
    with started(path, "migrate") as process:
        assert [await asyncio.to_thread(next_line, process) for _ in range(2)] == ["0", "0"]
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT number, name FROM psych_migration").fetchall()
    connection.close()
    assert found == [(1, "initial"), (2, "capped")]
