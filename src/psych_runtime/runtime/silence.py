"""A bound on how long somebody may say nothing, where he says a lot.

`asyncio.timeout` sets a timer anew for each word; this one looks, when it rings, whether there
was one.
"""

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["Silence"]


class Silence:
    """Raises TimeoutError in its block when nobody was heard for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._end = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._end, self._ring)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def heard(self, seconds: float) -> None:
        """Somebody said something; he has `seconds` for the next."""
        self._end = self._loop.time() + seconds
        if self._end < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._end, self._ring)

    def _ring(self) -> None:
        if self._loop.time() < self._end:
            self._timer = self._loop.call_at(self._end, self._ring)
        else:
            self._timeout.reschedule(self._end)
