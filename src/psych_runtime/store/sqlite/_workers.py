"""Worker rows inside the writer's transaction: leases and deaths (R-5, R-6)."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from psych_runtime.ports.store import Renewed, Seen
from psych_runtime.store._contact import in_contact, is_broken
from psych_runtime.store.sqlite._rows import Value, worker_of
from psych_runtime.store.sqlite._texts import Texts
from psych_schema.base import format_instant
from psych_schema.store import WorkerRow

__all__ = ["Workers"]


class Workers:
    """What one job does to worker rows; `now` is the store's clock in its transaction."""

    def __init__(self, connection: sqlite3.Connection, texts: Texts, now: datetime) -> None:
        self._execute = connection.execute
        self._texts = texts
        self._now = now
        self._now_text = format_instant(now)

    def _row(self, worker: str) -> WorkerRow | None:
        row = self._execute(self._texts.read_worker, {"worker": worker}).fetchone()
        return None if row is None else worker_of(row)

    def enlist(
        self, worker: str, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a row, or renew it when it was written before; a dead one stays dead."""
        if self._row(worker) is None:
            row: dict[str, Value] = {
                "id": worker,
                "lease_until": self._until(lease_seconds),
                "lease_seconds": lease_seconds,
                "beat": 0,
                "since": self._now_text,
                "dead": 0,
                "build": build,
                "tools": json.dumps(list(tools)),
            }
            self._execute(self._texts.insert_worker, row)
        else:
            self._prolong(worker, lease_seconds)
        return self._now

    def renew(self, worker: str, lease_seconds: float, run_ids: Sequence[str]) -> Renewed | None:
        """Prolong a lease and tell about Runs; None when the worker is dead or unknown."""
        if not self._prolong(worker, lease_seconds):
            return None
        seen: dict[str, Seen] = {}
        for run_id in run_ids:
            row: tuple[int, int, str | None, str | None] | None = self._execute(
                self._texts.see_run, {"run_id": run_id}
            ).fetchone()
            if row is not None:
                epoch, head, abort, deadline_at = row
                overdue = deadline_at is not None and deadline_at <= self._now_text
                seen[run_id] = Seen(epoch, head, abort is not None, overdue)
        return Renewed(self._now, seen)

    def _prolong(self, worker: str, lease_seconds: float) -> bool:
        row = self._row(worker)
        if row is None or row.dead:
            return False
        broken = is_broken(row, self._now)
        values: dict[str, Value] = {
            "worker": worker,
            "until": self._until(lease_seconds),
            "seconds": lease_seconds,
            "unbroken_since": self._now_text if broken else format_instant(row.since),
        }
        self._execute(self._texts.renew_worker, values)
        return True

    def _until(self, lease_seconds: float) -> str:
        return format_instant(self._now + timedelta(seconds=lease_seconds))

    def lapsed(self) -> list[str]:
        """Return workers whose lease is over and whom nobody has declared dead."""
        rows = self._execute(self._texts.lapsed_workers, {"now": self._now_text}).fetchall()
        return [worker for (worker,) in rows]

    def bury(self, observer: str) -> list[str]:
        """Declare the lapsed workers dead, if the observer may judge (R-6)."""
        row = self._row(observer)
        if row is None or row.dead or not in_contact(row, self._now):
            return []
        buried = self.lapsed()
        for worker in buried:
            self._execute(self._texts.bury_worker, {"worker": worker, "now": self._now_text})
        return buried

    def sweep(self) -> None:
        """Forget dead workers that no header names."""
        self._execute(self._texts.sweep_workers)

    def rows(self) -> list[WorkerRow]:
        """Return the rows of workers that are not dead."""
        return [worker_of(row) for row in self._execute(self._texts.worker_rows).fetchall()]
