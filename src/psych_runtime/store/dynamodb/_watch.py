"""Who waits for Runs through one handle: one batched query for all of them (wake-ups of R-1).

Commits of this process end a wait at once. Those of others are found by looking: seldom while
nothing happens, and for all Runs together, a hundred heads in a request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextvars import Context
from typing import Final

from psych_runtime.errors import StoreError
from psych_runtime.store._notices import Heads, News, Notices, Waiter

__all__ = ["Watch"]

_SHORTEST_SECONDS: Final = 0.1
_LONGEST_SECONDS: Final = 2.0
_GROWTH: Final = 1.5


class Watch:
    """The waits of one loop.

    Args:
        look: reads how far Runs are; the flag asks for a consistent read.
        notices: what all handles of the process tell one another.
    """

    def __init__(
        self, look: Callable[[Iterable[str], bool], Awaitable[News]], notices: Notices
    ) -> None:
        self._look = look
        self._notices = notices
        self._waiters: set[Waiter] = set()
        self._asked: dict[str, None] = {}
        self._first: asyncio.Task[None] | None = None
        self._polls: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool
    ) -> frozenset[str]:
        """Return Runs that may have moved, or may be over, or nothing after `seconds`."""
        with self._notices.waiting(tenant, heads, over=over) as waiter:
            await self._look_now(heads)
            if waiter.woken or seconds <= 0:
                return frozenset(waiter.woken)
            self._waiters.add(waiter)
            if self._polls is None:
                self._polls = self._begin(self._go_on_polling())
            try:
                await waiter.sleep(seconds)
            finally:
                self._waiters.discard(waiter)
                if not self._waiters and self._polls is not None:
                    self._polls.cancel()
                    self._polls = None
            return frozenset(waiter.woken)

    async def _look_now(self, heads: Mapping[str, int]) -> None:
        """Look at these Runs together with all others that are asked for in the same step."""
        self._asked |= dict.fromkeys(heads)
        if self._first is None:
            self._first = self._begin(self._look_first())
        await asyncio.shield(self._first)

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits has it; perhaps nobody does any more

    async def _look_first(self) -> None:
        await asyncio.sleep(0)  # whoever begins to wait in this step comes along
        asked, self._asked, self._first = self._asked, {}, None
        if asked:
            self._notices.announce(await self._look(asked, True))

    async def _go_on_polling(self) -> None:
        pause = _SHORTEST_SECONDS
        known: Heads = {}  # who waits for the end has an old head
        while self._waiters:
            await asyncio.sleep(pause)
            pause = min(pause * _GROWTH, _LONGEST_SECONDS)
            heads = self._heads()
            try:
                found = await self._look(dict.fromkeys(name[1] for name in heads), False)
            except StoreError:  # a hint is lost
                pause = _LONGEST_SECONDS
                continue
            known = heads | known
            if any(head > known.get(name, head) for name, head in found.heads.items()):
                pause = _SHORTEST_SECONDS
            known = found.heads
            self._notices.announce(found)

    def _heads(self) -> Heads:
        return {name: head for waiter in self._waiters for name, head in waiter.heads.items()}

    async def close(self) -> None:
        """End the polls; whoever still waits hears of commits of this process only."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._first = self._polls = None
