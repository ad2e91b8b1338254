"""Between the rows of a SQL server and the generated models."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from psych_runtime.core.models import trusted
from psych_runtime.errors import CorruptRow
from psych_runtime.store._order import Position, cursor_behind
from psych_runtime.store.sql._packed import unpacked
from psych_schema.common import AbortPhase, RunPhase
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = [
    "Cell",
    "Row",
    "cap_of",
    "dump_open",
    "header_of",
    "header_values",
    "instant_of",
    "key_of",
    "kv_of",
    "record_of",
    "worker_of",
]

type Cell = str | int | float | bool | datetime | None
"""What a column holds."""

type Row = Sequence[Cell]

_record_row: Final = trusted(RecordRow)

_STATES: Final[dict[Cell, RunPhase]] = {
    "ready": "ready",
    "running": "running",
    "suspended": "suspended",
    "settled": "settled",
    "corrupt": "corrupt",
}
_ABORTS: Final[dict[Cell, AbortPhase]] = {"requested": "requested", "forced": "forced"}


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    raise TypeError(f"a text expected, not {cell!r}")


def _text_or_none(cell: Cell) -> str | None:
    return None if cell is None else _text(cell)


def _number(cell: Cell) -> int:
    if isinstance(cell, int):
        return int(cell)
    raise TypeError(f"an integer expected, not {cell!r}")


def _real(cell: Cell) -> float:
    if isinstance(cell, int | float):
        return float(cell)
    raise TypeError(f"a number expected, not {cell!r}")


def instant_of(cell: Cell) -> datetime:
    """Return an instant, of which a server may leave out that it is UTC."""
    if isinstance(cell, datetime):
        return cell.replace(tzinfo=UTC) if cell.tzinfo is None else cell
    raise TypeError(f"an instant expected, not {cell!r}")


def _instant_or_none(cell: Cell) -> datetime | None:
    return None if cell is None else instant_of(cell)


def _opened(cell: Cell) -> dict[str, int]:
    """Return the column `open`; most headers have nothing open."""
    if cell == "{}":
        return {}
    loaded: dict[str, int] = json.loads(_text(cell))
    return loaded


def dump_open(opened: dict[str, int]) -> str:
    """Return the text of the column `open`."""
    return json.dumps(opened, separators=(",", ":")) if opened else "{}"


def _made[T](
    table: str, key: Cell, row: Row, make: Callable[[Row], T], cursor: str | None = None
) -> T:
    """Return what `make` makes of a row. Raises CorruptRow."""
    try:
        return make(row)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        problem = str(error).splitlines()[0]
        raise CorruptRow(table=table, key=str(key), problem=problem, cursor=cursor) from None


def header_of(row: Row) -> RunRow:
    """Return a header; the order is that of the table's columns. Raises CorruptRow."""
    try:
        return _header_of(row)
    except (ValueError, TypeError, KeyError, RecursionError):
        return _made("run", row[1], row, _header_of, _cursor(row))


def _cursor(row: Row) -> str | None:
    """Return the cursor behind a header that cannot be read, None when its place is not one."""
    try:
        return cursor_behind(Position(instant_of(row[22]), _text(row[1])))
    except (ValueError, TypeError):
        return None


def _header_of(row: Row) -> RunRow:
    return RunRow(
        tenant=_text(row[0]),
        run_id=_text(row[1]),
        version=_text(row[2]),
        state=_STATES[row[3]],
        head=_number(row[4]),
        head_hash=_text(row[5]),
        head_at=instant_of(row[6]),
        worker=_text_or_none(row[7]),
        epoch=_number(row[8]),
        crashes=_number(row[9]),
        wake_at=_instant_or_none(row[10]),
        deadline_at=_instant_or_none(row[11]),
        remaining_seconds=None if row[12] is None else _real(row[12]),
        priority=_number(row[13]),
        schema_version=_number(row[14]),
        abort=None if row[15] is None else _ABORTS[row[15]],
        thread=_text(row[16]),
        position=_number(row[17]),
        previous=_text_or_none(row[18]),
        parent=_text_or_none(row[19]),
        root=_text(row[20]),
        referenced=bool(row[21]),
        created_at=instant_of(row[22]),
        open=_opened(row[23]),
        capped=bool(row[24]),
    )


def header_values(header: RunRow) -> dict[str, Cell]:
    """Return a header's columns by name."""
    return {**vars(header), "open": dump_open(dict(header.open))}


def record_of(row: Row) -> RecordRow:
    """Return a record's row. Raises CorruptRow."""
    try:
        return _record_of(row)
    except (ValueError, TypeError):
        return _made("record", f"{row[0]} {row[1]}", row, _record_of)


def _record_of(row: Row) -> RecordRow:
    run_id, seq, kind = _text(row[0]), _number(row[1]), _text(row[3])
    body, salt = unpacked(_text(row[4]), _text_or_none(row[6]), run_id, seq, kind)
    return _record_row(
        run_id=run_id,
        seq=seq,
        tenant=_text(row[2]),
        type=kind,
        body=body,
        content=_text_or_none(row[5]),
        salt=salt,
    )


def key_of(row: Row) -> KeyRow:
    """Return a key's row. Raises CorruptRow."""
    return _made("key", row[2], row, _key_of)


def _key_of(row: Row) -> KeyRow:
    tenant, run_id, key, digest, receipt = (_text(cell) for cell in row)
    return KeyRow(tenant=tenant, run_id=run_id, key=key, digest=digest, receipt=receipt)


def worker_of(row: Row) -> WorkerRow:
    """Return a worker's row. Raises CorruptRow."""
    return _made("worker", row[0], row, _worker_of)


def _worker_of(row: Row) -> WorkerRow:
    names: list[str] = json.loads(_text(row[7]))
    return WorkerRow(
        id=_text(row[0]),
        lease_until=instant_of(row[1]),
        lease_seconds=_real(row[2]),
        beat=_number(row[3]),
        since=instant_of(row[4]),
        dead=bool(row[5]),
        build=_text(row[6]),
        tools=tuple(names),
    )


def kv_of(row: Row) -> KvRow:
    """Return a small value's row. Raises CorruptRow."""
    return _made("kv", row[2], row, _kv_of)


def _kv_of(row: Row) -> KvRow:
    return KvRow(
        tenant=_text(row[0]),
        kind=_text(row[1]),
        key=_text(row[2]),
        revision=_number(row[3]),
        value=_text(row[4]),
    )


def cap_of(row: Row) -> CapRow:
    """Return a cap's row. Raises CorruptRow."""
    return _made("cap", row[0], row, _cap_of)


def _cap_of(row: Row) -> CapRow:
    return CapRow(tenant=_text(row[0]), running=_number(row[1]), limit=_number(row[2]))
