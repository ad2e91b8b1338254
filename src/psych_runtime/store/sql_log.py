"""Statements about headers, logs, keys, threads and texts, over the generated tables.

Judging reads come before any write of their unit, in one transaction (R-1). Each statement is
compiled once per dialect and prefix; the text that comes out is asserted in tests.
"""

from sqlalchemy import Insert, Select, Update, bindparam, func, insert, or_, select, tuple_, update

from psych_runtime.store.sql_words import first, limited
from psych_schema.tables import tables

__all__ = ["LogStatements"]


class LogStatements:
    """What commits and reads of single Runs say."""

    def __init__(self, prefix: str) -> None:
        self._t = tables(prefix)
        self._prefix = prefix

    def judge_run(self) -> Select[str]:
        """Ask whether a Run exists, in whichever tenant. No row: its id is free."""
        c = self._t.run.c
        return select(c.tenant).where(c.run_id == bindparam("run_id"))

    def judge_change(self) -> Select[*tuple[object, ...]]:
        """Read what a change is judged by and computed from. No row: RunNotFound."""
        c = self._t.run.c
        return select(
            c.tenant,
            c.epoch,
            c.head,
            c.schema_version,
            c.head_hash,
            c.head_at,
            c.open,
            c.state,
            c.worker,
            c.crashes,
            c.wake_at,
            c.deadline_at,
            c.remaining_seconds,
            c.abort,
            c.referenced,
            c.capped,
        ).where(c.run_id == bindparam("run_id"))

    def advance_head(self) -> Update:
        """Move a Run's head (R-1, R-4). Sets no indexed column. 0 rows: it was judged wrongly."""
        c = self._t.run.c
        return (
            update(self._t.run)
            .where(c.run_id == bindparam("run_id"))
            .where(c.tenant == bindparam("tenant"))
            .where(c.epoch == bindparam("fence"))
            .where(c.head == bindparam("from_head"))
            .values(
                head=bindparam("head"),
                head_hash=bindparam("head_hash"),
                head_at=bindparam("head_at"),
                schema_version=bindparam("schema_version"),
            )
        )

    def edit_open(self) -> Update:
        """Move a Run's head and rewrite `open`. Sets no indexed column."""
        return self.advance_head().values(open=bindparam("open"))

    def change_header(self) -> Update:
        """Move a Run's head and write every other column that a change may touch."""
        return self.edit_open().values(
            state=bindparam("state"),
            worker=bindparam("worker"),
            epoch=bindparam("epoch"),
            crashes=bindparam("crashes"),
            wake_at=bindparam("wake_at"),
            deadline_at=bindparam("deadline_at"),
            remaining_seconds=bindparam("remaining_seconds"),
            abort=bindparam("abort"),
            referenced=bindparam("referenced"),
            capped=bindparam("capped"),
        )

    def insert_row(self, name: str) -> Insert:
        """Write one whole row of a table; parameters are named as the columns are."""
        table = self._t.run.metadata.tables[self._prefix + name]
        return insert(table).values({column.name: bindparam(column.name) for column in table.c})

    def read_header(self) -> Select[*tuple[object, ...]]:
        """Read a tenant's header. No row: RunNotFound."""
        c = self._t.run.c
        return select(*c).where(c.run_id == bindparam("run_id"), c.tenant == bindparam("tenant"))

    def read_head(self) -> Select[int, str]:
        """Read a tenant's head and state alone. No row: RunNotFound."""
        c = self._t.run.c
        return select(c.head, c.state).where(
            c.run_id == bindparam("run_id"), c.tenant == bindparam("tenant")
        )

    def read_heads(self) -> Select[str, str, int, str]:
        """Read heads and states of the Runs whose ids a JSON array has."""
        c = self._t.run.c
        wanted = func.json_each(bindparam("run_ids")).table_valued("value")
        return select(c.tenant, c.run_id, c.head, c.state).where(
            c.run_id.in_(select(wanted.c.value))
        )

    def read_log(self) -> Select[*tuple[object, ...]]:
        """Read records behind `after`; a limit of -1 is none."""
        c = self._t.record.c
        found = select(*c).where(c.run_id == bindparam("run_id"), c.seq > bindparam("after"))
        return limited(found.order_by(c.seq), bindparam("limit"))

    def read_tail(self) -> Select[*tuple[object, ...]]:
        """Read the header at the highest position of a thread."""
        t, place = self._t, self._t.thread.c
        return first(
            select(*t.run.c)
            .join_from(t.thread, t.run, t.run.c.run_id == place.run_id)
            .where(place.tenant == bindparam("tenant"), place.thread == bindparam("thread"))
            .order_by(place.position.desc())
        )

    def read_place(self) -> Select[str]:
        """Ask who stands at a position of a thread. No row: it is free."""
        c = self._t.thread.c
        return select(c.run_id).where(
            c.tenant == bindparam("tenant"),
            c.thread == bindparam("thread"),
            c.position == bindparam("position"),
        )

    def read_key(self) -> Select[*tuple[object, ...]]:
        """Read what is known of a request."""
        c = self._t.key.c
        return select(*c).where(
            c.tenant == bindparam("tenant"),
            c.run_id == bindparam("run_id"),
            c.key == bindparam("key"),
        )

    def list_runs(self) -> Select[*tuple[object, ...]]:
        """Read a tenant's Runs behind a place, newest first; a filter that is null is none."""
        c = self._t.run.c
        place = tuple_(bindparam("before_at"), bindparam("before_run"))
        wanted = [
            or_(bindparam(name).is_(None), c[name] == bindparam(name))
            for name in ("state", "version", "thread", "parent")
        ]
        found = (
            select(*c)
            .where(c.tenant == bindparam("tenant"), tuple_(c.created_at, c.run_id) < place)
            .where(c.created_at > bindparam("created_after"), *wanted)
            .order_by(c.created_at.desc(), c.run_id.desc())
        )
        return limited(found, bindparam("limit"))

    def read_version(self) -> Select[str]:
        """Read a published Spec by its hash."""
        c = self._t.version.c
        return select(c.document).where(
            c.tenant == bindparam("tenant"), c.hash == bindparam("hash")
        )

    def read_document(self) -> Select[str]:
        """Read a system prompt or tool definition by its hash."""
        c = self._t.document.c
        return select(c.text).where(c.tenant == bindparam("tenant"), c.hash == bindparam("hash"))
