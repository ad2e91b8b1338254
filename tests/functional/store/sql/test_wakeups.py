"""Who waits for Runs: one query for all of them, hints after the commit, none of it needed."""

import asyncio

import asyncpg
import pytest

from psych_runtime.ports.store import HeaderChange
from psych_runtime.store.contract._build import TENANT, admission, change, unit, write
from psych_runtime.store.sql._rows import Row
from tests.functional.store.sql.harness import spied
from tests.stores.tables import SqlTables

WATCHED = 100
LISTENS = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1"
ENDS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE $1"


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
    async with spied(sql_tables) as (waiter, spy), spied(sql_tables) as (writer, _):
        spy.deaf = True
        run_id = await admission(writer)
        waiting = asyncio.create_task(waiter.wait(TENANT, {run_id: 1}, 30))
        await asyncio.sleep(0)
        await write(writer, unit(change(run_id, 1)))
        assert await waiting == {run_id}
        ending = asyncio.create_task(waiter.wait(TENANT, {run_id: 1}, 30, over=True))
        await write(writer, unit(change(run_id, 2, edit=HeaderChange(state="settled"))))
        assert await ending == {run_id}


async def _listens(tables: SqlTables, listeners: int = 1) -> None:
    """Return once so many connections listen for these tables."""
    looking = await asyncpg.connect(tables.admin_url)
    try:
        while await looking.fetchval(LISTENS, f'LISTEN "psych_{tables.prefix}%') < listeners:
            await asyncio.sleep(0.01)
    finally:
        await looking.close()


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_1_a_hint_of_another_process_ends_a_wait(sql_tables: SqlTables) -> None:
    """By itself: no query follows it, and polls see nothing here."""
    async with spied(sql_tables) as (waiter, spy), spied(sql_tables) as (writer, _):
        blind: list[Row] = []
        spy.answers = lambda text: blind if text == spy.statements.heads else None
        run_id = await admission(writer)
        await waiter.arrival(0, 0)
        await _listens(sql_tables)
        waiting = asyncio.create_task(waiter.wait(TENANT, {run_id: 1}, 30))
        ending = asyncio.create_task(waiter.wait(TENANT, {run_id: 1}, 30, over=True))
        foreign = asyncio.create_task(waiter.wait("globex", {run_id: 1}, 30))
        await asyncio.sleep(0)
        await write(writer, unit(change(run_id, 1)))
        assert await waiting == {run_id}
        assert not ending.done()
        await write(writer, unit(change(run_id, 2, edit=HeaderChange(state="settled"))))
        assert await ending == {run_id}
        assert not foreign.done()
        foreign.cancel()


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_1_a_hint_that_came_before_the_wait_ends_it(sql_tables: SqlTables) -> None:
    """Between a caller's look and its wait; a tenant that has no such Run is told nothing."""
    async with spied(sql_tables) as (waiter, spy), spied(sql_tables) as (writer, _):
        blind: list[Row] = []
        spy.answers = lambda text: blind if text == spy.statements.heads else None
        seen = (await waiter.arrival(-1, 0)).seen
        await _listens(sql_tables)
        run_id = await admission(writer)
        assert (await waiter.arrival(seen, 30)).seen != seen
        assert await waiter.wait(TENANT, {run_id: 0}, 30) == {run_id}
        assert await waiter.wait("globex", {run_id: 0}, 0) == frozenset()
        assert await waiter.wait(TENANT, {run_id: 0}, 0, over=True) == frozenset()


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_15_another_process_makes_work_and_it_is_heard(sql_tables: SqlTables) -> None:
    """An admission; what only goes on is no work."""
    async with spied(sql_tables) as (worker, _), spied(sql_tables) as (writer, _):
        seen = (await worker.arrival(-1, 0)).seen
        await _listens(sql_tables)
        run_id = await admission(writer)
        first = (await worker.arrival(seen, 30)).seen
        assert first != seen
        waiting = asyncio.create_task(worker.wait(TENANT, {run_id: 1}, 30))
        await asyncio.sleep(0)
        await write(writer, unit(change(run_id, 1)))
        assert await waiting == {run_id}
        assert (await worker.arrival(first, 0)).seen == first


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_15_a_listener_that_was_away_counts_an_arrival(sql_tables: SqlTables) -> None:
    """It may have missed one; whoever waits for work looks again."""
    async with spied(sql_tables) as (worker, _):
        seen = (await worker.arrival(-1, 0)).seen
        await _listens(sql_tables)
        ending = await asyncpg.connect(sql_tables.admin_url)
        try:
            await ending.execute(ENDS, f'LISTEN "psych_{sql_tables.prefix}%')
        finally:
            await ending.close()
        assert (await worker.arrival(seen, 30)).seen != seen


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_1_a_message_of_another_build_says_nothing(sql_tables: SqlTables) -> None:
    """Whatever it is; what comes after it is heard."""
    async with spied(sql_tables) as (waiter, _), spied(sql_tables) as (writer, _):
        run_id = await admission(writer)
        seen = (await waiter.arrival(-1, 0)).seen
        await _listens(sql_tables)
        sending = await asyncpg.connect(sql_tables.admin_url)
        try:
            for text in (
                "",
                run_id,
                f"{run_id},x",
                "2",
                "2 x 1 y",
                "3 x 1",
                f"2 x 1 a:b:m:{run_id}",
            ):
                await sending.execute(
                    "SELECT pg_notify($1, $2)", f"psych_{sql_tables.prefix}", text
                )
        finally:
            await sending.close()
        waiting = asyncio.create_task(waiter.wait(TENANT, {run_id: 1}, 30))
        await asyncio.sleep(0)
        await write(writer, unit(change(run_id, 1)))
        assert await waiting == {run_id}
        assert (await waiter.arrival(seen, 0)).seen == seen


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_1_who_listens_learns_no_tenant_and_no_content(sql_tables: SqlTables) -> None:
    """Ids, heads and marks are sent, and many commits go in few messages."""
    said: list[str] = []
    listener = await asyncpg.connect(sql_tables.admin_url)
    try:
        await listener.add_listener(
            f"psych_{sql_tables.prefix}",
            lambda _connection, _pid, _channel, text: said.append(text),
        )
        async with spied(sql_tables) as (store, spy):
            run_ids = [await admission(store) for _ in range(3)]
            await write(store, *(unit(change(run_id, 1, count=3)) for run_id in run_ids))
        while len(said) < len(spy.told):
            await asyncio.sleep(0.01)
    finally:
        await listener.close()
    heads = {part.split(":")[3]: part.split(":")[1] for text in said for part in text.split()[3:]}
    assert heads == dict.fromkeys(run_ids, "4")
    assert TENANT not in "".join(said)
    assert len(said) <= 4


@pytest.mark.servers("postgresql", "postgresql_new")
async def test_r_1_whoever_is_heard_polls_once_a_second(sql_tables: SqlTables) -> None:
    """No query when a wait begins or ends."""
    async with spied(sql_tables) as (store, spy):
        run_id = await admission(store)
        await store.arrival(-1, 0)
        await _listens(sql_tables)
        while not store._watcher._hears:
            await asyncio.sleep(0.01)
        seen = len(spy.looks())
        for head in range(1, 9):
            waiting = asyncio.create_task(store.wait(TENANT, {run_id: head}, 30))
            await asyncio.sleep(0)
            await write(store, unit(change(run_id, head)))
            assert await waiting == {run_id}
        assert len(spy.looks()) - seen <= 1  # the second may have passed
