"""Stores that take what no caller may ask, or refuse what they may."""

from collections.abc import Sequence
from typing import Final

from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.store import Unit
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import RunRow


class CommitsNothing(MemoryStore):
    """Has no objection to a unit of nothing, and forgets the keys that came with it."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        landed = iter(await super().commit([unit for unit in units if unit.changes]))
        return [next(landed) if unit.changes else Committed() for unit in units]


class JudgesOneByOne(MemoryStore):
    """Looks at a unit when those before it are written."""

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        return [answer for unit in units for answer in await super().commit([unit])]


class GivesEmptyPages(MemoryStore):
    """Says that nothing is overdue to whoever asks for nothing."""

    async def overdue(self, limit: int) -> list[RunRow]:
        return [] if limit < 1 else await super().overdue(limit)


class CountsOneMore(MemoryStore):
    """Looks for one more than was asked for, which is none behind the largest number."""

    async def overdue(self, limit: int) -> list[RunRow]:
        return (await super().overdue(limit))[: (limit + 1) % 2**63]


class LiftsBelowNothing(MemoryStore):
    """Takes a cap below 0 for none."""

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        await super().set_cap(tenant, None if limit is not None and limit < 0 else limit)


class DeletesTwins(MemoryStore):
    """Deletes a Run once that is named twice."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        once = {header.run_id: header for header in headers}
        return await super().delete_runs(tenant, list(once.values()), keys)


class InsistsOnRuns(MemoryStore):
    """Deletes no keys without a Run."""

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        return bool(headers) and await super().delete_runs(tenant, headers, keys)


BROKEN_REFUSALS: Final[tuple[tuple[type[MemoryStore], str], ...]] = (
    (CommitsNothing, "a_unit_that_no_writer_may_send_is_refused"),
    (JudgesOneByOne, "a_unit_that_no_writer_may_send_is_refused"),
    (GivesEmptyPages, "a_page_that_nothing_fits_into_is_refused"),
    (CountsOneMore, "a_page_may_be_larger_than_any_list"),
    (LiftsBelowNothing, "a_cap_that_bounds_nothing_is_refused"),
    (DeletesTwins, "what_no_caller_may_delete_is_refused"),
    (InsistsOnRuns, "empty_lists_are_answered"),
)
"""Each broken store, and the check that must notice it."""
