"""Stores that break a promise about small values each."""

import asyncio
from typing import Final

from psych_runtime.store.memory import MemoryStore
from psych_schema.store import KvRow


class TrimsValues(MemoryStore):
    """Takes spaces at the end of a value for nothing."""

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        return await super().put_value(tenant, kind, key, value.rstrip(" "), expect=expect)


class WritesOver(MemoryStore):
    """Expects what is there, whatever the caller does."""

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        row = await self.value(tenant, kind, key)
        now = None if row is None else row.revision
        return await super().put_value(tenant, kind, key, value, expect=now)


class CountsFromOne(MemoryStore):
    """Gives every new row the same revision."""

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        row = await super().put_value(tenant, kind, key, value, expect=expect)
        if row is not None and expect is None:
            row = row.model_copy(update={"revision": 1})
            self._rows.values._rows[tenant, kind][key] = row
        return row


class LooksThenWrites(MemoryStore):
    """Compares the revision, then writes: others come in between."""

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        row = await self.value(tenant, kind, key)
        if expect != (None if row is None else row.revision):
            return None
        await asyncio.sleep(0)
        row = await self.value(tenant, kind, key)
        now = None if row is None else row.revision
        return await super().put_value(tenant, kind, key, value, expect=now)


class LooksThenDeletes(MemoryStore):
    """Says that it deletes what is there, and deletes it later."""

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        row = await self.value(tenant, kind, key)
        await asyncio.sleep(0)
        deleted = await super().delete_value(tenant, kind, key, expect=expect)
        return deleted or (row is not None and expect in (None, row.revision))


class DeletesAtAnyRevision(MemoryStore):
    """Deletes a row as it is now."""

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        return await super().delete_value(tenant, kind, key)


class PadsKeys(MemoryStore):
    """Takes keys for one that differ in spaces at the end, as some collations do."""

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        return await super().value(tenant, kind, key.rstrip(" ") or key)


class MixesKinds(MemoryStore):
    """Lists what any tenant has of a kind."""

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        found = [
            row
            for owner, kept in list(self._rows.values._rows)
            if kept == kind
            for row in await super().list_values(
                owner, kind, prefix=prefix, after=after, limit=limit
            )
        ]
        return sorted(found, key=lambda row: row.key)[:limit]


def _units(row: KvRow) -> bytes:
    return row.key.encode("utf-16-be")


class SortsByUnits(MemoryStore):
    """Sorts keys by their UTF-16 code units, as JavaScript and Java do."""

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        found = sorted(await super().list_values(tenant, kind, prefix=prefix), key=_units)
        return [row for row in found if _units(row) > after.encode("utf-16-be")][:limit]


class OverlapsValues(MemoryStore):
    """Begins a page with the last row of the one before."""

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        found = await super().list_values(tenant, kind, prefix=prefix)
        return [row for row in found if row.key >= after][:limit]


class ReadsPatterns(MemoryStore):
    """Takes a prefix for a pattern in which % is any text."""

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        plain = prefix.rstrip("%")
        return await super().list_values(tenant, kind, prefix=plain, after=after, limit=limit)


class CutsKeys(MemoryStore):
    """Cuts a key that is too long."""

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        return await super().put_value(tenant, kind, key[:256], value, expect=expect)


BROKEN_VALUES: Final[tuple[tuple[type[MemoryStore], str], ...]] = (
    (TrimsValues, "a_value_comes_back_as_written"),
    (CountsFromOne, "a_value_is_written_at_its_revision_only"),
    (WritesOver, "a_value_is_written_at_its_revision_only"),
    (DeletesAtAnyRevision, "a_value_is_written_at_its_revision_only"),
    (LooksThenWrites, "of_racing_writers_one_wins_each_revision"),
    (LooksThenDeletes, "a_value_is_deleted_by_one_caller_alone"),
    (PadsKeys, "values_of_other_tenants_kinds_and_keys_are_apart"),
    (MixesKinds, "values_of_other_tenants_kinds_and_keys_are_apart"),
    (SortsByUnits, "values_are_listed_in_the_order_of_code_points"),
    (OverlapsValues, "values_are_listed_in_the_order_of_code_points"),
    (ReadsPatterns, "values_are_listed_in_the_order_of_code_points"),
    (CutsKeys, "what_is_no_value_is_refused"),
    (WritesOver, "a_value_whose_answer_was_lost_is_known_by_what_it_says"),
    (WritesOver, "writers_of_a_value_behind_faults_lose_no_word"),
)
"""Each broken store, and the check that must notice it."""
