"""Who waits for work in this process: a count of the times that there may be some (R-15).

Whoever reads the count, looks for work, and waits for the count to change, misses nothing.
"""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from psych_runtime.errors import StoreClosed
from psych_runtime.ports.store import Admit, Arrival
from psych_runtime.store._notices import News
from psych_runtime.store._sleepers import Sleeper, wake

__all__ = ["Arrivals", "Arriving"]

_REMEMBERED: Final = 256  # admissions


class Arrivals:
    """The count of one store; safe to use from any thread."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()
        self._sleepers: dict[Sleeper, None] = {}
        self._admitted: deque[tuple[int, Admit]] = deque()
        self._unnamed = 0  # the last count that somebody may need to look for

    def tell(self, admitted: Sequence[Admit] = ()) -> None:
        """Say that these Runs have become claimable; none: others may have."""
        with self._lock:
            self.count += 1
            if not admitted:
                self._unnamed = self.count
            self._admitted.extend((self.count, one) for one in admitted)
            while len(self._admitted) > _REMEMBERED:
                self._unnamed = max(self._unnamed, self._admitted.popleft()[0])
            sleepers, self._sleepers = self._sleepers, {}
        wake(sleepers)

    def hear(self, news: News) -> None:
        """Say what a commit has made claimable."""
        if news.admitted:
            self.tell(news.admitted)
        if news.work:
            self.tell()

    def since(self, seen: int) -> Arrival:
        """Return the count, and what came behind `seen`."""
        with self._lock:
            if seen < self._unnamed:
                return Arrival(self.count, None)
            return Arrival(self.count, tuple(one for n, one in self._admitted if n > seen))

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

    async def wait(self, seen: int, seconds: float) -> Arrival:
        """Return what came once the count is not `seen`, or after `seconds`. StoreClosed."""
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
        return self._arrivals.since(seen)

    def close(self) -> None:
        """End every wait with StoreClosed."""
        self._closed = True
        wake(list(self._sleepers))
