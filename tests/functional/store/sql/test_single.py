"""PostgreSQL's statement for a unit of its own does what that for many would (R-1)."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

import asyncpg
import pytest

from psych_runtime.ports.store import Admit, HeaderChange, Unit
from psych_runtime.store.contract._build import (
    START,
    TENANT,
    admission,
    admit,
    change,
    unit,
    write,
)
from psych_runtime.store.sql._batch import (
    CAP_REACHED,
    SEQ_CONFLICT,
    Batch,
    answers,
    batches,
)
from psych_runtime.store.sql._database import Param, SqlOptions
from psych_runtime.store.sql._rows import Row
from psych_runtime.store.sql._statement import numbered
from psych_runtime.store.sql.postgresql._single import single, single_text
from psych_runtime.store.sql.postgresql.database import PostgresqlDatabase
from psych_schema.store import CapRow
from tests.functional.store.drawing import TENANTS, Drawing, Picks
from tests.functional.store.oracle import Oracle
from tests.stores.tables import SqlTables

DRAWS = 300
KEPT = ("run", "record", "key", "thread", "cap")
LIMITS = {"a": 1, "b": 100}
VARIANTS = {
    (admits, named, count)
    for admits in (False, True)
    for named in (False, True)
    for count in ((1, 2) if admits else (0, 1, 2))
}

type Rows = dict[str, list[Sequence[object]]]


class Both(PostgresqlDatabase):
    """Judges units by either statement, in a transaction that is never committed."""

    def __init__(self, connection: asyncpg.Connection, prefix: str) -> None:
        super().__init__(SqlOptions(url="", where="here", prefix=prefix))
        self._prefix = prefix
        self._connection_of_all = connection

    async def ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        statement = numbered(text)
        arguments = [values[name] for name in statement.names]
        rows = await self._connection_of_all.fetch(statement.text, *arguments)
        return cast("list[Row]", rows)

    async def alone(self, batch: Batch) -> bool:
        """Tell whether the statement for a unit of its own writes it."""
        one = single(self._prefix, batch)
        assert one is not None
        return bool(await self.ask(one.text, one.values))

    async def among_many(self, batch: Batch) -> list[Row]:
        """Return the refusals of the statement for many."""
        return await self._commit_many(batch)

    async def rows(self, run_id: str) -> Rows:
        """Return every header, key, place and cap, and the records of a Run."""
        texts = {name: f'SELECT * FROM "{self._prefix}{name}"' for name in KEPT}
        texts["record"] = f"{texts['record']} WHERE run_id = '{run_id}'"
        return {
            name: sorted((tuple(row) for row in await self.ask(text, {})), key=repr)
            for name, text in texts.items()
        }


class Counting(PostgresqlDatabase):
    """Counts its statements."""

    def __init__(self, options: SqlOptions) -> None:
        super().__init__(options)
        self._asked = 0

    async def ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        self._asked += 1
        return await super().ask(text, values)

    async def sent(self, made: Unit) -> tuple[int, list[object]]:
        """Return how many statements a commit was, and the ranks of what it was refused for."""
        before = self._asked
        (batch,) = batches([made])
        refusals = await self.commit(batch)
        return self._asked - before, [row[1] for row in refusals]


@asynccontextmanager
async def undone(connection: asyncpg.Connection) -> AsyncIterator[None]:
    """Take back what is done inside."""
    inside = connection.transaction()
    await inside.start()
    try:
        yield
    finally:
        await inside.rollback()


def drawn(draws: Drawing, picks: Picks) -> Unit:
    """Return a unit of one change, which may be of a Run that its tenant does not have."""
    if not draws.oracle.runs:
        return draws.fresh(picks)
    row = draws.some_run(picks)
    kinds = (draws.fresh, draws.taking, draws.taking, draws.noted, draws.noted, draws.settled)
    made = picks.of((*kinds, None))
    if made is not None:
        found = made(picks)
        return found._replace(changes=found.changes[:1], keys=found.keys[:1])
    theirs = row.model_copy(update={"tenant": picks.of(TENANTS)})
    foreign = draws.change(picks, theirs, draws.edit(picks), fenced=True)
    return unit(foreign, tenant=theirs.tenant)


def is_counted(made: Unit, batch: Batch) -> bool:
    """Tell whether a cap may count what a unit does."""
    return made.tenant in LIMITS and batch.moves


@pytest.mark.servers("postgresql")
async def test_r_1_both_statements_make_the_same_of_a_unit(sql_tables: SqlTables) -> None:
    """Rows and answers are equal at the same now(); what one leaves alone the other judges."""
    oracle = Oracle(lambda: START)
    draws, chance = Drawing(oracle), random.Random(1)
    seen: Counter[object] = Counter()
    connection = await asyncpg.connect(sql_tables.admin_url)
    both = Both(connection, sql_tables.prefix)
    later = f"UPDATE \"{sql_tables.prefix}run\" SET deadline_at = deadline_at - interval '9 s'"
    try:
        async with undone(connection):
            for tenant, limit in LIMITS.items():
                oracle.set_cap(tenant, limit)
                await both.ask(
                    f'INSERT INTO "{sql_tables.prefix}cap" (tenant, running, "limit") '
                    f"VALUES ('{tenant}', 0, {limit})",
                    {},
                )
            for number in range(DRAWS):
                if number % 20 == 0:
                    await both.ask(later, {})
                made = drawn(draws, Picks(chance.randbytes(64)))
                (batch,) = batches([made])
                run_id = made.changes[0].run_id
                before = await both.rows(run_id)
                async with undone(connection):
                    alone = await both.alone(batch)
                    after = await both.rows(run_id)
                refusals = await both.among_many(batch)
                assert oracle.commit([made]) == answers([made], refusals)
                if alone:
                    assert refusals == []
                    assert after == await both.rows(run_id)
                else:
                    assert after == before
                    assert refusals or is_counted(made, batch)
                admits, count = isinstance(made.changes[0], Admit), len(made.changes[0].records)
                seen[admits, bool(made.keys), min(count, 2)] += alone
                seen.update(row[1] for row in refusals)
    finally:
        await connection.close()
    assert set(seen) == VARIANTS | {1, 2, 3, 4, 5, 6}
    assert min(seen.values()) > 0  # every variant wrote something, every refusal was given


@pytest.mark.servers("postgresql")
async def test_r_1_a_unit_of_its_own_is_one_statement(sql_tables: SqlTables) -> None:
    """Two when it is refused, or a cap counts it: from then on that tenant's moves go at once."""
    database = Counting(SqlOptions(sql_tables.url, "here", sql_tables.prefix))
    made = admit()
    run_id = made.run_id
    running = HeaderChange(state="running", worker="wrk_1", epoch=1)
    try:
        assert await database.sent(unit(made)) == (1, [])
        assert await database.sent(unit(change(run_id, 1, count=3))) == (1, [])
        assert await database.sent(unit(change(run_id, 3))) == (2, [SEQ_CONFLICT])
        async with sql_tables.open() as store:
            await store.set_cap(TENANT, 1)
            assert await database.sent(unit(change(run_id, 4, edit=running))) == (2, [])
            assert await database.sent(unit(change(run_id, 5))) == (1, [])
            assert await store.cap(TENANT) == CapRow(tenant=TENANT, running=1, limit=1)
            ready = HeaderChange(state="ready", worker=None)
            assert await database.sent(unit(change(run_id, 6, edit=ready))) == (1, [])
            assert await store.cap(TENANT) == CapRow(tenant=TENANT, running=0, limit=1)
    finally:
        await database.close()


@pytest.mark.servers("postgresql")
async def test_r_15_a_full_cap_is_met_in_one_statement_the_second_time(
    sql_tables: SqlTables,
) -> None:
    """A worker may try again and again."""
    database = Counting(SqlOptions(sql_tables.url, "here", sql_tables.prefix))
    running = HeaderChange(state="running", worker="wrk_1", epoch=1)
    try:
        async with sql_tables.open() as store:
            await store.set_cap(TENANT, 1)
            await write(store, unit(change(await admission(store), 1, edit=running)))
            waiting = await admission(store)
        claim = unit(change(waiting, 1, edit=running))
        assert await database.sent(claim) == (2, [CAP_REACHED])
        assert await database.sent(claim) == (1, [CAP_REACHED])
    finally:
        await database.close()


@pytest.mark.servers("postgresql")
async def test_r_1_a_unit_of_its_own_finds_its_run_by_the_key(sql_tables: SqlTables) -> None:
    """A connection keeps the plan that it made when the tables were empty."""
    connection = await asyncpg.connect(sql_tables.admin_url)
    plans: list[str] = []
    try:
        await connection.execute("SET enable_seqscan = off")
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        for names in (False, True):
            text = single_text(sql_tables.prefix, admits=False, names=names, several=False)
            statement = numbered(text)
            await connection.execute(f"PREPARE single AS {statement.text}")
            nulls = ", ".join("NULL" for _ in statement.names)
            lines = await connection.fetch(f"EXPLAIN EXECUTE single ({nulls})")
            await connection.execute("DEALLOCATE single")
            plans.append("\n".join(line[0] for line in lines))
    finally:
        await connection.close()
    for plan in plans:
        assert f"Index Scan using {sql_tables.prefix}run_pkey" in plan
        assert "run_list" not in plan
