"""Memory in the store: durable, shared by all processes that use the same tables.

An owner's entries are one small value, so that their order and their bounds are exact whoever
writes at the same time, and a recall is one read.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from typing import Final

from pydantic import TypeAdapter, ValidationError

from psych_runtime._system import System
from psych_runtime.errors import CorruptRow, StoreUnavailable
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
from psych_runtime.ports.store import Store
from psych_schema.base import format_instant
from psych_schema.common import Scope
from psych_schema.store import KvRow

__all__ = ["StoredMemory"]

_OF_PRINCIPAL: Final = "memory"
_OF_TENANT: Final = "memory.tenant"
_OWN: Final = "-"  # the one key of a tenant's own entries
_TRIES: Final = 100
_LONGEST_PAUSE_SECONDS: Final = 0.02
_SHAPE: Final = TypeAdapter(tuple[tuple[str, str, datetime], ...])


class StoredMemory:
    """Implements the memory port over the small values of a store, which stays the caller's.

    `system` gives the clock. Raises what the store does: StoreUnavailable also where so many
    write for one owner that nobody gets on, CorruptRow for entries that somebody has changed.
    """

    def __init__(self, store: Store, system: System | None = None) -> None:
        self._store = store
        self._system = system or System()

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        """Keep a text durably; it is the newest one."""
        entry = MemoryEntry(key, value, self._system.now())
        with_entry((), entry)  # what is refused for itself needs no read
        await self._change(owner_of(scope), lambda entries: with_entry(entries, entry))

    async def forget(self, scope: Scope, key: str) -> bool:
        """Delete an entry; False when there is none."""
        check_key(key)
        return await self._change(owner_of(scope), lambda entries: without_key(entries, key))

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        """Return the owner's entries, newest first."""
        owner = owner_of(scope)
        found((), query, limit)
        return found(_entries_of(await self._read(owner)), query, limit)

    async def _read(self, owner: Owner) -> KvRow | None:
        return await self._store.value(owner.tenant, *_place(owner))

    async def _change(self, owner: Owner, edit: Callable[[Entries], Entries]) -> bool:
        """Write what `edit` makes of the entries, again when somebody else was first.

        False when it changes nothing, and nothing is written.
        """
        for _ in range(_TRIES):
            row = await self._read(owner)
            before = _entries_of(row)
            after = edit(before)
            if after == before:
                return False
            expect = None if row is None else row.revision
            written = await self._store.put_value(
                owner.tenant, *_place(owner), _text_of(after), expect=expect
            )
            if written is not None:
                return True
            await asyncio.sleep(self._system.random() * _LONGEST_PAUSE_SECONDS)
        raise StoreUnavailable(problem=f"others were first {_TRIES} times; try again")


def _place(owner: Owner) -> tuple[str, str]:
    """Return kind and key: a principal may have any name, also that of the tenant's own."""
    return (_OF_TENANT, _OWN) if owner.principal is None else (_OF_PRINCIPAL, owner.principal)


def _entries_of(row: KvRow | None) -> Entries:
    if row is None:
        return ()
    try:
        return tuple(MemoryEntry(*each) for each in _SHAPE.validate_json(row.value))
    except ValidationError as error:
        problem = f"{error.error_count()} values are no entries of a memory"
        raise CorruptRow(table="kv", key=f"{row.kind} {row.key}", problem=problem) from None


def _text_of(entries: Entries) -> str:
    kept = [(entry.key, entry.value, format_instant(entry.remembered_at)) for entry in entries]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
