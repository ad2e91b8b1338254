"""Statements that take contents off records, and that delete whole Runs (R-11, ST-6)."""

from sqlalchemy import Delete, Select, Update, bindparam, delete, null, or_, select, update

from psych_runtime.store.sql_words import limited
from psych_schema.tables import tables

__all__ = ["RemovalStatements"]


class RemovalStatements:
    """What erasing and purging say; the Runs were judged in the same transaction."""

    def __init__(self, prefix: str) -> None:
        self._t = tables(prefix)

    def find_contents(self) -> Select[int]:
        """Find a Run's first records that have a content or a salt."""
        c = self._t.record.c
        kept = or_(c.content.is_not(None), c.salt.is_not(None))
        found = select(c.seq).where(c.run_id == bindparam("run_id"), kept).order_by(c.seq)
        return limited(found, bindparam("limit"))

    def blank_record(self) -> Update:
        """Take content and salt off a record."""
        record = self._t.record
        c = record.c
        found = update(record).where(c.run_id == bindparam("in_run"), c.seq == bindparam("at_seq"))
        return found.values(content=null(), salt=null())

    def delete_run(self) -> Delete:
        """Delete a header."""
        c = self._t.run.c
        return delete(self._t.run).where(c.run_id == bindparam("run_id"))

    def delete_log(self) -> Delete:
        """Delete a Run's records."""
        c = self._t.record.c
        return delete(self._t.record).where(c.run_id == bindparam("run_id"))

    def delete_keys(self) -> Delete:
        """Delete what is known of the requests to a Run."""
        c = self._t.key.c
        return delete(self._t.key).where(
            c.tenant == bindparam("tenant"), c.run_id == bindparam("run_id")
        )

    def delete_key(self) -> Delete:
        """Delete what is known of one request."""
        c = self._t.key.c
        return delete(self._t.key).where(
            c.tenant == bindparam("tenant"),
            c.run_id == bindparam("run_id"),
            c.key == bindparam("key"),
        )

    def delete_place(self) -> Delete:
        """Delete a Run's place in its thread."""
        c = self._t.thread.c
        return delete(self._t.thread).where(
            c.tenant == bindparam("tenant"),
            c.thread == bindparam("thread"),
            c.position == bindparam("position"),
            c.run_id == bindparam("run_id"),
        )
