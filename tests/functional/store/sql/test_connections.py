"""Connections that die, servers that say nothing: what a caller sees of it (ST-2, R-20)."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

import pytest

from psych_runtime.api import publish
from psych_runtime.errors import StoreOfAnotherLoop, StoreUnavailable
from psych_runtime.ports.answers import Committed, SeqConflict
from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import TENANT, admission, change, named, unit
from psych_runtime.store.open import open_store
from psych_runtime.store.sql.store import SqlStore
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.model import ModelEvent, ModelRequest
from tests.functional.engine.flaky import Gate
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    run_to_end,
    runtime,
)
from tests.functional.store.sql.harness import behind, through
from tests.stores.tables import SqlTables

AT_ONCE = 20
SHORT = 0.5
"""Seconds that a call may take here, where a server is silent on purpose."""


async def test_st_2_a_dead_pooled_connection_costs_one_retry(sql_tables: SqlTables) -> None:
    """All idle ones are cut, as by a pooler: the next call works over a new one."""
    async with behind(sql_tables) as proxy, through(proxy, sql_tables) as store:
        run_id = await admission(store)
        for _ in range(3):
            proxy.cut()
            assert (await store.header(TENANT, run_id)).head == 1
            proxy.cut()
            assert await store.key(TENANT, run_id, "k") is None


async def test_st_2_a_server_that_is_away_is_unavailable_until_it_is_back(
    sql_tables: SqlTables,
) -> None:
    """Nothing of the outage stays behind."""
    async with behind(sql_tables) as proxy, through(proxy, sql_tables) as store:
        run_id = await admission(store)
        proxy.refuses = True
        proxy.cut()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store.header(TENANT, run_id)
        proxy.refuses = False
        assert (await store.header(TENANT, run_id)).head == 1


async def test_st_2_a_silent_server_is_unavailable_within_the_time_given(
    sql_tables: SqlTables,
) -> None:
    """Half-open connections: the call ends, and its connection is not used again."""
    async with (
        behind(sql_tables) as proxy,
        through(proxy, sql_tables, timeout_seconds=SHORT) as store,
    ):
        run_id = await admission(store)
        proxy.loses_answers = True
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.5 s"):
            await store.header(TENANT, run_id)
        proxy.loses_answers = False
        assert (await store.header(TENANT, run_id)).head == 1


async def test_r_20_a_commit_without_an_answer_is_sent_again(sql_tables: SqlTables) -> None:
    """Whether it had landed or not, it is there once."""
    async with (
        behind(sql_tables) as proxy,
        through(proxy, sql_tables, timeout_seconds=SHORT) as store,
    ):
        run_id = await admission(store)
        assert await store.commit([unit(change(run_id, 1))]) == [Committed()]
        sent = named(unit(change(run_id, 2)))
        proxy.loses_answers = True
        with pytest.raises(StoreUnavailable):
            await store.commit([sent])
        proxy.loses_answers = False
        (answer,) = await store.commit([sent])
        assert answer in (Committed(), SeqConflict(run_id))
        last = (await store.read(TENANT, run_id, after=2))[0]
        assert [row.seq for row in await store.read(TENANT, run_id)] == [1, 2, 3]
        assert sent.commit_id in last.body


async def test_st_2_a_slow_network_changes_nothing(sql_tables: SqlTables) -> None:
    """Every piece is late, either way."""
    async with behind(sql_tables) as proxy, through(proxy, sql_tables) as store:
        proxy.delay_seconds = 0.01
        run_id = await admission(store)
        assert await store.commit([unit(change(run_id, 1))]) == [Committed()]
        assert [row.seq for row in await store.read(TENANT, run_id)] == [1, 2]


async def test_st_2_many_callers_share_a_few_connections(sql_tables: SqlTables) -> None:
    """Nobody is refused, and those who wait for Runs hold none."""
    async with (
        behind(sql_tables) as proxy,
        through(proxy, sql_tables, pool_size=3) as store,
        asyncio.TaskGroup() as group,
    ):
        run_id = await admission(store)
        waiting = [group.create_task(store.wait(TENANT, {run_id: 1}, 30)) for _ in range(40)]
        headers = await asyncio.gather(*(store.header(TENANT, run_id) for _ in range(60)))
        assert {header.head for header in headers} == {1}
        assert await store.commit([unit(change(run_id, 1))]) == [Committed()]
        assert set(await asyncio.gather(*waiting)) == {frozenset({run_id})}
        assert proxy.accepted <= 3 + 1  # and one that listens


class Holding(FakeModel):
    """Each of its calls waits at a gate."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        return self._held(super().stream(request))

    async def _held(self, events: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        await self._gate.pass_through()
        async for event in events:
            yield event


def all_wait(gate: Gate) -> bool:
    """Tell whether every Run waits there."""
    return gate.waiting == AT_ONCE


async def test_st_2_no_connection_is_held_across_a_model_or_tool_call(
    sql_tables: SqlTables,
) -> None:
    """Twenty Runs share one: all are in a model call at once, then in a tool, and reads go on."""
    asking, working, crew = Gate(), Gate(), Crew()

    @tool(name="work")
    async def work() -> str:
        """Work."""
        await working.pass_through()
        return "done"

    model = Holding(asking).turn(tool_calls=[("work", {})]).turn(text="Done.")
    async with behind(sql_tables) as proxy, through(proxy, sql_tables, pool_size=1) as store:
        version = await publish(store, agent("work"), scope=ACME)
        runs = [await admit(store, version) for _ in range(AT_ONCE)]
        for gate in (asking, working):
            crew.at_end(gate.open)
        try:
            await crew.start(runtime(store, model, work), concurrency=AT_ONCE)
            for gate in (asking, working):
                await eventually(partial(all_wait, gate))
                headers = [await store.header(ACME.tenant, run) for run in runs]
                assert {header.state for header in headers} == {"running"}
                gate.open()
            for run in runs:
                await run_to_end(store, run)
        finally:
            await crew.close()
        assert proxy.accepted <= 1 + 2  # one that listens, and the supervisor's


async def test_r_21_a_handle_is_of_one_loop_and_says_so(sql_tables: SqlTables) -> None:
    """A twin is what another loop needs."""
    async with sql_tables.open() as store:
        run_id = await admission(store)

        def elsewhere(handle: Store) -> int:
            async def read() -> int:
                try:
                    return (await handle.header(TENANT, run_id)).head
                finally:
                    if handle is not store:
                        await handle.close()

            return asyncio.run(read())

        with pytest.raises(StoreOfAnotherLoop, match="twin"):
            await asyncio.to_thread(elsewhere, store)
        assert await asyncio.to_thread(elsewhere, store.twin()) == 1


def test_r_21_a_handle_goes_on_in_the_next_loop(server_tables: SqlTables) -> None:
    """A script that calls asyncio.run() twice needs to know nothing of loops."""
    asyncio.run(server_tables.empty())
    store = open_store(server_tables.url, prefix=server_tables.prefix)
    assert isinstance(store, SqlStore)

    async def used() -> int:
        head = (await store.header(TENANT, await admission(store))).head
        await store._database.close()  # or they are left to the collector, with a warning
        return head

    async def used_and_closed() -> int:
        async with store:
            return (await store.header(TENANT, await admission(store))).head

    assert asyncio.run(used()) == 1
    assert asyncio.run(used_and_closed()) == 1


@pytest.mark.servers("postgresql", "postgresql_new", "mysql", "mariadb")
async def test_r_20_a_commit_whose_connection_dies_is_in_doubt(sql_tables: SqlTables) -> None:
    """It is not sent again in here: its own records would be taken for somebody else's."""
    async with (
        behind(sql_tables) as proxy,
        through(proxy, sql_tables, pool_size=1) as store,
        sql_tables.open() as direct,
    ):
        assert isinstance(store, SqlStore)
        store._database.tells = False  # what tells others would wait for the one connection, too
        run_id = await admission(store)
        # the statement is prepared on the one connection that there is, and nothing waits for it
        assert await store.commit([unit(change(run_id, 1))]) == [Committed()]
        assert (await store.header(TENANT, run_id)).head == 2
        proxy.loses_answers = True
        committing = asyncio.create_task(store.commit([unit(change(run_id, 2))]))
        async with asyncio.timeout(20):
            while (await direct.header(TENANT, run_id)).head < 3:
                await asyncio.sleep(0.01)
        proxy.loses_answers = False
        proxy.cut()
        with pytest.raises(StoreUnavailable):
            await committing
        assert (await store.header(TENANT, run_id)).head == 3
