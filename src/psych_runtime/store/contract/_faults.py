"""Faults for checks: the same each time, and what a writer does about them (R-20)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, override

from psych_runtime._system import System
from psych_runtime.core.codec import outline_commit
from psych_runtime.errors import RunNotFound, StoreUnavailable
from psych_runtime.ports.answers import Answer, Committed, LeaseLost, SeqConflict
from psych_runtime.ports.checks import same
from psych_runtime.ports.store import Admit, Change, Store, Unit
from psych_runtime.store.contract._build import TENANT, change, key_row, named, new_id, unit
from psych_runtime.store.faults import FaultKind, Faults, FaultyStore, Victim

__all__ = [
    "CALLS",
    "COMMIT_FAULTS",
    "Chance",
    "Known",
    "Steered",
    "behind",
    "commit_ids",
    "in_doubt",
    "is_whole",
    "keyed",
    "landed",
    "late_commits",
    "receipt_of",
    "same_struck",
]

COMMIT_FAULTS: Final[tuple[FaultKind, ...]] = (
    "delayed",
    "doubled",
    "late",
    "lost",
    "torn",
    "unanswered",
)
"""What may befall a commit when the store is there."""

_SCALE: Final = 0.001  # a delay of 20 s takes 20 ms


class Chance(System):
    """A System whose chance is a sequence that `seed` begins."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._state = seed * 0x9E37_79B9_7F4A_7C15 % 2**64  # near seeds begin far apart

    @override
    def random(self) -> float:
        """Return the next number, in [0, 1)."""
        self._state = (self._state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return (self._state >> 11) / 2**53


class Steered(Faults):
    """Faults that are over soon, and two of which are in the hands of the check.

    Calls hang from `hang` to `go_on`, then land together. With `keeps_late`, commits that land
    late do so at `land`.
    """

    def __init__(
        self, chances: Mapping[FaultKind, float], *, seed: int = 1, keeps_late: bool = False
    ) -> None:
        super().__init__(Chance(seed), chances, scale=_SCALE)
        self._keeps_late = keeps_late
        self._kept: list[Callable[[], Awaitable[object]]] = []
        self._runs = asyncio.Event()
        self._runs.set()
        self._met = asyncio.Semaphore(0)

    def hang(self) -> None:
        """Let every call hang from now on."""
        self._runs.clear()
        self._met = asyncio.Semaphore(0)

    def go_on(self) -> None:
        """Let all of them go on."""
        self._runs.set()

    @override
    def go_away(self, seconds: float, *, stalls: bool = False, apart_seconds: float = 0.0) -> None:
        """Be away for `seconds` from now on."""
        super().go_away(seconds, stalls=stalls, apart_seconds=apart_seconds)
        self._met = asyncio.Semaphore(0)

    async def met(self, count: int) -> None:
        """Return once `count` calls have met the outage that has begun."""
        for _ in range(count):
            await self._met.acquire()

    @override
    async def reach(self, victim: Victim | None) -> None:
        """Reach the store, or find it away or hanging."""
        try:
            await super().reach(victim)
        except StoreUnavailable:
            self._met.release()
            raise
        if not self._runs.is_set():
            self.struck["stalled"] += 1
            self._met.release()
            await self._runs.wait()

    @override
    def later(self, act: Callable[[], Awaitable[object]]) -> None:
        """Do `act` later, or keep it until `land`."""
        if self._keeps_late:
            self._kept.append(act)
        else:
            super().later(act)

    async def land(self) -> list[object]:
        """Let what was kept land, in order; return the answers that nobody waits for."""
        answers = [await act() for act in self._kept]
        self._kept.clear()
        return answers


def behind(store: Store, kind: FaultKind) -> tuple[FaultyStore, Steered]:
    """Return a handle of `store` each of whose calls is struck by `kind`, and its faults."""
    faults = Steered({kind: 1.0})
    return FaultyStore(store, faults), faults


def late_commits(store: Store) -> tuple[FaultyStore, Steered]:
    """Return a handle of `store` whose commits land when its faults are told to."""
    faults = Steered({"late": 1.0}, keeps_late=True)
    return FaultyStore(store, faults), faults


def same_struck(faults: Faults, **wanted: int) -> None:
    """Raise AssertionError unless just these faults have struck, each so many times."""
    same(dict(faults.struck), wanted, "faults that struck")


async def in_doubt(answer: Awaitable[object], what: str) -> None:
    """Raise AssertionError unless `answer` is StoreUnavailable."""
    try:
        found = await answer
    except StoreUnavailable:
        return
    raise AssertionError(f"{what}: {found!r}, not StoreUnavailable")


def receipt_of(key: str) -> str:
    """Return the receipt that `keyed` writes for a key."""
    return json.dumps({"key": key})


def keyed(run_id: str, head: int, key: str, *, prev: str | None = None) -> Unit:
    """Return an outside writer's message: one record, and the row of its key."""
    keys = [key_row(key, run_id=run_id, receipt=receipt_of(key))]
    return named(unit(change(run_id, head), keys=keys), {} if prev is None else {run_id: prev})


async def commit_ids(store: Store, run_id: str) -> list[str]:
    """Return the commit id of each record of a log; its places are checked."""
    rows = await store.read(TENANT, run_id)
    same([row.seq for row in rows], list(range(1, len(rows) + 1)), f"the places in {run_id}")
    return [outline_commit(row) for row in rows]


async def _stands(store: Store, commit_id: str, part: Change | Admit) -> bool:
    """Tell whether what stands at the place of a change is that change."""
    after = 0 if isinstance(part, Admit) else part.expect_head
    try:
        rows = await store.read(TENANT, part.run_id, after=after, limit=len(part.records))
    except RunNotFound:
        return False
    return [outline_commit(row) for row in rows] == [commit_id] * len(part.records)


async def is_whole(store: Store, sent: Unit) -> bool:
    """Tell whether a unit is there, once. AssertionError: a part of it is, or it is doubled."""
    parts = [await _stands(store, sent.commit_id, part) for part in sent.changes]
    parts += [await store.key(TENANT, key.run_id, key.key) == key for key in sent.keys]
    same(set(parts) in ({True}, {False}), True, f"one fate of all {len(parts)} parts of a unit")
    for part in sent.changes if parts[0] else ():
        count = (await commit_ids(store, part.run_id)).count(sent.commit_id)
        same(count, len(part.records), "records of a unit in a log")
        head = (await store.header(TENANT, part.run_id)).head
        same(head >= part.records[-1].row.seq, True, "a head that is behind its log")
    return parts[0]


async def landed(store: Store, units: Sequence[Unit]) -> list[Answer]:
    """Send units again unchanged, as a writer in doubt does; each of them must be there then.

    A claim that had landed is LeaseLost: it is its own epoch that refuses it.
    """
    answers = await store.commit(units)
    for sent, answer in zip(units, answers, strict=True):
        known = isinstance(answer, Committed | SeqConflict | LeaseLost)
        same(known, True, f"{answer}, an answer to a unit that is sent again")
        same(await is_whole(store, sent), True, "a unit that was sent again")
    return answers


class Known(NamedTuple):
    """What the calls below are about: a Run at head 2, and the live worker that holds it."""

    run_id: str
    worker: str


type _Call = Callable[[Store, Known], Awaitable[object]]


def _writes(store: Store, known: Known) -> Awaitable[object]:
    return store.commit([unit(change(known.run_id, 2, fence=1))])


def _enlists(store: Store, known: Known) -> Awaitable[object]:
    return store.enlist(known.worker, lease_seconds=100.0, build="contract", tools=())


def _puts(store: Store, known: Known) -> Awaitable[object]:
    return store.put_value(TENANT, "contract", new_id("val"), known.worker, expect=None)


def _renews(store: Store, known: Known) -> Awaitable[object]:
    return store.renew(known.worker, lease_seconds=100.0, run_ids=(known.run_id,))


CALLS: Final[Mapping[str, _Call]] = {
    "blank": lambda store, known: store.blank(TENANT, known.run_id),
    "bury": lambda store, known: store.bury(known.worker),
    "cap": lambda store, known: store.cap("globex"),
    "commit": _writes,
    "delete_runs": lambda store, known: store.delete_runs(TENANT, (), ["none"]),
    "delete_value": lambda store, known: store.delete_value(TENANT, "contract", "none"),
    "document": lambda store, known: store.document(TENANT, "d" * 64),
    "enlist": _enlists,
    "header": lambda store, known: store.header(TENANT, known.run_id),
    "held_by": lambda store, known: store.held_by(known.worker),
    "key": lambda store, known: store.key(TENANT, known.run_id, "k"),
    "list_runs": lambda store, known: store.list_runs(TENANT),
    "list_values": lambda store, known: store.list_values(TENANT, "contract"),
    "overdue": lambda store, known: store.overdue(9),
    "put_document": lambda store, known: store.put_document(TENANT, "d" * 64, "tool", "{}"),
    "put_value": _puts,
    "put_version": lambda store, known: store.put_version(TENANT, "a" * 64, "{}"),
    "read": lambda store, known: store.read(TENANT, known.run_id),
    "ready": lambda store, known: store.ready(9),
    "renew": _renews,
    "set_cap": lambda store, known: store.set_cap("globex", 7),
    "sweep": lambda store, known: store.sweep(),
    "tail": lambda store, known: store.tail(TENANT, known.run_id),
    "value": lambda store, known: store.value(TENANT, "contract", "k"),
    "version": lambda store, known: store.version(TENANT, "a" * 64),
    "wait": lambda store, known: store.wait(TENANT, {known.run_id: 0}, 0.0),
    "workers": lambda store, known: store.workers(),
}
"""One call of each method of the port that asks the store something."""
