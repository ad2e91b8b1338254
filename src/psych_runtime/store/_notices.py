"""Who waits for which Run in this process: commits wake them in their own loops at once.

A hint only: what is lost costs latency (R-1, wake-ups).
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

__all__ = ["Heads", "Notices", "Waiter"]

type Heads = dict[tuple[str, str], int]
"""Tenant and Run, and a head."""


class Waiter:
    """One call of wait(): a future of the loop that waits, and the Runs that have woken it."""

    def __init__(self, tenant: str, heads: Mapping[str, int]) -> None:
        self.heads: Heads = {(tenant, run_id): head for run_id, head in heads.items()}
        self.woken: set[str] = set()
        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self.loop.create_future()

    async def sleep(self, seconds: float) -> None:
        """Return when woken, or after `seconds`."""
        if seconds > 0:
            await asyncio.wait((self._future,), timeout=seconds)

    def wake(self) -> None:
        """End the sleep; call it in the waiter's loop."""
        if not self._future.done():
            self._future.set_result(None)


class Notices:
    """Waiters by tenant and Run; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[tuple[str, str], set[Waiter]] = {}

    @contextmanager
    def waiting(self, tenant: str, heads: Mapping[str, int]) -> Iterator[Waiter]:
        """Register a waiter; look at the heads after that, or a commit in between is missed."""
        waiter = Waiter(tenant, heads)
        with self._lock:
            for name in waiter.heads:
                self._waiters.setdefault(name, set()).add(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                for name in waiter.heads:
                    waiters = self._waiters.get(name, set())
                    waiters.discard(waiter)
                    if not waiters:
                        self._waiters.pop(name, None)

    def heads(self) -> Heads:
        """Return every Run that somebody waits for, with the lowest head that somebody has."""
        with self._lock:
            return {
                name: min(waiter.heads[name] for waiter in waiters)
                for name, waiters in self._waiters.items()
            }

    def tell(self, heads: Heads) -> None:
        """Wake whoever waits for one of these Runs and has not seen that head."""
        if not self._waiters:
            return
        woken: set[Waiter] = set()
        with self._lock:
            for name, head in heads.items():
                for waiter in self._waiters.get(name, ()):
                    if waiter.heads[name] < head:
                        waiter.woken.add(name[1])
                        woken.add(waiter)
        _wake(woken)


def _wake(waiters: Iterable[Waiter]) -> None:
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    for waiter in waiters:
        if waiter.loop is here:
            waiter.wake()
        else:
            with suppress(RuntimeError):  # its loop has been closed
                waiter.loop.call_soon_threadsafe(waiter.wake)
