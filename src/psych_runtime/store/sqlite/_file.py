"""One database file in one process: its two threads and its waiters, shared by all handles."""

import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from psych_runtime._system import System
from psych_runtime.errors import StoreClosed, UnsupportedStore
from psych_runtime.store._arrivals import Arrivals
from psych_runtime.store._kept import Kept
from psych_runtime.store._notices import News, Notices
from psych_runtime.store.sqlite._connect import SqliteOptions
from psych_runtime.store.sqlite._lanes import Reader, Writer
from psych_runtime.store.sqlite._ledger import check
from psych_runtime.store.sqlite._texts import texts
from psych_runtime.store.sqlite._watch import Watch
from psych_runtime.store.sqlite._work import Look, Work

__all__ = ["SqliteFile", "acquire"]

type _Key = tuple[int, SqliteOptions, System | None]

_REMEMBERED: Final = 4096  # Runs of which it is known what was told last

_FILES: Final[dict[_Key, "SqliteFile"]] = {}
_LOCK: Final = threading.Lock()


class SqliteFile:
    """The threads of one file; `release` as often as it was acquired, the last one stops them."""

    def __init__(self, key: _Key) -> None:
        self._process, self.options, given = self._key = key
        self.system = given or System()
        self.texts = texts(self.options.prefix)
        self.notices = Notices(remembers=_REMEMBERED)
        self.arrivals = Arrivals()
        self.versions = Kept()
        self.handles = 0
        self.writer = Writer(self.options, self._check)
        self._watch = Watch(self.notices, self.texts)
        self.reader = Reader(self.options, self._check, self._watch.look)

    def _check(self, connection: sqlite3.Connection) -> None:
        check(connection, self.texts, self.options.prefix, self.options.path)

    def put(self, work: Work, *, writes: bool) -> None:
        """Hand work to one of the threads."""
        if os.getpid() != self._process:
            raise UnsupportedStore(
                problem=f"{self.options.path} was opened before this process was forked",
                remedy="open the store in the process that uses it",
            )
        (self.writer if writes else self.reader).put(work)

    def look(self, run_ids: Iterable[str]) -> None:
        """Look soon how far these Runs are, for which somebody waits."""
        self._watch.begin(run_ids)
        self.put(Look(), writes=False)

    def tell(self, news: News) -> None:
        """Tell whoever waits what has been committed; from any thread."""
        self.notices.announce(news)
        self.arrivals.hear(news)

    def again(self) -> None:
        """Count one more handle."""
        with _LOCK:
            if self.handles == 0:
                raise StoreClosed
            self.handles += 1

    async def release(self) -> None:
        """Count one handle less; after the last one the file is closed."""
        with _LOCK:
            self.handles -= 1
            if self.handles:
                return
            _FILES.pop(self._key, None)
        if os.getpid() == self._process:
            lanes = [(lane, lane.end()) for lane in (self.reader, self.writer)]
            for lane, last in lanes:  # both end, even when nobody waits for it any more
                await lane.ended(last)


def acquire(options: SqliteOptions, system: System | None) -> SqliteFile:
    """Return what this process has of a file, so that it has one writer thread."""
    options = options._replace(path=str(Path(options.path).resolve()))
    key = os.getpid(), options, system
    with _LOCK:
        file = _FILES.get(key)
        if file is None:
            file = _FILES[key] = SqliteFile(key)
        file.handles += 1
    return file
