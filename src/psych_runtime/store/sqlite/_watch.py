"""Notices what other processes commit: PRAGMA data_version, one look per process (wake-ups)."""

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from psych_runtime.store._notices import Heads, News, Notices
from psych_runtime.store.sqlite._texts import Texts
from psych_runtime.store.units import OVER

__all__ = ["Watch"]

_SHORTEST_SECONDS: Final = 0.004
_LONGEST_SECONDS: Final = 0.05


class Watch:
    """Looks while somebody waits, less often the longer nothing happens.

    The first look, and each after a change, asks for the heads of all Runs that are waited for.
    """

    def __init__(self, notices: Notices, texts: Texts) -> None:
        self._notices = notices
        self._texts = texts
        self._version: int | None = None
        self._fresh: deque[str] = deque()  # Runs that may have moved before somebody waited
        self._pause_seconds = _SHORTEST_SECONDS

    def begin(self, run_ids: Iterable[str]) -> None:
        """Have the next look ask for these Runs, whatever was written; from any thread."""
        self._fresh.extend(run_ids)

    def look(self, connection: sqlite3.Connection) -> float | None:
        """Wake whose Run has moved; return in how many seconds to look again, None for never."""
        heads = self._notices.heads()
        if not heads:
            self._version = None
            return None
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        fresh = {self._fresh.popleft() for _ in range(len(self._fresh))}
        if version != self._version:
            fresh = {run_id for _, run_id in heads}
            self._version = version
        if not fresh:
            self._pause_seconds = min(self._pause_seconds * 1.5, _LONGEST_SECONDS)
            return self._pause_seconds
        self._pause_seconds = _SHORTEST_SECONDS
        moved: Heads = {}
        over: set[tuple[str, str]] = set()
        names = {"run_ids": json.dumps(list(fresh))}
        rows: Iterator[tuple[str, str, int, str]] = connection.execute(
            self._texts.read_heads, names
        )
        for tenant, run_id, head, state in rows:
            if head > heads.get((tenant, run_id), head):
                moved[tenant, run_id] = head
                if state in OVER:
                    over.add((tenant, run_id))
        self._notices.announce(News(moved, over=frozenset(over)))
        return self._pause_seconds
