"""The packet of MySQL and MariaDB for one change does what that for many would (R-1)."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from psych_runtime.ports.answers import CapReached, Committed, SeqConflict
from psych_runtime.ports.store import HeaderChange, Unit
from psych_runtime.store.contract._build import (
    START,
    TENANT,
    admission,
    admit,
    change,
    new_id,
    unit,
)
from psych_runtime.store.sql._batch import answers, batches
from psych_runtime.store.sql._database import SqlOptions
from psych_runtime.store.sql._rows import Row
from psych_runtime.store.sql.mysql._driver import Connection
from psych_runtime.store.sql.mysql._single import single
from psych_runtime.store.sql.mysql.database import MysqlDatabase
from psych_schema.store import CapRow
from tests.functional.store.drawing import Drawing, Picks
from tests.functional.store.oracle import Oracle
from tests.stores.tables import SqlTables

DRAWS = 250
BOTH = pytest.mark.servers("mysql", "mariadb")
RUNNING = HeaderChange(state="running", worker="wrk_1", epoch=1)


class Counting(MysqlDatabase):
    """Counts its packets."""

    def __init__(self, tables: SqlTables) -> None:
        super().__init__(SqlOptions(tables.url, "here", tables.prefix))
        self.prefix = tables.prefix
        self.packets = 0

    async def _connect(self) -> Connection:
        connection = await super()._connect()
        cursor = connection.cursor

        async def counted() -> object:
            self.packets += 1
            return await cursor()

        connection.cursor = counted  # type: ignore[assignment, method-assign]
        return connection

    async def sent(self, made: Unit) -> tuple[int, object]:
        """Return how many packets a commit was, and its answer."""
        await self.reach()
        before = self.packets
        (batch,) = batches([made])
        (answer,) = answers([made], await self.commit(batch))
        return self.packets - before, answer

    async def rows(self, table: str) -> Sequence[Row]:
        """Return a whole table."""
        return await self.ask(f'SELECT * FROM "{self.prefix}{table}"', {})


@BOTH
async def test_r_1_one_change_is_one_packet(sql_tables: SqlTables) -> None:
    """Two when it is refused, or a cap counts it."""
    database = Counting(sql_tables)
    made = admit()
    run_id = made.run_id
    try:
        assert await database.sent(unit(made)) == (1, Committed())
        assert single(next(iter(batches([unit(made)]))), database.prefix) is None
        assert await database.sent(unit(change(run_id, 1, count=3))) == (1, Committed())
        assert await database.sent(unit(change(run_id, 3))) == (2, SeqConflict(run_id))
        async with sql_tables.open() as store:
            await store.set_cap(TENANT, 1)
            assert await database.sent(unit(change(run_id, 4, edit=RUNNING))) == (2, Committed())
            waiting = await admission(store)
            assert await store.cap(TENANT) == CapRow(tenant=TENANT, running=1, limit=1)
            claim = unit(change(waiting, 1, edit=RUNNING))
            assert await database.sent(claim) == (2, CapReached(TENANT))
            back = HeaderChange(state="ready", worker=None)
            assert await database.sent(unit(change(run_id, 5, edit=back))) == (2, Committed())
            assert await store.cap(TENANT) == CapRow(tenant=TENANT, running=0, limit=1)
            rows = await store.read(TENANT, run_id)
            assert [row.seq for row in rows] == list(range(1, 7))
    finally:
        await database.close()


@BOTH
async def test_r_1_what_is_refused_alone_has_written_nothing(sql_tables: SqlTables) -> None:
    """Neither a record nor a column."""
    database = Counting(sql_tables)
    try:
        async with sql_tables.open() as store:
            run_id = await admission(store)
        before = [await database.rows(table) for table in ("run", "record")]
        wrong = (
            unit(change(run_id, 2)),
            unit(change(run_id, 1, fence=3)),
            unit(change(run_id, 1, edit=RUNNING), tenant="globex"),
            unit(change(new_id("run"), 1, count=2)),
        )
        for made in wrong:
            packets, answer = await database.sent(made)
            assert (packets, answer == Committed()) == (2, False)
        assert [await database.rows(table) for table in ("run", "record")] == before
    finally:
        await database.close()


@BOTH
async def test_r_1_drawn_changes_are_answered_as_the_oracle_says(sql_tables: SqlTables) -> None:
    """Whichever packet wrote them; each way is taken."""
    oracle = Oracle(lambda: START)
    draws, chance = Drawing(oracle), random.Random(2)
    database = Counting(sql_tables)
    seen: Counter[object] = Counter()
    try:
        async with sql_tables.open() as store:
            oracle.set_cap("a", 1)
            await store.set_cap("a", 1)
        for _ in range(DRAWS):
            picks = Picks(chance.randbytes(64))
            made = draws.any_unit(picks) if oracle.runs else draws.fresh(picks)
            packets, answer = await database.sent(made)
            assert [answer] == oracle.commit([made])
            seen[packets, type(answer).__name__] += 1
    finally:
        await database.close()
    assert {(1, "Committed"), (2, "SeqConflict")} <= set(seen)
