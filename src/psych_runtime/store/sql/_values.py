"""The part of the SQL store that keeps small values, each written where it is as expected."""

from collections.abc import Mapping

from psych_runtime.store._values import behind_all, check_range, check_value, first_revision
from psych_runtime.store.sql._asks import Asks
from psych_runtime.store.sql._database import Param
from psych_runtime.store.sql._rows import kv_of
from psych_schema.store import KvRow

__all__ = ["KeepsValues"]

_LARGEST = 2**63 - 1


class KeepsValues(Asks):
    """Small values on a SQL server."""

    async def _ask_once(self, text: str, values: Mapping[str, Param]) -> bool:
        """Tell whether a statement wrote; it is not sent again where it may have (R-20)."""
        rows = await self._surely(lambda: self._database.ask(text, values), repeats=False)
        return bool(rows and rows[0][0])

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        """Return a small value."""
        check_value(tenant, kind, key)
        values = {"tenant": tenant, "kind": kind, "key": key}
        rows = await self._ask(self._database.statements.read_value, values)
        return kv_of(rows[0]) if rows else None

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        """Write a small value where `expect` is its revision."""
        check_value(tenant, kind, key, value)
        statements = self._database.statements
        revision = first_revision(self._opened.system) if expect is None else expect + 1
        row = KvRow(tenant=tenant, kind=kind, key=key, revision=revision, value=value)
        text = statements.new_value if expect is None else statements.change_value
        return row if await self._ask_once(text, {**vars(row), "expect": expect}) else None

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        """Delete a small value."""
        check_value(tenant, kind, key)
        values = {"tenant": tenant, "kind": kind, "key": key, "expect": expect}
        return await self._ask_once(self._database.statements.delete_value, values)

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        """Return small values in the order of their keys."""
        check_range(tenant, kind, prefix, after, limit)
        values: dict[str, Param] = {
            "tenant": tenant,
            "kind": kind,
            "prefix": prefix,
            "beyond": behind_all(prefix),
            "after": after,
            "limit": min(limit, _LARGEST),
        }
        rows = await self._ask(self._database.statements.list_values, values)
        return [kv_of(row) for row in rows]
