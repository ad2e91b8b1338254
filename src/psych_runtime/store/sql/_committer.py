"""Commits of one handle go together: whoever comes while one is under way shares the next (R-22).

So a burst of writers costs few statements, and waits for no connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Final, NamedTuple

from psych_runtime.errors import PsychError, StoreUnavailable
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import Unit

__all__ = ["Committer"]

_UNDER_WAY: Final = 2  # a row that is locked elsewhere holds up one of them
_TOGETHER: Final = 64  # units of one commit, unless one caller brings more

_CLOSED: Final = "the store was closed meanwhile"

type Answers = list[Answer]


class _Waiting(NamedTuple):
    units: Sequence[Unit]
    answers: asyncio.Future[Answers]


class Committer:
    """Gives units to `commit`, those of many callers at once."""

    def __init__(self, commit: Callable[[Sequence[Unit]], Awaitable[Answers]]) -> None:
        self._commit = commit
        self._waiting: list[_Waiting] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def commit(self, units: Sequence[Unit]) -> Answers:
        """Return the answers; a caller that gives up leaves its units to land or not."""
        answers: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(units, answers))
        self._start()
        return await answers

    async def stop(self) -> None:
        """End what is under way; nobody who waits is told that it happened."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for one in self._waiting:
            _fail([one], StoreUnavailable(problem=_CLOSED))
        self._waiting.clear()

    def _start(self) -> None:
        while self._waiting and len(self._tasks) < _UNDER_WAY:
            together = self._take()
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._send(together), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _take(self) -> list[_Waiting]:
        count = total = 0
        for one in self._waiting:
            total += len(one.units)
            if count and total > _TOGETHER:
                break
            count += 1
        together, self._waiting = self._waiting[:count], self._waiting[count:]
        return together

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._start()

    async def _send(self, together: Sequence[_Waiting]) -> None:
        try:
            found = await self._commit([unit for one in together for unit in one.units])
        except StoreUnavailable as error:
            _fail(together, error)
        except PsychError as error:
            await self._apart(together, error)
        except asyncio.CancelledError:
            _fail(together, StoreUnavailable(problem=_CLOSED))
            raise
        except Exception as error:  # a bug: whoever asked hears of it
            _fail(together, error)
        else:
            start = 0
            for one in together:
                if not one.answers.done():
                    one.answers.set_result(found[start : start + len(one.units)])
                start += len(one.units)

    async def _apart(self, together: Sequence[_Waiting], error: PsychError) -> None:
        """Let an error that one caller's units have brought be that caller's alone."""
        if len(together) == 1:
            _fail(together, error)
        else:
            for one in together:
                await self._send([one])


def _fail(together: Sequence[_Waiting], error: Exception) -> None:
    for one in together:
        if not one.answers.done():
            one.answers.set_exception(error)
