"""Turns: how many calls of one handle are under way at once.

A burst of callers waits here, in its own process. At the service each would wait for all the
others and take that for the service's being away. So waiting is charged to a caller only while
none of the calls under way hears anything.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from psych_runtime.errors import StoreClosed, StoreUnavailable

__all__ = ["Turns"]

_NEVER: Final = float("-inf")


class Turns:
    """At most `size` calls at once; the others wait in the order in which they came.

    For one loop: every method is called on it.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: dict[asyncio.Future[bool], None] = {}  # False: there will be no turn
        self._heard = _NEVER
        self._trouble = ""
        self._closed = False

    def heard(self) -> None:
        """Note that the service does its work: whoever waits can wait on."""
        self._heard = asyncio.get_running_loop().time()
        self._trouble = ""

    def missed(self, problem: str) -> None:
        """Note why a call is to be made again: those who wait are told, if nothing is heard."""
        self._trouble = self._trouble or problem

    @asynccontextmanager
    async def turn(self, patience_seconds: float) -> AsyncIterator[float]:
        """Hold a turn; give what is left of the patience, of which only silence takes away.

        StoreUnavailable: for so long nobody has heard anything. StoreClosed: nobody may call.
        """
        left = await self._take(patience_seconds)
        try:
            yield left
        finally:
            self._pass_on()

    async def _take(self, patience_seconds: float) -> float:
        if self._closed:
            raise StoreClosed
        if self._free:
            self._free -= 1
            return patience_seconds
        loop = asyncio.get_running_loop()
        since = loop.time()
        mine = loop.create_future()
        self._waiting[mine] = None
        try:
            while not mine.done():
                left = max(since, self._heard) + patience_seconds - loop.time()
                if left <= 0:
                    raise StoreUnavailable(problem=self._trouble or "DynamoDB: no answer in time")
                await asyncio.wait((mine,), timeout=left)
            if not mine.result():
                raise StoreClosed
        except BaseException:
            self._waiting.pop(mine, None)
            if mine.done() and mine.result():  # it came too late
                self._pass_on()
            raise
        return max(since, self._heard) + patience_seconds - loop.time()

    def _pass_on(self) -> None:
        first = next(iter(self._waiting), None)
        if first is None:
            self._free += 1
        else:
            del self._waiting[first]
            first.set_result(True)

    def close(self) -> None:
        """Let nobody call any more, not even those who wait."""
        self._closed = True
        for each in self._waiting:
            each.set_result(False)
        self._waiting.clear()
