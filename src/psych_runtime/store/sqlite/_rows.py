"""Between SQLite's rows and the generated models: instants and flags are text and integers."""

import json
from datetime import datetime
from typing import Literal

from psych_runtime.errors import CorruptRow
from psych_schema.base import format_instant
from psych_schema.common import AbortPhase, RunPhase
from psych_schema.store import KeyRow, RecordRow, RunRow, WorkerRow

__all__ = [
    "HeaderTuple",
    "KeyTuple",
    "RecordTuple",
    "Value",
    "WorkerTuple",
    "dump_open",
    "header_of",
    "header_values",
    "instant",
    "key_of",
    "load_open",
    "record_of",
    "worker_of",
]

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
]
type RecordTuple = tuple[str, int, str, str, str, str | None, str | None]
type KeyTuple = tuple[str, str, str, str, str]
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
    try:
        return _header_of(row)
    except (ValueError, TypeError) as error:
        problem = str(error).splitlines()[0]
        raise CorruptRow(table="run", key=str(row[1]), problem=problem) from None


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
    )


def header_values(header: RunRow) -> dict[str, Value]:
    """Return a header's columns by name."""
    values: dict[str, Value] = dict(vars(header))
    for column in ("head_at", "wake_at", "deadline_at", "created_at"):
        value: datetime | None = getattr(header, column)
        values[column] = None if value is None else format_instant(value)
    values["referenced"] = int(header.referenced)
    values["open"] = dump_open(dict(header.open))
    return values


def record_of(row: RecordTuple) -> RecordRow:
    """Return a record's row."""
    run_id, seq, tenant, kind, body, content, salt = row
    return RecordRow(
        run_id=run_id, seq=seq, tenant=tenant, type=kind, body=body, content=content, salt=salt
    )


def key_of(row: KeyTuple) -> KeyRow:
    """Return a key's row."""
    tenant, run_id, key, digest, receipt = row
    return KeyRow(tenant=tenant, run_id=run_id, key=key, digest=digest, receipt=receipt)


def worker_of(row: WorkerTuple) -> WorkerRow:
    """Return a worker's row."""
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
