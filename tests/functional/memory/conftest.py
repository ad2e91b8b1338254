"""Every place that an agent may remember in."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from psych_runtime._system import System
from psych_runtime.memory.contract import Harness
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store
from tests.functional.memory.harness import InProcessHarness, StoredHarness
from tests.functional.store.dynamodb.harness import DynamoHarness
from tests.functional.store.dynamodb.unruly import Kind, Trouble, troubled
from tests.services import start_server
from tests.stores.dynamo import dynamo_store
from tests.stores.kinds import EVERY_STORE, tables_of

_CHANCES: Final[Mapping[Kind, float]] = {"in_progress": 0.03, "throttled": 0.05, "unanswered": 0.05}
"""What may befall the reads and writes of values: they are in no batch and in no index."""


@pytest.fixture(params=["in-process", *EVERY_STORE, "unruly"])
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
        case "unruly":
            trouble = Trouble(_CHANCES, at_once=True)
            unruly = DynamoHarness(start_server("aws").url, troubled(trouble))
            async with unruly.open() as store:
                trouble.struck.clear()
                yield StoredHarness(store)
            await unruly.drop()
            assert trouble.struck.keys() == _CHANCES.keys()  # what never came proves nothing
        case _:
            tables = tables_of(kind)
            await tables.empty()
            async with tables.open() as store:
                yield StoredHarness(store)
