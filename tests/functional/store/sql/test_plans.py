"""How PostgreSQL plans a claim when it does not know the parameters (R-15)."""

import re

import asyncpg
import pytest

from psych_runtime.store.contract._build import admission
from psych_runtime.store.sql._statement import load, numbered
from psych_schema.store import RunRow
from tests.stores.tables import SqlTables

RUNS = 20_000
GIVEN = {
    "after": ("varchar", "''"),
    "run_ids": ("varchar[]", "'{}'"),
    "versions": ("varchar[]", "'{}'"),
    "newest": ("integer", "9"),
    "window": ("bigint", "64"),
    "share": ("bigint", "1"),
    "limit": ("double precision", "64"),
    "uncapped": ("integer", "2147483647"),
    "worker": ("varchar", "'wrk_1'"),
}
OTHERS = {
    "tenant": "'t' || number % 1000",
    "run_id": "'run_' || number",
    "thread": "'run_' || number",
    "root": "'run_' || number",
}
SETTLED = """
    state = CASE right(run_id, 3)
      WHEN '111' THEN 'running' WHEN '222' THEN 'ready' ELSE 'settled' END,
    worker = CASE right(run_id, 3) WHEN '111' THEN 'wrk_' || right(run_id, 4) END"""


async def _fill(connection: asyncpg.Connection, prefix: str, run_id: str) -> None:
    """Have many Runs of one Version like one that there is."""
    columns = list(RunRow.model_fields)
    values = ", ".join(OTHERS.get(column, column) for column in columns)
    await connection.execute(
        f'INSERT INTO "{prefix}run" ({", ".join(columns)}) '
        f'SELECT {values} FROM "{prefix}run", generate_series(1, {RUNS}) AS number '
        f"WHERE run_id = '{run_id}'"
    )
    await connection.execute(f'ANALYZE "{prefix}run"')


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_15_a_claim_reads_no_whole_table_whatever_it_is_given(
    sql_tables: SqlTables,
) -> None:
    """A plan for any parameters is what a connection keeps after five calls."""
    prefix = sql_tables.prefix
    async with sql_tables.open() as store:
        run_id = await admission(store)
    text = load("psych_runtime.store.sql.postgresql", "statements.sql", prefix)["claimable"]
    statement = numbered(text)
    types = ", ".join(GIVEN[name][0] for name in statement.names)
    values = ", ".join(GIVEN[name][1] for name in statement.names)
    connection = await asyncpg.connect(sql_tables.admin_url)
    try:
        await _fill(connection, prefix, run_id)
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE claim ({types}) AS {statement.text}")
        lines = await connection.fetch(f"EXPLAIN EXECUTE claim ({values})")
    finally:
        await connection.close()
    plan = "\n".join(line[0] for line in lines)
    assert f"Seq Scan on {prefix}run" not in plan
    assert "run_claim" in plan


@pytest.mark.servers("postgresql", "postgresql_new")
@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("claimable", {"run_claim", "run_worker"}),
        ("held", {"run_worker"}),
        ("overdue", {"run_abort", "run_due"}),
        ("sweep", {"run_worker"}),
    ],
)
async def test_r_15_few_runs_are_found_among_many_settled_ones(
    sql_tables: SqlTables, name: str, indexes: set[str]
) -> None:
    """By indexes that only those are in: PostgreSQL sees that what is asked is what they hold.

    It is run, since the plan of what a recursion asks is told only then.
    """
    prefix = sql_tables.prefix
    async with sql_tables.open() as store:
        run_id = await admission(store)
    statement = numbered(load("psych_runtime.store.sql.postgresql", "statements.sql", prefix)[name])
    types = ", ".join(GIVEN[each][0] for each in statement.names)
    values = ", ".join(GIVEN[each][1] for each in statement.names)
    connection = await asyncpg.connect(sql_tables.admin_url)
    try:
        await _fill(connection, prefix, run_id)
        await connection.execute(f'UPDATE "{prefix}run" SET {SETTLED}')
        await connection.execute(f'ANALYZE "{prefix}run"')
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        prepared = f"planned ({types})" if types else "planned"
        await connection.execute(f"PREPARE {prepared} AS {statement.text}")
        lines = await connection.fetch(
            f"EXPLAIN (ANALYZE) EXECUTE planned {f'({values})' if values else ''}"
        )
    finally:
        await connection.close()
    plan = "\n".join(line[0] for line in lines)
    assert f"Seq Scan on {prefix}run" not in plan
    assert set(re.findall(rf"\b{prefix}(run_[a-z]+)", plan)) == indexes


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_15_tenants_come_in_their_order_whatever_the_plan(sql_tables: SqlTables) -> None:
    """The first five calls of a connection have plans of their own, the next one is kept."""
    prefix = sql_tables.prefix
    connection = await asyncpg.connect(sql_tables.admin_url)
    try:
        async with sql_tables.open() as store:
            model = await admission(store)
            await _fill(connection, prefix, model)
            await connection.execute(f'DELETE FROM "{prefix}run" WHERE run_id = $1', model)
            await connection.execute(f"UPDATE \"{prefix}run\" SET tenant = 't' || right(run_id, 3)")
            await connection.execute(f'ANALYZE "{prefix}run"')
            for _ in range(7):
                found = await store.ready(64, after_tenant="t499")
                tenants = [header.tenant for header in found.headers]
                assert tenants == [f"t{number}" for number in range(500, 564)]
    finally:
        await connection.close()
