"""Keeping records by hand in SQLite: a thread that writes, and one transaction for each step.

The arrangement is the store's own, as far as it concerns commits: WAL, synchronous FULL, one
transaction per step of a Run (admission, claim and four), and steps of several Runs that wait
for the writer share one.
"""

import asyncio
import queue
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tests.bench.by_hand import Texts

__all__ = ["Writer"]

_TABLES = """
CREATE TABLE run (run_id TEXT PRIMARY KEY, head INTEGER NOT NULL) STRICT;
CREATE TABLE record (
    run_id TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run_id, seq)
) STRICT;
"""


class _Step(NamedTuple):
    run_id: str
    texts: Texts
    kept: asyncio.Future[None]


class Writer:
    """A thread with the one connection that writes."""

    def __init__(self, path: Path) -> None:
        self.transactions = 0
        self._path = path
        self._steps: queue.SimpleQueue[_Step | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="by-hand-writer")
        self._thread.start()

    async def keep(self, run_id: str, texts: Texts) -> None:
        """Write a step; return once it is on the disk."""
        kept = self._loop.create_future()
        self._steps.put(_Step(run_id, texts, kept))
        await kept

    def close(self) -> None:
        """End the thread once everything is written."""
        self._steps.put(None)
        self._thread.join()

    def _write(self) -> None:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_TABLES)
            while (first := self._steps.get()) is not None:
                group = [first]
                while not self._steps.empty():
                    step = self._steps.get()
                    if step is None:
                        self._steps.put(None)
                        break
                    group.append(step)
                self._commit(connection, group)

    def _commit(self, connection: sqlite3.Connection, group: list[_Step]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for run_id, texts, _ in group:
            found = connection.execute(
                "SELECT head FROM run WHERE run_id = ?", (run_id,)
            ).fetchone()
            head = 0 if found is None else found[0]
            rows = [(run_id, seq, text) for seq, text in enumerate(texts, head + 1)]
            connection.executemany("INSERT INTO record VALUES (?, ?, ?)", rows)
            after = head + len(rows)
            if found is None:
                connection.execute("INSERT INTO run VALUES (?, ?)", (run_id, after))
            else:
                connection.execute("UPDATE run SET head = ? WHERE run_id = ?", (after, run_id))
        connection.execute("COMMIT")
        self.transactions += 1
        self._loop.call_soon_threadsafe(_tell, group)


def _tell(group: list[_Step]) -> None:
    for step in group:
        step.kept.set_result(None)
