"""The two threads of a database file: one writes, one reads; loops hand them jobs.

A job is a function of the connection. Jobs that wait for the writer are grouped in one
transaction, so that many commits cost one fsync; when a group fails, each job is tried alone,
so that none suffers for another (R-22).
"""

import queue
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from psych_runtime.store.sqlite._connect import LOCK_SLICE_SECONDS, SqliteOptions, connect
from psych_runtime.store.sqlite._failures import is_busy, translate
from psych_runtime.store.sqlite._work import Look, Stop, Work, deliver

__all__ = ["Lane", "Reader", "Writer"]

_WRITE_GROUP: Final = 256  # jobs of one transaction
_READ_GROUP: Final = 16  # jobs that are answered together
_JOBS_PER_LOOK: Final = 16  # while there is no time to be idle


class Lane(ABC):
    """A thread with one connection, opened at its first job and closed at its last."""

    def __init__(
        self, name: str, options: SqliteOptions, check: Callable[[sqlite3.Connection], None]
    ) -> None:
        self._options = options
        self._check = check
        self._checked = False
        self._jobs: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._last: Work | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._start = threading.Lock()

    def put(self, job: Work) -> None:
        """Hand in a job; the first one starts the thread."""
        self._jobs.put(job)
        if self._thread.ident is None:
            with self._start:
                if self._thread.ident is None:
                    self._thread.start()

    def end(self) -> Stop | None:
        """Let the jobs before this call end, then close the connection; None: none ever came."""
        if self._thread.ident is None:
            return None
        last = Stop()
        self.put(last)
        return last

    async def ended(self, last: Stop | None) -> None:
        """Return once the thread is gone; `last` is what `end` gave."""
        if last is not None:
            await last.stopped
            self._thread.join()  # it has nothing left to do

    def _open(self, *, writes: bool) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self._options, writes=writes)
        return self._connection

    def _check_schema(self, connection: sqlite3.Connection, job: Work) -> None:
        if job.needs_schema and not self._checked:
            self._check(connection)
            self._checked = True

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _failure(self, error: Exception) -> Exception:
        return translate(error, self._options.path)

    def _take(self, group: list[Work], job: Work) -> None:
        if isinstance(job, Stop):
            self._last = job
        else:
            group.append(job)

    def _gather(self, group: list[Work], most: int) -> None:
        """Add what waits already, up to the stop."""
        while self._last is None and len(group) < most:
            try:
                self._take(group, self._jobs.get_nowait())
            except queue.Empty:
                return

    @abstractmethod
    def _work(self) -> None:
        """Do jobs until told to stop."""


class Reader(Lane):
    """Does one job after another; those that waited together are answered together.

    When idle, and now and then when busy, it looks whether another process has written.
    """

    def __init__(
        self,
        options: SqliteOptions,
        check: Callable[[sqlite3.Connection], None],
        idle: Callable[[sqlite3.Connection], float | None],
    ) -> None:
        super().__init__("psych-sqlite-reader", options, check)
        self._idle = idle

    def _work(self) -> None:
        pause: float | None = None
        done = 0  # jobs since the last look
        while self._last is None:
            group: list[Work] = []
            try:
                self._take(group, self._jobs.get(timeout=pause))
                self._gather(group, _READ_GROUP)
            except queue.Empty:
                done = _JOBS_PER_LOOK
            for job in group:
                self._read(job)
            jobs = [job for job in group if not isinstance(job, Look)]
            deliver(jobs)
            done += len(jobs) if len(jobs) == len(group) else _JOBS_PER_LOOK
            if pause is None or done >= _JOBS_PER_LOOK:
                pause, done = self._look(), 0
        self._close()
        deliver([self._last])

    def _read(self, job: Work) -> None:
        try:
            connection = self._open(writes=False)
            self._check_schema(connection, job)
            job.execute(connection)
        except Exception as error:  # whatever it is, the one who asked must learn it
            job.fail(self._failure(error))

    def _look(self) -> float | None:
        if self._connection is None or not self._checked:
            return None
        try:
            return self._idle(self._connection)
        except Exception:  # a hint is lost; the next read tells what is wrong
            return None


class Writer(Lane):
    """Writes groups of jobs, each group in one immediate transaction."""

    def __init__(self, options: SqliteOptions, check: Callable[[sqlite3.Connection], None]) -> None:
        super().__init__("psych-sqlite-writer", options, check)
        self._patience = max(1, round(options.busy_timeout_seconds / LOCK_SLICE_SECONDS))

    def _work(self) -> None:
        while self._last is None:
            group: list[Work] = []
            self._take(group, self._jobs.get())
            self._gather(group, _WRITE_GROUP)
            if group:
                self._write(group)
        self._close()
        deliver([self._last])

    def _write(self, group: list[Work]) -> None:
        try:
            connection = self._open(writes=True)
            self._begin(connection, group)
        except Exception as error:  # the same for all: none was begun
            self._fail(group, error)
            return
        if group:
            self._try(connection, group)

    def _begin(self, connection: sqlite3.Connection, group: list[Work]) -> None:
        """Take the lock for the group, in which those are left for whom it was taken in time.

        Whoever has waited long enough is told; whoever comes meanwhile joins.
        """
        while group:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                for job in group:
                    job.slices += 1
                late = [job for job in group if job.slices >= self._patience]
                group[:] = [job for job in group if job.slices < self._patience]
                self._fail(late, error)
                self._gather(group, _WRITE_GROUP)
            else:
                self._gather(group, _WRITE_GROUP)
                return

    def _try(self, connection: sqlite3.Connection, group: list[Work]) -> None:
        try:
            for _, jobs in groupby(group, key=type):
                alike = list(jobs)
                for job in alike:
                    self._check_schema(connection, job)
                alike[0].execute_all(connection, alike)
            connection.execute("COMMIT")
        except Exception as error:  # nothing of the group is written; whose fault was it?
            self._roll_back(connection)
            if len(group) == 1:
                self._fail(group, error)
            else:
                for job in group:
                    self._write([job])
            return
        deliver(group)
        for job in group:
            job.finish()

    def _fail(self, jobs: Sequence[Work], error: Exception) -> None:
        for job in jobs:
            job.fail(self._failure(error))
        deliver(jobs)

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:  # closing rolls back, whatever state it is in
                self._close()
