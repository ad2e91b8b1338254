"""Who waits for which Run in this process: commits wake them in their own loops at once.

A hint only: what is lost costs latency (R-1, wake-ups).
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2s
from typing import Final, NamedTuple

from psych_runtime.ports.store import Admit
from psych_runtime.store._sleepers import Sleeper, wake

__all__ = ["Heads", "Hint", "News", "Notices", "Waiter", "mark_of"]

type Heads = dict[tuple[str, str], int]
"""Tenant and Run, and a head."""

_NOTHING: Final[Heads] = {}
_NOBODY: Final[Mapping["Waiter", None]] = {}


class News(NamedTuple):
    """What commits or a look at the rows tell of Runs.

    Args:
        heads: how far they are.
        touched: changes without records: where their heads stay.
        over: which of both are settled or corrupt; None: that is not known, and whoever waits
            for it is woken, too.
        work: whether a Run became ready.
        admitted: new Runs that are ready, where the commit was this process's.
    """

    heads: Heads
    touched: Heads = _NOTHING
    over: frozenset[tuple[str, str]] | None = None
    work: bool = False
    admitted: tuple[Admit, ...] = ()

    def for_others(self) -> "News":
        """Return what other processes are told: that there is work, not what."""
        return self._replace(work=self.work or bool(self.admitted), admitted=())


class Hint(NamedTuple):
    """What another process tells of a Run; `mark` stands for its tenant (see `mark_of`)."""

    mark: str
    run_id: str
    head: int
    over: bool
    touched: bool


class Waiter(Sleeper):
    """One call of wait(): the Runs that it waits for, and those that have woken it."""

    def __init__(self, tenant: str, heads: Mapping[str, int], *, over: bool) -> None:
        super().__init__()
        self.tenant = tenant
        self.heads: Heads = {(tenant, run_id): head for run_id, head in heads.items()}
        self.over = over
        self.woken: set[str] = set()


class _Told(NamedTuple):
    mark: str
    head: int
    over: bool


class Notices:
    """Waiters by Run; safe to use from any thread.

    Args:
        remembers: of how many Runs it keeps what was told last, for those who begin to wait
            later; 0 where they look at the rows anyway.
    """

    def __init__(self, *, remembers: int = 0) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[str, dict[Waiter, None]] = {}
        self._remembers = remembers
        self._told: OrderedDict[str, _Told] = OrderedDict()

    @contextmanager
    def waiting(
        self, tenant: str, heads: Mapping[str, int], *, over: bool = False
    ) -> Iterator[Waiter]:
        """Register a waiter, woken already if what it waits for was told before.

        Look at the heads after that, or a commit in between may be missed.
        """
        waiter = Waiter(tenant, heads, over=over)
        with self._lock:
            for run_id in heads:
                self._waiters.setdefault(run_id, {})[waiter] = None
            if self._told:
                self._remind(waiter, heads)
        try:
            yield waiter
        finally:
            with self._lock:
                for run_id in heads:
                    waiters = self._waiters.get(run_id, {})
                    waiters.pop(waiter, None)
                    if not waiters:
                        self._waiters.pop(run_id, None)

    def _remind(self, waiter: Waiter, heads: Mapping[str, int]) -> None:
        mark = mark_of(waiter.tenant)
        for run_id, seen in heads.items():
            told = self._told.get(run_id)
            if told is None or told.mark != mark or told.head <= seen:
                continue
            if told.over or not waiter.over:
                waiter.woken.add(run_id)
                waiter.wake()

    def heads(self) -> Heads:
        """Return every Run that somebody waits for, with the lowest head that somebody has."""
        found: Heads = {}
        with self._lock:
            for waiters in self._waiters.values():
                for waiter in waiters:
                    for name, head in waiter.heads.items():
                        found[name] = min(found.get(name, head), head)
        return found

    def announce(self, news: News) -> None:
        """Wake whoever waits for what these Runs have come to."""
        if not (self._waiters or self._remembers):
            return
        woken: dict[Waiter, None] = {}
        with self._lock:
            for name, head in news.heads.items():
                over = None if news.over is None else name in news.over
                if self._remembers:
                    self._keep(name[1], mark_of(name[0]), head, over=bool(over))
                self._find(name[1], name[0], head, over, woken)
            for name, head in news.touched.items():
                over = None if news.over is None else name in news.over
                self._find(name[1], name[0], head + 1, over, woken)
        wake(woken)

    def hear(self, hints: Sequence[Hint]) -> None:
        """Wake whoever waits for what another process tells."""
        woken: dict[Waiter, None] = {}
        with self._lock:
            for hint in hints:
                if self._remembers and not hint.touched:
                    self._keep(hint.run_id, hint.mark, hint.head, over=hint.over)
                for tenant in {one.tenant for one in self._waiters.get(hint.run_id, _NOBODY)}:
                    if mark_of(tenant) == hint.mark:
                        head = hint.head + hint.touched
                        self._find(hint.run_id, tenant, head, hint.over, woken)
        wake(woken)

    def _find(
        self, run_id: str, tenant: str, head: int, over: bool | None, woken: dict[Waiter, None]
    ) -> None:
        for waiter in self._waiters.get(run_id, _NOBODY):
            if waiter.tenant != tenant or waiter.heads[tenant, run_id] >= head:
                continue
            if over is not False or not waiter.over:
                waiter.woken.add(run_id)
                woken[waiter] = None

    def _keep(self, run_id: str, mark: str, head: int, *, over: bool) -> None:
        """Remember what was told last; a Run that is over stays so."""
        before = self._told.pop(run_id, None)
        if before is not None and before.mark == mark:
            head, over = max(head, before.head), over or before.over
        self._told[run_id] = _Told(mark, head, over)
        if len(self._told) > self._remembers:
            self._told.popitem(last=False)


@lru_cache(maxsize=4096)
def mark_of(tenant: str) -> str:
    """Return what stands for a tenant where its name is nobody's business."""
    return blake2s(tenant.encode(), digest_size=4).hexdigest()
