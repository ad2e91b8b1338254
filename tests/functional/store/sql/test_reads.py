"""Reads that come together go together, and each caller has its own answer (R-22)."""

import asyncio
from collections.abc import Awaitable

import asyncpg
import pytest

from psych_runtime.core.codec import decode_anew
from psych_runtime.core.fold import fold
from psych_runtime.errors import CorruptRow, RunNotFound
from psych_runtime.ports.store import Unit
from psych_runtime.store.contract._build import TENANT, admission, change, new_id, unit, write
from tests.functional.reads.logs import lived
from tests.functional.store.sql.harness import spied
from tests.stores.tables import SqlTables

BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'psych-runtime'"


async def _each(*reads: Awaitable[object]) -> list[object]:
    return list(await asyncio.gather(*reads, return_exceptions=True))


async def test_r_22_headers_that_are_asked_for_together_are_one_statement(
    sql_tables: SqlTables,
) -> None:
    """The same Run twice, one that is not there, and one of another tenant among them."""
    async with spied(sql_tables) as (store, spy):
        one, foreign = await admission(store), await admission(store, tenant="globex")
        spy.asked.clear()
        found = await _each(
            store.header(TENANT, one),
            store.header(TENANT, foreign),
            store.header("globex", foreign),
            store.header(TENANT, one),
            store.header(TENANT, new_id()),
        )
        assert [text for text, _ in spy.asked] == [spy.statements.read_headers]
        assert [type(found[at]) for at in (1, 4)] == [RunNotFound, RunNotFound]
        assert found[0] == found[3] == await store.header(TENANT, one)
        assert found[2] == await store.header("globex", foreign)
        assert [text for text, _ in spy.asked[1:]] == [spy.statements.read_header] * 2


async def test_r_22_logs_that_are_asked_for_together_are_one_statement(
    sql_tables: SqlTables,
) -> None:
    """Each from its own place, as far as it asks, and a long one to its end."""
    async with spied(sql_tables) as (store, spy):
        one, long = await admission(store), await admission(store)
        await write(store, unit(change(one, 1, count=5)), unit(change(long, 1, count=80)))
        await write(store, unit(change(long, 81, count=80)))
        spy.asked.clear()
        found = await _each(
            store.read(TENANT, one),
            store.read(TENANT, one, after=2, limit=2),
            store.read(TENANT, one, after=6),
            store.read("globex", one),
            store.read(TENANT, long, after=3),
            store.read(TENANT, long, limit=64),
            store.read(TENANT, long, limit=100),
        )
        assert spy.together == [7]
        assert len(spy.asked) == 2  # what two of them have besides
        assert type(found.pop(3)) is RunNotFound
        seqs = [[row.seq for row in rows] for rows in found if isinstance(rows, list)]
        assert seqs == [
            [1, 2, 3, 4, 5, 6],
            [3, 4],
            [],
            list(range(4, 162)),
            list(range(1, 65)),
            list(range(1, 101)),
        ]
        assert found[0] == await store.read(TENANT, one)


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_22_a_row_that_cannot_be_read_is_one_callers_error(sql_tables: SqlTables) -> None:
    """Whoever reads other Runs in the same statement has them."""
    async with spied(sql_tables) as (store, _):
        one, broken = await admission(store), await admission(store)
        changing = await asyncpg.connect(sql_tables.admin_url)
        try:
            await changing.execute(
                f'UPDATE "{sql_tables.prefix}run" SET open = $1 WHERE run_id = $2', "[", broken
            )
        finally:
            await changing.close()
        found = await _each(store.header(TENANT, broken), store.header(TENANT, one))
        assert type(found[0]) is CorruptRow
        assert found[1] == await store.header(TENANT, one)


async def test_st_2_a_version_that_was_found_is_asked_for_once(sql_tables: SqlTables) -> None:
    """By any handle of the process; one that was not there is asked for again."""
    async with spied(sql_tables) as (store, spy):
        assert await store.version(TENANT, "a" * 64) is None
        await store.put_version(TENANT, "a" * 64, "{}")
        assert await store.version("globex", "a" * 64) is None
        twin = store.twin()
        assert await twin.version(TENANT, "a" * 64) == "{}"
        spy.asked.clear()
        assert await store.version(TENANT, "a" * 64) == "{}"
        await twin.close()
        assert spy.asked == []


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_st_2_a_refused_statement_keeps_its_connection(sql_tables: SqlTables) -> None:
    """The server is as before: connecting again would cost more than the statement."""
    async with spied(sql_tables) as (store, spy):
        await admission(store)
        before = await spy.ask(f"{BACKENDS} AND pid = pg_backend_pid()", {})
        for _ in range(3):
            with pytest.raises(asyncpg.DivisionByZeroError):
                await spy.ask("SELECT 1 / 0", {})
        after = await spy.ask(f"{BACKENDS} AND pid = pg_backend_pid()", {})
        assert list(before[0]) == list(after[0])


async def test_log_4_rows_that_were_kept_whole_and_rows_that_were_packed_are_one_log(
    sql_tables: SqlTables,
) -> None:
    """A table may hold both, as builds have written them by turns."""
    log = lived()
    async with spied(sql_tables) as (store, spy):
        for number, one in enumerate(log.units()):
            await write(store, _whole(one) if number % 2 else one)
        found = await store.read(log.tenant, log.run_id)
        header = await store.header(log.tenant, log.run_id)
        kept = await spy.ask(
            f'SELECT body FROM "{sql_tables.prefix}record" ORDER BY seq',
            {},
        )
    assert {str(row[0])[0] for row in kept} == {"A", "{"}
    assert found == log.rows
    assert fold(map(decode_anew, found)).position.hash == header.head_hash


def _whole(unit: Unit) -> Unit:
    """Return a unit of a build that packs nothing: one whose bodies nobody took apart."""
    [one] = unit.changes
    records = tuple(sealed._replace(own=None) for sealed in one.records)
    return unit._replace(changes=(one._replace(records=records),))
