"""The adapters that every store test runs on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.store.contract import Harness
from tests.functional.store.harness import MemoryHarness, SqliteHarness


@pytest.fixture(params=["memory", "sqlite", "sqlite-prefix"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """One empty store of each kind."""
    match request.param:
        case "memory":
            return MemoryHarness()
        case "sqlite":
            return SqliteHarness(tmp_path / "runs.db")
        case _:
            return SqliteHarness(tmp_path / "runs.db", prefix="psych_")


@pytest.fixture
async def store(harness: Harness) -> AsyncIterator[Store]:
    """A handle of an empty, migrated store."""
    async with harness.open() as opened:
        yield opened
