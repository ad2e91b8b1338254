"""Commits that may be in doubt are sent again unchanged until their fate is known (R-20).

For direct writers: claims, supervisors, outside writers. An attempt's own flushes are the
flusher's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from psych_runtime._system import System
from psych_runtime.core.codec import outline_commit
from psych_runtime.errors import RunNotFound, StoreFull, StoreUnavailable
from psych_runtime.ports import answers
from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.store import Admit, Store, Unit
from psych_runtime.runtime.signals import Lost

__all__ = ["FIRST_DELAY_SECONDS", "ask_surely", "commit_surely", "longer"]

FIRST_DELAY_SECONDS: Final = 0.05
_LONGEST_DELAY_SECONDS: Final = 2.0


def longer(delay_seconds: float) -> float:
    """Return the next delay of a back-off."""
    return min(_LONGEST_DELAY_SECONDS, delay_seconds * 2)


async def ask_surely[T](ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` returns, asking again while the store is away (R-8)."""
    delay = FIRST_DELAY_SECONDS
    while True:
        try:
            return await ask()
        except StoreUnavailable:
            await asyncio.sleep(delay)
            delay = longer(delay)


async def commit_surely(
    store: Store,
    units: Sequence[Unit],
    *,
    system: System,
    give_up: Callable[[], bool] | None = None,
    patience_seconds: float | None = None,
) -> list[Answer]:
    """Commit independent units and return each one's fate, however often it takes.

    Raises Lost once `give_up` says so, StoreUnavailable once `patience_seconds` have passed
    (None: as long as the process lives); then the fate is unknown. Whoever has a patience hears
    of StoreFull at once: waiting makes no room.
    """
    started = system.monotonic()
    delay = FIRST_DELAY_SECONDS
    in_doubt = False
    while True:
        if give_up is not None and give_up():
            raise Lost("gave up")
        try:
            found = await store.commit(units)
        except StoreUnavailable as error:
            in_doubt = True
            if patience_seconds is not None:
                is_over = system.monotonic() - started >= patience_seconds
                if is_over or isinstance(error, StoreFull):  # which waiting does not change
                    raise
            await asyncio.sleep(delay)
            delay = longer(delay)
            continue
        if not in_doubt:
            return found
        return [
            await _own(store, unit, one, patience_seconds)
            for unit, one in zip(units, found, strict=True)
        ]


async def _own(store: Store, unit: Unit, answer: Answer, patience_seconds: float | None) -> Answer:
    """Return Committed when what stands at the unit's place is the unit itself."""
    if isinstance(answer, Committed | answers.RunNotFound):
        return answer
    first = unit.changes[0]
    after = 0 if isinstance(first, Admit) else first.expect_head
    delay = FIRST_DELAY_SECONDS
    while True:
        try:
            rows = await store.read(unit.tenant, first.run_id, after=after, limit=1)
        except RunNotFound:
            return answer
        except StoreUnavailable:
            if patience_seconds is not None:
                raise
            await asyncio.sleep(delay)
            delay = longer(delay)
            continue
        ours = bool(rows) and outline_commit(rows[0]) == unit.commit_id
        return Committed() if ours else answer
