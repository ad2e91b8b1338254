"""Statements about workers, leases and deaths, over the generated tables (R-5, R-6)."""

from sqlalchemy import Delete, Select, Update, bindparam, delete, exists, select, update

from psych_runtime.store.sql_words import NO, YES
from psych_schema.tables import tables

__all__ = ["WorkerStatements"]


class WorkerStatements:
    """What renewals and supervisors say."""

    def __init__(self, prefix: str) -> None:
        self._t = tables(prefix)

    def read_worker(self) -> Select[*tuple[object, ...]]:
        """Read a worker's row."""
        c = self._t.worker.c
        return select(*c).where(c.id == bindparam("worker"))

    def live_workers(self) -> Select[str]:
        """Read the ids of workers that are not dead."""
        c = self._t.worker.c
        return select(c.id).where(c.dead == NO)

    def worker_rows(self) -> Select[*tuple[object, ...]]:
        """Read the rows of workers that are not dead."""
        c = self._t.worker.c
        return select(*c).where(c.dead == NO).order_by(c.id)

    def renew_worker(self) -> Update:
        """Prolong a lease. 0 rows: the worker is dead or unknown, for ever."""
        c = self._t.worker.c
        return (
            update(self._t.worker)
            .where(c.id == bindparam("worker"), c.dead == NO)
            .values(
                lease_until=bindparam("until"),
                lease_seconds=bindparam("seconds"),
                beat=c.beat + YES,
                since=bindparam("unbroken_since"),
            )
        )

    def see_run(self) -> Select[*tuple[object, ...]]:
        """Read what a renewal tells of a Run."""
        c = self._t.run.c
        return select(c.epoch, c.head, c.abort, c.deadline_at).where(
            c.run_id == bindparam("run_id")
        )

    def lapsed_workers(self) -> Select[str]:
        """Read the ids of workers whose lease is over and whom nobody has declared dead."""
        c = self._t.worker.c
        lapsed = c.lease_until < bindparam("now")
        return select(c.id).where(c.dead == NO, lapsed).order_by(c.id)

    def bury_worker(self) -> Update:
        """Declare a worker dead whose lease is still over. 0 rows: it was renewed."""
        c = self._t.worker.c
        return (
            update(self._t.worker)
            .where(c.id == bindparam("worker"), c.dead == NO)
            .where(c.lease_until < bindparam("now"))
            .values(dead=YES)
        )

    def sweep_workers(self) -> Delete:
        """Delete dead workers' rows that no header names."""
        worker, run = self._t.worker, self._t.run
        named = exists().where(run.c.worker == worker.c.id)
        return delete(worker).where(worker.c.dead == YES, ~named)
