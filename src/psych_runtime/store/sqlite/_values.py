"""Small values, inside the reader's or the writer's thread."""

import sqlite3

from psych_runtime._system import System
from psych_runtime.store._values import behind_all, first_revision
from psych_runtime.store.sqlite._reads import as_row
from psych_runtime.store.sqlite._rows import KvTuple, Value, kv_of
from psych_runtime.store.sqlite._texts import Texts
from psych_schema.store import KvRow

__all__ = ["Values"]

_LARGEST = 2**63 - 1


class Values:
    """A tenant's values of one kind as one transaction sees and writes them."""

    def __init__(
        self, connection: sqlite3.Connection, texts: Texts, tenant: str, kind: str
    ) -> None:
        self._execute = connection.execute
        self._texts = texts
        self._tenant = tenant
        self._kind = kind

    def read(self, key: str) -> KvRow | None:
        """Return a row."""
        with as_row("kv", key):
            row: KvTuple | None = self._execute(self._texts.read_value, self._named(key)).fetchone()
        return None if row is None else kv_of(row)

    def _named(self, key: str) -> dict[str, Value]:
        return {"tenant": self._tenant, "kind": self._kind, "key": key}

    def listed(self, prefix: str, after: str, limit: int) -> list[KvRow]:
        """Return rows in the order of their keys."""
        names: dict[str, Value] = {
            "tenant": self._tenant,
            "kind": self._kind,
            "prefix": prefix,
            "beyond": behind_all(prefix),
            "after": after,
            "limit": min(limit, _LARGEST),
        }
        with as_row("kv", f"of tenant {self._tenant}"):
            rows: list[KvTuple] = self._execute(self._texts.list_values, names).fetchall()
        return [kv_of(row) for row in rows]

    def put(self, key: str, value: str, expect: int | None, system: System) -> KvRow | None:
        """Write a row where `expect` is the revision of what is there."""
        there = self.read(key)
        if expect != (None if there is None else there.revision):
            return None
        revision = first_revision(system) if expect is None else expect + 1
        row = KvRow(tenant=self._tenant, kind=self._kind, key=key, revision=revision, value=value)
        if expect is None:
            self._execute(self._texts.insert_kv, vars(row))
        else:
            names: dict[str, Value] = {
                "in_tenant": self._tenant,
                "in_kind": self._kind,
                "at_key": key,
                "from_revision": expect,
                "to_revision": revision,
                "new_value": value,
            }
            self._execute(self._texts.change_value, names)
        return row

    def delete(self, key: str, expect: int | None) -> bool:
        """Delete a row that is there, at `expect` only."""
        names = {**self._named(key), "expect": expect}
        return self._execute(self._texts.delete_value, names).rowcount > 0
