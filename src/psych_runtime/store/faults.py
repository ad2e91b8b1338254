"""A store between a writer and the real one, whose calls fail as calls over a network do (R-20).

Works on any adapter, in real or virtual time. A process that writes through it can be hit, too,
where the simulation can do that: killed before or after a call, stopped, or hung.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from datetime import datetime
from typing import Final, Literal, NoReturn, Protocol, Self

from psych_runtime._system import System
from psych_runtime.errors import StoreError, StoreUnavailable
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import Arrival, Exclude, Found, Page, Renewed, RunFilter, Store, Unit
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = ["FAULT_KINDS", "FaultKind", "Faults", "FaultyStore", "Victim"]

type FaultKind = Literal[
    "away",
    "crash_after",
    "crash_before",
    "cut_off",
    "delayed",
    "doubled",
    "hung",
    "late",
    "lost",
    "paused",
    "stalled",
    "torn",
    "unanswered",
    "unheard",
]

FAULT_KINDS: Final[Mapping[FaultKind, str]] = {
    "away": "the store refuses every call for a while",
    "crash_after": "the process dies when the call has been done",
    "crash_before": "the process dies before the call is sent",
    "cut_off": "one process does not reach the store for a while, the others do",
    "delayed": "the answer takes longer, perhaps longer than a lease",
    "doubled": "a commit is delivered twice; the second answer is lost",
    "hung": "the executor's loop stands still, the supervisor's goes on",
    "late": "a commit is said to have failed, and lands later",
    "lost": "the call never reaches the store",
    "paused": "the whole process stands still, and goes on unaware",
    "stalled": "calls hang while the store is away, then all land",
    "torn": "of a commit of several units, only the first ones land",
    "unanswered": "the call is done, its answer is lost",
    "unheard": "nobody is told that there is work: it is found by looking",
}
"""What can befall a call, and what it means."""

_LONGEST_CUT_SECONDS: Final = 25.0
_LONGEST_LATE_SECONDS: Final = 20.0
_LONGEST_DELAY_SECONDS: Final = 20.0
_LONGEST_PAUSE_SECONDS: Final = 25.0
_RUSH_SECONDS: Final = 0.3  # within which stalled calls land when the store is back


class Victim(Protocol):
    """The process that calls, as far as a fault can hit it."""

    def crash(self) -> None:
        """End it at once, as kill -9 does; the call never returns."""

    def pause(self, seconds: float) -> None:
        """Stop all of it for a while, as SIGSTOP does."""

    def hang(self, seconds: float) -> None:
        """Stop its executor's loop only, as a tool that blocks does."""

    def struck(self, kind: FaultKind) -> None:
        """Hear that a fault hits one of its calls now."""


class Faults:
    """What befalls the calls of all handles of one store; nothing while `quiet`.

    Args:
        system: chance, from which every fault is drawn.
        chances: how often each kind strikes a call, 0 to 1; a kind that is not named never does.
            `away` and `stalled` are no matter of chance: `go_away` begins them.
        latency_seconds: the mean time that a call takes each way.
        scale: of the seconds that a fault lasts; 1 is for simulations.
    """

    def __init__(
        self,
        system: System,
        chances: Mapping[FaultKind, float],
        *,
        latency_seconds: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        self.struck: Counter[FaultKind] = Counter()
        self.quiet = False
        self._system = system
        self._chances = chances
        self._latency_seconds = latency_seconds
        self._scale = scale
        self._away_until = -math.inf
        self._stalls = False
        self._apart_seconds = 0.0
        self._later: dict[Victim | None, float] = {}  # how much later it is back for each
        self._cut_until: dict[Victim, float] = {}
        self._underway: set[asyncio.Task[None]] = set()

    def go_away(self, seconds: float, *, stalls: bool = False, apart_seconds: float = 0.0) -> None:
        """Be away for `seconds` from now on; calls are refused, or hang when it `stalls`.

        It is back for one process up to `apart_seconds` later than for another.
        """
        self._away_until = asyncio.get_running_loop().time() + seconds
        self._stalls = stalls
        self._apart_seconds = apart_seconds
        self._later.clear()

    async def landed(self) -> None:
        """Return once every commit that was to land late has landed."""
        while self._underway:
            await asyncio.wait(self._underway)

    def strikes(self, kind: FaultKind, victim: Victim | None) -> bool:
        """Tell whether a fault of this kind befalls the call now; it is counted."""
        if self.quiet or self._system.random() >= self._chances.get(kind, 0.0):
            return False
        self._count(kind, victim)
        return True

    def between(self, low_seconds: float, high_seconds: float) -> float:
        """Return a length of time."""
        chance = self._system.random()
        return self._scale * (low_seconds + (high_seconds - low_seconds) * chance)

    def pick(self, count: int) -> int:
        """Return a number from 0 to `count` - 1."""
        return int(self._system.random() * count)

    def _count(self, kind: FaultKind, victim: Victim | None) -> None:
        self.struck[kind] += 1
        if victim is not None:
            victim.struck(kind)

    async def travel(self) -> None:
        """Take the time that a call or its answer is on the way."""
        if not self._latency_seconds:
            await asyncio.sleep(0)  # others come in between all the same
        else:
            chance = 1.0 - self._system.random()
            await asyncio.sleep(-self._latency_seconds * math.log(chance))

    async def reach(self, victim: Victim | None) -> None:
        """Reach the store, or raise StoreUnavailable because it is away, or so it looks."""
        loop = asyncio.get_running_loop()
        if self.quiet:
            return
        if victim is not None and self._cut_until.get(victim, -math.inf) > loop.time():
            self._count("cut_off", victim)
            raise StoreUnavailable(problem="the process is cut off from the store")
        rest = self._back_at(victim) - loop.time()
        if rest <= 0:
            return
        if self._stalls:
            self._count("stalled", victim)
            await asyncio.sleep(rest + self.between(0.0, _RUSH_SECONDS))
            if self._back_at(victim) <= loop.time() or self.quiet:
                return
        self._count("away", victim)
        raise StoreUnavailable(problem="the store is away")

    def _back_at(self, victim: Victim | None) -> float:
        """Return when the store is back for who calls."""
        if self._apart_seconds and victim not in self._later:
            self._later[victim] = self.between(0.0, self._apart_seconds)
        return self._away_until + self._later.get(victim, 0.0)

    def cut_off(self, victim: Victim) -> NoReturn:
        """Let no call of the process reach the store for a while, this one included."""
        lasts_seconds = self.between(1.0, _LONGEST_CUT_SECONDS)
        self._cut_until[victim] = asyncio.get_running_loop().time() + lasts_seconds
        raise StoreUnavailable(problem="the process is cut off from the store")

    def later(self, act: Callable[[], Awaitable[object]]) -> None:
        """Do `act` some time from now, whatever becomes of the caller."""
        seconds = self.between(0.1, _LONGEST_LATE_SECONDS)

        async def land() -> None:
            await asyncio.sleep(seconds)
            with suppress(StoreError):  # nobody waits for its answer
                await act()

        task = asyncio.get_running_loop().create_task(land(), context=Context())
        self._underway.add(task)
        task.add_done_callback(self._underway.discard)


class FaultyStore:
    """The store port over `inner`, with faults; `twin()` shares them.

    `victim` is who calls; None: nobody that could be hit, only calls fail.
    """

    def __init__(self, inner: Store, faults: Faults, victim: Victim | None = None) -> None:
        self._inner = inner
        self._faults = faults
        self._victim = victim

    async def _call[T](self, act: Callable[[], Awaitable[T]]) -> T:
        """Do one call, with what befalls any."""
        faults, victim = self._faults, self._victim
        await faults.travel()
        await faults.reach(victim)
        if faults.strikes("lost", victim):
            raise StoreUnavailable(problem="the request was lost")
        if victim is None:
            result = await act()
        else:
            result = await self._befall(victim, act)
        if faults.strikes("unanswered", victim):
            raise StoreUnavailable(problem="the answer was lost")
        if faults.strikes("delayed", victim):
            await asyncio.sleep(faults.between(0.5, _LONGEST_DELAY_SECONDS))
        await faults.travel()
        return result

    async def _befall[T](self, victim: Victim, act: Callable[[], Awaitable[T]]) -> T:
        """Do one call of a process, with what befalls the process."""
        faults = self._faults
        stands_still_before = faults.pick(2) == 0  # else when it is done
        if stands_still_before:
            await self._stand_still(victim)
        if faults.strikes("crash_before", victim):
            await _crash(victim)
        if faults.strikes("cut_off", victim):
            faults.cut_off(victim)
        result = await act()
        if not stands_still_before:
            await self._stand_still(victim)
        if faults.strikes("crash_after", victim):
            await _crash(victim)
        return result

    async def _stand_still(self, victim: Victim) -> None:
        faults = self._faults
        if faults.strikes("paused", victim):
            victim.pause(faults.between(1.0, _LONGEST_PAUSE_SECONDS))
            await asyncio.sleep(0)
        if faults.strikes("hung", victim):
            victim.hang(faults.between(1.0, _LONGEST_PAUSE_SECONDS))
            await asyncio.sleep(0)

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Commit, with what befalls a commit alone besides (R-20)."""
        faults, victim = self._faults, self._victim

        async def act() -> list[Answer]:
            if faults.strikes("late", victim):
                faults.later(lambda: self._inner.commit(units))
                raise StoreUnavailable(problem="it is not known whether the commit landed")
            if len(units) > 1 and faults.strikes("torn", victim):
                await self._inner.commit(units[: faults.pick(len(units))])
                raise StoreUnavailable(problem="the connection was cut within a group")
            answers = await self._inner.commit(units)
            if faults.strikes("doubled", victim):
                await self._inner.commit(units)
            return answers

        return await self._call(act)

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Read a log."""
        return await self._call(lambda: self._inner.read(tenant, run_id, after=after, limit=limit))

    async def header(self, tenant: str, run_id: str) -> RunRow:
        """Read a header."""
        return await self._call(lambda: self._inner.header(tenant, run_id))

    async def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Read the last header of a thread."""
        return await self._call(lambda: self._inner.tail(tenant, thread))

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        """Read a key row."""
        return await self._call(lambda: self._inner.key(tenant, run_id, key))

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = Exclude()
    ) -> Found:
        """Read claimable Runs."""
        return await self._call(
            lambda: self._inner.ready(limit, after_tenant=after_tenant, exclude=exclude)
        )

    async def overdue(self, limit: int) -> list[RunRow]:
        """Read Runs that a supervisor has to settle."""
        return await self._call(lambda: self._inner.overdue(limit))

    async def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a worker's row."""
        return await self._call(
            lambda: self._inner.enlist(
                worker, lease_seconds=lease_seconds, build=build, tools=tools
            )
        )

    async def workers(self) -> list[WorkerRow]:
        """Read the rows of workers that are not dead."""
        return await self._call(self._inner.workers)

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        """Prolong a lease."""
        return await self._call(
            lambda: self._inner.renew(worker, lease_seconds=lease_seconds, run_ids=run_ids)
        )

    async def held_by(self, worker: str) -> list[RunRow]:
        """Read the running Runs of a worker."""
        return await self._call(lambda: self._inner.held_by(worker))

    async def bury(self, observer: str) -> list[str]:
        """Mark workers dead."""
        return await self._call(lambda: self._inner.bury(observer))

    async def sweep(self) -> None:
        """Delete rows of dead workers."""
        await self._call(self._inner.sweep)

    def twin(self) -> "FaultyStore":
        """Return another handle with the same faults."""
        return FaultyStore(self._inner.twin(), self._faults, self._victim)

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        """Keep a published Spec."""
        await self._call(lambda: self._inner.put_version(tenant, hash, document))

    async def version(self, tenant: str, hash: str) -> str | None:
        """Read a published Spec."""
        return await self._call(lambda: self._inner.version(tenant, hash))

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        """Keep a document."""
        await self._call(lambda: self._inner.put_document(tenant, hash, kind, text))

    async def document(self, tenant: str, hash: str) -> str | None:
        """Read a document."""
        return await self._call(lambda: self._inner.document(tenant, hash))

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        """Wait for Runs to move."""
        return await self._call(lambda: self._inner.wait(tenant, heads, seconds, over=over))

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        """Wait for work, of which a message may be lost; it asks the store nothing."""
        while True:
            arrival = await self._inner.arrival(seen, seconds)
            if arrival.seen == seen or not self._faults.strikes("unheard", self._victim):
                return arrival
            seen = arrival.seen

    async def list_runs(
        self,
        tenant: str,
        *,
        filter: RunFilter = RunFilter(),
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Read a page of headers."""
        return await self._call(
            lambda: self._inner.list_runs(tenant, filter=filter, cursor=cursor, limit=limit)
        )

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        """Set or lift a cap."""
        await self._call(lambda: self._inner.set_cap(tenant, limit))

    async def cap(self, tenant: str) -> CapRow | None:
        """Read a cap."""
        return await self._call(lambda: self._inner.cap(tenant))

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        """Read a small value."""
        return await self._call(lambda: self._inner.value(tenant, kind, key))

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        """Write a small value."""
        return await self._call(
            lambda: self._inner.put_value(tenant, kind, key, value, expect=expect)
        )

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        """Delete a small value."""
        return await self._call(lambda: self._inner.delete_value(tenant, kind, key, expect=expect))

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        """Read small values."""
        return await self._call(
            lambda: self._inner.list_values(tenant, kind, prefix=prefix, after=after, limit=limit)
        )

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        """Take contents off records."""
        return await self._call(lambda: self._inner.blank(tenant, run_id, limit=limit))

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        """Delete Runs."""
        return await self._call(lambda: self._inner.delete_runs(tenant, headers, keys))

    async def migrate(self) -> None:
        """Bring the tables to this build's schema, without faults."""
        await self._inner.migrate()

    async def close(self) -> None:
        """End this handle, without faults."""
        await self._inner.close()

    async def __aenter__(self) -> Self:
        """Return the store itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()


async def _crash(victim: Victim) -> NoReturn:
    """Kill the caller in the middle of its call."""
    victim.crash()
    while True:  # nothing of the process runs again
        await asyncio.get_running_loop().create_future()
