"""A new store of any kind, for tests that leave its clock alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from psych_runtime._system import System
from psych_runtime.ports.store import Store
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store
from tests.stores.dynamo import dynamo_store
from tests.stores.kinds import EVERY_WAY, tables_of

__all__ = ["EVERYWHERE", "IN_PROCESS", "new_store"]

EVERYWHERE: Final = pytest.mark.parametrize("kind", EVERY_WAY)
"""For tests of what a store keeps, deletes, pages or orders."""

IN_PROCESS: Final = pytest.mark.parametrize("kind", ["memory", "sqlite"])
"""For tests of what is decided before any store is asked, or beside it."""


@asynccontextmanager
async def new_store(kind: str, folder: Path) -> AsyncIterator[Store]:
    """Open a store that is empty and migrated; `folder` is for its file, if it is one."""
    match kind:
        case "memory":
            yield MemoryStore()
        case "sqlite":
            async with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
                await store.migrate()
                yield store
        case "dynamodb":
            async with dynamo_store(System()) as store:
                yield store
        case _:
            tables = tables_of(kind)
            await tables.empty()
            async with tables.open() as store:
                yield store
