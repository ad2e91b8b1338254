"""Erasing contents and deleting Runs, inside the writer's transaction (R-11, ST-6)."""

import sqlite3
from collections.abc import Sequence

from psych_runtime.errors import RunNotFound
from psych_runtime.store.sqlite._reads import read_header
from psych_runtime.store.sqlite._rows import Value
from psych_runtime.store.sqlite._texts import Texts
from psych_runtime.store.units import is_as_seen
from psych_schema.store import RunRow

__all__ = ["blank", "delete_runs"]

_MOST = 2**63 - 2  # one less than SQLite can count with


def blank(
    connection: sqlite3.Connection, texts: Texts, tenant: str, run_id: str, limit: int
) -> bool:
    """Take contents and salts off; True when none is left. Raises RunNotFound."""
    names: dict[str, Value] = {"tenant": tenant, "run_id": run_id, "limit": min(limit, _MOST) + 1}
    if connection.execute(texts.read_head, names).fetchone() is None:
        raise RunNotFound(run_id=run_id)
    found: list[tuple[int]] = connection.execute(texts.find_contents, names).fetchall()
    places = [{"in_run": run_id, "at_seq": seq} for (seq,) in found[:limit]]
    connection.executemany(texts.blank_record, places)
    return len(found) <= limit


def delete_runs(
    connection: sqlite3.Connection,
    texts: Texts,
    tenant: str,
    headers: Sequence[RunRow],
    keys: Sequence[str],
) -> bool:
    """Delete Runs that are as they were seen, all or none."""
    now = [_header(connection, texts, tenant, seen.run_id) for seen in headers]
    if not all(is_as_seen(tenant, *pair) for pair in zip(now, headers, strict=True)):
        return False
    for header in now:
        names = vars(header)
        for text in (texts.delete_log, texts.delete_keys, texts.delete_place, texts.delete_run):
            connection.execute(text, names)
    for key in keys:
        connection.execute(texts.delete_key, {"tenant": tenant, "run_id": "", "key": key})
    return True


def _header(
    connection: sqlite3.Connection, texts: Texts, tenant: str, run_id: str
) -> RunRow | None:
    try:
        return read_header(connection, texts, tenant, run_id)
    except RunNotFound:
        return None
