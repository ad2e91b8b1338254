"""Small values on SQL servers: a write that may have happened is not sent again (R-20)."""

import asyncio

import pytest

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import TENANT
from psych_schema.store import KvRow
from tests.functional.store.sql.harness import behind, spied, through
from tests.stores.tables import SqlTables

KIND = "test"
DIRECT = pytest.mark.servers("postgresql", "postgresql_new", "mysql", "mariadb")


async def _put(store: Store, value: str, expect: int | None) -> KvRow:
    row = await store.put_value(TENANT, KIND, "k", value, expect=expect)
    assert row is not None
    return row


@DIRECT
async def test_r_20_a_put_whose_connection_dies_is_in_doubt(sql_tables: SqlTables) -> None:
    """Sent again in here it would be refused by itself, and the caller would not know why."""
    async with (
        behind(sql_tables) as proxy,
        through(proxy, sql_tables, pool_size=1) as store,
        sql_tables.open() as direct,
    ):
        row = await _put(store, "one", None)
        row = await _put(store, "two", row.revision)
        proxy.loses_answers = True
        putting = asyncio.create_task(
            store.put_value(TENANT, KIND, "k", "three", expect=row.revision)
        )
        async with asyncio.timeout(20):
            while await direct.value(TENANT, KIND, "k") == row:
                await asyncio.sleep(0.01)
        proxy.loses_answers = False
        proxy.cut()
        with pytest.raises(StoreUnavailable):
            await putting
        now = await store.value(TENANT, KIND, "k")
        assert now == row.model_copy(update={"revision": row.revision + 1, "value": "three"})


@DIRECT
async def test_r_20_a_put_over_a_dead_connection_is_not_lost(sql_tables: SqlTables) -> None:
    """Reads come over a new one; a put that may have been sent says so, and works the next time."""
    async with behind(sql_tables) as proxy, through(proxy, sql_tables, pool_size=1) as store:
        row = await _put(store, "one", None)
        proxy.cut()
        assert await store.value(TENANT, KIND, "k") == row
        assert await store.list_values(TENANT, KIND) == [row]
        proxy.cut()
        try:
            row = await _put(store, "two", row.revision)
        except StoreUnavailable:
            assert await store.value(TENANT, KIND, "k") == row
            row = await _put(store, "two", row.revision)
        assert await store.value(TENANT, KIND, "k") == row


async def test_r_1_a_put_is_one_statement_or_packet(sql_tables: SqlTables) -> None:
    """Nothing is read before it: its condition stands in it."""
    async with spied(sql_tables) as (store, spy):
        spy.asked.clear()
        row = await _put(store, "one", None)
        await _put(store, "two", row.revision)
        assert not await store.delete_value(TENANT, KIND, "k", expect=row.revision)
        assert [text for text, _ in spy.asked] == [
            spy.statements.new_value,
            spy.statements.change_value,
            spy.statements.delete_value,
        ]
