"""Tells other processes which Runs moved: after the commit, many commits in one message."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from typing import Final

from psych_runtime.errors import StoreError
from psych_runtime.store._notices import News

__all__ = ["Teller"]

_SHORTEST_SECONDS: Final = 0.005
_LONGEST_SECONDS: Final = 0.02
_LAST_SECONDS: Final = 0.5
_NOTHING: Final = News({}, over=frozenset())


class Teller:
    """One message is on its way at a time; what happens meanwhile goes with the next.

    The first after a pause goes at once. Then an end or new work waits for 5 ms at most, other
    news for 20 ms.
    """

    def __init__(self, tell: Callable[[News], Awaitable[None]]) -> None:
        self._tell = tell
        self._news = _NOTHING
        self._urgent = asyncio.Event()
        self._stops = False
        self._task: asyncio.Task[None] | None = None

    def add(self, news: News) -> None:
        """Tell soon."""
        self._news = _both(self._news, news)
        if news.work or news.over:
            self._urgent.set()
        if self._task is None and self._news != _NOTHING:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._send(), context=Context())

    async def _send(self) -> None:
        while self._news != _NOTHING:
            news, self._news = self._news, _NOTHING
            self._urgent.clear()
            with suppress(StoreError):  # a hint: whoever waits looks by itself
                await self._tell(news)
            await self._rest()
        self._task = None

    async def _rest(self) -> None:
        if not self._stops:
            await asyncio.sleep(_SHORTEST_SECONDS)
        try:
            async with asyncio.timeout(_LONGEST_SECONDS - _SHORTEST_SECONDS):
                await self._urgent.wait()
        except TimeoutError:
            return

    async def stop(self) -> None:
        """Tell what there is, and then no more."""
        self._stops = True
        self._urgent.set()
        if self._task is not None:
            _, late = await asyncio.wait((self._task,), timeout=_LAST_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
            self._task = None


def _both(one: News, other: News) -> News:
    if one == _NOTHING:
        return other
    over = (one.over or frozenset()) | (other.over or frozenset())
    return News(one.heads | other.heads, one.touched | other.touched, over, one.work or other.work)
