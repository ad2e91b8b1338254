"""Reads of Runs, in the reader's thread; each is one snapshot."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from psych_runtime.errors import CorruptRow, RunNotFound
from psych_runtime.ports.store import Page, RunFilter
from psych_runtime.store._order import Position, encode_cursor
from psych_runtime.store.sqlite._rows import RecordTuple, Value, header_of, key_of, record_of
from psych_runtime.store.sqlite._texts import Texts
from psych_schema.base import format_instant
from psych_schema.store import KeyRow, RecordRow, RunRow

__all__ = [
    "as_row",
    "read_header",
    "read_key",
    "read_log",
    "read_page",
    "read_tail",
    "read_text",
    "snapshot",
]

_LAST = "~"  # sorts behind every instant and every id
_LARGEST = 2**63 - 1  # that SQLite can compare


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let several statements see one state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


@contextmanager
def as_row(table: str, key: str) -> Iterator[None]:
    """Say of which row a text is that is not Unicode."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode"):
            raise
        problem = ascii(str(error))[1:-1]
        raise CorruptRow(table=table, key=key, problem=problem) from None


def read_header(connection: sqlite3.Connection, texts: Texts, tenant: str, run_id: str) -> RunRow:
    """Return a header. Raises RunNotFound."""
    names = {"tenant": tenant, "run_id": run_id}
    with as_row("run", run_id):
        row = connection.execute(texts.read_header, names).fetchone()
    if row is None:
        raise RunNotFound(run_id=run_id)
    return header_of(row)


def read_log(
    connection: sqlite3.Connection,
    texts: Texts,
    tenant: str,
    run_id: str,
    after: int,
    limit: int | None,
) -> list[RecordRow]:
    """Return records. Raises RunNotFound."""
    names: dict[str, Value] = {
        "tenant": tenant,
        "run_id": run_id,
        "after": min(after, _LARGEST),
        "limit": -1 if limit is None else min(limit, _LARGEST),
    }
    with as_row("record", f"{run_id} after {after}"):
        rows: list[RecordTuple] = connection.execute(texts.read_log, names).fetchall()
    own = rows and rows[0][2] == tenant  # no record is there without its Run
    if not own and connection.execute(texts.read_head, names).fetchone() is None:
        raise RunNotFound(run_id=run_id)
    return [record_of(row) for row in rows]  # a header that was altered decides, as everywhere


def read_tail(
    connection: sqlite3.Connection, texts: Texts, tenant: str, thread: str
) -> RunRow | None:
    """Return the last Run of a thread."""
    names = {"tenant": tenant, "thread": thread}
    row = connection.execute(texts.read_tail, names).fetchone()
    return None if row is None else header_of(row)


def read_key(
    connection: sqlite3.Connection, texts: Texts, tenant: str, run_id: str, key: str
) -> KeyRow | None:
    """Return what is known of a request."""
    names = {"tenant": tenant, "run_id": run_id, "key": key}
    row = connection.execute(texts.read_key, names).fetchone()
    return None if row is None else key_of(row)


def read_text(connection: sqlite3.Connection, text: str, tenant: str, hash: str) -> str | None:
    """Return a Spec or a document; `text` is the statement."""
    names = {"tenant": tenant, "hash": hash}
    with as_row("version or document", hash):
        row: tuple[str] | None = connection.execute(text, names).fetchone()
    return None if row is None else row[0]


def read_page(
    connection: sqlite3.Connection,
    texts: Texts,
    tenant: str,
    wanted: RunFilter,
    before: Position | None,
    limit: int,
) -> Page:
    """Return a page of headers, newest first."""
    names: dict[str, Value] = {
        "tenant": tenant,
        "before_at": _LAST if before is None else format_instant(before.created_at),
        "before_run": _LAST if before is None else before.run_id,
        "created_after": ""
        if wanted.created_after is None
        else format_instant(wanted.created_after),
        "state": wanted.state,
        "version": wanted.version,
        "thread": wanted.thread,
        "parent": wanted.parent,
        "limit": min(limit + 1, _LARGEST),
    }
    with as_row("run", f"of tenant {tenant}"):
        rows = connection.execute(texts.list_runs, names).fetchall()
    headers = tuple(header_of(row) for row in rows[:limit])
    more = len(rows) > limit and headers
    return Page(headers, encode_cursor(headers[-1]) if more else None)
