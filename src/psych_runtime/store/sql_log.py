"""Statements about headers, logs, keys, threads and texts, over the generated tables.

Judging reads come before any write of their unit, in one transaction (R-1). Each statement is
compiled once per dialect and prefix; the text that comes out is asserted in tests.
"""

from sqlalchemy import (
    Insert,
    Select,
    Update,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)

from psych_runtime.store.sql_words import first, limited
from psych_schema.tables import tables

__all__ = ["LogStatements"]

_HEAD = ("head", "head_hash", "head_at", "schema_version", "open")
_EDITED = (
    "state",
    "worker",
    "epoch",
    "crashes",
    "wake_at",
    "deadline_at",
    "remaining_seconds",
    "abort",
    "referenced",
    "capped",
)


class LogStatements:
    """What commits and reads of single Runs say."""

    def __init__(self, prefix: str) -> None:
        self._t = tables(prefix)
        self._prefix = prefix

    def judge_changes(self) -> Select[*tuple[object, ...]]:
        """Read what changes of the Runs whose ids a JSON array has are judged by and made of."""
        c = self._t.run.c
        return select(
            c.run_id,
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
        ).where(c.run_id.in_(self._listed()))

    def advance_head(self) -> Update:
        """Move a Run's head and rewrite `open` (R-1, R-4). Sets no indexed column."""
        return self._set(_HEAD)

    def change_header(self) -> Update:
        """Write every column that a change may touch."""
        return self._set(_HEAD + _EDITED)

    def _set(self, columns: tuple[str, ...]) -> Update:
        found = update(self._t.run).where(self._t.run.c.run_id == bindparam("run_id"))
        return found.values({name: bindparam(name) for name in columns})

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
        return select(c.tenant, c.run_id, c.head, c.state).where(c.run_id.in_(self._listed()))

    def read_places(self) -> Select[str, str, int]:
        """Read which of the places that a JSON array has are taken: [tenant, thread, position]."""
        c = self._t.thread.c
        wanted = func.json_each(bindparam("places")).table_valued("value")
        named = [
            func.json_extract(wanted.c.value, literal_column(f"'$[{place}]'")) for place in range(3)
        ]
        return (
            select(c.tenant, c.thread, c.position)
            .select_from(wanted)
            .join(
                self._t.thread,
                (c.tenant == named[0]) & (c.thread == named[1]) & (c.position == named[2]),
            )
        )

    def _listed(self) -> Select[*tuple[object, ...]]:
        """Return the ids that a JSON array has."""
        return select(func.json_each(bindparam("run_ids")).table_valued("value").c.value)

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
