"""The stores that operations are tried on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty, migrated store."""
    if request.param == "memory":
        opened: Store = MemoryStore()
    else:
        opened = open_store(f"sqlite:///{tmp_path / 'runs.db'}")
    async with opened:
        await opened.migrate()
        yield opened
