"""What every memory does alike: what it refuses, who owns an entry, what a query finds.

An owner's entries stand in one tuple, the newest one last.
"""

from typing import NamedTuple

from psych_runtime.errors import InvalidArgument, InvalidPayload, MemoryFull, PayloadTooLarge
from psych_runtime.ports.memory import (
    MAX_MEMORY_BYTES,
    MAX_MEMORY_ENTRIES,
    MAX_MEMORY_ENTRY_BYTES,
    MAX_MEMORY_KEY_CHARACTERS,
    MemoryEntry,
    entry_bytes,
)
from psych_schema.common import Scope

__all__ = ["Entries", "Owner", "check_key", "found", "owner_of", "with_entry", "without_key"]

type Entries = tuple[MemoryEntry, ...]


class Owner(NamedTuple):
    """Whose entries they are; without a principal they are the tenant's own."""

    tenant: str
    principal: str | None


def owner_of(scope: Scope) -> Owner:
    """Return who remembers in a scope. Raises InvalidPayload for a name that is not kept."""
    _check_text("tenant", scope.tenant)
    if scope.principal is not None:
        _check_text("principal", scope.principal)
    return Owner(scope.tenant, scope.principal)


def check_key(key: str) -> None:
    """Raise InvalidPayload for what is no key of an entry."""
    _check_text("the key of an entry", key)
    if not 0 < len(key) <= MAX_MEMORY_KEY_CHARACTERS:
        problem = f"it has {len(key)} characters, not 1 to {MAX_MEMORY_KEY_CHARACTERS}"
        raise InvalidPayload(what="the key of an entry", problem=problem)


def _check_text(what: str, text: str) -> None:
    if "\0" in text:
        raise InvalidPayload(what=what, problem="it has the character U+0000; take it out")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"it is not Unicode: {error.reason}"
        raise InvalidPayload(what=what, problem=problem) from None


def with_entry(entries: Entries, entry: MemoryEntry) -> Entries:
    """Return the entries when one more is remembered. Raises what `remember` does."""
    check_key(entry.key)
    what = f"the entry {entry.key!r}"
    _check_text(what, entry.value)
    size = entry_bytes(entry.key, entry.value)
    if size > MAX_MEMORY_ENTRY_BYTES:
        raise PayloadTooLarge(what=what, size_bytes=size, bound_bytes=MAX_MEMORY_ENTRY_BYTES)
    rest = without_key(entries, entry.key)
    total = size + sum(entry_bytes(each.key, each.value) for each in rest)
    if len(rest) >= MAX_MEMORY_ENTRIES or total > MAX_MEMORY_BYTES:
        raise MemoryFull(
            entries=len(rest),
            bound_entries=MAX_MEMORY_ENTRIES,
            size_bytes=total,
            bound_bytes=MAX_MEMORY_BYTES,
        )
    return (*rest, entry)


def without_key(entries: Entries, key: str) -> Entries:
    """Return the entries when one is forgotten."""
    return tuple(entry for entry in entries if entry.key != key)


def found(entries: Entries, query: str | None, limit: int) -> list[MemoryEntry]:
    """Return what a query finds, newest first. Raises InvalidArgument for a limit below 1."""
    if limit < 1:
        raise InvalidArgument(what="limit", problem=f"{limit}: use 1 or more")
    words = (query or "").casefold().split()
    newest_first = [entry for entry in reversed(entries) if _has_all(entry, words)]
    return newest_first[:limit]


def _has_all(entry: MemoryEntry, words: list[str]) -> bool:
    key, value = entry.key.casefold(), entry.value.casefold()
    return all(word in key or word in value for word in words)
