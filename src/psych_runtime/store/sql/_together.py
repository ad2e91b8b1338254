"""What callers of one handle ask goes together: who comes meanwhile shares the next (R-22).

So a burst of callers costs few statements, and waits for no connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Final, NamedTuple

from psych_runtime.errors import PsychError, StoreUnavailable

__all__ = ["Together"]

_UNDER_WAY: Final = 2  # a row that is locked elsewhere holds up one of them
_TOGETHER: Final = 64  # of one statement, unless one caller brings more

_CLOSED: Final = "the store was closed meanwhile"


class _Waiting[Q, A](NamedTuple):
    question: Q
    answer: asyncio.Future[A]


class Together[Q, A]:
    """Gives the questions of many callers to `send` at once.

    Args:
        send: answers questions in order; an answer that is an error is its caller's alone.
        size: how much a question counts of what goes together.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Q]], Awaitable[Sequence[A | PsychError]]],
        size: Callable[[Q], int] = lambda _: 1,
    ) -> None:
        self._send = send
        self._size = size
        self._waiting: list[_Waiting[Q, A]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._begins = False  # a task that will take what waits, once the loop has turned

    async def ask(self, question: Q) -> A:
        """Return the answer; a caller that gives up leaves its question to be asked or not."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(question, answer))
        self._start()
        return await answer

    async def stop(self) -> None:
        """End what is under way; nobody who waits is told that it happened."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        _fail(self._waiting, StoreUnavailable(problem=_CLOSED))
        self._waiting.clear()

    def _start(self) -> None:
        if self._waiting and not self._begins and len(self._tasks) < _UNDER_WAY:
            self._begins = True
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._next(), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._start()

    async def _next(self) -> None:
        self._begins = False
        together = self._take()
        self._start()
        if together:
            await self._ask(together)

    def _take(self) -> list[_Waiting[Q, A]]:
        count = total = 0
        for one in self._waiting:
            total += self._size(one.question)
            if count and total > _TOGETHER:
                break
            count += 1
        together, self._waiting = self._waiting[:count], self._waiting[count:]
        return [one for one in together if not one.answer.done()]

    async def _ask(self, together: Sequence[_Waiting[Q, A]]) -> None:
        try:
            found = await self._send([one.question for one in together])
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
            for one, answer in zip(together, found, strict=True):
                if one.answer.done():
                    continue
                if isinstance(answer, PsychError):
                    one.answer.set_exception(answer)
                else:
                    one.answer.set_result(answer)

    async def _apart(self, together: Sequence[_Waiting[Q, A]], error: PsychError) -> None:
        """Let an error that one caller has brought be that caller's alone."""
        if len(together) == 1:
            _fail(together, error)
        else:
            for one in together:
                await self._ask([one])


def _fail[Q, A](together: Sequence[_Waiting[Q, A]], error: Exception) -> None:
    for one in together:
        if not one.answer.done():
            one.answer.set_exception(error)
