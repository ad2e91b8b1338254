"""Rows that were read for several callers, as the answer of each of them."""

from collections.abc import Callable, Mapping, Sequence

from psych_runtime.errors import CorruptRow, PsychError, RunNotFound
from psych_runtime.store.sql._database import LogPart
from psych_runtime.store.sql._rows import Cell, Row, header_of, record_of
from psych_schema.store import RecordRow, RunRow

__all__ = ["header_among", "or_error", "records_of"]


def or_error[T](make: Callable[[], T]) -> T | PsychError:
    """Return what is made, or the error that is its caller's alone."""
    try:
        return make()
    except (RunNotFound, CorruptRow) as error:
        return error


def header_among(rows: Mapping[tuple[Cell, Cell], Row], tenant: str, run_id: str) -> RunRow:
    """Return the header of a tenant's Run. Raises RunNotFound, CorruptRow."""
    row = rows.get((tenant, run_id))
    if row is None:
        raise RunNotFound(run_id=run_id)
    return header_of(row)


def records_of(part: LogPart, rows: Sequence[Row]) -> list[RecordRow]:
    """Return what `read_log` has found. Raises RunNotFound, CorruptRow."""
    if not rows:
        raise RunNotFound(run_id=part.run_id)
    return [record_of(row) for row in rows if row[0] is not None]
