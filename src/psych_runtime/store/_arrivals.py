"""Who waits for work in this process: a count of the times that there may be some (R-15).

Whoever reads the count, looks for work, and waits for the count to change, misses nothing.
"""

import threading

from psych_runtime.errors import StoreClosed
from psych_runtime.store._sleepers import Sleeper, wake

__all__ = ["Arrivals", "Arriving"]


class Arrivals:
    """The count of one store; safe to use from any thread."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()
        self._sleepers: dict[Sleeper, None] = {}

    def tell(self) -> None:
        """Say that Runs may have become claimable."""
        with self._lock:
            self.count += 1
            sleepers, self._sleepers = self._sleepers, {}
        wake(sleepers)

    def add(self, sleeper: Sleeper, seen: int) -> bool:
        """Have a sleeper woken by the next arrival; False: there was one since `seen`."""
        with self._lock:
            if self.count != seen:
                return False
            self._sleepers[sleeper] = None
            return True

    def discard(self, sleeper: Sleeper) -> None:
        """Wake a sleeper no more."""
        with self._lock:
            self._sleepers.pop(sleeper, None)


class Arriving:
    """The waits for work of one handle; closing it ends them."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._sleepers: dict[Sleeper, None] = {}
        self._closed = False

    async def wait(self, seen: int, seconds: float) -> int:
        """Return the count once it is not `seen`, or after `seconds`. StoreClosed."""
        if self._closed:
            raise StoreClosed
        sleeper = Sleeper()
        if self._arrivals.add(sleeper, seen):
            self._sleepers[sleeper] = None
            try:
                await sleeper.sleep(seconds)
            finally:
                del self._sleepers[sleeper]
                self._arrivals.discard(sleeper)
        if self._closed:
            raise StoreClosed
        return self._arrivals.count

    def close(self) -> None:
        """End every wait with StoreClosed."""
        self._closed = True
        wake(list(self._sleepers))
