"""A process that remembers, and is killed: `python -m tests.functional.memory.program URL`."""

import asyncio
import itertools
import sys

from psych_runtime.memory.stored import StoredMemory
from psych_runtime.store.open import open_store
from psych_schema.common import Scope

SCOPES = (Scope(tenant="acme", principal="anna"), Scope(tenant="acme", principal="berta"))


async def remember(url: str) -> None:
    """Remember one thing after the other, saying after each that it is kept."""
    async with open_store(url) as store:
        await store.migrate()
        memory = StoredMemory(store)
        for number in itertools.count():
            for scope in SCOPES:
                await memory.remember(scope, f"{number % 50}", f"{scope.principal} {number}")
            print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(remember(sys.argv[1]))
