"""Memory without a place: for tests, simulations and agents that need not outlive the process."""

import threading

from psych_runtime._system import System
from psych_runtime.memory._entries import (
    Entries,
    Owner,
    check_key,
    found,
    owner_of,
    with_entry,
    without_key,
)
from psych_runtime.ports.memory import MemoryEntry
from psych_schema.common import Scope

__all__ = ["InProcessMemory"]


class InProcessMemory:
    """Implements the memory port in this process, under one lock, for any loops and threads.

    Every method answers without waiting. What it holds is gone with the process. `system` gives
    the clock.
    """

    def __init__(self, system: System | None = None) -> None:
        self._system = system or System()
        self._lock = threading.Lock()
        self._owners: dict[Owner, Entries] = {}

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        """Keep a text; it is the newest one."""
        owner = owner_of(scope)
        entry = MemoryEntry(key, value, self._system.now())
        with self._lock:
            self._owners[owner] = with_entry(self._owners.get(owner, ()), entry)

    async def forget(self, scope: Scope, key: str) -> bool:
        """Delete an entry; False when there is none."""
        owner = owner_of(scope)
        check_key(key)
        with self._lock:
            before = self._owners.get(owner, ())
            after = self._owners[owner] = without_key(before, key)
        return len(after) < len(before)

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        """Return the owner's entries, newest first."""
        owner = owner_of(scope)
        with self._lock:
            entries = self._owners.get(owner, ())
        return found(entries, query, limit)
