"""Names that are noted in the store before a commit needs them, once in each process.

An index cannot be asked which workers or months it has. So they are written down first, and no
Run is ever there that could not be found.
"""

import asyncio
from collections.abc import Sequence

from psych_runtime.ports.store import Admit, Unit
from psych_runtime.store.dynamodb._asking import Ask
from psych_runtime.store.dynamodb._names import holder_key, key_of, month_of, months_key
from psych_runtime.store.dynamodb._wire import text

__all__ = ["note_names"]


async def note_names(ask: Ask, units: Sequence[Unit]) -> None:
    """Note which workers will hold Runs, and in which months Runs are made."""
    workers: set[str] = set()
    months: set[tuple[str, int]] = set()
    for unit in units:
        for change in unit.changes:
            worker = change.header.worker
            if isinstance(worker, str) and worker:
                workers.add(worker)
            if isinstance(change, Admit):
                months.add((unit.tenant, month_of(change.header.created_at)))
    shared = ask.shared
    new_months = [each for each in months if not shared.is_noted("month", each[0], str(each[1]))]
    await asyncio.gather(
        *[_note_worker(ask, name) for name in workers if not shared.is_noted("worker", name)],
        *[_note_month(ask, tenant, month) for tenant, month in new_months],
    )


async def _note_worker(ask: Ask, worker: str) -> None:
    where = key_of(holder_key(worker=worker))
    await ask.put(ask.tables.item, {**where, "worker": text(worker)})
    ask.shared.note("worker", worker)
    ask.shared.look_again()


async def _note_month(ask: Ask, tenant: str, month: int) -> None:
    await ask.update(
        ask.tables.item,
        key_of(months_key(tenant=tenant)),
        UpdateExpression="ADD #months :months",
        ExpressionAttributeNames={"#months": "months"},
        ExpressionAttributeValues={":months": {"NS": [str(month)]}},
    )
    ask.shared.note("month", tenant, str(month))
