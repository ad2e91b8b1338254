"""Bad files and full disks: a typed error each, and nothing half-written."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from psych_runtime.errors import (
    CorruptRow,
    InvalidPayload,
    RunNotFound,
    SchemaMissing,
    StoreClosed,
    StoreFull,
    StoreReadOnly,
    UnsupportedStore,
)
from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.store.contract._build import (
    TENANT,
    Text,
    admission,
    admit,
    change,
    sealed,
    unit,
)
from psych_runtime.store.open import open_store
from tests.functional.store.processes import next_line, started, url_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


async def _migrated(path: Path) -> str:
    async with open_store(url_of(path)) as store:
        await store.migrate()
        return await admission(store)


def _with_text(run_id: str, head: int, text: str) -> Unit:
    record = sealed(run_id, head + 1, text=Text(content=text))
    return unit(Change(run_id, head, None, (record,), HeaderChange(opened={"x": head + 1})))


def _execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


async def test_st_3_a_full_database_writes_nothing_of_a_unit(path: Path) -> None:
    """PRAGMA max_page_count; smaller units still fit, and those beside it in the queue."""
    run_id = await _migrated(path)
    async with open_store(url_of(path, "?max_page_count=100")) as store:
        other = await admission(store)
        before = await store.header(TENANT, run_id)
        results = await asyncio.gather(
            store.commit([unit(change(other, 1))]),
            store.commit([_with_text(run_id, 1, "x" * 1_000_000)]),
            store.commit([unit(change(other, 2))]),
            return_exceptions=True,
        )
        assert results[0] == results[2] == [Committed()]
        assert isinstance(results[1], StoreFull)
        assert results[1].code == "store_full"
        assert await store.header(TENANT, run_id) == before
        assert len(await store.read(TENANT, run_id)) == 1
        assert len(await store.read(TENANT, other)) == 3
        assert await store.commit([_with_text(run_id, 1, "x")]) == [Committed()]
    async with open_store(url_of(path)) as store:
        assert await store.commit([_with_text(run_id, 2, "x" * 1_000_000)]) == [Committed()]


async def test_st_3_a_read_only_file_is_read_and_not_written(path: Path) -> None:
    """Reads go on; each write is a typed error."""
    run_id = await _migrated(path)
    async with open_store(url_of(path, "?mode=ro")) as store:
        await store.migrate()
        assert (await store.header(TENANT, run_id)).head == 1
        assert len((await store.ready(9)).headers) == 1
        with pytest.raises(StoreReadOnly) as caught:
            await store.commit([unit(change(run_id, 1))])
        assert caught.value.code == "store_read_only"
        assert "readonly" in caught.value.problem
        with pytest.raises(StoreReadOnly):
            await store.enlist("wrk_1", lease_seconds=6, build="b", tools=())
        assert (await store.header(TENANT, run_id)).head == 1


async def test_st_3_a_read_only_file_without_tables_cannot_be_migrated(path: Path) -> None:
    """It is left as it is."""
    _execute(path, "PRAGMA user_version = 1")
    before = path.read_bytes()
    async with open_store(url_of(path, "?mode=ro")) as store:
        with pytest.raises(StoreReadOnly):
            await store.migrate()
    assert path.read_bytes() == before


async def test_st_3_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    """Entering the store says so."""
    path.write_bytes(b"These are my notes. " * 100)
    with pytest.raises(UnsupportedStore) as caught:
        async with open_store(url_of(path)):
            pytest.fail("entered")
    assert "not a database" in caught.value.problem
    assert path.read_bytes() == b"These are my notes. " * 100


async def test_st_3_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    """A directory, a missing directory, a missing file that must not be created."""
    for place, query, word in (
        (tmp_path, "", "is a directory"),
        (tmp_path / "none" / "runs.db", "", "no directory"),
        (tmp_path / "runs.db", "?mode=rw", "no file"),
        (tmp_path / "runs.db", "?mode=ro", "no file"),
    ):
        with pytest.raises(UnsupportedStore) as caught:
            async with open_store(url_of(place, query)):
                pytest.fail("entered")
        assert word in caught.value.problem
    assert list(tmp_path.iterdir()) == []


async def test_st_4_without_tables_everything_says_migrate_first(path: Path) -> None:
    """On the same handle it all works after that."""
    async with open_store(url_of(path)) as store:
        for _ in range(2):
            for call in (store.ready(1), store.list_runs(TENANT), store.commit([unit(admit())])):
                with pytest.raises(SchemaMissing) as caught:
                    await call
                assert "migrate" in str(caught.value)
        await store.migrate()
        assert await store.commit([unit(admit())]) == [Committed()]
        assert len((await store.ready(9)).headers) == 1


async def test_st_4_an_older_ledger_says_migrate_first(path: Path) -> None:
    """Tables of an older build are not touched by this one."""
    await _migrated(path)
    _execute(path, "DELETE FROM psych_migration")
    async with open_store(url_of(path)) as store:
        with pytest.raises(SchemaMissing) as caught:
            await store.ready(1)
    assert "at migration 0, this build needs 2" in caught.value.problem


async def test_st_4_a_newer_ledger_is_refused(path: Path) -> None:
    """The error says to upgrade; neither reads nor migrate touch the file."""
    await _migrated(path)
    _execute(path, "INSERT INTO psych_migration VALUES (3, 'later', 'f', 'now')")
    async with open_store(url_of(path)) as store:
        for call in (store.ready(1), store.commit([unit(admit())]), store.migrate()):
            with pytest.raises(UnsupportedStore) as caught:
                await call
            assert "upgrade psych-runtime" in caught.value.remedy


async def test_st_4_an_edited_migration_is_refused(path: Path) -> None:
    """What was applied is not what this build ships."""
    await _migrated(path)
    _execute(path, "UPDATE psych_migration SET sha256 = 'f'")
    async with open_store(url_of(path)) as store:
        for call in (store.ready(1), store.migrate()):
            with pytest.raises(UnsupportedStore) as caught:
                await call
            assert "migration 1 (initial)" in caught.value.problem


async def test_st_4_a_failed_migration_leaves_nothing(path: Path) -> None:
    """A table of another program is in the way: no ledger, no table of ours."""
    _execute(path, "CREATE TABLE thread (mine)")
    async with open_store(url_of(path)) as store:
        with pytest.raises(sqlite3.OperationalError):
            await store.migrate()
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master").fetchall()
    connection.close()
    assert names == [("thread",)]
    async with open_store(url_of(path), prefix="psych_") as store:
        await store.migrate()
        assert await store.commit([unit(admit())]) == [Committed()]


async def test_r_22_a_commit_that_fails_leaves_its_neighbours(path: Path) -> None:
    """What cannot be written as UTF-8 is refused to its writer alone."""
    run_id = await _migrated(path)
    async with open_store(url_of(path)) as store:
        results = await asyncio.gather(
            store.commit([unit(admit())]),
            store.commit([_with_text(run_id, 1, "\ud83d")]),
            store.commit([unit(admit())]),
            return_exceptions=True,
        )
        assert results[0] == results[2] == [Committed()]
        assert isinstance(results[1], InvalidPayload)
        assert (await store.header(TENANT, run_id)).head == 1


async def test_r_22_what_the_table_refuses_leaves_its_neighbours(path: Path) -> None:
    """A unit that no writer sends fails inside the shared transaction, and alone."""
    await _migrated(path)
    odd = admit(columns={"abort": "perhaps"})
    async with open_store(url_of(path)) as store:
        results = await asyncio.gather(
            store.commit([unit(admit())]),
            store.commit([unit(odd)]),
            store.commit([unit(admit())]),
            return_exceptions=True,
        )
        assert results[0] == results[2] == [Committed()]
        assert isinstance(results[1], sqlite3.IntegrityError)
        with pytest.raises(RunNotFound):
            await store.header(TENANT, odd.run_id)


def _commits_in_wal(path: Path) -> int:
    wal = path.with_name(path.name + "-wal").read_bytes()
    page = int.from_bytes(wal[8:12])
    frames = range(32, len(wal) - 24 - page + 1, 24 + page)
    return sum(int.from_bytes(wal[at + 4 : at + 8]) > 0 for at in frames)


async def test_r_22_commits_that_wait_share_a_transaction(path: Path) -> None:
    """Twenty commits behind a lock are one commit frame in the log; those that join count."""
    await _migrated(path)
    async with open_store(url_of(path, "?busy_timeout_seconds=30")) as store:
        assert await store.commit([unit(admit())]) == [Committed()]
        before = _commits_in_wal(path)
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        commits: list[asyncio.Task[list[Answer]]] = []
        for _ in range(4):
            commits += [asyncio.create_task(store.commit([unit(admit())])) for _ in range(5)]
            await store.ready(1)
        lock.execute("ROLLBACK")
        lock.close()
        assert await asyncio.gather(*commits) == [[Committed()]] * 20
        assert _commits_in_wal(path) == before + 1


def _writers() -> int:
    return sum(thread.name == "psych-sqlite-writer" for thread in threading.enumerate())


async def test_r_21_a_file_has_one_writer_per_process(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often and by whichever name it is opened; the last handle ends the thread."""
    await _migrated(path)
    monkeypatch.chdir(path.parent)
    assert _writers() == 0
    async with open_store(url_of(path)) as one, open_store("sqlite:///runs.db") as two:
        for store in (one, two, one.twin()):
            assert await store.commit([unit(admit())]) == [Committed()]
        assert _writers() == 1
        await store.close()
        await one.close()
        assert await two.commit([unit(admit())]) == [Committed()]
        assert _writers() == 1
    assert _writers() == 0


async def test_r_21_a_closed_handle_says_so(path: Path) -> None:
    """It neither opens the file again nor hangs."""
    await _migrated(path)
    store: Store = open_store(url_of(path))
    await store.close()
    for call in (store.ready(1), store.commit([unit(admit())]), store.migrate()):
        with pytest.raises(StoreClosed):
            await call
    with pytest.raises(StoreClosed):
        store.twin()


async def test_st_3_a_store_that_was_opened_before_a_fork_is_refused(path: Path) -> None:
    """The threads are not there in the child; it must not wait for them."""
    await _migrated(path)
    with started(path, "fork") as process:
        assert await asyncio.to_thread(next_line, process) == "unsupported_store"


async def test_log_1_a_value_that_no_build_writes_is_named(path: Path) -> None:
    """It is no Unicode; nothing is written over it, and it can be deleted."""
    async with open_store(url_of(path)) as store:
        await store.migrate()
        row = await store.put_value(TENANT, "test", "k", "{}", expect=None)
        assert row is not None
        _execute(path, "UPDATE kv SET value = CAST(x'ff' AS TEXT)")
        for call in (
            store.value(TENANT, "test", "k"),
            store.list_values(TENANT, "test"),
            store.put_value(TENANT, "test", "k", "{}", expect=row.revision),
        ):
            with pytest.raises(CorruptRow, match="table kv") as caught:
                await call
            assert caught.value.table == "kv"
        assert await store.delete_value(TENANT, "test", "k", expect=row.revision)
