"""`psych migrate`: bring a store's tables to this build (ST-4)."""

import asyncio

from psych_runtime.cli._reading import Prefix, StoreUrl, shown
from psych_runtime.store.open import open_store

__all__ = ["migrate"]


def migrate(
    store: StoreUrl,
    prefix: Prefix = "",
) -> None:
    """Make the tables that are missing, or bring older ones to this build.

    Repeatable, and safe when two do it at once; nothing else migrates a store. A SQLite file that
    does not exist is made.
    """

    async def run() -> None:
        async with open_store(store, prefix=prefix) as opened:
            await opened.migrate()

    asyncio.run(run())
    print(f"{shown(store)} has this build's tables")
