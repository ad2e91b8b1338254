"""Who waits for Runs through one handle: one batched query for all of them (wake-ups of R-1).

Commits of this process end a wait at once, and so do messages of others while they are heard.
Polls are the floor when every message is lost: each second while messages are heard, else at
once and then from 50 ms on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import Context

from psych_runtime.errors import StoreError
from psych_runtime.store._notices import News, Notices, Waiter

__all__ = ["Watcher"]

_SHORTEST_SECONDS = 0.05
_LONGEST_SECONDS = 1.0
_GROWTH = 1.5
_BATCH = 1000  # Runs in one query


class Watcher:
    """The waits of one loop.

    Args:
        look: reads how far Runs are, and whether they are over; one query.
        notices: what all handles of the process tell one another.
    """

    def __init__(self, look: Callable[[Sequence[str]], Awaitable[News]], notices: Notices) -> None:
        self._look = look
        self._notices = notices
        self._waiters: dict[Waiter, None] = {}
        self._hears = False
        self._fresh: set[str] = set()  # Runs to look at now
        self._kicked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool
    ) -> frozenset[str]:
        """Return Runs that may have moved, or nothing after `seconds`."""
        with self._notices.waiting(tenant, heads, over=over) as waiter:
            if not waiter.woken:
                self._waiters[waiter] = None
                if not self._hears:
                    self._hurry(heads)
                self._begin()
                try:
                    await waiter.sleep(seconds)
                finally:
                    del self._waiters[waiter]
            return frozenset(waiter.woken)

    def hears(self, hears: bool) -> None:
        """Say whether messages of other processes are heard from now on."""
        self._hears = hears
        self._hurry(self._watched())  # what was told meanwhile was missed

    def close(self) -> None:
        """End the polls; whoever still waits is told nothing."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _watched(self) -> set[str]:
        return {run_id for waiter in self._waiters for _, run_id in waiter.heads}

    def _hurry(self, run_ids: Iterable[str]) -> None:
        self._fresh.update(run_ids)
        self._kicked.set()

    def _begin(self) -> None:
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._poll(), context=Context())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None

    async def _poll(self) -> None:
        pause = _SHORTEST_SECONDS
        while self._waiters:
            if await self._rest(_LONGEST_SECONDS if self._hears else pause):
                wanted, self._fresh = self._fresh, set()
                pause = _SHORTEST_SECONDS
            else:
                wanted = self._watched()
                pause = min(pause * _GROWTH, _LONGEST_SECONDS)
            try:
                await self._ask(sorted(wanted))
            except StoreError:
                pause = _LONGEST_SECONDS

    async def _ask(self, run_ids: Sequence[str]) -> None:
        for start in range(0, len(run_ids), _BATCH):
            self._notices.announce(await self._look(run_ids[start : start + _BATCH]))

    async def _rest(self, seconds: float) -> bool:
        """Return after `seconds`, or as soon as there is something to look at now."""
        try:
            async with asyncio.timeout(seconds):
                await self._kicked.wait()
        except TimeoutError:
            return False
        self._kicked.clear()
        return True
