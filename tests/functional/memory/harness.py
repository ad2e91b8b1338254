"""Memories for tests: in the process, and in a store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psych_runtime.memory.in_process import InProcessMemory
from psych_runtime.memory.stored import StoredMemory
from psych_runtime.ports.memory import MemoryStore
from psych_runtime.ports.store import Store


class InProcessHarness:
    """Handles of one memory in this process."""

    def __init__(self, kind: type[InProcessMemory] = InProcessMemory) -> None:
        self._memory = kind()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[MemoryStore]:
        yield self._memory


class StoredHarness:
    """Handles of one store, a memory in each."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @asynccontextmanager
    async def open(self) -> AsyncIterator[MemoryStore]:
        async with self._store.twin() as twin:
            yield StoredMemory(twin)
