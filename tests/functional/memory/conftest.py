"""Every place that an agent may remember in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from psych_runtime._system import System
from psych_runtime.memory.contract import Harness
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store
from tests.functional.memory.harness import InProcessHarness, StoredHarness
from tests.stores.dynamo import dynamo_store
from tests.stores.kinds import EVERY_STORE, tables_of


@pytest.fixture(params=["in-process", *EVERY_STORE])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    """One place of each kind, in which nothing is remembered."""
    kind: str = request.param
    match kind:
        case "in-process":
            yield InProcessHarness()
        case "memory":
            yield StoredHarness(MemoryStore())
        case "sqlite":
            async with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
                await store.migrate()
                yield StoredHarness(store)
        case "dynamodb":
            async with dynamo_store(System()) as store:
                yield StoredHarness(store)
        case _:
            tables = tables_of(kind)
            await tables.empty()
            async with tables.open() as store:
                yield StoredHarness(store)
