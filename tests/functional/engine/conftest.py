"""Fixtures of engine tests: every store by one name, workers that end with the test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.sqlite._connect import SqliteOptions
from psych_runtime.store.sqlite.store import SqliteStore
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import Crew, ServerClock, ShiftedSystem
from tests.stores.dynamo import dynamo_store
from tests.stores.kinds import SQL_SERVERS, tables_of


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each store in turn; a folder may name others."""
    name: str = request.param
    return name


@pytest.fixture
def clock(kind: str) -> ShiftedSystem:
    """The store's clock: what it counts as over, a test need not wait for."""
    return ServerClock(tables_of(kind)) if kind in SQL_SERVERS else ShiftedSystem()


@pytest.fixture
async def store(kind: str, tmp_path: Path, clock: ShiftedSystem) -> AsyncIterator[Store]:
    """An empty store of the kind."""
    if kind == "memory":
        yield MemoryStore(clock)
    elif kind == "sqlite":
        opened = SqliteStore(SqliteOptions(path=str(tmp_path / "runs.db")), clock)
        await opened.migrate()
        async with opened:
            yield opened
    elif kind == "dynamodb":
        async with dynamo_store(clock) as opened_there:
            yield opened_there
    else:
        tables = tables_of(kind)
        await tables.empty()
        async with tables.open() as opened_there:
            yield opened_there


@pytest.fixture
def flaky(store: Store, crew: Crew) -> Flaky:
    """The same store, behind faults that a test plants; `store` itself has none."""
    made = Flaky(store)

    def heal() -> None:
        made.faults.away = False
        made.faults.before.clear()
        made.faults.after.clear()

    crew.at_end(heal)
    return made


@pytest.fixture
async def crew(store: Store) -> AsyncIterator[Crew]:
    """Workers that are stopped at the end, before the store is closed."""
    made = Crew()
    yield made
    await made.close()
