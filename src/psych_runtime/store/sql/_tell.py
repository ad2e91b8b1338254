"""Tells other processes which Runs moved: after the commit, many commits in one message."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context

from psych_runtime.errors import StoreError

__all__ = ["Teller"]


class Teller:
    """One message is on its way at a time; what moves meanwhile goes with the next."""

    def __init__(self, tell: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        self._tell = tell
        self._moved: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def add(self, run_ids: Iterable[str]) -> None:
        """Tell of Runs soon."""
        self._moved.update(run_ids)
        if self._task is None and self._moved:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._send(), context=Context())

    async def _send(self) -> None:
        while self._moved:
            run_ids, self._moved = sorted(self._moved), set()
            try:
                await self._tell(run_ids)
            except StoreError:
                continue  # a hint: whoever waits looks by itself
        self._task = None

    async def stop(self) -> None:
        """Tell no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            self._task = None
