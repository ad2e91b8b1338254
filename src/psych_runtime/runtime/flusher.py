"""Group commit (R-22): the flushes of many Runs are units of one commit; one at a time per Run.

Flushes belong to the worker: cancelling an attempt never cancels one (R-20).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import Final

from psych_runtime.core.codec import Position
from psych_runtime.errors import NewerRecord, RunNotFound, StoreError, StoreUnavailable
from psych_runtime.ports import answers
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Store, Unit
from psych_runtime.runtime.commit import FIRST_DELAY_SECONDS, longer
from psych_runtime.runtime.journal import Journal
from psych_runtime.runtime.signals import Lost

__all__ = ["Flusher"]

_log: Final = logging.getLogger("psych_runtime")

type Spawn = Callable[[Coroutine[None, None, None]], object]


class Flusher:
    """Sends what journals have at the end of each loop step."""

    def __init__(self, store: Store, spawn: Spawn, context: Context) -> None:
        self._store = store
        self._spawn = spawn
        self._context = context
        self._dirty: dict[tuple[str, int], Journal] = {}
        self._kicked = False

    def dirty(self, journal: Journal) -> None:
        """Flush `journal` at the end of this loop step."""
        self._dirty[journal.run_id, journal.epoch] = journal
        if not self._kicked:
            self._kicked = True
            asyncio.get_running_loop().call_soon(self._kick, context=self._context)

    def _kick(self) -> None:
        self._kicked = False
        batch: list[tuple[Journal, Unit]] = []
        for key, journal in list(self._dirty.items()):
            if journal.busy:
                continue
            del self._dirty[key]
            if not journal.pending():
                continue
            unit = self._build(journal)
            if unit is not None:
                journal.busy = True
                batch.append((journal, unit))
            elif journal.lost is None:
                journal.busy = True
                self._spawn(self._look(journal))
        if batch:
            self._spawn(self._send(batch))

    def _build(self, journal: Journal) -> Unit | None:
        """Return the journal's next unit; one that cannot be built ends its attempt only."""
        try:
            return journal.build()
        except Exception as error:  # the attempt's bug: it must not stop other Runs' flushes
            _log.exception("run %s: cannot be written", journal.run_id)
            journal.lose(error)
            return None

    async def _look(self, journal: Journal, refused: Unit | None = None) -> None:
        """Read what stands behind the head; only then is a refused unit known to be refused."""
        await self._catch_up(journal)
        if refused is not None:
            journal.refused(refused)
        self._free(journal)

    def _free(self, journal: Journal) -> None:
        journal.busy = False
        if journal.pending():
            self.dirty(journal)

    async def _catch_up(self, journal: Journal) -> None:
        delay = FIRST_DELAY_SECONDS
        while journal.lost is None:
            try:
                await self._read(journal)
            except RunNotFound as error:
                journal.lose(error)
            except StoreError:
                await asyncio.sleep(delay)
                delay = longer(delay)
            else:
                return

    async def _read(self, journal: Journal) -> None:
        tenant, run_id = journal.tenant, journal.run_id
        rows = await self._store.read(tenant, run_id, after=journal.position.seq)
        try:
            journal.absorb(rows)
        except NewerRecord as newer:  # where the log goes on, only its header tells
            header = await self._store.header(tenant, run_id)
            journal.pass_over(newer, Position(header.head, header.head_hash, header.head_at))

    async def _send(self, batch: Sequence[tuple[Journal, Unit]]) -> None:
        delay = FIRST_DELAY_SECONDS
        while batch := [(j, u) for j, u in batch if j.lost is None]:
            try:
                found = await self._store.commit([unit for _, unit in batch])
            except StoreUnavailable:
                await asyncio.sleep(delay)
                delay = longer(delay)
                continue
            except Exception as error:  # an adapter's bug, or a store that cannot be written
                if len(batch) > 1:  # of one unit, perhaps: the others are not to blame
                    for one in batch:
                        self._spawn(self._send([one]))
                    return
                _log.exception("a commit failed for good")
                for journal, _ in batch:
                    journal.lose(error)
                    journal.busy = False
                return
            for (journal, unit), answer in zip(batch, found, strict=True):
                if self._settle(journal, unit, answer):
                    self._spawn(self._look(journal, unit))
            return

    def _settle(self, journal: Journal, unit: Unit, answer: answers.Answer) -> bool:
        """Take one answer; True: what stands at the journal's place must be read."""
        if journal.lost is not None:
            journal.busy = False
            return False
        if isinstance(answer, Committed):
            journal.landed(unit)
            self._free(journal)
            return False
        gone = isinstance(answer, answers.RunNotFound) and answer.run_id == journal.run_id
        if isinstance(answer, answers.LeaseLost) or gone:
            journal.lose(Lost(f"the store answered {answer}"))
            journal.busy = False
            return False
        return True
