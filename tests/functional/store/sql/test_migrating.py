"""Migrations that break, are denied, or are asked for by two processes at once (ST-4)."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from psych_runtime.errors import SchemaMissing, StoreDenied, StoreFull
from psych_runtime.store.contract._build import TENANT, admit, unit, write
from psych_runtime.store.migrations import Migration, shipped, statements
from psych_runtime.store.open import open_store
from psych_runtime.store.sql._rows import Row
from psych_runtime.store.sql.mysql import _ledger as mysql_ledger
from psych_runtime.store.sql.postgresql import _ledger as postgresql_ledger
from tests.functional.store.sql.harness import spied
from tests.functional.store.sql.users import as_user, is_postgresql, make_user
from tests.processes import tasks
from tests.stores.tables import SqlTables

NO_ROOM = {
    "postgresql": "DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$",
    "mysql": "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'no room'",
}
"""What a server answers with that has no room for the next table."""


def breaking(dialect: str) -> Iterator[Sequence[Migration]]:
    """Yield this build's migrations, cut short behind each statement of theirs by a failure."""
    build = shipped(dialect)
    for number, migration in enumerate(build):
        parts = statements(migration.text, "{prefix}")
        for count in range(len(parts) + 1):
            cut = ";\n".join((*parts[:count], NO_ROOM[dialect]))
            yield (*build[:number], migration._replace(text=f"{cut};\n"))


async def ask(tables: SqlTables, text: str) -> list[Row]:
    """Ask the server of `tables`."""
    async with spied(tables) as (_, spy):
        return await spy.ask(text, {})


async def columns_of(tables: SqlTables) -> list[tuple[str, ...]]:
    """Return the columns of every table of the prefix, the ledger's too."""
    rows = await ask(
        tables,
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
        f"WHERE SUBSTR(table_name, 1, {len(tables.prefix)}) = '{tables.prefix}'",
    )
    return sorted(tuple(map(str, row)) for row in rows)


async def ledger_of(tables: SqlTables) -> list[int]:
    """Return the numbers of the migrations that were applied."""
    rows = await ask(tables, f'SELECT number FROM "{tables.prefix}psych_migration"')
    return sorted(int(str(row[0])) for row in rows)


async def check_whole(tables: SqlTables, columns: Sequence[tuple[str, ...]]) -> None:
    """Check that tables and ledger are as after one migration, and take a Run."""
    dialect = "postgresql" if is_postgresql(tables) else "mysql"
    assert await columns_of(tables) == columns
    assert await ledger_of(tables) == [one.number for one in shipped(dialect)]
    async with tables.open() as store:
        await write(store, unit(admit()))
        assert len((await store.list_runs(TENANT)).headers) == 1


@pytest.mark.servers("postgresql", "postgresql_new", "pooled")
async def test_st_4_a_migration_that_breaks_leaves_nothing(
    sql_tables: SqlTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken behind its last statement, not even the ledger is there; the next one makes all."""
    whole = await columns_of(sql_tables)
    await sql_tables.drop()
    async with open_store(sql_tables.url, prefix=sql_tables.prefix) as store:
        *_, last = breaking("postgresql")
        with monkeypatch.context() as patch:
            patch.setattr(postgresql_ledger, "shipped", lambda dialect: last)
            with pytest.raises(StoreFull, match="no room"):
                await store.migrate()
        assert await columns_of(sql_tables) == []
        with pytest.raises(SchemaMissing, match="has no tables"):
            await store.list_runs(TENANT)
        await store.migrate()
    await check_whole(sql_tables, whole)


@pytest.mark.servers("mysql", "mariadb")
async def test_st_4_a_migration_that_breaks_is_repeated(
    sql_tables: SqlTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it broke, what is there already is no hindrance; until then it is not applied."""
    whole = await columns_of(sql_tables)
    await sql_tables.drop()
    async with open_store(sql_tables.url, prefix=sql_tables.prefix) as store:
        for cut in breaking("mysql"):
            with monkeypatch.context() as patch:
                patch.setattr(mysql_ledger, "shipped", lambda dialect, cut=cut: cut)
                with pytest.raises(StoreFull, match="no room"):
                    await store.migrate()
        assert await ledger_of(sql_tables) == []
        with pytest.raises(SchemaMissing, match="is at migration 0"):
            await store.list_runs(TENANT)
        await store.migrate()
    await check_whole(sql_tables, whole)


@asynccontextmanager
async def place_of(tables: SqlTables, user: str) -> AsyncIterator[str]:
    """Make a schema or database where `user` may do nothing yet; yield its name."""
    name = f"{tables.prefix}place"
    kind = "SCHEMA" if is_postgresql(tables) else "DATABASE"
    await tables.execute([f"CREATE {kind} {name}"])
    await make_user(tables, user)
    try:
        yield name
    finally:
        whom = user if is_postgresql(tables) else f"'{user}'@'%'"
        cascade = "CASCADE" if is_postgresql(tables) else ""
        gone = "ROLE" if is_postgresql(tables) else "USER"
        await tables.execute([f"DROP {kind} {name} {cascade}", f"DROP {gone} {whom}"])


@pytest.mark.servers("postgresql", "postgresql_new", "mysql", "mariadb")
async def test_st_4_a_role_that_may_not_create_is_told_what_to_grant(
    sql_tables: SqlTables,
) -> None:
    """Nothing is half-made; what it is told is enough, and its password is not doubted."""
    user = f"psych_maker_{sql_tables.prefix.strip('_')}"
    rows = "SELECT, INSERT, UPDATE, DELETE"
    async with place_of(sql_tables, user) as place:
        parts = urlsplit(as_user(sql_tables, user, "right"))
        if is_postgresql(sql_tables):
            url = parts._replace(query=f"options=-csearch_path%3D{place}").geturl()
            grants = [f"USAGE ON SCHEMA {place}", f"CREATE ON SCHEMA {place}"]
        else:
            url = parts._replace(path=f"/{place}").geturl()
            grants = [f"{rows} ON {place}.*", f"CREATE ON {place}.*"]
            with pytest.raises(StoreDenied, match=rf"{place}.*to migrate, CREATE too"):
                async with open_store(url):
                    raise AssertionError("it was let in")
        await make_user(sql_tables, user, grants[0])
        async with open_store(url) as store:
            with pytest.raises(StoreDenied, match=rf"grant .* {rows[:-8]} and DELETE.*CREATE too"):
                await store.migrate()
            there = f"FROM information_schema.tables WHERE table_schema = '{place}'"
            assert await ask(sql_tables, f"SELECT table_name {there}") == []
            await make_user(sql_tables, user, grants[1])
            await store.migrate()
            await write(store, unit(admit()))


@pytest.mark.servers("postgresql", "mysql", "mariadb")
async def test_st_4_two_processes_that_migrate_at_once_take_turns(sql_tables: SqlTables) -> None:
    """One does it, the other finds it done; neither fails."""
    whole = await columns_of(sql_tables)
    await sql_tables.drop()
    program = "tests.functional.store.program"
    with tasks.started(program, sql_tables.url, "migrate", sql_tables.prefix) as process:
        said = [await asyncio.to_thread(tasks.next_line, process) for _ in range(2)]
    assert said == ["0", "0"]
    await check_whole(sql_tables, whole)


COUNTERS = {
    "postgresql": (
        'CREATE SEQUENCE "{prefix}applied"',
        "SELECT nextval('{prefix}applied');\nSELECT pg_sleep(0.1);\n",
        "SELECT nextval('{prefix}applied') - 1",
        'DROP SEQUENCE "{prefix}applied"',
    ),
    "mysql": (
        'CREATE TABLE "{prefix}applied" (one INTEGER)',
        'INSERT INTO "{prefix}applied" VALUES (1);\nDO SLEEP(0.1);\n',
        'SELECT COUNT(*) FROM "{prefix}applied"',
        'DROP TABLE "{prefix}applied"',
    ),
}
"""How a counter is made that no transaction takes back, counted on, read and dropped."""


async def test_st_4_of_many_that_migrate_at_once_one_applies_what_is_missing(
    sql_tables: SqlTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait until it is done, also where a statement does not mind being repeated."""
    dialect = "postgresql" if is_postgresql(sql_tables) else "mysql"
    make, text, read, drop = COUNTERS[dialect]
    build = shipped(dialect)
    newer = (*build, Migration(len(build) + 1, "counted", text))
    monkeypatch.setattr(postgresql_ledger, "shipped", lambda dialect: newer)
    monkeypatch.setattr(mysql_ledger, "shipped", lambda dialect: newer)
    ledger, prefix = f"{sql_tables.prefix}psych_migration", sql_tables.prefix
    stores = [open_store(sql_tables.url, prefix=prefix) for _ in range(4)]
    await sql_tables.execute([make.replace("{prefix}", prefix)])
    try:
        await asyncio.gather(*(store.migrate() for store in stores))
        assert [tuple(row) for row in await ask(sql_tables, read.format(prefix=prefix))] == [(1,)]
        assert await ledger_of(sql_tables) == [one.number for one in newer]
    finally:
        for store in stores:
            await store.close()
        undo = f'DELETE FROM "{ledger}" WHERE number = {len(newer)}'
        await sql_tables.execute([drop.format(prefix=prefix), undo])
