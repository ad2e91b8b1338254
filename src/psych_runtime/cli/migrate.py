"""`psych migrate`: bring a store's tables to this build (ST-4)."""

import asyncio
from typing import Annotated

import typer

from psych_runtime.cli._reading import StoreUrl, shown
from psych_runtime.store.open import open_store

__all__ = ["migrate"]


def migrate(
    store: StoreUrl,
    prefix: Annotated[str, typer.Option("--prefix", help="Before every table's name.")] = "",
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
