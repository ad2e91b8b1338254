"""The stores that every reader is tried on, and logs that were never lived."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from tests.stores.opening import new_store


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each store in turn; a test may name others."""
    name: str = request.param
    return name


@pytest.fixture
async def store(kind: str, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty, migrated store of the kind."""
    async with new_store(kind, tmp_path) as opened:
        yield opened
