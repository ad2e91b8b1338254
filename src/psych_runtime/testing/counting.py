"""Clock, ids and randomness that count: the same program gives the same bytes every time."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Final

from psych_runtime._system import System

__all__ = ["CountingSystem"]

_START: Final = datetime(2026, 11, 29, 20, tzinfo=UTC)
_TICK: Final = timedelta(milliseconds=1)


class CountingSystem(System):
    """A System without chance: each reading of the clock is a millisecond later.

    Ids are `prefix_` and a number of 26 digits, so they rise as real ones do. Two systems give
    the same ids: a second Run in one store needs another `first_id`.
    """

    def __init__(self, *, start: datetime = _START, first_id: int = 1) -> None:
        super().__init__()
        self._now = start
        self._start = start
        self._ids = itertools.count(first_id)
        self._salts = itertools.count(first_id)

    def now(self) -> datetime:
        """Return the next millisecond, in UTC."""
        self._now += _TICK
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Let `seconds` go by."""
        self._now += timedelta(seconds=seconds)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return (self.now() - self._start).total_seconds()

    def random(self) -> float:
        """Return one half."""
        return 0.5

    def salt(self) -> str:
        """Return the next number as 32 hexadecimal characters."""
        return f"{next(self._salts):032x}"

    def new_id(self, prefix: str) -> str:
        """Return `prefix`, an underscore and the next number."""
        return f"{prefix}_{next(self._ids):026d}"
