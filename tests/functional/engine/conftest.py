"""Fixtures of engine tests: every store by one name, workers that end with the test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.sqlite._connect import SqliteOptions
from psych_runtime.store.sqlite.store import SqliteStore
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import Crew, ShiftedSystem


@pytest.fixture
def clock() -> ShiftedSystem:
    """The store's clock: what it counts as over, a test need not wait for."""
    return ShiftedSystem()


@pytest.fixture(params=["memory", "sqlite"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ShiftedSystem
) -> AsyncIterator[Store]:
    """An empty store, each kind in turn."""
    if request.param == "memory":
        yield MemoryStore(clock)
        return
    opened = SqliteStore(SqliteOptions(path=str(tmp_path / "runs.db")), clock)
    await opened.migrate()
    async with opened:
        yield opened


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
