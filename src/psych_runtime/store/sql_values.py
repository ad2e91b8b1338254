"""Statements about small values, each of which is written where its revision is as expected."""

from sqlalchemy import Delete, Select, Update, bindparam, delete, or_, select, update

from psych_runtime.store.sql_words import limited
from psych_schema.tables import tables

__all__ = ["ValueStatements"]


class ValueStatements:
    """What compare-and-swap says; a row is inserted by `LogStatements.insert_row`."""

    def __init__(self, prefix: str) -> None:
        self._t = tables(prefix)

    def read_value(self) -> Select[*tuple[object, ...]]:
        """Read a value."""
        c = self._t.kv.c
        return select(*c).where(
            c.tenant == bindparam("tenant"),
            c.kind == bindparam("kind"),
            c.key == bindparam("key"),
        )

    def list_values(self) -> Select[*tuple[object, ...]]:
        """Read values with keys from `prefix` on and before `beyond`, behind `after`."""
        c = self._t.kv.c
        found = select(*c).where(
            c.tenant == bindparam("tenant"),
            c.kind == bindparam("kind"),
            c.key > bindparam("after"),
            c.key >= bindparam("prefix"),
            c.key < bindparam("beyond"),
        )
        return limited(found.order_by(c.key), bindparam("limit"))

    def change_value(self) -> Update:
        """Write a value. 0 rows: it has another revision, or is not there."""
        kv = self._t.kv
        found = update(kv).where(
            kv.c.tenant == bindparam("in_tenant"),
            kv.c.kind == bindparam("in_kind"),
            kv.c.key == bindparam("at_key"),
            kv.c.revision == bindparam("from_revision"),
        )
        return found.values(revision=bindparam("to_revision"), value=bindparam("new_value"))

    def delete_value(self) -> Delete:
        """Delete a value. 0 rows: it has another revision, or is not there."""
        c = self._t.kv.c
        return delete(self._t.kv).where(
            c.tenant == bindparam("tenant"),
            c.kind == bindparam("kind"),
            c.key == bindparam("key"),
            or_(bindparam("expect").is_(None), c.revision == bindparam("expect")),
        )
