"""Notices what other processes commit: PRAGMA data_version, one look per process (wake-ups)."""

import sqlite3
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
        self._pause_seconds = _SHORTEST_SECONDS

    def look(self, connection: sqlite3.Connection) -> float | None:
        """Wake whose Run has moved; return in how many seconds to look again, None for never."""
        heads = self._notices.heads()
        if not heads:
            self._version = None
            return None
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version:
            self._pause_seconds = min(self._pause_seconds * 1.5, _LONGEST_SECONDS)
            return self._pause_seconds
        self._version = version
        self._pause_seconds = _SHORTEST_SECONDS
        moved: Heads = {}
        over: set[tuple[str, str]] = set()
        for (tenant, run_id), seen in heads.items():
            names = {"tenant": tenant, "run_id": run_id}
            row: tuple[int, str] | None = connection.execute(
                self._texts.read_head, names
            ).fetchone()
            if row is not None and row[0] > seen:
                moved[tenant, run_id] = row[0]
                if row[1] in OVER:
                    over.add((tenant, run_id))
        self._notices.announce(News(moved, over=frozenset(over)))
        return self._pause_seconds
