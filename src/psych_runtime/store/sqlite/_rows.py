"""Between SQLite's rows and the generated models: instants and flags are text and integers."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal

from psych_runtime.core.models import trusted
from psych_runtime.errors import CorruptRow
from psych_runtime.store._order import Position, cursor_behind
from psych_schema.base import format_instant, parse_instant
from psych_schema.common import AbortPhase, RunPhase
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = [
    "CapTuple",
    "HeaderTuple",
    "KeyTuple",
    "KvTuple",
    "RecordTuple",
    "Value",
    "WorkerTuple",
    "cap_of",
    "dump_open",
    "header_of",
    "header_values",
    "instant",
    "key_of",
    "kv_of",
    "load_open",
    "record_of",
    "worker_of",
]

_record_row: Final = trusted(RecordRow)

type Value = str | int | float | None
"""What a column holds."""

type HeaderTuple = tuple[
    str,
    str,
    str,
    RunPhase,
    int,
    str,
    str,
    str | None,
    int,
    int,
    str | None,
    str | None,
    float | None,
    int,
    int,
    AbortPhase | None,
    str,
    int,
    str | None,
    str | None,
    str,
    Literal[0, 1],
    str,
    str,
    Literal[0, 1],
]
type RecordTuple = tuple[str, int, str, str, str, str | None, str | None]
type KeyTuple = tuple[str, str, str, str, str]
type KvTuple = tuple[str, str, str, int, str]
type CapTuple = tuple[str, int, int]
type WorkerTuple = tuple[str, str, float, int, str, Literal[0, 1], str, str]


def instant(text: str | None) -> datetime | None:
    """Return the instant that a column holds."""
    return None if text is None else datetime.fromisoformat(text)


def load_open(text: str) -> dict[str, int]:
    """Return the column `open` as a mapping; most headers have nothing open."""
    if text == "{}":
        return {}
    loaded: dict[str, int] = json.loads(text)
    return loaded


def dump_open(opened: dict[str, int]) -> str:
    """Return the text of the column `open`."""
    return json.dumps(opened, separators=(",", ":")) if opened else "{}"


def header_of(row: HeaderTuple) -> RunRow:
    """Return a header; the order is that of the table's columns. Raises CorruptRow."""
    return _made("run", row[1], row, _header_of, _cursor)


def _made[R, T](
    table: str,
    key: str,
    row: R,
    make: Callable[[R], T],
    cursor: Callable[[R], str | None] = lambda _: None,
) -> T:
    """Return what `make` makes of a row. Raises CorruptRow."""
    try:
        return make(row)
    except (ValueError, TypeError, RecursionError) as error:
        problem = str(error).splitlines()[0]
        raise CorruptRow(table=table, key=str(key), problem=problem, cursor=cursor(row)) from None


def _cursor(row: HeaderTuple) -> str | None:
    """Return the cursor behind a header that cannot be read, None when its place is not one."""
    try:
        return cursor_behind(Position(parse_instant(row[22]), row[1]))
    except (ValueError, TypeError):
        return None


def _header_of(row: HeaderTuple) -> RunRow:
    (
        tenant,
        run_id,
        version,
        state,
        head,
        head_hash,
        head_at,
        worker,
        epoch,
        crashes,
        wake_at,
        deadline_at,
        remaining_seconds,
        priority,
        schema_version,
        abort,
        thread,
        position,
        previous,
        parent,
        root,
        referenced,
        created_at,
        opened,
        capped,
    ) = row
    return RunRow(
        tenant=tenant,
        run_id=run_id,
        version=version,
        state=state,
        head=head,
        head_hash=head_hash,
        head_at=datetime.fromisoformat(head_at),
        worker=worker,
        epoch=epoch,
        crashes=crashes,
        wake_at=instant(wake_at),
        deadline_at=instant(deadline_at),
        remaining_seconds=remaining_seconds,
        priority=priority,
        schema_version=schema_version,
        abort=abort,
        thread=thread,
        position=position,
        previous=previous,
        parent=parent,
        root=root,
        referenced=bool(referenced),
        created_at=datetime.fromisoformat(created_at),
        open=load_open(opened),
        capped=bool(capped),
    )


def header_values(header: RunRow) -> dict[str, Value]:
    """Return a header's columns by name."""
    values: dict[str, Value] = dict(vars(header))
    for column in ("head_at", "wake_at", "deadline_at", "created_at"):
        value: datetime | None = getattr(header, column)
        values[column] = None if value is None else format_instant(value)
    values["referenced"] = int(header.referenced)
    values["open"] = dump_open(dict(header.open))
    values["capped"] = int(header.capped)
    return values


def record_of(row: RecordTuple) -> RecordRow:
    """Return a record's row; the table is strict about types. Raises CorruptRow."""
    run_id, seq, tenant, kind, body, content, salt = row
    if len(run_id) > 30 or len(tenant) > 128 or len(kind) > 64 or len(salt or "") > 32 or seq < 0:
        return _made("record", f"{run_id} {seq}", row, _record_of)  # which says what is wrong
    return _record_row(
        run_id=run_id, seq=seq, tenant=tenant, type=kind, body=body, content=content, salt=salt
    )


def _record_of(row: RecordTuple) -> RecordRow:
    run_id, seq, tenant, kind, body, content, salt = row
    return RecordRow(
        run_id=run_id, seq=seq, tenant=tenant, type=kind, body=body, content=content, salt=salt
    )


def key_of(row: KeyTuple) -> KeyRow:
    """Return a key's row. Raises CorruptRow."""
    return _made("key", row[2], row, _key_of)


def _key_of(row: KeyTuple) -> KeyRow:
    tenant, run_id, key, digest, receipt = row
    return KeyRow(tenant=tenant, run_id=run_id, key=key, digest=digest, receipt=receipt)


def kv_of(row: KvTuple) -> KvRow:
    """Return a small value's row. Raises CorruptRow."""
    return _made("kv", row[2], row, _kv_of)


def _kv_of(row: KvTuple) -> KvRow:
    tenant, kind, key, revision, value = row
    return KvRow(tenant=tenant, kind=kind, key=key, revision=revision, value=value)


def cap_of(row: CapTuple) -> CapRow:
    """Return a cap's row. Raises CorruptRow."""
    return _made("cap", row[0], row, _cap_of)


def _cap_of(row: CapTuple) -> CapRow:
    tenant, running, limit = row
    return CapRow(tenant=tenant, running=running, limit=limit)


def worker_of(row: WorkerTuple) -> WorkerRow:
    """Return a worker's row. Raises CorruptRow."""
    return _made("worker", row[0], row, _worker_of)


def _worker_of(row: WorkerTuple) -> WorkerRow:
    worker, lease_until, lease_seconds, beat, since, dead, build, tools = row
    names: list[str] = json.loads(tools)
    return WorkerRow(
        id=worker,
        lease_until=datetime.fromisoformat(lease_until),
        lease_seconds=lease_seconds,
        beat=beat,
        since=datetime.fromisoformat(since),
        dead=bool(dead),
        build=build,
        tools=tuple(names),
    )
