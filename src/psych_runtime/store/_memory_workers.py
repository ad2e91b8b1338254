"""Worker rows of the in-memory store: leases and deaths (R-5, R-6)."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from psych_runtime.store._contact import in_contact, is_broken
from psych_schema.store import WorkerRow

__all__ = ["MemoryWorkers"]


class MemoryWorkers:
    """Rows by worker id; the store calls it under its lock and brings the clock."""

    def __init__(self) -> None:
        self._rows: dict[str, WorkerRow] = {}
        self.live: set[str] = set()

    def enlist(
        self, worker: str, lease_seconds: float, build: str, tools: Sequence[str], now: datetime
    ) -> None:
        """Write a row, or renew it when it was written before; a dead one stays dead."""
        before = self._rows.get(worker)
        if before is None:
            self.live.add(worker)
            self._rows[worker] = WorkerRow(
                id=worker,
                lease_until=now + timedelta(seconds=lease_seconds),
                lease_seconds=lease_seconds,
                beat=0,
                since=now,
                dead=False,
                build=build,
                tools=tuple(tools),
            )
        elif not before.dead:
            self.renew(worker, lease_seconds, now)

    def renew(self, worker: str, lease_seconds: float, now: datetime) -> bool:
        """Prolong a lease; False when the worker is dead or unknown."""
        row = self._rows.get(worker)
        if row is None or row.dead:
            return False
        broken = is_broken(row, now)
        self._rows[worker] = row.model_copy(
            update={
                "lease_until": now + timedelta(seconds=lease_seconds),
                "lease_seconds": lease_seconds,
                "beat": row.beat + 1,
                "since": now if broken else row.since,
            }
        )
        return True

    def alive(self) -> list[WorkerRow]:
        """Return rows that are not dead."""
        return [self._rows[worker] for worker in sorted(self.live)]

    def bury(self, observer: str, now: datetime) -> list[str]:
        """Mark every worker dead whose lease is over, if the observer may judge (R-6)."""
        judge = self._rows.get(observer)
        if judge is None or judge.dead or not in_contact(judge, now):
            return []
        buried = [worker for worker in sorted(self.live) if self._rows[worker].lease_until < now]
        for worker in buried:
            self._rows[worker] = self._rows[worker].model_copy(update={"dead": True})
        self.live.difference_update(buried)
        return buried

    def sweep(self, named: Callable[[str], bool]) -> None:
        """Drop dead rows that no header names."""
        for worker in self._dead():
            if not named(worker):
                del self._rows[worker]

    def _dead(self) -> Iterable[str]:
        return self._rows.keys() - self.live
