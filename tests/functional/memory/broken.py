"""Memories that break one promise each: the contract must notice every one of them."""

import asyncio
from typing import Final

from psych_runtime.errors import MemoryFull
from psych_runtime.memory._entries import owner_of, with_entry
from psych_runtime.memory.in_process import InProcessMemory
from psych_runtime.ports.memory import MAX_MEMORY_ENTRIES, MemoryEntry
from psych_schema.common import Scope


class TrimsValues(InProcessMemory):
    """Takes white space around a value for nothing."""

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        await super().remember(scope, key, value.strip())


class TellsLocalTime(InProcessMemory):
    """Gives instants without a zone."""

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        found = await super().recall(scope, query, limit=limit)
        local = [entry.remembered_at.replace(tzinfo=None) for entry in found]
        return [each._replace(remembered_at=at) for each, at in zip(found, local, strict=True)]


class KeepsPlaces(InProcessMemory):
    """Lets a key that is said again stand where it stood."""

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        before = [entry.key for entry in self._owners.get(owner_of(scope), ())]
        await super().remember(scope, key, value)
        if key in before:
            entries = sorted(self._owners[owner_of(scope)], key=lambda each: before.index(each.key))
            self._owners[owner_of(scope)] = tuple(entries)


class OldestFirst(InProcessMemory):
    """Recalls in the order in which things were said."""

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        found = await super().recall(scope, query, limit=MAX_MEMORY_ENTRIES)
        return found[::-1][:limit]


class LimitsBeforeItLooks(InProcessMemory):
    """Takes the newest ones, then those of them that a query finds."""

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        newest = await super().recall(scope, None, limit=limit)
        found = await super().recall(scope, query, limit=MAX_MEMORY_ENTRIES)
        return [entry for entry in newest if entry in found]


class LooksForAnyWord(InProcessMemory):
    """Takes one word of a query for enough."""

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        found: list[MemoryEntry] = []
        for word in (query or "").split() or [""]:
            found += await super().recall(scope, word, limit=MAX_MEMORY_ENTRIES)
        every = await super().recall(scope, None, limit=MAX_MEMORY_ENTRIES)
        return [entry for entry in every if entry in found][:limit]


class MindsTheCase(InProcessMemory):
    """Tells capitals and small letters apart."""

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        found = await super().recall(scope, query, limit=limit)
        words = (query or "").split()
        return [entry for entry in found if all(word in f"{entry}" for word in words)]


class AlwaysForgot(InProcessMemory):
    """Says that there was something, whatever there was."""

    async def forget(self, scope: Scope, key: str) -> bool:
        await super().forget(scope, key)
        return True


class ForgetsAlike(InProcessMemory):
    """Forgets what differs in spaces at the end, too."""

    async def forget(self, scope: Scope, key: str) -> bool:
        forgot = [await super(ForgetsAlike, self).forget(scope, each) for each in (key, f"{key} ")]
        return any(forgot)


class SharesByTenant(InProcessMemory):
    """Lets all principals of a tenant see what each remembers."""

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        found: list[MemoryEntry] = []
        for tenant, principal in list(self._owners):
            if tenant == scope.tenant:
                each = Scope(tenant=tenant, principal=principal)
                found += await super().recall(each, query, limit=limit)
        return found[:limit]


class MixesUpTheTenantsOwn(InProcessMemory):
    """Has the tenant's own entries under the name of a principal."""

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        await super().remember(_named(scope), key, value)

    async def forget(self, scope: Scope, key: str) -> bool:
        return await super().forget(_named(scope), key)

    async def recall(
        self, scope: Scope, query: str | None = None, *, limit: int = 20
    ) -> list[MemoryEntry]:
        return await super().recall(_named(scope), query, limit=limit)


def _named(scope: Scope) -> Scope:
    return scope.model_copy(update={"principal": scope.principal or "-"})


class LooksThenWrites(InProcessMemory):
    """Reads, then writes what was read and one more: others come in between."""

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        before = self._owners.get(owner_of(scope), ())
        await asyncio.sleep(0)
        entry = MemoryEntry(key, value, self._system.now())
        self._owners[owner_of(scope)] = with_entry(before, entry)


class CutsKeys(InProcessMemory):
    """Cuts a key that is too long."""

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        await super().remember(scope, key[:128], value)


class ForgetsTheOldest(InProcessMemory):
    """Makes room where there is none."""

    async def remember(self, scope: Scope, key: str, value: str) -> None:
        try:
            await super().remember(scope, key, value)
        except MemoryFull:
            owner = owner_of(scope)
            self._owners[owner] = self._owners[owner][1:]
            await self.remember(scope, key, value)


BROKEN: Final[tuple[tuple[type[InProcessMemory], str], ...]] = (
    (TrimsValues, "an_entry_comes_back_as_it_was_given"),
    (TellsLocalTime, "an_entry_comes_back_as_it_was_given"),
    (KeepsPlaces, "the_same_key_again_is_one_entry_and_the_newest"),
    (OldestFirst, "the_newest_come_first_up_to_the_limit"),
    (LimitsBeforeItLooks, "the_newest_come_first_up_to_the_limit"),
    (LooksForAnyWord, "every_word_of_a_query_must_occur"),
    (MindsTheCase, "every_word_of_a_query_must_occur"),
    (AlwaysForgot, "what_is_forgotten_is_gone"),
    (ForgetsAlike, "what_is_forgotten_is_gone"),
    (SharesByTenant, "no_owner_sees_what_another_remembers"),
    (MixesUpTheTenantsOwn, "no_owner_sees_what_another_remembers"),
    (LooksThenWrites, "racing_writers_lose_no_entry"),
    (CutsKeys, "what_is_no_entry_is_refused"),
    (ForgetsTheOldest, "as_many_entries_are_kept_as_the_bound_says"),
    (ForgetsTheOldest, "as_many_bytes_are_kept_as_the_bound_says"),
)
"""Each broken memory, and the check that must notice it."""
