"""What the handles of one store share in a process, whatever loops they are used in.

A process sees what it wrote itself at once, although indexes lag: the headers that it wrote
lately are looked at beside them.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from psych_runtime._system import System
from psych_runtime.store._arrivals import Arrivals
from psych_runtime.store._notices import Notices
from psych_runtime.store.dynamodb._client import DynamoOptions
from psych_schema.store import RunRow, WorkerRow

__all__ = ["Known", "Lease", "Observed", "Shared", "acquire"]

_HEADERS: Final = 4096
_NAMES: Final = 16_384
_DEAD_SECONDS: Final = 1.0  # unless this process declares a death, or hears of one
_LATELY_SECONDS: Final = 60.0  # far longer than any index lags


class Known(NamedTuple):
    """A header as it was last seen, and how often it had been written then."""

    header: RunRow
    revision: int
    written: float | None = None  # when this process moved it in an index, by the loop's clock


class Observed(NamedTuple):
    """A worker's beat, and since when the observer has seen no other, by its own clock."""

    beat: int
    since: float


class Shared:
    """Safe to use from any thread."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.notices = Notices()
        self.arrivals = Arrivals()
        self.shards: int | None = None  # known once the tables have been looked at
        self._lock = threading.Lock()
        self._headers: OrderedDict[str, Known] = OrderedDict()
        self._names: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._observed: dict[str, Observed] = {}
        self._heard: frozenset[str] | None = None  # the dead whose rows were read; None: none yet
        self._dead: tuple[float, frozenset[str]] | None = None
        self._deaths = 0

    def known(self, run_id: str) -> Known | None:
        """Return a header as it was last seen; it may have changed since."""
        with self._lock:
            return self._headers.get(run_id)

    def learn(self, header: RunRow, revision: int, written: float | None = None) -> None:
        """Keep a header that was read, or written: `written` is when it moved in an index."""
        with self._lock:
            before = self._headers.get(header.run_id)
            if before is not None:
                if before.revision > revision:
                    return
                written = before.written if written is None else written
            self._headers[header.run_id] = Known(header, revision, written)
            self._headers.move_to_end(header.run_id)
            while len(self._headers) > _HEADERS:
                self._headers.popitem(last=False)

    def forget(self, run_ids: Iterable[str]) -> None:
        """Drop headers that are gone, or in doubt."""
        with self._lock:
            for run_id in run_ids:
                self._headers.pop(run_id, None)

    def lately(self, now: float) -> list[RunRow]:
        """Return headers that this process moved in an index lately."""
        with self._lock:
            return [
                known.header
                for known in self._headers.values()
                if known.written is not None and now - known.written < _LATELY_SECONDS
            ]

    def is_noted(self, *name: str) -> bool:
        """Tell whether this process has noted a name in the store already."""
        with self._lock:
            return name in self._names

    def note(self, *name: str) -> None:
        """Remember that a name has been noted in the store."""
        with self._lock:
            self._names[name] = None
            while len(self._names) > _NAMES:
                self._names.popitem(last=False)

    def unnote(self, *name: str) -> None:
        """Note a name again when it is used the next time."""
        with self._lock:
            self._names.pop(name, None)

    def observe(self, rows: Collection[WorkerRow]) -> None:
        """Take in the beats of workers' rows that were just read or written (R-14)."""
        now = self.system.monotonic()
        with self._lock:
            for row in rows:
                seen = self._observed.get(row.id)
                if seen is None or seen.beat != row.beat:
                    self._observed[row.id] = Observed(row.beat, now)

    def observe_all(self, rows: Collection[WorkerRow]) -> bool:
        """Take in the rows of all workers; tell whether somebody else has declared a death."""
        self.observe(rows)
        there = {row.id for row in rows}
        dead = frozenset(row.id for row in rows if row.dead)
        with self._lock:
            for worker in self._observed.keys() - there:
                del self._observed[worker]
            heard, is_first = self._heard or frozenset(), self._heard is None
            self._heard = dead | (heard & there)
        if is_first or dead <= heard:
            return False
        self.look_again()
        return True

    def hear(self, dead: Iterable[str]) -> None:
        """Take in deaths that are no news when their rows are read."""
        with self._lock:
            self._heard = (self._heard or frozenset()).union(dead)
        self.look_again()

    def silent_in(self, row: WorkerRow) -> float:
        """Return in how many seconds a worker's beat has not changed for a lease of our clock.

        Zero or less: that is so already.
        """
        with self._lock:
            seen = self._observed.get(row.id)
        if seen is None or seen.beat != row.beat:
            return row.lease_seconds
        return seen.since + row.lease_seconds - self.system.monotonic()

    @property
    def deaths(self) -> int:
        """How often this process has changed which workers are dead."""
        return self._deaths

    def keep_dead(self, names: frozenset[str], now: float, deaths: int) -> None:
        """Keep which workers are dead: they stay so, only others may join them.

        `deaths` is what it was before anybody looked.
        """
        with self._lock:
            if deaths == self._deaths:
                self._dead = now, names

    def dead(self, now: float) -> frozenset[str] | None:
        """Return which workers were dead a moment ago, None when nobody has looked since."""
        with self._lock:
            kept = self._dead
        return kept[1] if kept is not None and 0 <= now - kept[0] < _DEAD_SECONDS else None

    def look_again(self) -> None:
        """Let whoever asks next look which workers are dead: this process has changed that."""
        with self._lock:
            self._dead = None
            self._deaths += 1


_SHARED: Final[dict[tuple[DynamoOptions, System | None], tuple[Shared, list[None]]]] = {}
_LOCK: Final = threading.Lock()


def acquire(options: DynamoOptions, system: System | None) -> tuple[Shared, "Lease"]:
    """Return what this process has of a store, and what to release when done with it."""
    key = options, system
    with _LOCK:
        shared, handles = _SHARED.setdefault(key, (Shared(system or System()), []))
        handles.append(None)
    return shared, Lease(key)


class Lease:
    """A handle's share in a store; the last one to be released drops what is shared."""

    def __init__(self, key: tuple[DynamoOptions, System | None]) -> None:
        self._key = key

    def again(self) -> "Lease":
        """Return another share."""
        with _LOCK:
            _SHARED[self._key][1].append(None)
        return Lease(self._key)

    def release(self) -> None:
        """Give this share back."""
        with _LOCK:
            handles = _SHARED[self._key][1]
            handles.pop()
            if not handles:
                del _SHARED[self._key]
