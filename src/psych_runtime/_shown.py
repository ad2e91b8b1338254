"""What readers are shown of a log: no content from the moment on that `run.erased` is in it (R-11).

The contents themselves go in batches behind that record, so a reader may still find some.
"""

from collections.abc import Sequence

from psych_runtime.ports.store import Store
from psych_schema.store import RecordRow, RunRow

__all__ = ["is_erased", "shown", "without_erased"]

_ERASED = "run.erased"


def without_erased(rows: Sequence[RecordRow]) -> list[RecordRow]:
    """Return rows up to the end of a log as they may be shown: `run.erased` is always the last."""
    if not rows or rows[-1].type != _ERASED:
        return list(rows)
    return [_bare(row) for row in rows]


async def is_erased(store: Store, header: RunRow) -> bool:
    """Tell whether a Run's log ends with `run.erased`; only a settled one's can."""
    if header.state != "settled":
        return False
    rows = await store.read(header.tenant, header.run_id, after=header.head - 1, limit=1)
    return bool(rows) and rows[0].type == _ERASED


async def shown(store: Store, header: RunRow, rows: Sequence[RecordRow]) -> list[RecordRow]:
    """Return rows of any part of a log as they may be shown; `header` was read behind them."""
    if all(row.content is None for row in rows) or not await is_erased(store, header):
        return without_erased(rows)
    return [_bare(row) for row in rows]


def _bare(row: RecordRow) -> RecordRow:
    return row.model_copy(update={"content": None, "salt": None})
