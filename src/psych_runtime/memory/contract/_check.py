"""What a check of the contract needs from whoever runs it."""

from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from psych_runtime.ports import checks
from psych_runtime.ports.memory import MAX_MEMORY_ENTRIES, MemoryStore
from psych_schema.common import Scope

__all__ = ["ANNA", "Check", "Harness", "entries"]

ANNA: Final = Scope(tenant="acme", principal="anna")

type Check = checks.Check[Harness]
"""A named truth about every memory."""


class Harness(Protocol):
    """One place to remember in, empty, made anew for each check."""

    def open(self) -> AbstractAsyncContextManager[MemoryStore]:
        """Open another handle of it."""


async def entries(
    memory: MemoryStore, scope: Scope = ANNA, query: str | None = None
) -> list[tuple[str, str]]:
    """Return all keys and values that a query finds, newest first."""
    found = await memory.recall(scope, query, limit=MAX_MEMORY_ENTRIES)
    return [(entry.key, entry.value) for entry in found]
