"""Following a Run: every committed record in order, then what comes, until it settles (STR-1).

Readers see committed records only, hold nothing, and delay nobody: whoever goes away cancels
nothing (STR-2). Hints that get lost cost latency only, since every wait is bounded.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final, NamedTuple

from psych_runtime.core.codec import decode
from psych_runtime.core.fold import fold
from psych_runtime.errors import CorruptLog, RunFailed, StoreUnavailable
from psych_runtime.ports.store import Store
from psych_schema.common import Scope
from psych_schema.model import TextPart
from psych_schema.record import (
    ModelCompleted,
    ModelDelta,
    ModelStarted,
    Record,
    RunErased,
    RunSettled,
)

__all__ = ["WAIT_SECONDS", "TextChunk", "patiently", "stream", "stream_text"]

WAIT_SECONDS: Final = 2.0
"""How long one wait lasts at most: what a lost hint costs."""

_PAGE: Final = 500
_FIRST_WINDOW: Final = 64
_FIRST_DELAY_SECONDS: Final = 0.05
_LONGEST_DELAY_SECONDS: Final = 2.0


class TextChunk(NamedTuple):
    """A piece of what the model says.

    `replaces` names a call whose text is void from here on: a failed call that is made again
    takes its text back. `seq` is the record's: `after=seq` goes on behind this chunk.
    """

    call: str
    text: str
    replaces: str | None
    seq: int


async def patiently[T](ask: Callable[[], Awaitable[T]], *, until: float | None = None) -> T:
    """Return what `ask` returns, however long the store is away; back-off up to 2 s.

    Raises StoreUnavailable when the loop's clock would be past `until`; None is never.
    """
    delay = _FIRST_DELAY_SECONDS
    while True:
        try:
            return await ask()
        except StoreUnavailable:
            if until is not None and asyncio.get_running_loop().time() + delay > until:
                raise
            await asyncio.sleep(delay)
            delay = min(_LONGEST_DELAY_SECONDS, delay * 2)


async def stream(
    store: Store, run_id: str, *, scope: Scope, after: int = 0
) -> AsyncGenerator[Record]:
    """Yield every record with seq > `after`, in order, each once; return when the Run settles.

    Closing the generator cancels nothing. Go on anywhere else with the last seq seen. A store
    that does not answer is asked again until it does.

    Raises:
        RunNotFound: not in this tenant.
        CorruptLog: the log cannot be read, or its header says so; what could be read came first.
        NewerRecord: a newer build wrote the next record.
    """
    tenant, head, last = scope.tenant, max(0, after), None
    while True:
        rows = await patiently(lambda: store.read(tenant, run_id, after=head, limit=_PAGE))  # noqa: B023
        settled = False
        for row in rows:
            entry = decode(row)
            if row.seq != head + 1:
                raise CorruptLog(reason="seq_not_next", run_id=run_id, seq=row.seq)
            if last is not None and entry.record.prev != last:
                raise CorruptLog(reason="prev_does_not_fit", run_id=run_id, seq=row.seq)
            head, last = row.seq, entry.hash
            settled = isinstance(entry.record, RunSettled | RunErased)
            yield entry.record
        if len(rows) == _PAGE:
            continue
        if settled or (not rows and await _is_over(store, tenant, run_id, head)):
            return
        await patiently(lambda: store.wait(tenant, {run_id: head}, WAIT_SECONDS))  # noqa: B023
