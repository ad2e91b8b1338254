"""The part of the SQL store that erases contents and deletes whole Runs (R-11, ST-6)."""

from collections.abc import Sequence

from psych_runtime.errors import RunNotFound
from psych_runtime.store._storable import check_storable
from psych_runtime.store.sql._asks import Asks
from psych_runtime.store.sql._database import Param
from psych_runtime.store.units import check_deletion, check_limit
from psych_schema.store import RunRow

__all__ = ["TakesAway"]

_MOST = 2**63 - 2  # one less than servers can count with


class TakesAway(Asks):
    """What is erased and purged on a SQL server."""

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        """Take content and salt off some records; True when none has any left."""
        check_limit(limit)
        check_storable(tenant, run_id)
        most = min(limit, _MOST)
        values: dict[str, Param] = {"tenant": tenant, "run_id": run_id, "limit": most}
        rows = await self._ask(self._database.statements.blank, values)
        if not rows:
            raise RunNotFound(run_id=run_id)
        return bool(rows[0][0])

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        """Delete Runs with all their rows, all or none."""
        check_deletion(headers)
        check_storable(tenant, *[header.run_id for header in headers], *keys)
        return await self._surely(
            lambda: self._database.delete_runs(tenant, headers, keys), repeats=False
        )
