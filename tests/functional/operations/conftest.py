"""The stores that operations are tried on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from tests.stores.kinds import EVERY_WAY
from tests.stores.opening import new_store


@pytest.fixture(params=EVERY_WAY)
def kind(request: pytest.FixtureRequest) -> str:
    """Each store in turn; a test may name others."""
    name: str = request.param
    return name


@pytest.fixture
async def store(kind: str, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty, migrated store of the kind."""
    async with new_store(kind, tmp_path) as opened:
        yield opened
