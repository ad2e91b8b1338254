"""Who waits for Runs through one handle: one batched query for all of them (wake-ups of R-1).

In-process commits end a wait at once, a hint of another process after one query; the polls are
the floor when every hint is lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context

from psych_runtime.errors import StoreError
from psych_runtime.store._notices import Heads, Notices, Waiter

__all__ = ["Watcher"]

_SHORTEST_SECONDS = 0.05
_LONGEST_SECONDS = 1.0
_GROWTH = 1.5
_BATCH = 1000  # Runs in one query


class Watcher:
    """The waits of one loop.

    Args:
        look: reads the heads of Runs, by tenant and Run; one query.
        notices: what all handles of the process tell one another.
    """

    def __init__(self, look: Callable[[Sequence[str]], Awaitable[Heads]], notices: Notices) -> None:
        self._look = look
        self._notices = notices
        self._waiters: set[Waiter] = set()
        self._fresh: set[str] = set()  # Runs to look at now
        self._kicked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, tenant: str, heads: Mapping[str, int], seconds: float) -> frozenset[str]:
        """Return Runs that may have moved, or nothing after `seconds`."""
        with self._notices.waiting(tenant, heads) as waiter:
            self._waiters.add(waiter)
            self._hurry(heads)
            try:
                await waiter.sleep(seconds)
            finally:
                self._waiters.discard(waiter)
            return frozenset(waiter.woken)

    def hint(self, run_ids: Sequence[str]) -> None:
        """Hear that Runs may have moved; those that nobody here waits for cost nothing."""
        watched = {name[1] for waiter in self._waiters for name in waiter.heads}
        wanted = watched.intersection(run_ids)
        if wanted:
            self._hurry(wanted)

    def close(self) -> None:
        """End the polls; whoever still waits is told nothing."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _hurry(self, run_ids: Mapping[str, int] | set[str]) -> None:
        self._fresh.update(run_ids)
        self._kicked.set()
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
            if self._kicked.is_set():
                self._kicked.clear()
                wanted, self._fresh = self._fresh, set()
                pause = _SHORTEST_SECONDS
            else:
                wanted = {name[1] for waiter in self._waiters for name in waiter.heads}
                pause = min(pause * _GROWTH, _LONGEST_SECONDS)
            try:
                await self._ask(sorted(wanted))
            except StoreError:
                pause = _LONGEST_SECONDS
            await self._rest(pause)

    async def _ask(self, run_ids: Sequence[str]) -> None:
        for start in range(0, len(run_ids), _BATCH):
            self._notices.tell(await self._look(run_ids[start : start + _BATCH]))

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._kicked.wait()
        except TimeoutError:
            return
