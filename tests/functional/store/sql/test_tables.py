"""Tables that migrations make are the generated ones; statements find their rows by an index."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from psych_runtime.ports.store import HeaderChange
from psych_runtime.store.contract._build import TENANT, admission, admit, change, unit, write
from psych_runtime.store.migrations import LEDGER
from psych_runtime.store.migrations.script import Dialect, script
from psych_runtime.store.open import open_store
from psych_runtime.store.sql._statement import load, numbered
from psych_runtime.store.sql.postgresql._commit import commit_text
from psych_runtime.store.sql.postgresql._single import single_text
from psych_schema.tables import metadata
from tests.functional.store.sql.harness import ForMany
from tests.stores.tables import SqlTables

DIRECT = pytest.mark.servers("postgresql", "postgresql_new", "mysql", "mariadb")
DRIVERS = {
    "postgresql": "postgresql+asyncpg",
    "mysql": "mysql+aiomysql",
    "mariadb": "mariadb+aiomysql",
}


def own_tables(tables: SqlTables, dialect: str) -> MetaData:
    """Return the generated tables with the indexes that a dialect has."""
    found = metadata(tables.prefix)
    for table in found.tables.values():
        for index in tuple(table.indexes):
            if dialect not in index.info.get("dialects", (dialect,)):
                table.indexes.discard(index)
    return found


@DIRECT
async def test_st_4_migrated_tables_are_the_generated_ones(sql_tables: SqlTables) -> None:
    """Tables, columns with their types, keys and indexes, by alembic."""
    scheme, _, rest = sql_tables.url.partition("://")
    engine = create_async_engine(f"{DRIVERS[scheme]}://{rest}", poolclass=NullPool)
    wanted, own = own_tables(sql_tables, scheme), sql_tables.prefix

    def compare(connection: Connection) -> object:
        options = {
            "compare_type": True,
            "include_name": lambda name, kind, parents: (
                kind != "table" or (name.startswith(own) and name != own + LEDGER)
            ),
        }
        return compare_metadata(MigrationContext.configure(connection, opts=options), wanted)

    async with engine.connect() as connection:
        assert await connection.run_sync(compare) == []
    await engine.dispose()


async def _storage(connection: AsyncConnection) -> dict[str, tuple[object, ...]]:
    """Return what PostgreSQL knows of tables and indexes that it sees, and alembic does not ask."""
    found = await connection.execute(
        text("""
        SELECT class.relname, class.reloptions, pg_get_expr(indpred, indrelid)
        FROM pg_class AS class LEFT JOIN pg_index ON indexrelid = class.oid
        WHERE pg_table_is_visible(class.oid) AND class.relkind IN ('r', 'i')
          AND relnamespace = current_schema()::regnamespace""")
    )
    return {row[0]: tuple(row[1:]) for row in found}


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_st_4_migrated_tables_are_stored_as_the_generated_ones(
    sql_tables: SqlTables,
) -> None:
    """How full pages are and which rows an index has: of each, and of nothing else."""
    scheme, _, rest = sql_tables.url.partition("://")
    engine = create_async_engine(f"{DRIVERS[scheme]}://{rest}", poolclass=NullPool)
    wanted, own = own_tables(sql_tables, scheme), sql_tables.prefix
    async with engine.connect() as connection:
        migrated = await _storage(connection)
        await connection.execute(text(f"CREATE SCHEMA {own}generated"))
        await connection.execute(text(f"SET LOCAL search_path TO {own}generated"))
        await connection.run_sync(lambda sync: wanted.create_all(sync, checkfirst=False))
        generated = await _storage(connection)
        await connection.rollback()
    await engine.dispose()
    assert {name: migrated[name] for name in generated} == generated
    assert generated[f"{own}run"] == (["fillfactor=50"], None)
    assert generated[f"{own}run_worker"] == (None, "(worker IS NOT NULL)")


@DIRECT
async def test_st_4_ddl_by_hand_is_as_good_as_a_migration(sql_tables: SqlTables) -> None:
    """Applied to an empty database, the store takes its tables for migrated."""
    scheme = sql_tables.url.partition("://")[0]
    dialects: dict[str, Dialect] = {
        "postgresql": "postgresql",
        "mysql": "mysql",
        "mariadb": "mariadb",
    }
    await sql_tables.drop()
    await sql_tables.execute(
        [script(dialects[scheme], sql_tables.prefix).strip().removesuffix(";")]
    )
    async with open_store(sql_tables.url, prefix=sql_tables.prefix) as store:
        await write(store, unit(admit()))
        await store.migrate()
        assert len((await store.list_runs(TENANT)).headers) == 1


def texts(prefix: str) -> Iterator[tuple[str, str]]:
    """Yield every statement of PostgreSQL by its name."""
    package = "psych_runtime.store.sql.postgresql"
    yield from load(package, "statements.sql", prefix).items()
    for admits in (False, True):
        for names in (False, True):
            for moves in (False, True):
                name = f"commit {admits=} {names=} {moves=}"
                yield name, commit_text(prefix, admits=admits, names=names, moves=moves)
            for several in (False, True):
                name = f"single {admits=} {names=} {several=}"
                yield name, single_text(prefix, admits=admits, names=names, several=several)


@pytest.mark.servers("postgresql_new")
async def test_st_8_no_statement_reads_a_whole_table(sql_tables: SqlTables) -> None:
    """Each finds its rows by an index; of workers and caps there are few."""
    connection = await asyncpg.connect(sql_tables.url)
    scans: dict[str, list[str]] = {}
    try:
        await connection.execute("SET enable_seqscan = off")
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        for name, asked in texts(sql_tables.prefix):
            statement = numbered(asked)
            await connection.execute(f"PREPARE planned AS {statement.text}")
            nulls = ", ".join("NULL" for _ in statement.names)
            plan = await connection.fetch(f"EXPLAIN EXECUTE planned ({nulls})".replace(" ()", ""))
            await connection.execute("DEALLOCATE planned")
            found = re.findall(
                rf"Seq Scan on {sql_tables.prefix}(\w+)", "\n".join(row[0] for row in plan)
            )
            scans[name] = sorted(set(found) - {"worker", "cap"})
    finally:
        await connection.close()
    assert {name: found for name, found in scans.items() if found} == {}
    assert len(scans) > 38


@pytest.mark.servers("postgresql_new")
async def test_r_1_ordinary_commits_touch_no_index(sql_tables: SqlTables) -> None:
    """PostgreSQL updates the header in its page (HOT), and counts that, by either statement."""
    async with sql_tables.open() as store, ForMany(sql_tables).open() as other:
        run_id = await admission(store)
        async with _updates(sql_tables, 20) as counted:
            for head in range(1, 21):
                edit = HeaderChange(opened={f"ent_{head}": head})
                by = store if head % 2 else other
                await write(by, unit(change(run_id, head, edit=edit)))
    assert counted == [20, 20]


@pytest.mark.servers("postgresql_new")
async def test_r_1_ordinary_commits_of_64_runs_at_once_touch_no_index(
    sql_tables: SqlTables,
) -> None:
    """Where new headers fill half of a page, the next version of each of them is beside it."""
    async with sql_tables.open() as store:
        run_ids = await asyncio.gather(*[admission(store) for _ in range(64)])
        async with _updates(sql_tables, 64) as counted:
            await asyncio.gather(*[write(store, unit(change(each, 1))) for each in run_ids])
    assert counted == [64, 64]


@asynccontextmanager
async def _updates(tables: SqlTables, count: int) -> AsyncIterator[list[int]]:
    """Yield what will hold how many headers were updated, once `count` are, and how many HOT."""
    counts = """SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1"""
    connection = await asyncpg.connect(tables.url)
    counted: list[int] = []
    try:
        before = await connection.fetchrow(counts, f"{tables.prefix}run")
        yield counted
        after = before
        while after is None or before is None or after[0] < before[0] + count:
            after = await connection.fetchrow(counts, f"{tables.prefix}run")
            await asyncio.sleep(0.05)  # they come with a delay
        counted += [after[0] - before[0], after[1] - before[1]]
    finally:
        await connection.close()
