"""The packet for one change of one Run: half the statements of that for many.

It judges by the conditions of its update alone, at the row that this locks: where that finds no
row, for whatever reason, nothing is written and the packet for many judges, which alone knows
refusals and counts for caps.
"""

from collections.abc import Iterator
from typing import Final

from psych_runtime.store.sql._batch import Batch, Given
from psych_runtime.store.sql.mysql._commit import assignments
from psych_runtime.store.sql.mysql._literal import literal
from psych_schema.store import RecordRow

__all__ = ["CHANGED", "single"]

CHANGED: Final = 1
"""The place of the update among the answers."""


def single(batch: Batch, prefix: str) -> str | None:
    """Return the packet, None for a batch with more than a change, or with a key."""
    if len(batch.changes) != 1 or batch.admissions or batch.keys:
        return None
    change = batch.changes[0]
    sets = ", ".join(assignments(change, prefix))
    if not sets:
        return None
    where = " AND ".join(_conditions(change, prefix))
    statements = [f'UPDATE "{prefix}run" SET {sets} WHERE {where}']
    if batch.records:
        statements.append(_records([row for _, row in batch.records], prefix))
    return ";\n".join(["START TRANSACTION", *statements, "COMMIT"])


def _conditions(change: Given, prefix: str) -> Iterator[str]:
    yield f"run_id = {_of(change, 'run_id')}"
    yield f"tenant = {_of(change, 'tenant')}"
    yield f"head = {_of(change, 'expect_head')}"
    if "fence" in change:
        yield f"epoch = {_of(change, 'fence')}"
    if "state" in change:
        yield "NOT capped"
    if change.get("state") == "running":
        tenant = _of(change, "tenant")
        yield f'NOT EXISTS (SELECT 1 FROM "{prefix}cap" AS cap WHERE cap.tenant = {tenant})'


def _records(rows: list[RecordRow], prefix: str) -> str:
    names = tuple(RecordRow.model_fields)
    given = " UNION ALL ".join(
        f"SELECT {', '.join(literal(getattr(row, name)) for name in names)} FROM DUAL "
        "WHERE ROW_COUNT() = 1"
        for row in rows
    )
    columns = ", ".join(f'"{name}"' for name in names)
    return f'INSERT INTO "{prefix}record" ({columns}) {given}'


def _of(change: Given, name: str) -> str:
    value = change[name]
    if isinstance(value, dict | list):
        raise TypeError(f"{name} is no single value")
    return literal(value)
