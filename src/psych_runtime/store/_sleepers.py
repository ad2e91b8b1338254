"""Waits that any thread may end: a future of the loop that waits."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

__all__ = ["Sleeper", "wake"]


class Sleeper:
    """One wait, of the loop that makes it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self.loop.create_future()

    async def sleep(self, seconds: float) -> None:
        """Return when woken, or after `seconds`."""
        if seconds > 0 and not self._future.done():
            timer = self.loop.call_later(seconds, self.wake)
            try:
                await self._future
            finally:
                timer.cancel()

    def wake(self) -> None:
        """End the sleep; call it in the sleeper's loop."""
        if not self._future.done():
            self._future.set_result(None)


def wake(sleepers: Iterable[Sleeper]) -> None:
    """End sleeps of any loops, from any thread."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    elsewhere: dict[asyncio.AbstractEventLoop, list[Sleeper]] = {}
    for sleeper in sleepers:
        if sleeper.loop is here:
            sleeper.wake()
        else:
            elsewhere.setdefault(sleeper.loop, []).append(sleeper)
    for loop, theirs in elsewhere.items():
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(_wake_all, theirs)


def _wake_all(sleepers: Iterable[Sleeper]) -> None:
    for sleeper in sleepers:
        sleeper.wake()
