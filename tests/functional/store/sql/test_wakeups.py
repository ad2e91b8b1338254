"""Who waits for Runs: one query for all of them, hints after the commit, none of it needed."""

import asyncio

import asyncpg
import pytest

from psych_runtime.store.contract._build import TENANT, admission, change, unit, write
from psych_runtime.store.sql._rows import Row
from tests.functional.store.sql.harness import spied
from tests.stores.tables import SqlTables

WATCHED = 100
LISTENS = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1"


async def test_r_1_a_hundred_watched_runs_are_one_query_each_poll(sql_tables: SqlTables) -> None:
    """However many wait, a poll is one question for all of them."""
    async with spied(sql_tables) as (store, spy), asyncio.TaskGroup() as group:
        run_ids = [await admission(store) for _ in range(WATCHED)]
        waits = [group.create_task(store.wait(TENANT, {one: 1}, 0.5)) for one in run_ids]
        assert set(await asyncio.gather(*waits)) == {frozenset()}
        looks = spy.looks()
        assert looks[0] == WATCHED  # all that came within one turn of the loop
        assert looks.count(WATCHED) >= len(looks) - 1  # at the last poll some have ended
        assert len(looks) < WATCHED / 2


async def test_r_1_nobody_waits_nobody_polls(sql_tables: SqlTables) -> None:
    """After the last wait has ended there are no more queries."""
    async with spied(sql_tables) as (store, spy):
        run_id = await admission(store)
        await write(store, unit(change(run_id, 1)))
        assert await store.wait(TENANT, {run_id: 1}, 10) == {run_id}
        seen = len(spy.looks())
        await asyncio.sleep(0.2)  # four polls would fit
        assert len(spy.looks()) - seen <= 1  # one that was on its way


async def test_r_1_another_process_ends_a_wait_by_a_poll_alone(sql_tables: SqlTables) -> None:
    """Losing every hint changes latency only."""
    async with spied(sql_tables) as (waiter, _), spied(sql_tables) as (writer, _):
        run_id = await admission(writer)
        waiting = asyncio.create_task(waiter.wait(TENANT, {run_id: 1}, 30))
        await asyncio.sleep(0)
        waiter._database.hear(lambda _: None)
        await write(writer, unit(change(run_id, 1)))
        assert await waiting == {run_id}


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_1_a_hint_of_another_process_ends_a_wait(sql_tables: SqlTables) -> None:
    """Polls see nothing here until a notification has come."""
    heard = asyncio.Event()
    async with spied(sql_tables) as (waiter, spy), spied(sql_tables) as (writer, _):
        blind: list[Row] = []
        spy.answers = lambda text: (
            blind if text == spy.statements.heads and not heard.is_set() else None
        )
        hint = waiter._watcher.hint

        def hears(run_ids: list[str]) -> None:
            heard.set()
            hint(run_ids)

        waiter._watcher.hint = hears  # type: ignore[assignment, method-assign]
        run_id = await admission(writer)
        waiting = asyncio.create_task(waiter.wait(TENANT, {run_id: 1}, 30))
        listening = await asyncpg.connect(sql_tables.admin_url)
        try:
            while not await listening.fetchval(LISTENS, f'LISTEN "psych_{sql_tables.prefix}%'):
                await asyncio.sleep(0.01)
        finally:
            await listening.close()
        await write(writer, unit(change(run_id, 1)))
        assert await waiting == {run_id}
        assert heard.is_set()


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_1_hints_are_run_ids_only_and_one_message_for_many(sql_tables: SqlTables) -> None:
    """What is sent is no secret, and nothing grows with what was written."""
    said: list[str] = []
    listener = await asyncpg.connect(sql_tables.admin_url)
    try:
        await listener.add_listener(
            f"psych_{sql_tables.prefix}",
            lambda _connection, _pid, _channel, text: said.append(text),
        )
        async with spied(sql_tables) as (store, _):
            run_ids = [await admission(store) for _ in range(3)]
            await write(store, *(unit(change(run_id, 1, count=3)) for run_id in run_ids))
            while set(",".join(said).split(",")) != set(run_ids):
                await asyncio.sleep(0.01)
    finally:
        await listener.close()
    assert len(said) <= 4
